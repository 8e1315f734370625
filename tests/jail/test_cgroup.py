"""Groups of a jail: what is left in them is ended, what a dead process of ours left is swept."""

import subprocess
import time
from pathlib import Path

import pytest

from localagent.domain.jailspec import JailLimits
from localagent.jail import cgroup
from localagent.jail.cgroup_v2 import PREFIX


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


def test_the_group_of_a_process_of_ours_that_is_gone_is_swept(root: cgroup.CgroupRoot) -> None:
    gone = subprocess.Popen(("/bin/true",))
    gone.wait()
    left = [parent / f"{PREFIX}{gone.pid}-0" for parent in root.folders]
    process = sleeper()
    for folder in left:
        Path(folder).mkdir()
        (folder / "cgroup.procs").write_text(str(process.pid))
    cgroup._sweep(root)
    assert process.wait() == -9
    deadline = time.monotonic() + 5
    while any(folder.exists() for folder in left) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(folder.exists() for folder in left)
