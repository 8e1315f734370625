"""Carrying an edit over another: the law is that order does not matter."""

import ast
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.edit import Edit, Scope, Splice
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.edit.space import open_edit_space
from localagent.repair.search.beam import rebased, same_change

M, N = RepoPath("m.py"), RepoPath("n.py")
SOURCE = b"def f(a):\n    return a - 1\n\n\ndef g(b):\n    c = b\n    return c * 2\n"


def edit(old: bytes, new: bytes, *, path: RepoPath = M, source: bytes = SOURCE, scope: Scope | None = None) -> Edit:
    at = source.index(old)
    line = source.count(b"\n", 0, at) + 1
    splice = Splice(start=at, end=at + len(old), text=new)
    return Edit(path=path, splices=(splice,), operator="o", line=line, end_line=line, prior=0, scope=scope)


def scope_of_g(source: bytes) -> Scope:
    at = source.index(b"def g")
    return Scope(
        name="g",
        qualname="g",
        class_name=None,
        first_line=source.count(b"\n", 0, at) + 1,
        last_line=source.count(b"\n"),
        start=at,
        body_start=source.index(b"    c ="),
        end=len(source) - 1,
    )


def test_an_edit_below_moves_with_its_lines_and_its_scope() -> None:
    above = edit(b"a - 1", b"(\n        a + 1\n    )")
    below = edit(b"c * 2", b"c * 3", scope=scope_of_g(SOURCE))
    moved = rebased(below, above, SOURCE)
    assert moved is not None
    program = above.apply(SOURCE)
    assert moved.apply(program) == SOURCE.replace(b"a - 1", b"(\n        a + 1\n    )").replace(b"c * 2", b"c * 3")
    assert moved.line == below.line + 2
    assert moved.scope == scope_of_g(program)


def test_an_edit_inside_the_same_function_lengthens_the_scope() -> None:
    inner = edit(b"c = b", b"c = abs(b)")
    below = edit(b"c * 2", b"c * 3", scope=scope_of_g(SOURCE))
    moved = rebased(below, inner, SOURCE)
    assert moved is not None
    assert moved.scope == scope_of_g(inner.apply(SOURCE))


def test_edits_that_touch_are_not_joined() -> None:
    assert rebased(edit(b"a - 1", b"a"), edit(b"- 1", b"+ 1"), SOURCE) is None
    assert rebased(edit(b"a -", b"b -"), edit(b" 1", b" 2"), SOURCE) is None
    heading = edit(b"def g(b):", b"def g(b, d):")
    assert rebased(edit(b"c * 2", b"c", scope=scope_of_g(SOURCE)), heading, SOURCE) is None


def test_another_files_edit_stays_as_it_is() -> None:
    here = edit(b"a - 1", b"a + 1")
    assert rebased(here, edit(b"a - 1", b"a", path=N), SOURCE) is here


@given(st.data())
def test_the_order_of_two_edits_does_not_matter(data: st.DataObject) -> None:
    source = data.draw(st.binary(min_size=8, max_size=60))

    def drawn() -> Edit:
        start = data.draw(st.integers(0, len(source)))
        end = data.draw(st.integers(start, len(source)))
        text = data.draw(st.binary(max_size=9))
        return Edit(
            path=M, splices=(Splice(start=start, end=end, text=text),), operator="o", line=1, end_line=1, prior=0
        )

    a, b = drawn(), drawn()
    ab, ba = rebased(b, a, source), rebased(a, b, source)
    assert (ab is None) == (ba is None)
    if ab is not None and ba is not None:
        assert ab.apply(a.apply(source)) == ba.apply(b.apply(source))


def test_joined_programs_still_parse() -> None:
    a, b = edit(b"a - 1", b"a + 1"), edit(b"c * 2", b"c")
    moved = rebased(b, a, SOURCE)
    assert moved is not None
    ast.parse(moved.apply(a.apply(SOURCE)))


def test_an_edit_that_touches_another_is_found_again_in_the_edit_space_of_its_program() -> None:
    source = b"def f(x):\n    try:\n        return g(x)\n    except (TypeError, ValueError):\n        return None\n"

    def widened(text: bytes) -> dict[bytes, Edit]:
        failures = tuple(Failure(exception=name, message="", frames=()) for name in ("OverflowError", "OSError"))
        edits = open_edit_space({}).edits(M, {M: text}, lines=frozenset({4}), failures=failures)
        return {e.apply(text): e for e in edits if e.operator == "exception-widen"}

    one, other = (
        source.replace(b"ValueError)", b"ValueError, " + name + b")") for name in (b"OverflowError", b"OSError")
    )
    edits = widened(source)
    assert rebased(edits[other], edits[one], source) is None
    again = same_change(edits[other], source, widened(one).values(), one)
    assert again is not None
    assert again.apply(one) == source.replace(b"ValueError)", b"ValueError, OverflowError, OSError)")
    assert same_change(edits[other], source, [edits[one]], source) is None
    assert same_change(replace(edits[other], operator="o"), source, widened(one).values(), one) is None
