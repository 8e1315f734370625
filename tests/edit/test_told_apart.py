"""What failures tell the edit space: each thing once, however many tests say it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.edit import Edit
from localagent.domain.outcome import Failure, Frame
from localagent.domain.paths import RepoPath
from localagent.edit import space
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import Operator, operators
from localagent.edit.space import LibcstEditSpace, distinct_failures
from localagent.ports import Priced

PATH, TESTS = RepoPath("mod.py"), RepoPath("test_mod.py")
SOURCE = b"def f(a, b):\n    c = new + a[b]\n    if c > new:\n        return a[b + 1]\n    return c\n"


def undefined(line: int, *, test_line: int = 1, name: str = "new") -> Failure:
    frames = (Frame(path=TESTS, line=test_line, function="test"), Frame(path=PATH, line=line, function="f"))
    return Failure(exception="NameError", message=f"name '{name}' is not defined", frames=frames)


def edits(failures: list[Failure], *, priced: bool) -> list[Edit]:
    lines = Priced(dearer={n: 0.0 if n == 2 else 1.5 for n in range(1, 6)}, crowd=0.25) if priced else None
    return list(LibcstEditSpace({}).edits(PATH, {PATH: SOURCE}, lines=lines, failures=failures))


@pytest.mark.parametrize("priced", [True, False])
def test_the_same_failure_of_many_tests_tells_what_one_tells(priced: bool) -> None:
    alone = edits([undefined(2)], priced=priced)
    assert any(e.operator.startswith("undefined-") for e in alone)
    assert edits([undefined(2, test_line=n) for n in range(1, 60)], priced=priced) == alone


def test_operators_are_asked_about_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []

    def counted(*args: Any, **more: Any) -> OperatorContext:
        told.append(len(more["failures"]))
        return OperatorContext(*args, **more)

    monkeypatch.setattr(space, "OperatorContext", counted)
    edits([undefined(2, test_line=n) for n in range(400)], priced=True)
    assert set(told) == {1}


def test_a_text_that_is_proposed_twice_is_no_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two failures may ask for the same edit, which makes no other edit of the line dearer."""
    source = b"def f(a):\n    return a + 1\n"
    contexts: list[OperatorContext] = []

    def kept(*args: Any, **more: Any) -> OperatorContext:
        contexts.append(OperatorContext(*args, **more))
        return contexts[-1]

    monkeypatch.setattr(space, "OperatorContext", kept)
    list(LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=()))
    place, op = space._SharedContext(contexts[0]), next(iter(operators().values()))
    once = [proposal(cost, text, op, place) for cost, text in ((1.0, "b"), (1.05, "c"))]
    other = proposal(1.1, "d", operators()["negate"], place, number=1)
    again = [proposal(1.0, "b", op, place)] * 9
    lines = Priced(dearer={2: 0.0}, crowd=0.25)
    assert space._cheapest_first([*again, *once, other], lines) == [once[0], other, once[1]]
    assert space._cheapest_first([*once, other], lines) == [once[0], other, once[1]]


def proposal(cost: float, text: str, op: Operator, place: space._SharedContext, *, number: int = 0) -> space._Proposal:
    return space._Proposal(cost, number, 1, Change(((21, 22, text),), 0.0, 2, 2, text), op, place)


def test_failures_that_tell_different_things_are_all_told() -> None:
    other = Failure(exception="AssertionError", message="assert 1 == 2", left="1", right="2")
    some = [undefined(2), undefined(3), undefined(2, name="x"), other, Failure(exception="AssertionError", message="")]
    assert distinct_failures(PATH, [*some, *some]) == some


def test_how_deep_a_function_called_itself_makes_no_difference() -> None:
    def deep(levels: int, *, first: int = 2) -> Failure:
        frames = tuple(Frame(path=PATH, line=line, function="f") for line in (first, *[3] * levels, 4))
        return Failure(exception="KeyError", message="1", frames=frames)

    assert distinct_failures(PATH, [deep(n) for n in range(1, 50)]) == [deep(1)]
    assert distinct_failures(PATH, [deep(3), deep(3, first=1)]) == [deep(3), deep(3, first=1)]


def test_of_failures_at_one_place_some_are_told_and_then_those_elsewhere() -> None:
    keys = [
        Failure(exception="KeyError", message=str(n), frames=(Frame(path=PATH, line=4, function="f"),))
        for n in range(500)
    ]
    told = distinct_failures(PATH, [*keys, undefined(2)])
    assert told == [*keys[:8], undefined(2)]


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from("ab"), st.integers(1, 3)), max_size=300))
def test_what_is_told_is_some_of_the_failures_in_their_order_and_each_once(some: list[tuple[int, str, int]]) -> None:
    failures = [undefined(line, name=name, test_line=at) for line, name, at in some]
    told = distinct_failures(PATH, failures)
    assert len(told) == len({(line, name) for line, name, _ in some})
    assert told == [f for f in failures if any(f is each for each in told)]
    assert distinct_failures(PATH, told) == told
