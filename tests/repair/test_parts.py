"""The loop's small parts: identity, frontier, lineage, progress, controls, weights."""

import ast
import json
from pathlib import Path

import pytest

from localagent.domain.edit import Edit, Scope, Splice
from localagent.domain.outcome import Baseline, Failure, Frame, Outcome, QuickResult, QuickRoute
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.repair.acceptance.control_edits import breaking, no_op
from localagent.repair.ordering.weights import Weights, load_weights
from localagent.repair.search.code_equivalence import behaviour_key
from localagent.repair.search.partial_progress import WrittenLines, written_lines
from localagent.repair.search.partial_progress import progress_of as full_progress_of
from localagent.repair.search.search_node import Lineage, shifted_lines

M, T = RepoPath("m.py"), RepoPath("t.py")
ROOT = Lineage(number=None, edits=(), changed={}, identity=frozenset(), cost=0.0, round=0, failures=(), lines={})


def edit(start: int, end: int, text: bytes, *, line: int = 1, end_line: int = 1) -> Edit:
    splice = Splice(start=start, end=end, text=text)
    return Edit(path=M, splices=(splice,), operator="test", line=line, end_line=end_line, prior=0.0)


def test_comments_and_blanks_do_not_change_the_behaviour_key() -> None:
    a, b = b"def f(x):\n    return x+1\n", b"def f(x):\n\n    return x + 1  # more\n"
    assert behaviour_key(a, None, 0) == behaviour_key(b, None, 0)
    assert behaviour_key(a, None, 0) != behaviour_key(b.replace(b"1", b"2", 1), None, 0)


def test_equal_numbers_of_different_types_are_different_programs() -> None:
    assert behaviour_key(b"x = 1\n", None, 0) != behaviour_key(b"x = True\n", None, 0)
    assert behaviour_key(b"x = 0.0\n", None, 0) != behaviour_key(b"x = -0.0\n", None, 0)


def test_numbers_that_python_does_not_write_have_a_behaviour_key() -> None:
    digits = "f" * 4_000
    one, other = (f"def f(a):\n    return a in (0x{digits}{n}, 2), 0x{digits}\n".encode() for n in "01")
    assert behaviour_key(one, None, 0) == behaviour_key(one + b"# said\n", None, 0) is not None
    assert behaviour_key(one, None, 0) != behaviour_key(other, None, 0)


def test_the_key_of_a_method_sees_only_that_method() -> None:
    source = b"class C:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n"
    start = source.index(b"def f")
    end = source.index(b"return 1") + len(b"return 1")
    scope = Scope(
        name="f",
        qualname="C.f",
        class_name="C",
        first_line=2,
        last_line=3,
        start=start,
        body_start=start + 12,
        end=end,
    )
    assert behaviour_key(source, scope, 0) == behaviour_key(source.replace(b"return 2", b"return 3"), scope, 0)
    assert behaviour_key(source, scope, 0) != behaviour_key(source.replace(b"return 1", b"return 3"), scope, 0)


def test_what_does_not_compile_has_no_key() -> None:
    assert behaviour_key(b"break\n", None, 0) is None
    assert behaviour_key(b"(" * 9000, None, 0) is None


def test_lines_below_an_edit_move_with_it() -> None:
    before = b"a = 1\nb = 2\nc = 3\n"
    e = edit(6, 6, b"x = 0\ny = 0\n", line=2, end_line=2)
    moved = shifted_lines({M: {1: 0.1, 2: 0.5, 3: 0.9}}, e, before)
    assert moved[M][1] == 0.1
    assert moved[M][5] == 0.9
    assert moved[M][2] == moved[M][3] == moved[M][4] == 0.5


def test_only_the_lines_of_its_splices_share_an_edits_suspicion() -> None:
    before = b"a\nb\nc\nd\ne\n"
    two = Edit(
        path=M,
        splices=(
            Splice(start=1, end=1, text=b":"),
            Splice(start=4, end=4, text=b"    "),
            Splice(start=6, end=7, text=b"x\ny"),
        ),
        operator="x",
        line=1,
        end_line=4,
        prior=0.0,
    )
    moved = shifted_lines({M: {1: 0.9, 2: 0.4, 3: 0.2, 4: 0.1, 5: 0.5}, T: {3: 1.0}}, two, before)
    assert moved == {M: {1: 0.9, 2: 0.4, 3: 0.2, 4: 0.9, 5: 0.9, 6: 0.5}, T: {3: 1.0}}


@pytest.mark.parametrize(
    ("splice", "written", "scores"),
    [
        (Splice(start=2, end=2, text=b"n\n"), {2}, {1: 0.1, 2: 0.3, 3: 0.2, 4: 0.3}),  # a line before b
        (Splice(start=3, end=3, text=b"\nn"), {3}, {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.3}),  # a line after b
        (Splice(start=2, end=4, text=b""), set(), {1: 0.1, 2: 0.3}),  # b deleted
        (Splice(start=3, end=4, text=b" "), set(), {1: 0.1, 2: 0.3}),  # b and c joined
        (Splice(start=2, end=2, text=b"\n"), set(), {1: 0.1, 2: 0.3, 3: 0.2, 4: 0.3}),  # a blank line before b
    ],
)
def test_lines_that_come_and_go(splice: Splice, written: set[int], scores: dict[int, float]) -> None:
    before = b"a\nb\nc\n"
    one = Edit(path=M, splices=(splice,), operator="x", line=2, end_line=2, prior=0.0)
    assert written_lines(one, before).lines == written
    moved = shifted_lines({M: {1: 0.1, 2: 0.2, 3: 0.3}}, one, before)[M]
    assert moved == scores


def quick(*, turned: tuple[str, ...] = (), broken: tuple[str, ...] = (), failure: Failure | None = None) -> QuickResult:
    return QuickResult(
        outcomes={"t": Outcome.FAILED},
        turned=turned,
        broken=broken,
        complete=True,
        plausible=False,
        route=QuickRoute.SWAP,
        failures={"t": failure} if failure else {},
    )


def wrote(lines: set[int], before: str = "", after: str = "") -> WrittenLines:
    return WrittenLines(lines=frozenset(lines), before=before, after=after)


def crash(kind: str, message: str, line: int) -> Failure:
    return Failure(exception=kind, message=message, frames=(Frame(path=M, line=line, function="f"),))


def test_progress_is_turned_tests_or_a_failure_that_moved_on() -> None:
    base = Baseline(tests=(), failing=("t", "u"))

    def progress_of(before: list[Failure], baseline: Baseline, result: QuickResult) -> float:
        return full_progress_of(before, baseline, result, M, wrote({4}))

    old = [crash("NameError", "name 'x' is not defined", 4)]
    assert progress_of(old, base, quick(turned=("u",))) == 1.5
    assert progress_of(old, base, quick(turned=("u",), broken=("v",))) == 0
    assert progress_of(old, base, quick(failure=crash("AssertionError", "1 == 2", 9))) > 0.5
    assert progress_of(old, base, quick(failure=crash("NameError", "name 'y' is not defined", 6))) == 0.5
    assert progress_of(old, base, quick(failure=old[0])) == 0
    elsewhere = quick(failure=crash("NameError", "name 'x' is not defined", 6))
    assert full_progress_of(old, base, elsewhere, M, wrote({4}, "    return x")) == 0.5  # it is used once more
    assert full_progress_of(old, base, elsewhere, M, wrote({3, 4}, "    return x")) == 0
    lower = quick(failure=crash("NameError", "name 'x' is not defined", 5))
    assert progress_of(old, base, lower) == 0  # a line put in front of it, which has moved down
    nameless = [crash("TypeError", "no", 4)]
    assert progress_of(nameless, base, quick(failure=crash("TypeError", "no", 6))) == 0
    above = quick(failure=crash("NameError", "name 'y' is not defined", 2))
    assert full_progress_of(old, base, above, M, wrote({2, 4})) == 0
    assert full_progress_of(old, base, above, M, wrote({3})) == 0
    assert progress_of(old, base, above) == 0.5  # a loop: only the line that crashed was written
    assert progress_of(old, base, quick(failure=crash("RecursionError", "too deep", 2))) == 0
    assert progress_of(old, base, quick(failure=crash("NameError", "name 'y' is not defined", 4))) == 0
    second = quick(failure=crash("NameError", "name 'y' is not defined", 4))
    assert full_progress_of(old, base, second, M, wrote({4}, "    return x(y)")) == 0.5  # two faults on one line
    assert full_progress_of(old, base, second, M, wrote({4}, "    return x(yy)")) == 0
    enclosing = "cannot access free variable 'y' where it is not associated with a value in enclosing scope"
    second = quick(failure=crash("NameError", enclosing, 4))
    assert full_progress_of(old, base, second, M, wrote({4}, "    return x(y)")) == 0.5
    lacking = quick(failure=crash("AttributeError", "'int' object has no attribute 'add'", 4))
    for after, progress in (("y.add(1)", 0), ("x.add(2)", 0.5), ("self.add(1)", 0.5), ("f(y).add(1)", 0), ("add", 0)):
        told = wrote({4}, "    x.add(1)", f"    {after}")
        assert full_progress_of(old, base, lacking, M, told) == progress, after
    wrong = [crash("AssertionError", "1 == 2", 9)]
    assert progress_of(wrong, base, quick(failure=crash("TypeError", "no", 4))) == 0


def test_lines_between_two_places_of_an_edit_are_not_written_by_it() -> None:
    before = b"def f(a)\n    b = a\n    c = 0b\n    return c\n"
    colon, number = before.index(b")") + 1, before.index(b"0b")
    two = Edit(
        path=M,
        splices=(Splice(start=colon, end=colon, text=b":"), Splice(start=number, end=number + 2, text=b"b")),
        operator="tokens.insert-colon+split-number",
        line=1,
        end_line=3,
        prior=0.0,
    )
    assert written_lines(two, before) == WrittenLines(
        lines=frozenset({1, 3}), before="def f(a)\n    c = 0b", after="def f(a):\n    c = b"
    )
    old = [Failure(exception="SyntaxError", message="expected ':'", frames=(Frame(path=M, line=1, function=""),))]
    base = Baseline(tests=(), failing=("t",))
    for line, progress in ((2, 0.8), (3, 0.0)):
        got = quick(failure=crash("TypeError", "'int' object is not iterable", line))
        assert full_progress_of(old, base, got, M, written_lines(two, before)) == progress
    lines = Edit(
        path=M,
        splices=(
            Splice(start=9, end=9, text=b"    "),
            Splice(start=19, end=29, text=b"    x\n    y\n"),
            Splice(start=30, end=30, text=b"z"),
        ),
        operator="x",
        line=2,
        end_line=4,
        prior=0.0,
    )
    assert written_lines(lines, before).lines == frozenset({3, 4, 5, 6})


def test_controls_inside_a_function_stay_inside_its_body() -> None:
    source = b'x = 1\n\n\ndef f(a):\n    """Doc."""\n    if a:\n        return 1  # one\n'
    start, end = source.index(b"def f"), source.index(b"  # one")
    scope = Scope(
        name="f",
        qualname="f",
        class_name=None,
        first_line=4,
        last_line=7,
        start=start,
        body_start=source.index(b'\n    """'),
        end=end,
    )
    for e in (no_op(M, source, scope), *breaking(M, source, 6, scope)):
        assert e.scope == scope
        assert all(scope.body_start <= s.start <= s.end <= scope.end for s in e.splices)
        ast.parse(e.apply(source))
    assert ast.dump(ast.parse(no_op(M, source, scope).apply(source))) == ast.dump(ast.parse(source))


@pytest.mark.parametrize(
    "source",
    [
        b"def f(x):\n    return x\n",
        b"def f(x): return x\n",
        b"class C:\n\tdef f(self):\n\t\t'''doc'''\n\t\treturn 1\n",
        b"def f(x):\r\n    return x\r\n",
        b"x = 1",
    ],
)
def test_controls_parse_and_say_what_they_are(source: bytes) -> None:
    line = 3 if b"class" in source else 1
    silent = no_op(M, source)
    assert ast.dump(ast.parse(silent.apply(source))) == ast.dump(ast.parse(source))
    for e in breaking(M, source, line):
        text = e.apply(source)
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(source))
        assert b"localagent control" in text or b"NotImplemented" in text


@pytest.mark.parametrize("rest", [b"return 1", b"'more'", b"x: int"])
def test_controls_leave_a_docstring_in_its_place(rest: bytes) -> None:
    """Its examples may be the failing tests."""
    source = b"def f(x):\n    'doc'\n    " + rest + b"\n"
    for e in breaking(M, source, 1):
        function = ast.parse(e.apply(source)).body[0]
        assert isinstance(function, ast.FunctionDef)
        assert ast.get_docstring(function) == "doc"


def test_weights_refuse_unknown_names_and_wrong_types_together(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    assert load_weights(path) == Weights()
    path.write_text(json.dumps({"model": 2, "colour": 1, "round": "x"}))
    with pytest.raises(UsageFault) as fault:
        load_weights(path)
    assert len(fault.value.faults) == 2
    path.write_text('{"model": 2}')
    assert load_weights(path).model == 2.0
