"""What operators say of their edits: typed effects, at the edits that have them and at no others."""

from collections.abc import Sequence

import pytest

from localagent.domain.edit import Edit
from localagent.domain.edit import EditEffect as E
from localagent.domain.outcome import Failure, Frame
from localagent.domain.paths import RepoPath
from localagent.edit.edit_effects import alike
from localagent.edit.space import open_edit_space

M = RepoPath("m.py")


def effects(before: str, after: str, *failures: Failure) -> frozenset[E]:
    """The effects of the edit that makes one text of the other."""
    found = [e for e in edits(before, failures) if e.apply(before.encode()) == after.encode()]
    assert found, "no such edit"
    return found[0].effects


def edits(source: str, failures: Sequence[Failure] = ()) -> list[Edit]:
    return list(open_edit_space({}).edits(M, {M: source.encode()}, lines=None, failures=failures))


def body(text: str) -> str:
    return f"def f(a, b, items, total):\n    {text}\n"


def crash(exception: str, message: str, line: int = 2) -> Failure:
    return Failure(exception=exception, message=message, frames=(Frame(path=M, line=line, function="f"),))


@pytest.mark.parametrize(
    ("before", "after", "there", "absent"),
    [
        ("return a == b", "return a != b", {E.NEGATES_EQUALITY, E.MOVES_BOUNDARY}, {E.NEGATES_ORDER}),
        ("return a is not b", "return a is b", {E.NEGATES_EQUALITY}, set()),
        ("return a < b", "return a >= b", {E.NEGATES_ORDER}, {E.NEGATES_EQUALITY}),
        ("return a < b", "return a <= b", {E.MOVES_BOUNDARY}, {E.NEGATES_ORDER}),
        ("a *= b", "a += b", {E.CHANGES_ARITHMETIC}, set()),
        ("a -= b", "a += b", set(), {E.CHANGES_ARITHMETIC}),
        ("return a // b", "return a / b", set(), {E.CHANGES_ARITHMETIC}),
        ("return a - b", "return a % b", {E.CHANGES_ARITHMETIC}, set()),
        ("return items[a+1]", "return items[a]", {E.DROPS_ONE}, set()),
        ("return len(items) - 1", "return len(items)", {E.DROPS_ONE}, set()),
        ("return a + 2", "return a", set(), {E.DROPS_ONE}),
        ("if a and b: return 1", "if not (a and b): return 1", {E.NEGATES_SEVERAL}, set()),
        ("if total: return 1", "if not total: return 1", set(), {E.NEGATES_SEVERAL}),
        ("return max(items, total)", "return b", {E.SHORTENS_TO_WORD}, set()),
        ("a = max(b, total)", "a = b", set(), {E.SHORTENS_TO_WORD}),  # one of its arguments
        ("a = items[b] + total", "a = total", set(), {E.SHORTENS_TO_WORD}),
        ("return items[0] + items[1] + items[2] + items[3] + items[4]", "return total", {E.SHORTENS_TO_WORD}, set()),
        ("a = b", "a = b\n    return False", {E.RETURNS_LITERAL}, set()),
        ("a = b", "a = b\n    return total", set(), {E.RETURNS_LITERAL}),
        ("a = b\n    return a", "return a", {E.DELETES}, set()),
        ("return a", "if not a:\n        return 0\n    return a", {E.ADDS_GUARD, E.LEAVES_EARLY}, set()),
    ],
)  # fmt: skip
def test_an_operator_says_what_its_edit_does(before: str, after: str, there: set[E], absent: set[E]) -> None:
    found = effects(body(before), body(after))
    assert (there - found, absent & found) == (set(), set())


@pytest.mark.parametrize(
    ("before", "after", "there", "absent"),
    [
        ("return totl", "return total", {E.MENDS_NAME, E.EXPLAINED, E.RESEMBLES}, {E.INVENTS_LITERAL}),
        ("return totl", "return b", {E.EXPLAINED}, {E.RESEMBLES}),
        ("return totl", "return 0", {E.INVENTS_LITERAL}, set()),
        ("return totl", "return None", set(), {E.INVENTS_LITERAL}),
        ("return a + totl", "return a", {E.DROPS_UNDEFINED}, set()),
        ("return totl", "totl = 0\n    return totl", {E.INVENTS}, {E.STARTS_FROM_EXPRESSION}),
        ("return totl", "totl = set()\n    return totl", set(), {E.STARTS_FROM_EXPRESSION}),
        ("return totl", "totl = len(items)\n    return totl", {E.STARTS_FROM_EXPRESSION}, set()),
        ("return totl, totl", "return total, total", {E.EXPLAINED, E.RESEMBLES}, set()),
        ("return totl(a)", "return a", {E.REPLACES_CALL, E.DROPS_CALL, E.INVENTS}, {E.CALLS_WITH_ARGUMENTS}),
        ("return totl(a)", "return set(a)", {E.REPLACES_CALL, E.CALLS_WITH_ARGUMENTS}, {E.DROPS_CALL, E.RESEMBLES}),
        ("return totl(a, b)", "return (a % b)", {E.INVENTS}, {E.DROPS_CALL, E.CALLS_WITH_ARGUMENTS}),
    ],
)
def test_what_a_name_error_asks_for(before: str, after: str, there: set[E], absent: set[E]) -> None:
    failure = crash("NameError", "name 'totl' is not defined")
    found = effects(body(before), body(after), failure)
    assert ({E.MENDS_NAME, *there} - found, absent & found) == (set(), set())


def test_one_change_at_several_places_negates_nothing_and_mends_names_all_the_same() -> None:
    before, after = body("return a == b or total == b"), body("return a != b or total != b")
    assert E.NEGATES_EQUALITY not in effects(before, after)
    failure = crash("AttributeError", "'list' object has no attribute 'push'")
    found = effects(body("a.push(1); b.push(2)"), body("a.append(1); b.append(2)"), failure)
    assert E.MENDS_NAME in found


@pytest.mark.parametrize(
    ("before", "after", "there", "absent"),
    [
        ("if a = b:\n        return 1", "if a == b:\n        return 1", {E.COMPARES}, {E.SEVERAL_FIXES}),
        ("if a = b:\n        return 1", "if a != b:\n        return 1", set(), {E.COMPARES}),
        ("if a = b\n        return 1", "if a == b:\n        return 1", {E.SEVERAL_FIXES}, {E.COMPARES}),
        ("return (a))", "return (a)", {E.DELETES}, {E.DELETES_LINE}),
        ("a = b = = total\n    return a", "return a", {E.DELETES, E.DELETES_LINE}, set()),
        ("a = b\n        return a", "a = b\n        # return a", {E.COMMENTS_OUT}, set()),
        ("return a $ b", "return a + b", {E.REPLACES_LEXEME}, {E.EXPLAINED}),
    ],
)
def test_fixes_of_what_does_not_parse(before: str, after: str, there: set[E], absent: set[E]) -> None:
    found = effects(body(before), body(after))
    assert ({E.MENDS_SYNTAX, *there} - found, absent & found) == (set(), set())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("UndefinedList", "List", True),
        ("self.get_values(d)", "d.values()", True),
        ("self.get_values(d)", "list(d.values())", True),
        ("self.get_values(d)", "d.items()", False),
        ("sort", "sorted", True),
        ("self.L", "l", True),
        ("value", "count", False),
        ("", "value = 0", False),
    ],
)
def test_names_are_alike_by_their_words_or_letters(old: str, new: str, expected: bool) -> None:
    assert alike(old, new) is expected
