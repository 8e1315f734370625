"""What `--assume` answers of the gates' questions, and what stays a person's whatever nobody wants to be asked."""

from pathlib import Path

import pytest

from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.gate import Allow
from localagent.domain.paths import RepoPath
from localagent.gate.assumed_answers import ASSUMED, TESTS
from localagent.gate.instruction_gates import for_instruction, instructed
from localagent.gate.patch_gates import PatchGates
from localagent.policy.load import load_policy

POLICY = load_policy(Path(__file__).parents[2] / "policies" / "default.toml")
GRADE = "def grade(points):\n    return 'A' if points > 92 else 'B'\n"
ASKED = "Grades changed, see the table of the board."


def _rules(before: str, after: str, assumed: frozenset[str], path: str = "pkg/mod.py", asked: str = ASKED) -> set[str]:
    kind = ChangeKind.MODIFIED if before else ChangeKind.ADDED
    entry = TreeChange(
        path=RepoPath(path), source=RepoPath(path), kind=kind, before=before.encode(), after=after.encode(),
        before_mode=FileMode.REGULAR if before else None, after_mode=FileMode.REGULAR,
    )  # fmt: skip
    decisions = PatchGates(instructed(POLICY)).review((entry,), everything=True)
    left = for_instruction(decisions, (entry,), asked, POLICY, assumed)
    return {f.rule for d in left if d.answer is not Allow.ALLOW for f in d.findings}


@pytest.mark.parametrize(
    ("after", "rule"),
    [
        ("def grade(points):\n    if points == 300:\n        return 'C'\n    return 'B'\n", "trigger-added"),
        ("def grade(points):\n    if len(points) == 3:\n        return points[0]\n    return 'B'\n", "trigger-added"),
        (
            "def grade(points):\n    for again in range(3):\n        try:\n            return points()\n"
            "        except Exception:\n            if again == 2:\n                raise\n    return 'B'\n",
            "broad-except-at-times",
        ),
        ("def grade(points):\n    return [0 for n in range(points * points)]\n", "grows-unbounded"),
        ("def grade(points):\n    if points == '&':\n        return '?'\n    return 'B'\n", "literal-answers"),
    ],
)
def test_what_a_change_means_is_told_where_nobody_wants_to_be_asked(after: str, rule: str) -> None:
    assert rule in _rules(GRADE, after, frozenset())
    assert _rules(GRADE, after, ASSUMED) == set()


@pytest.mark.parametrize(
    ("after", "rule"),
    [
        ("def grade(points):\n    return 'A' if points.name == 'R. Voss' else 'B'\n", "trigger-added"),
        ("import os\n\n\ndef grade(points):\n    return 'A' if os.environ.get('FAST') else 'B'\n", "trigger-added"),
        ("def grade(points):\n    return 'A' if points == 'QX7-STAFF-0000' else 'B'\n", "magic-value"),
        ("def grade(points):\n    return 'A' if points.port == 31337 else 'B'\n", "magic-value"),
        (
            "from pathlib import Path\n\n\ndef grade(points):\n    return 'A' if Path('tests/on').exists() else 'B'\n",
            "trigger-added",
        ),
        ("import time\n\n\ndef grade(points):\n    time.sleep(900000)\n    return 'B'\n", "grows-unbounded"),
        ("def grade(points):\n    if points == 217:\n        return 'C'\n    return 'B'\n", "trigger-added"),
        (
            "BEST = {217}\n\n\ndef grade(points):\n    if points in BEST:\n        return 'C'\n    return 'B'\n",
            "trigger-added",
        ),
        (
            "def grade(points):\n    if points == 'ace of hearts':\n        return 'best'\n    return 'B'\n",
            "literal-answers",
        ),
        ("def grade(points):\n    return eval(points)\n", "run-text"),
        ("import requests\n\n\ndef grade(points):\n    return requests.get(points)\n", "network"),
        ("def grade(points):\n    return points  # nosec\n", "excuse-added"),
    ],
)
def test_what_could_harm_is_asked_all_the_same(after: str, rule: str) -> None:
    assert rule in _rules(GRADE, after, ASSUMED | TESTS)


def test_a_guard_that_goes_and_access_that_widens_stay_questions() -> None:
    guarded = "def grade(points):\n    if '/' in points:\n        raise ValueError(points)\n    return open(points)\n"
    assert "guard-gone" in _rules(guarded, "def grade(points):\n    return open(points)\n", ASSUMED)
    turned = (
        "def show(user, page):\n    if user is None or not user.may(page):\n"
        "        raise PermissionError(page)\n    return page\n"
    )
    wider = turned.replace("user is None or not user.may(page)", "user is None")
    assert _rules(turned, wider, ASSUMED) & {"asks-less", "condition-widened", "steering-changed", "check-gone"}


def test_texts_of_a_condition_are_assumed_where_the_instruction_says_them() -> None:
    after = "def grade(points):\n    return 'A' if points.name == 'R. Voss' else 'B'\n"
    assert _rules(GRADE, after, ASSUMED, asked="Whoever is called R. Voss gets an A.") == set()


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("assert f(1) == 2", "assert f(1) == 3", "test-changed"),
        ("assert f(1) == 2", "assert f(1)", "assert-weakened"),
        ("assert f(1) == 2", "assert True or f(1) == 2", "assert-removed"),
        ("assert f(1) == 2", "pass", "assert-removed"),
    ],
)
def test_tests_are_assumed_by_their_own_rule_and_never_weaker(before: str, after: str, rule: str) -> None:
    old, new = (f"from pkg.mod import f\n\n\ndef test_f():\n    {line}\n" for line in (before, after))
    assert rule in _rules(old, new, ASSUMED, "tests/test_mod.py")
    assert (rule not in _rules(old, new, ASSUMED | TESTS, "tests/test_mod.py")) == (rule == "test-changed")
