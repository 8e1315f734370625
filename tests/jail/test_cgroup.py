"""Groups of a jail: what is left in them is ended, empty ones of a dead process of ours are swept."""

import os
import subprocess
from pathlib import Path

import pytest

from localagent.domain.jailspec import JailLimits
from localagent.jail.limits import cgroup
from localagent.jail.limits.cgroup_v2 import PREFIX


@pytest.fixture
def root() -> cgroup.CgroupRoot:
    found = cgroup.find()
    if found is None:
        pytest.skip("no cgroup here")
    return found


def sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(("/bin/sleep", "60"))


def test_what_a_group_still_holds_is_ended_with_it(root: cgroup.CgroupRoot) -> None:
    group = root.make(JailLimits())
    process = sleeper()
    for folder in group.folders:
        (folder / "cgroup.procs").write_text(str(process.pid))
    group.remove()
    assert process.wait() == -9
    assert not any(folder.exists() for folder in group.folders)


def test_only_an_empty_group_of_a_process_that_is_gone_is_swept(root: cgroup.CgroupRoot) -> None:
    gone = subprocess.Popen(("/bin/true",))
    gone.wait()
    left = [parent / f"{PREFIX}{gone.pid}-{number}" for parent in root.folders for number in (0, 1)]
    empty, held = left[::2], left[1::2]
    process = sleeper()
    try:
        for folder in left:
            folder.mkdir()
        for folder in held:
            (folder / "cgroup.procs").write_text(str(process.pid))
        cgroup._sweep(root)
        assert process.poll() is None  # its maker may live in a pid namespace that we do not see
        assert not any(folder.exists() for folder in empty)
    finally:
        process.kill()
        process.wait()
        cgroup.Cgroup(folders=tuple(held)).remove()
    assert not any(folder.exists() for folder in held)


def test_what_is_no_process_of_a_jail_is_never_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda number, _: killed.append(number))
    (tmp_path / "cgroup.procs").write_text(f"0\n1\n{os.getpid()}\n4242\n")
    cgroup._end_members(tmp_path)
    assert killed == [4242]
