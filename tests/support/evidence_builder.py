"""A home for the verbs of evidence, and tasks that were kept and never run."""

from dataclasses import replace
from pathlib import Path

import pytest

from localagent.app.evidence.task_evidence import begin, open_signer, setting_of
from localagent.app.settings import Settings
from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task, TaskResult, Verdict
from localagent.record.store import TaskRecord, TaskStore
from localagent.repo.diff.write_diff import unified_diff

PATCH = Patch(changes=(FileChange(path=RepoPath("a.py"), before=b"a = 1\n", after=b"a = 2\n"),))
OTHER = Patch(changes=(FileChange(path=RepoPath("a.py"), before=b"a = 1\n", after=b"a = 3\n"),))
FULL = FullResult(accepted=True, reasons=(), fail_to_pass=("t",), pass_to_pass=(), pass_to_fail=(), still_failing=())


def settings_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """State and data below a folder, and a repository beside them."""
    for name, folder in (("XDG_STATE_HOME", "state"), ("XDG_DATA_HOME", "data")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    monkeypatch.delenv("LOCALAGENT_PASSPHRASE_FILE", raising=False)
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_bytes(b"a = 1\n")
    return Settings.from_environ()


def keep_proposals(settings: Settings, repo: Path) -> TaskRecord:
    """A task that leaves two checked proposals to a person: PATCH, and OTHER."""
    record = TaskStore(settings.state_dir).create(Task(id="", repo=str(repo)))
    setting = setting_of(b"policy", "default", "L2", use_model=False, model="", backend="")
    evidence = begin(settings, record, b"policy", setting, open_signer(settings))
    evidence.started(apply=False)
    patches = (PATCH, OTHER)
    result = TaskResult(
        verdict=Verdict.NEEDS_PERSON,
        reason="two",
        exit=1,
        proposals=tuple(Candidate(number=n, patch=p, edits=(), cost=0.0) for n, p in enumerate(patches, 1)),
        proposed=(FULL, replace(FULL, pass_to_pass=("u",), checks={"ruff": "clean"})),
        baseline=Baseline(tests=(), python="3.11", pytest="9"),
        snapshot_digest="sha256:" + "5" * 64,
        jail_backend="bubblewrap",
        jail_level="L4",
    )
    for number, patch in enumerate(patches, 1):
        record.save_proposal(number, patch)
    evidence.ended(result, b"", (1, "sha256:" + "6" * 64), [unified_diff(patch) for patch in patches])
    evidence.reported({})
    return record


def keep_task(settings: Settings, repo: Path, verdict: Verdict = Verdict.ACCEPTED, patch: Patch = PATCH) -> TaskRecord:
    record = TaskStore(settings.state_dir).create(Task(id="", repo=str(repo)))
    setting = setting_of(b"policy", "default", "L2", use_model=False, model="", backend="", ways=("line", "span"))
    evidence = begin(settings, record, b"policy", setting, open_signer(settings))
    evidence.started(apply=False)
    accepted = verdict is Verdict.ACCEPTED
    result = TaskResult(
        verdict=verdict,
        reason="",
        exit=0 if accepted else 1,
        patch=patch if accepted else None,
        full=FULL if accepted else None,
        baseline=Baseline(tests=(), python="3.11", pytest="9"),
        snapshot_digest="sha256:" + "5" * 64,
        jail_backend="bubblewrap",
        jail_level="L4",
    )
    if accepted:
        record.save_patch(patch)
    evidence.ended(result, unified_diff(patch) if accepted else b"", (1, "sha256:" + "6" * 64))
    evidence.reported({})
    return record
