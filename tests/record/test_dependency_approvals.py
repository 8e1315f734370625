"""The journal of approvals: what stands, and that altering it lets nothing in."""

import threading
from pathlib import Path

import pytest

from localagent.domain.dependency import DependencyApproval
from localagent.fs.atomic_files import CannotRecord, RecordDamaged
from localagent.record.dependency_approvals import ApprovalStore
from localagent.record.journal import JournalStatus, verify_journal


def approval(name: str, version: str = "") -> DependencyApproval:
    return DependencyApproval(
        name=name, version=version, reason="needed", who="me", at="now", policy="p", distinct_from="x"
    )


def test_what_was_approved_stands_until_it_is_withdrawn(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path)
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
    store = ApprovalStore(tmp_path)
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
    threads = [threading.Thread(target=ApprovalStore(tmp_path).approve, args=(approval(name),)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(a.name for a in ApprovalStore(tmp_path).standing()) == names


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "dependencies").write_text("in the way")
    with pytest.raises(CannotRecord, match="cannot keep approvals"):
        ApprovalStore(tmp_path).approve(approval("a"))
