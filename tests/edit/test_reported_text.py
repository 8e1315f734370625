"""Texts that a failing comparison suggests: the word that differs, never an answer written anew."""

import ast
from collections.abc import Sequence
from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.edit.operator_registry import operators
from localagent.edit.space import LibcstEditSpace

PATH = RepoPath("mod.py")


def offered(source: str, *, left: str = "", right: str = "", message: str = "") -> set[str]:
    failure = Failure(exception="AssertionError", message=message, left=left, right=right)
    edits = LibcstEditSpace({}).edits(PATH, {PATH: source.encode()}, lines=None, failures=[failure])
    return {e.apply(source.encode()).decode() for e in edits if e.operator == "reported-text"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "fixed", "left", "right"),
    [
        ("return 'Hello, ' + name", "return 'Hallo, ' + name", "Hello, Ann", "Hallo, Ann"),
        ("return f'unknwon name {name}'", "return f'unknown name {name}'", "unknwon name x", "unknown name x"),
        ("return 'took %d secs' % n", "return 'took %d seconds' % n", "took 3 secs", "took 3 seconds"),
        ("return '{} items: {}'.format(n, x)", "return '{} items; {}'.format(n, x)", "3 items: x", "3 items; x"),
        ("return 'a b' + x", "return 'a, b' + x", "a b", "a, b"),
        ("return 'done..' + x", "return 'done.' + x", "done..", "done."),
        ('return ["kind", n]', 'return ["kinds", n]', "['kind', 3]", "['kinds', 3]"),
    ],
)
def test_the_word_that_differs_is_offered_whichever_side_the_test_names_first(
    broken: str, fixed: str, left: str, right: str
) -> None:
    source, want = f"def f(name, n=1, x=''):\n    {broken}\n", f"def f(name, n=1, x=''):\n    {fixed}\n"
    sides = (left, right) if left.startswith("[") else (repr(left), repr(right))
    assert want in offered(source, left=sides[0], right=sides[1])
    assert want in offered(source, left=sides[1], right=sides[0])


def test_a_message_that_was_to_match_a_pattern_is_offered() -> None:
    source = "def f(x):\n    raise ValueError(f'{x} must be postive.')\n"
    wanted, got = "must be positive\\\\.", "3 must be postive."
    message = f"Regex pattern did not match.\n  Expected regex: '{wanted}'\n  Actual message: '{got}'"
    assert source.replace("postive", "positive") in offered(source, message=message)


def test_a_text_written_anew_is_not_offered() -> None:
    source = "def f(x):\n    return 'no'\n"
    assert offered(source, left="'no'", right="'the answer is forty-two'") == set()


def test_without_a_comparison_nothing_is_offered() -> None:
    assert offered("def f(x):\n    return 'no'\n", message="boom") == set()


@given(st.text("ab c.", max_size=12), st.text("ab c.", max_size=20), st.text("ab c.'\\%{", max_size=20))
def test_what_is_offered_can_be_put_between_quotes(old: str, got: str, wanted: str) -> None:
    operators()  # registers them in their order; a family imported by itself would come first
    from localagent.edit.operators.reported_text import _differences, _wanted

    for new in _wanted(old, list(_differences(got, wanted))) if old else ():
        assert new != old
        assert ast.literal_eval(f"'{new}'") == new


def test_differences_are_looked_for_once_and_in_some_hundred_words(monkeypatch: pytest.MonkeyPatch) -> None:
    operators()
    from localagent.edit.operators import reported_text

    compared: list[int] = []

    class Counted(SequenceMatcher[str]):
        def __init__(self, isjunk: None, a: Sequence[str], b: Sequence[str], autojunk: bool = True) -> None:
            compared.append(len(a) * (not isinstance(a, str)))
            super().__init__(isjunk, a, b, autojunk)

    monkeypatch.setattr(reported_text, "SequenceMatcher", Counted)
    source = "def f(x):\n" + "".join(f"    x += 'some words {n}'\n" for n in range(30)) + "    return x\n"
    for many in (1, 30):
        del compared[:]
        head = "same, " * 90 + "some words, "
        offered(source, left=head + "0, " * 400, right=head.replace("some w", "such w") + "1, " * 400)
        texts = [n for n in compared if n]
        assert 0 < len(texts) <= 2  # one way round and the other
        assert max(texts) <= 202, many
