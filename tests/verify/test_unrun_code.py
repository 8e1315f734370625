"""Which changed code no passing test ran."""

import pytest

from localagent.domain.outcome import Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.patch_coverage import covered, not_measured, nothing_covered, unrun

PATH = RepoPath("m.py")
TEXT = "LIMIT = 3\n\n\ndef f(x, most=1):\n    return x\n\n\ndef g(x):\n    y = x\n    return y\n"
BEGIN = "LIMIT = 3\n\n\ndef f(x, most=1):\n    return x"
F, G = frozenset({5}), frozenset({9, 10})
LOADED = {PATH: frozenset({1, 4, 8})}


def _missed(before: str, after: str, ran: frozenset[int], outcome: Outcome = Outcome.PASSED) -> list[tuple[str, bool]]:
    file = ChangedFile(path=PATH, source=PATH, before=before.encode(), after=after.encode())
    test = TestResult(id="t", outcome=outcome, lines={PATH: ran})
    return [(code.name, code.new) for code in unrun([file], [test], LOADED)]


@pytest.mark.parametrize(
    ("old", "new", "ran", "missed"),
    [
        ("return x", "return -x", F, []),
        ("return x", "return -x", G, [("f", False)]),
        ("most=1", "most=2", G, [("f", False)]),  # a head alone
        ("most=1", "most=2", F, []),
        ("    y = x\n", "", F, [("g", False)]),  # what only went away
        ("return y", "return -y", frozenset({9}), []),  # another statement of it was run: `covered` tells the line
        ("LIMIT = 3", "LIMIT = 4", F, []),
        ("LIMIT = 3", "LIMIT = 4", frozenset(), [("line 1", False)]),
        ("    return x\n", '    """Say it."""\n    return x\n', G, []),
        ("f(x, most=1)", "f(x: int, most: int = 1) -> int", G, []),
        ("    return y\n", "    return y\n\n\ndef h():\n    return 1\n", F | G, [("h", True)]),
        ("def f(x, most=1)", "@overload\ndef f(x: A): ...\n@overload\ndef f(x: B): ...\ndef f(x, most=2)", {9}, []),
        ("LIMIT = 3\n", "# coding: utf-8\nLIMIT = 4\n", frozenset(), [("line 2", False)]),
        (BEGIN, "# coding: latin-1\ndef f(x):\n    return -x", G, [("line 3", False)]),
    ],
)  # fmt: skip
def test_code_that_no_test_ran(old: str, new: str, ran: frozenset[int], missed: list[tuple[str, bool]]) -> None:
    assert old in TEXT
    assert _missed(TEXT, TEXT.replace(old, new, 1), ran) == missed


@pytest.mark.parametrize(("ran", "tests"), [(F, ("t",)), (G, ())])
def test_a_test_that_runs_a_function_under_its_new_name_runs_the_change(
    ran: frozenset[int], tests: tuple[str, ...]
) -> None:
    file = ChangedFile(path=PATH, source=PATH, before=TEXT.encode(), after=TEXT.replace("def f(", "def same(").encode())
    found = covered([file], [TestResult(id="t", outcome=Outcome.PASSED, lines={PATH: ran})], LOADED)
    assert found.tests == tests


def test_a_test_that_fails_runs_nothing() -> None:
    assert _missed(TEXT, TEXT.replace("return x", "return -x"), F, Outcome.FAILED) == [("f", False)]


@pytest.mark.parametrize(("loaded", "missed"), [({PATH: frozenset({1})}, []), ({}, [("line 1", False)])])
def test_a_file_without_functions_is_run_by_importing_it(
    loaded: dict[RepoPath, frozenset[int]], missed: list[tuple[str, bool]]
) -> None:
    file = ChangedFile(path=PATH, source=PATH, before=b"LIMIT = 3\n", after=b"LIMIT = 4\n")
    test = TestResult(id="t", outcome=Outcome.PASSED, lines={})
    assert [(code.name, code.new) for code in unrun([file], [test], loaded)] == missed


@pytest.mark.parametrize(
    ("old", "new", "missed"),
    [
        ("size: int = 1", "size: int = 2", []),  # used by others, and by what `dataclass` makes of it
        ("shown: bool = True", "shown: bool = False", [("line 3", False)]),  # `f` reads it, and no test runs `f`
        ("class A:\n", "class A:\n    print(1)\n", [("line 2", False)]),
    ],
)
def test_a_field_of_a_class_is_run_by_importing_it_unless_a_function_of_the_file_names_it(
    old: str, new: str, missed: list[tuple[str, bool]]
) -> None:
    text = "class A:\n    size: int = 1\n    shown: bool = True\n\n    def f(self):\n        return self.shown\n"
    file = ChangedFile(path=PATH, source=PATH, before=text.encode(), after=text.replace(old, new).encode())
    test = TestResult(id="t", outcome=Outcome.PASSED, lines={RepoPath("other.py"): frozenset({1})})
    loaded = {PATH: frozenset(range(1, 8))}
    assert [(code.name, code.new) for code in unrun([file], [test], loaded)] == missed


def test_what_could_not_be_measured_is_not_told_as_lines_that_no_test_runs() -> None:
    assert nothing_covered((), "there are no tests").measured is not None
    assert not_measured((), "the worker was lost").measured is None
