"""What version 0.1.0 left behind is read, verified and acted on: tasks, journals, signatures, policies, hook ids.

`tests/fixtures/0.1.0` was written by that version's own code; its README says how.
"""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.app.policies import reopened
from localagent.cli.main import main
from localagent.policy.load import load_policy
from localagent.record.journal import JournalStatus, verify_journal

CHECKOUT = Path(__file__).parents[2]
BEFORE = CHECKOUT / "tests" / "fixtures" / "0.1.0"
ACCEPTED, AMBIGUOUS = "20261129-023414-637102-8d1ead", "20261129-025400-892300-25d13a"
RUN = "20261129-030732-423336-8d36b1"
KEY = str(BEFORE / "key.pub")
CALC = """def largest(values):
    best = values[0]
    for value in values:
        if value < best:
            best = value
    return best


def clamp(value, low, high):
    if value < low:
        return low
    if value > low:
        return high
    return value
"""
BOUNDS = "def within(value, low, high):\n    return low < value < high\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with that state in it."""
    state = tmp_path / "state" / "localagent"
    shutil.copytree(BEFORE / "state", state)
    shutil.copy(state / "tasks" / ACCEPTED / "policy.json", state / "tasks" / AMBIGUOUS)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def moved(root: Path) -> Path:
    """The same, but that the repositories lie there, not below /srv; the audit log knows better, and so goes."""
    state = root / "state" / "localagent"
    shutil.rmtree(state / "audit")
    for file in (*state.glob("tasks/*/task.json"), *state.glob("tasks/*/undo/landing.json")):
        text = file.read_text().replace("/srv/", f"{root}/")
        file.write_text(text.replace('"uid": 0', f'"uid": {os.getuid()}').replace('"gid": 0', f'"gid": {os.getgid()}'))
    for name, text in (("calc", CALC), ("bounds", BOUNDS)):
        (root / name).mkdir()
        (root / name / f"{name}.py").write_text(text)
    return root


def said(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    assert main([*args]) == code, capsys.readouterr().err
    return capsys.readouterr().out


def test_tasks_are_shown(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = said(capsys, "show", ACCEPTED)
    assert "accepted: the patch makes every failing test pass and breaks none" in shown
    assert "strength C of A to E" in shown
    assert "largest([3, 2]): 2 -> 3" in shown
    shown = said(capsys, "show", AMBIGUOUS)
    assert "To apply one: localagent apply 20261129-025400-892300-25d13a --choose 1|2|3|4" in shown
    assert "within(1, 4, 7)" in shown
    listed = said(capsys, "history")
    assert ACCEPTED in listed
    assert AMBIGUOUS in listed
    assert said(capsys, "stats")


def test_a_patch_is_applied_and_taken_back(moved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = moved / "calc" / "calc.py"
    said(capsys, "apply", ACCEPTED)
    assert file.read_text() == CALC.replace("value < best", "value > best")
    said(capsys, "undo", ACCEPTED)
    assert file.read_text() == CALC


def test_what_was_applied_then_is_taken_back_and_another_proposal_chosen(
    moved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = moved / "bounds" / "bounds.py"
    file.write_text(BOUNDS.replace("low < value", "low <= value"))
    said(capsys, "undo", AMBIGUOUS)
    assert file.read_text() == BOUNDS
    said(capsys, "apply", AMBIGUOUS, "--choose", "2")
    assert file.read_text() == BOUNDS.replace("low <", "not low <")


def test_journals_and_signatures_hold(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = root / "state" / "localagent"
    for task in (ACCEPTED, AMBIGUOUS):
        check = verify_journal(state / "tasks" / task / "journal.jsonl")
        assert check.standing is JournalStatus.WHOLE
        assert check.lines > 20
    told = json.loads(said(capsys, "audit", "verify", "--key", KEY, "--require-signed", "--json"))
    assert told["standing"] == "whole"
    assert said(capsys, "audit", "report", "--since", "2026-11-28", "--key", KEY)
    bundle = str(state / "tasks" / ACCEPTED / "attestation.intoto.jsonl")
    assert said(capsys, "attest", "verify", bundle, "--key", KEY)


def test_the_audit_log_goes_on(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = json.loads(said(capsys, "audit", "verify", "--key", KEY, "--json"))["entries"]
    said(capsys, "deps", "approve", "another", "--reason", "needed")
    assert json.loads(said(capsys, "audit", "verify", "--key", KEY, "--json"))["entries"] == before + 1


def test_a_batch_run_is_reported(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything that the report of then said of each repository is said again."""
    then = json.loads((BEFORE / "state" / "batch" / "runs" / RUN / "report.json").read_text())
    now = json.loads(said(capsys, "batch", "report", RUN, "--json", code=1))
    assert [row["state"] for row in now["repositories"]] == ["fixed", "needs-person"]
    for old, new in zip(then["repositories"], now["repositories"], strict=True):
        steps, again = old.pop("steps"), new.pop("steps")
        assert old.items() <= new.items()
        assert all(one.items() <= other.items() for one, other in zip(steps, again, strict=True))


def test_a_whole_policy_of_then_means_what_it_meant(root: Path, tmp_path: Path) -> None:
    """What came since has the value of the policies that are shipped."""
    kept = (BEFORE / "state" / "tasks" / ACCEPTED / "policy.json").read_bytes()
    file = tmp_path / "default.toml"
    file.write_text(json.loads(kept)["base"]["text"])
    shutil.copy(CHECKOUT / "policies" / "known-packages.txt", tmp_path)
    today = load_policy(CHECKOUT / "policies" / "default.toml")
    then = load_policy(file)
    assert set(then.dependencies.lock_files) < set(today.dependencies.lock_files)  # more kinds of lock files are read
    assert reopened(kept) == then
    assert then.instruction is None  # there was no `do`: a change for an instruction may be what a repair may be
    more_names = {*today.patches.test_configuration} - {*then.patches.test_configuration}
    assert more_names == {"pytest.toml", ".pytest.ini", ".pytest.toml"}
    assert {*today.patches.lenient} - {*then.patches.lenient} <= more_names
    now = today.patches
    assert {*now.editable} - {*then.patches.editable} == {"README", "CHANGES", "HISTORY", "NEWS"}
    for was, lists in ((then.paths.denied, today.paths.denied), (then.patches.dependencies, now.dependencies)):
        assert {*was} - {*lists} <= {"requirements*", "constraints*"}  # a package and a module may be called so
        assert {"*requirements*.txt", "constraints*.txt"} <= {*lists}
    assert {*then.patches.critical} ^ {*now.critical} == {
        "tasks.py",
        "/tasks.py",
    }  # of Celery below, of Invoke at the top
    known = replace(
        then.patches,
        critical=now.critical,
        test_configuration=now.test_configuration,
        lenient=now.lenient,
        editable=now.editable,
        dependencies=now.dependencies,
    )
    paths = replace(then.paths, denied=today.paths.denied)
    dangers = tuple(  # `.git` alone names a folder that a tool skips
        replace(rule, strings=tuple("*[!:].git" if s == "*.git" else s for s in rule.strings)) for rule in then.dangers
    )
    asked = replace(
        then,
        paths=paths,
        dependencies=today.dependencies,
        instruction=today.instruction,
        patches=known,
        dangers=dangers,
    )
    assert asked == today
    assert replace(then.dependencies, lock_files=today.dependencies.lock_files) == today.dependencies
    assert main(["policy", "check", str(file)]) == 0


def test_hooks_that_a_configuration_pins_still_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pre-commit reads the ids at the pinned revision and runs what stands there, with the files it found."""
    pinned = (BEFORE / "pre-commit-hooks.yaml").read_text()
    now = (CHECKOUT / ".pre-commit-hooks.yaml").read_text()
    ids, entries = (re.findall(rf"^(?:- |  ){key}: (.+)$", pinned, re.MULTILINE) for key in ("id", "entry"))
    assert ids == ["localagent-check", "localagent-fix"]
    assert set(ids) <= set(re.findall(r"^- id: (.+)$", now, re.MULTILINE))
    repo = Repo(root / "hooked")
    repo.stage("m.py", "def f(x):\n    return not x in (1, 2)\n")
    monkeypatch.chdir(root / "hooked")
    answers = []
    for entry in entries:
        program, *args = entry.split()
        assert program == "localagent"
        answers.append(main([*args, "m.py"]))
    assert answers == [1, 1]  # a mistake was found; a file was changed
    assert "x not in (1, 2)" in (root / "hooked" / "m.py").read_text()
    assert main(["hook", "check", "m.py"]) == 0
