"""The journals of approvals: what stands, that altering one lets nothing in, and that those of 0.1.0 are read."""

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from localagent.domain.dependency import DependencyApproval
from localagent.domain.review import PatchApproval
from localagent.fs.atomic_files import CannotRecord, RecordDamaged
from localagent.record.approval_journal import dependency_approvals, patch_approvals
from localagent.record.journal import JournalStatus, verify_journal

OF_0_1_0 = Path(__file__).parents[1] / "fixtures" / "0.1.0" / "state"


def approval(name: str, version: str = "") -> DependencyApproval:
    return DependencyApproval(
        name=name, version=version, reason="needed", who="me", at="now", policy="p", distinct_from="x"
    )


def test_what_was_approved_stands_until_it_is_withdrawn(tmp_path: Path) -> None:
    store = dependency_approvals(tmp_path)
    assert store.standing() == ()
    assert list(tmp_path.iterdir()) == []
    first = store.approve(approval("a", "1"))
    tip = store.approve(approval("b"))
    assert first != tip
    assert store.standing() == (approval("a", "1"), approval("b"))
    store.withdraw(approval("a"))
    assert store.standing() == (approval("b"),)
    check = verify_journal(store.path)
    assert (check.standing, check.lines) == (JournalStatus.WHOLE, 3)
    assert store.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "alter",
    [
        lambda data: data.replace(b'"name":"a"', b'"name":"z"'),
        lambda data: data[data.index(b"\n") + 1 :],
        lambda data: data[:-5],
        lambda data: data + b"{}\n",
        lambda data: data.replace(b'"kind":"approved"', b'"kind":"blessed"', 1),
    ],
)
def test_an_altered_journal_lets_nothing_in_and_takes_nothing_more(tmp_path: Path, alter: object) -> None:
    store = dependency_approvals(tmp_path)
    store.approve(approval("a"))
    store.approve(approval("b"))
    assert callable(alter)
    store.path.write_bytes(alter(store.path.read_bytes()))
    with pytest.raises(RecordDamaged, match=r"altered|not an approval"):
        store.standing()
    with pytest.raises(RecordDamaged, match="altered"):
        store.approve(approval("c"))


def test_two_at_once_are_both_kept(tmp_path: Path) -> None:
    names = [f"n{n}" for n in range(8)]
    threads = [
        threading.Thread(target=dependency_approvals(tmp_path).approve, args=(approval(name),)) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(a.name for a in dependency_approvals(tmp_path).standing()) == names


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "dependencies").write_text("in the way")
    with pytest.raises(CannotRecord, match="cannot keep approvals"):
        dependency_approvals(tmp_path).approve(approval("a"))


def test_a_withdrawal_of_a_patch_counts_in_its_repository_alone(tmp_path: Path) -> None:
    store = patch_approvals(tmp_path)
    one = PatchApproval(patch="p", change="c", repo="/a", findings="f", policy="x", who="me", reason="why", at="now")
    there, later, other = replace(one, repo="/b"), replace(one, change="d"), replace(one, patch="q")
    for each in (one, there, later, other):
        store.approve(each)
    store.withdraw(replace(one, change="e"))
    assert store.standing() == (there, other)


def test_the_audit_log_names_what_was_approved(tmp_path: Path) -> None:
    one = PatchApproval(patch="p", change="c", repo="/a", findings="f", policy="x", who="me", reason="why", at="now")
    patch_approvals(tmp_path).approve(one)
    patch_approvals(tmp_path).withdraw(replace(one, task="t"))
    dependency_approvals(tmp_path).approve(approval("a"))
    (log,) = (tmp_path / "audit").glob("audit-*.jsonl")
    told = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert [(entry["kind"], sorted(entry["data"])) for entry in told] == [
        ("approved", ["by", "change", "line", "patch", "repo"]),
        ("withdrawn", ["by", "change", "line", "patch", "repo", "task"]),
        ("approved", ["by", "line", "name", "version"]),
    ]


def test_approvals_that_version_0_1_0_recorded_stand_and_more_follow(tmp_path: Path) -> None:
    for folder in ("patches", "dependencies"):
        shutil.copytree(OF_0_1_0 / folder, tmp_path / folder)
    patches, names = patch_approvals(tmp_path), dependency_approvals(tmp_path)
    (patch,), (name,) = patches.standing(), names.standing()
    assert (patch.repo, patch.reason, patch.task) == ("/srv/calc", "asked, and it is meant", "")
    assert patch.findings.split("\n") == ["critical-file 'auth/__init__.py'", "stakes-changed 'auth/__init__.py'"]
    assert (name.name, name.version, name.reason) == ("leftpadder", "1.0", "needed by the reports")
    patches.withdraw(patch)
    names.approve(approval("another"))
    assert patches.standing() == ()
    assert names.standing() == (name, approval("another"))
