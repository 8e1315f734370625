"""Groups of cgroup v2: where they may be made (texts and folders laid out as the kernel's), and for real."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localagent.domain.jailspec import JailLimits, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.jail.api import NamespaceJail
from localagent.jail.limits import cgroup, cgroup_v2
from localagent.jail.limits.cgroup import Cgroup, CgroupRoot
from localagent.jail.limits.cgroup_v2 import CgroupRefused, Own, own_group, prepare

LIMITS = JailLimits(resident_bytes=64 << 20, tmp_bytes=1 << 20, processes=5)
MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


def group(folder: Path, *, given: str = "cpu memory pids", enabled: str = "", pids: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    files = {"controllers": given, "subtree_control": enabled, "procs": pids, "type": "domain"}
    for name, text in files.items():
        (folder / f"cgroup.{name}").write_text(text)
    return folder


def prefilled(folder: Path) -> Path:
    """The leaf as the kernel would make it: its files are there at once."""
    leaf = folder / f"localagent-{os.getpid()}-main"
    leaf.mkdir()
    (leaf / "cgroup.procs").write_text("")
    return leaf


@pytest.mark.parametrize(
    ("text", "mounts", "wanted"),
    [
        ("0::/user.slice/x.scope\n", MOUNT, Own(folder=Path("/sys/fs/cgroup/user.slice/x.scope"), top=False)),
        ("4:memory:/a\n0::/\n", MOUNT, Own(folder=Path("/sys/fs/cgroup"), top=True)),
        ("0::/a/b\n", MOUNT.replace("0:26 / ", "0:26 /a "), Own(folder=Path("/sys/fs/cgroup/b"), top=False)),
        ("0::/a\n", MOUNT.replace("/sys/fs/cgroup", "/odd\\040place"), Own(folder=Path("/odd place/a"), top=False)),
    ],
)
def test_the_group_of_a_process_is_found(text: str, mounts: str, wanted: Own) -> None:
    assert own_group(text, "22 1 8:1 / / rw - ext4 /dev/x rw\n" + mounts) == wanted


@pytest.mark.parametrize(
    ("text", "mounts", "why"),
    [
        ("4:memory:/a\n", MOUNT, "no cgroup v2"),
        ("0::/../x\n", MOUNT, "outside"),
        ("0::/a\n", MOUNT.replace("cgroup2", "tmpfs"), "not mounted"),
        ("0::/ab\n", MOUNT.replace("0:26 / ", "0:26 /a "), "not mounted"),
    ],
)
def test_no_group_is_a_reason(text: str, mounts: str, why: str) -> None:
    found = own_group(text, mounts)
    assert isinstance(found, CgroupRefused)
    assert why in found.why


def test_alone_in_a_delegated_group_we_move_into_a_leaf_and_hand_the_controllers_down(tmp_path: Path) -> None:
    folder = group(tmp_path / "g", pids="7\n8\n")
    leaf = prefilled(folder)
    assert prepare(Own(folder=folder, top=True), {7, 8, 9}) == folder
    assert (leaf / "cgroup.procs").read_text() in ("8", "7")
    assert (folder / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_a_group_that_hands_them_down_already_is_used_as_it_is(tmp_path: Path) -> None:
    folder = group(tmp_path / "g", enabled="cpu memory pids", pids="4242\n")
    assert prepare(Own(folder=folder, top=True), set()) == folder
    assert sorted(path.name for path in folder.iterdir()) == [
        "cgroup.controllers",
        "cgroup.procs",
        "cgroup.subtree_control",
        "cgroup.type",
    ]


def test_a_leaf_of_ours_leads_to_the_group_above(tmp_path: Path) -> None:
    above = group(tmp_path / "g", enabled="memory pids")
    leaf = group(above / "localagent-12-main", given="memory pids")
    assert prepare(Own(folder=leaf, top=False), set()) == above


@pytest.mark.parametrize(
    ("changes", "top", "why"),
    [
        ({"given": "cpu io"}, True, "not given the controllers memory, pids"),
        ({"pids": "7\n99\n"}, True, "not ours (99)"),
        ({}, False, "not delegated"),
    ],
)
def test_what_is_not_ours_is_never_touched(tmp_path: Path, changes: dict[str, str], top: bool, why: str) -> None:
    folder = group(tmp_path / "g", **changes)
    if not top and os.geteuid() != 0:
        pytest.skip("a folder of an ordinary user counts as given to that user")
    before = {path.name: path.read_text() for path in folder.iterdir()}
    found = prepare(Own(folder=folder, top=top), {7})
    assert isinstance(found, CgroupRefused)
    assert why in found.why
    assert {path.name: path.read_text() for path in folder.iterdir()} == before


def test_the_root_of_all_groups_is_nobodys(tmp_path: Path) -> None:
    folder = group(tmp_path / "g")
    (folder / "cgroup.type").unlink()
    found = prepare(Own(folder=folder, top=True), set())
    assert isinstance(found, CgroupRefused)
    assert "root of all groups" in found.why


def test_a_refused_controller_puts_everything_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = group(tmp_path / "g", pids="7\n")
    prefilled(folder)
    written: list[tuple[str, str]] = []

    def write(path: Path, text: str) -> None:
        written.append((f"{path.parent.name}/{path.name}", text))
        if path.name == "cgroup.subtree_control":
            raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(cgroup_v2, "_write", write)
    found = prepare(Own(folder=folder, top=True), {7})
    assert found == CgroupRefused(why=f"{folder}: Device or resource busy")
    leaf = f"localagent-{os.getpid()}-main/cgroup.procs"
    assert written == [(leaf, "7"), ("g/cgroup.subtree_control", "+memory +pids"), ("g/cgroup.procs", "7")]


def test_limits_are_set_and_a_missing_one_is_a_fault(tmp_path: Path) -> None:
    for name in ("memory.max", "pids.max", "memory.oom.group"):
        (tmp_path / name).write_text("")
    cgroup_v2.limit(tmp_path, LIMITS)
    told = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert told == {"memory.max": str(65 << 20), "pids.max": "7", "memory.oom.group": "1"}
    (tmp_path / "memory.max").unlink()
    with pytest.raises(FileNotFoundError):
        cgroup_v2.limit(tmp_path, LIMITS)


@pytest.mark.parametrize(("events", "exceeded"), [("low 0\noom 3\noom_kill 0\n", False), ("oom_kill 1\n", True)])
def test_a_kill_for_memory_is_read_from_the_events(tmp_path: Path, events: str, exceeded: bool) -> None:
    (tmp_path / "memory.events").write_text(events)
    assert Cgroup(folders=(tmp_path,)).memory_exceeded() is exceeded


def test_a_root_without_the_limits_is_told(tmp_path: Path) -> None:
    assert "memory.max" in cgroup._refusal(CgroupRoot(folders=(tmp_path,), version=2))
    assert list(tmp_path.iterdir()) == []


# -- for real -----------------------------------------------------------------------------------------------------


@pytest.fixture
def real() -> Iterator[Path]:
    """A group of the test's own below the real hierarchy's group of this process."""
    own = own_group(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    if isinstance(own, CgroupRefused):
        pytest.skip(own.why)
    folder = own.folder / f"localagent-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as fault:
        pytest.skip(f"no group can be made in {own.folder}: {fault.strerror}")
    yield folder
    for child in (*folder.iterdir(), folder):
        if child.is_dir():
            child.rmdir()


def test_real_processes_move_into_the_leaf_and_end_together(real: Path) -> None:
    sleepers = [subprocess.Popen(["/bin/sleep", "60"]) for _ in range(2)]
    try:
        for sleeper in sleepers:
            cgroup_v2._write(real / "cgroup.procs", str(sleeper.pid))
        stranger = prepare(Own(folder=real, top=True), {sleepers[0].pid}, ())
        assert isinstance(stranger, CgroupRefused)
        assert str(sleepers[1].pid) in stranger.why
        if not (real / "cgroup.kill").exists():
            pytest.skip("this kernel is older than cgroup.kill")
        assert prepare(Own(folder=real, top=True), {sleeper.pid for sleeper in sleepers}, ()) == real
        assert (real / "cgroup.procs").read_text() == ""
        leaf = real / f"localagent-{os.getpid()}-main"
        assert set((leaf / "cgroup.procs").read_text().split()) == {str(sleeper.pid) for sleeper in sleepers}
        Cgroup(folders=(leaf,)).kill()
        assert [sleeper.wait(10) for sleeper in sleepers] == [-9, -9]
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def test_memory_is_bounded_by_v2_where_its_controllers_are(jail: NamespaceJail) -> None:
    found = cgroup._version_two()
    if isinstance(found, CgroupRefused):
        pytest.skip(f"{found.why}: memory and pids are not bounded by v2 here")
    backend = replace(jail._backend, cgroups=found)
    limits = JailLimits(wall_seconds=20, cpu_seconds=20, resident_bytes=32 << 20, tmp_bytes=1 << 20)
    spec = JailSpec(argv=("/usr/bin/tail", "/dev/zero"), cwd="/", limits=limits)
    assert NamespaceJail(backend).run(spec).ending is JailOutcome.MEMORY


def test_without_any_limit_of_the_kernel_the_number_of_processes_is_watched(
    jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    from localagent.jail.files import host
    from localagent.jail.launcher import start

    monkeypatch.setattr(start, "rlimits", lambda *_: {})
    monkeypatch.setattr(host, "counts_processes_per_namespace", lambda: False)
    script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do sleep 61.000734 & done; echo started; wait"
    spec = JailSpec(argv=("/bin/sh", "-c", script), cwd="/", limits=replace(LIMITS, wall_seconds=20.0))
    result = NamespaceJail(replace(jail._backend, cgroups=None)).run(spec)
    assert (result.ending, result.stdout) == (JailOutcome.PROCESSES, b"started\n")
