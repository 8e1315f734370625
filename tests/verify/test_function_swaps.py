"""Which candidates may be swapped into live functions, and with what text."""

from support.house_builder import scope_at

from localagent.domain.edit import Candidate, Edit, FileChange, Patch, Splice
from localagent.domain.paths import RepoPath
from localagent.verify.worker import function_swaps

SOURCE = b"def a(x):\n    y = x\n    return y\n\n\nclass C:\n    def b(self):\n        return 1\n"
PATH = RepoPath("m.py")


def _edit(source: bytes, old: bytes, new: bytes) -> Edit:
    at = source.index(old)
    line = source.count(b"\n", 0, at) + 1
    splice = Splice(start=at, end=at + len(old), text=new)
    return Edit(
        path=PATH, splices=(splice,), operator="t", line=line, end_line=line, prior=0.0, scope=scope_at(source, line)
    )


def _candidate(*pairs: tuple[bytes, bytes]) -> Candidate:
    source, edits = SOURCE, []
    for old, new in pairs:
        edits.append(_edit(source, old, new))
        source = edits[-1].apply(source)
    patch = Patch(changes=(FileChange(path=PATH, before=SOURCE, after=source),))
    return Candidate(number=1, patch=patch, edits=tuple(edits), cost=0.0)


def test_a_method_is_sent_with_its_class_and_line() -> None:
    orders = function_swaps.plan(_candidate((b"return 1", b"return 2")), {})
    assert orders == [
        {
            "path": "m.py",
            "name": "b",
            "class": "C",
            "line": 7,
            "old_line": 7,
            "text": "    def b(self):\n        return 2",
        }
    ]


def test_lines_move_but_the_live_function_is_found_where_it_was() -> None:
    orders = function_swaps.plan(_candidate((b"y = x\n", b"y = x\n    y += 1\n"), (b"return 1", b"return 2")), {})
    assert orders is not None
    assert [(o["name"], o["line"], o["old_line"]) for o in orders] == [("a", 1, 1), ("b", 8, 7)]
    other_way = function_swaps.plan(_candidate((b"return 1", b"return 2"), (b"y = x\n", b"y = x\n    y += 1\n")), {})
    assert other_way is not None
    assert {(o["name"], o["line"], o["old_line"]) for o in other_way} == {("a", 1, 1), ("b", 8, 7)}


def test_a_changed_signature_says_what_becomes_of_the_defaults() -> None:
    orders = function_swaps.plan(_candidate((b"a(x)", b"a(x=1)"), (b"return y", b"return x")), {})
    assert orders is not None
    assert [o["defaults"] for o in orders] == [{"positional": [{"literal": "1"}], "keyword": {}}]
    method = function_swaps.plan(_candidate((b"b(self)", b"b(self, *, k=())")), {})
    assert method is not None
    assert method[0]["defaults"] == {"positional": [], "keyword": {"k": {"literal": "()"}}}


def test_computed_defaults_and_what_ran_while_importing_are_not_swapped() -> None:
    assert function_swaps.plan(_candidate((b"a(x)", b"a(x=[])")), {}) is None
    assert function_swaps.plan(_candidate((b"a(x)", b"c(x)")), {}) is None
    assert function_swaps.plan(_candidate((b"return y", b"return x")), {PATH: frozenset({1, 2})}) is None
    assert function_swaps.plan(_candidate((b"return y", b"return x")), {PATH: frozenset({1, 7})}) is not None


def test_bytes_that_the_edits_do_not_explain_are_not_swapped() -> None:
    good = _candidate((b"return 1", b"return 2"))
    other = FileChange(path=PATH, before=SOURCE, after=SOURCE + b"X = 1\n")
    forged = Candidate(number=1, patch=Patch(changes=(other,)), edits=good.edits, cost=0.0)
    assert function_swaps.plan(forged, {}) is None
