"""Every way in which ruff or mypy can end, before and after a patch: none but a readable answer is an answer."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from localagent.app.settings import Settings
from localagent.domain.edit import FileChange, Patch
from localagent.domain.jailspec import JailResult
from localagent.domain.outcome import JailOutcome
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Permission, Switch
from localagent.policy.load import load_policy
from localagent.verify.checks.new_findings import Delta, ToolAnswer, ruff_rules

PATCH = Patch(changes=(FileChange(path=RepoPath("m.py"), before=b"a = 1\n", after=b"a = 2\n"),))
CLEAN = (0, b"")
FOUND = (1, b"m.py:1: error: wrong  [misc]\n")
ODD = (1, b"a:b.py: error: odd place\n")
SILENT = (0, b"Success: no issues found\n")
NAMED_ANOTHER = (1, b"localagent_probe_0.py:1: error: Incompatible types in assignment\n")
TURNED_DOWN = (2, b"mypy.ini: error: no such plugin\n")
CRASHED = (2, b"m.py: error: INTERNAL ERROR -- please report\n")
SIGNALLED = (-11, b"")
BABBLE = (1, b"\xff\x00 what\n")
LATE = JailOutcome.WALL


class Replayed:
    """A jail that gives back how a tool ended, run by run; one that judges names the probe, which is its last file."""

    def __init__(self, *results: "tuple[int, bytes] | JailOutcome") -> None:
        self._results = list(results)

    def run(self, spec: Any) -> JailResult:
        told = self._results.pop(0)
        code, out = (0, b"") if isinstance(told, JailOutcome) else told
        if told in (CLEAN, FOUND, ODD):
            code, out = 1, out + f"{spec.argv[-1]}:1: error: Incompatible types in assignment\n".encode()
        ending = told if isinstance(told, JailOutcome) else JailOutcome.EXITED
        return JailResult(
            ending=ending, returncode=code, stdout=out, stderr=b"", wall_seconds=0.1, backend="b", level="L2"
        )


def said(
    *results: "tuple[int, bytes] | JailOutcome", switch: Switch = Switch.AUTO, lenient: bool = False
) -> ToolAnswer:
    policy = load_policy(Settings.from_environ().policies_dir / "default.toml")
    unanswered = Permission.ALLOW if lenient else policy.unanswered
    policy = replace(policy, mypy=switch, ruff=Switch.NEVER, unanswered=unanswered)

    @contextlib.contextmanager
    def workspace(*_: Any) -> Iterator[Any]:
        yield SimpleNamespace(tree=Path("/nowhere"))

    place = SimpleNamespace(
        jail=Replayed(*results), workspace=workspace, environment=tuple, repo="/repo", store=Path("/nowhere"), binds=()
    )
    jails = cast("Any", SimpleNamespace(place=place, check=lambda: None, until=float("inf")))
    answers = Delta(jails, policy).review(PATCH)
    return next(a for a in answers if a.tool == "mypy")


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localagent.verify.checks.new_findings.is_configured", lambda _tool, _store: True)


@pytest.mark.parametrize(("before", "after"), [(CLEAN, CLEAN), (FOUND, FOUND), (FOUND, CLEAN)])
def test_nothing_new_is_no_refusal(before: tuple[int, bytes], after: tuple[int, bytes]) -> None:
    answer = said(before, after)
    assert (answer.said, answer.refusal, answer.remark) == ("nothing new", "", "")


def test_something_new_refuses() -> None:
    assert "mypy has new findings" in said(CLEAN, FOUND).refusal
    assert "mypy has new findings" in said(CLEAN, ODD, lenient=True).refusal


@pytest.mark.long
@pytest.mark.parametrize(
    "end",
    [
        CRASHED,
        SIGNALLED,
        BABBLE,
        LATE,
        JailOutcome.MEMORY,
        JailOutcome.OUTPUT,
        (1, b""),
        (139, b""),
        SILENT,
        NAMED_ANOTHER,
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_crash_or_timeout_is_no_answer_and_the_policy_decides(
    end: "tuple[int, bytes] | JailOutcome", *, first: bool
) -> None:
    ends = (end,) if first else (CLEAN, end)
    assert "could not judge" in said(*ends).refusal
    assert "could not judge" in said(*ends, switch=Switch.ALWAYS, lenient=True).refusal
    answer = said(*ends, lenient=True)
    assert answer.refusal == ""
    assert "mypy had no say" in answer.remark


def test_turning_down_the_unpatched_tree_is_told_and_turning_down_the_patch_refuses() -> None:
    answer = said(TURNED_DOWN)
    assert answer.refusal == ""
    assert "mypy had no say: it could not judge the unpatched tree" in answer.remark
    assert said(TURNED_DOWN, switch=Switch.ALWAYS).refusal
    assert said(CLEAN, TURNED_DOWN).refusal
    assert said(CLEAN, TURNED_DOWN, lenient=True).refusal


@pytest.mark.parametrize(
    ("name", "text", "usual"),
    [
        ("pyproject.toml", "[tool.ruff]\nline-length = 100\n", True),
        ("pyproject.toml", "[project]\nname = 'a'\n", True),
        ("pyproject.toml", "[tool.ruff.lint]\nselect = ['ALL']\n", False),
        ("ruff.toml", "[lint]\nextend-select = ['B']\n", False),
        (".ruff.toml", "extend = '../ruff.toml'\n", False),
    ],
)
def test_a_project_that_chooses_no_rules_gets_those_of_every_ruff(
    tmp_path: Path, name: str, text: str, usual: bool
) -> None:
    (tmp_path / "part").mkdir()
    for folder in (tmp_path, tmp_path / "part"):
        (folder / name).write_text(text)
        assert ruff_rules(tmp_path, [RepoPath("part/m.py")]) == (("--select", "E4,E7,E9,F") if usual else ())
        (folder / name).unlink()
