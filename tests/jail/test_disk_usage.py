"""What a jail takes of the disk is counted by blocks and by inodes, also while others free as much."""

import os
from pathlib import Path

import pytest

from localagent.jail.limits import disk_usage
from localagent.jail.limits.disk_usage import BLOCK_BYTES, FASTEST_BYTES_A_SECOND, SHORTEST_PAUSE_SECONDS, DiskWatch

LIMIT = 100 * BLOCK_BYTES


def fill(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / str(number)).touch()


@pytest.mark.parametrize(("count", "exceeded"), [(50, False), (150, True)])
def test_empty_files_count_by_their_inodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, exceeded: bool
) -> None:
    free = [(10**9, 10**6), (10**9, 10**6 - count)]
    monkeypatch.setattr(disk_usage, "_free", lambda _: free[0] if len(free) == 1 else free.pop(0))
    watch = DiskWatch([str(tmp_path)], LIMIT)
    fill(tmp_path, count)
    assert watch.exceeded(os.getpid()) is exceeded


def test_what_others_free_hides_nothing_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_usage, "_free", lambda _: (10**9, 10**6))  # as if as much was freed elsewhere
    watch = DiskWatch([str(tmp_path)], LIMIT)
    fill(tmp_path, 150)
    assert not watch.exceeded(os.getpid())
    watch._due = 0.0
    assert watch.exceeded(os.getpid())


def test_what_was_there_before_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, 150)
    watch = DiskWatch([str(tmp_path)], LIMIT)
    monkeypatch.setattr(watch, "_began", watch._began + 1000)
    watch._due = 0.0
    assert not watch.exceeded(os.getpid())


def test_without_writable_folders_nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = DiskWatch([], 0)
    watch._due = 0.0
    monkeypatch.setattr(watch, "_changed", lambda _: pytest.fail("looked"))
    assert not watch.exceeded(os.getpid())


def test_the_nearer_the_limit_the_sooner_the_next_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And once somebody was looked at, what the others of the filesystem take costs no further look."""
    free = [10**12]
    monkeypatch.setattr(disk_usage, "_free", lambda _: (free[0], 10**6))
    limit = 1 << 30
    watch = DiskWatch([str(tmp_path)], limit)
    assert watch.seconds_to_limit() == limit / FASTEST_BYTES_A_SECOND
    free[0] -= limit - 1
    assert watch.seconds_to_limit() == SHORTEST_PAUSE_SECONDS
    assert not watch.exceeded(os.getpid())
    free[0] -= 2
    assert not watch.exceeded(os.getpid())  # it was somebody else
    watch._next = 0.0
    assert watch.seconds_to_limit() == limit / FASTEST_BYTES_A_SECOND
    monkeypatch.setattr(watch, "_changed", lambda _: pytest.fail("looked"))
    assert not watch.exceeded(os.getpid())
