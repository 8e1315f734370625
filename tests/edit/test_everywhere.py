"""One change at several places, each of which is alike."""

import ast
from collections.abc import Sequence

import pytest

from localagent.domain.edit import Edit
from localagent.domain.paths import RepoPath
from localagent.edit.operator_context import Change
from localagent.edit.operator_registry import operators
from localagent.edit.space import LibcstEditSpace

PATH = RepoPath("mod.py")


def everywhere(body: str) -> list[Edit]:
    source = f"def f(a, b, c=0):\n    {body}\n".encode()
    edits = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=())
    return [e for e in edits if e.operator == "same-everywhere"]


def offered(body: str) -> set[str]:
    source = f"def f(a, b, c=0):\n    {body}\n".encode()
    edits = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=())
    some = [e for e in edits if e.operator in ("same-everywhere", "twin-swap")]  # which of them is cheaper says it
    return {ast.unparse(ast.parse(e.apply(source))) for e in some}


@pytest.mark.parametrize(
    ("broken", "fixed"),
    [
        ("b = min(b, a)\n    c = min(c, a)\n    return b, c", "b = max(b, a)\n    c = max(c, a)\n    return b, c"),
        ("return a[0] + b - a[0]", "return a + b - a"),
        ("if a.next.val: b = a.next.next", "if a.val: b = a.next"),
        ("if a == b: return 1\n    if c == b: return 2", "if a != b: return 1\n    if c != b: return 2"),
        ("return a[b] + c[b]", "return a[b - 1] + c[b - 1]"),
        ("return (a or [0]).pop(0) + (b or [0]).pop(0)", "return (a or [0]).pop() + (b or [0]).pop()"),
        ("return a[c + 1] < a[c + 1 + b]", "return a[c - 1] < a[c - 1 + b]"),
    ],
)
def test_the_same_slip_at_several_places_is_mended_at_once(broken: str, fixed: str) -> None:
    assert ast.unparse(ast.parse(f"def f(a, b, c=0):\n    {fixed}\n")) in offered(broken)


def test_places_are_told_apart_by_the_words_beside_them() -> None:
    """Only those that follow `b =` are among one group; all of them are another."""
    body = "b = min(b, min(a))\n    b = min(b, min(c))\n    return b"
    made = offered(body)
    for fixed in (
        "b = max(b, min(a))\n    b = max(b, min(c))\n    return b",
        "b = max(b, max(a))\n    b = max(b, max(c))\n    return b",
    ):
        assert ast.unparse(ast.parse(f"def f(a, b, c=0):\n    {fixed}\n")) in made


def test_one_place_is_no_group_nor_are_many() -> None:
    assert everywhere("return a < b") == []
    many = " and ".join(f"a < {k}0" for k in range(1, 9))
    assert not any(e.note.startswith("< -> <=") and len(e.splices) > 6 for e in everywhere(f"return {many}"))


def test_names_that_end_alike_are_not_the_same() -> None:
    """`a.max_old` to `a.min_old` and `b.max_new` to `b.min_new` share three letters, and nothing else."""
    for edit in everywhere("return a.max_old(a.min_old) + b.max_new(b.min_new)"):
        assert len({s.text for s in edit.splices}) == 1


def test_it_costs_more_than_one_place_alone() -> None:
    body = "if a == b: return 1\n    if c == b: return 2"
    source = f"def f(a, b, c=0):\n    {body}\n".encode()
    edits = list(LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=()))
    alone = max(e.prior for e in edits if e.note == "== -> !=")
    assert all(e.prior < alone for e in edits if e.operator == "same-everywhere" and e.note.startswith("== -> !="))


def test_the_same_places_are_put_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    operators()
    from localagent.edit.operators import everywhere as module

    made: list[tuple[object, ...]] = []

    def counted(changes: Sequence[Change], delta: float) -> Change:
        made.append(together(changes, delta).splices)
        return together(changes, delta)

    together = module.together
    monkeypatch.setattr(module, "together", counted)
    everywhere("b = a.next.val\n    c = a.next.val\n    return b, c")
    assert 3 < len(made) == len(set(made))


def test_all_comparisons_of_one_value_change_together_before_most_others() -> None:
    ladder = "x = a > 9 and 3\n    y = a > 8 and 2\n    return x or y or {} > 7"
    likely = {name: max(e.prior for e in everywhere(ladder.format(name)) if ">=" in e.note) for name in "ab"}
    assert likely["a"] > -0.5 > likely["b"]
