"""Choice of a backend: known faults, what a trial jail must see, refusal when nothing is sound."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from localagent.errors import CannotEnforce
from localagent.jail.api import NamespaceJail
from localagent.jail.backends.level import LEVELS, Layer, at_least, level_of
from localagent.jail.probe import selection
from localagent.jail.probe import selection as discovery
from localagent.jail.probe.known_vulnerabilities import Build, known, refusing
from localagent.jail.probe.selection import ProbeState


@pytest.mark.parametrize(
    ("version", "setuid", "names"),
    [
        ((0, 7, 0), False, {"too-old"}),
        ((0, 8, 0), False, set()),
        ((0, 8, 0), True, set()),
        ((0, 11, 0), False, set()),
        ((0, 11, 0), True, {"CVE-2026-41163"}),
        ((0, 11, 1), True, {"CVE-2026-41163"}),
        ((0, 11, 2), True, set()),
    ],
)
def test_faults_that_refuse_a_build(version: tuple[int, int, int], setuid: bool, names: set[str]) -> None:
    assert {fault.name for fault in refusing(Build(version=version, setuid=setuid))} == names


def test_the_mount_point_fault_is_known_below_0_12_and_does_not_reach_us() -> None:
    old, new = Build(version=(0, 11, 9), setuid=False), Build(version=(0, 12, 0), setuid=False)
    assert "CVE-2026-87766" in {fault.name for fault in known(old)}
    assert "CVE-2026-87766" not in {fault.name for fault in known(new)}
    assert all(fault.because for fault in known(old))


def fake(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("body", ["exit 1", "echo bubblewrap", "echo bubblewrap 0.x", "echo 0.8.0", "kill -9 $$"])
def test_a_binary_that_does_not_start_counts_as_absent(tmp_path: Path, body: str) -> None:
    assert selection.try_binary("fake", fake(tmp_path / "bwrap", body)).state is ProbeState.ABSENT


def test_an_old_binary_is_faulty_and_never_asked_for_a_jail(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    body = f'[ "$1" = --version ] || touch {mark}; echo bubblewrap 0.7.1'
    result = selection.try_binary("fake", fake(tmp_path / "bwrap", body))
    assert result.state is ProbeState.FAULTY
    assert "too-old" in result.detail
    assert not mark.exists()


@pytest.mark.long
def test_a_binary_that_only_pretends_is_faulty(tmp_path: Path) -> None:
    run = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
    body = f"case $1 in --version) echo bubblewrap 0.11.0;; *) {run};; esac"
    tmp_path.chmod(0o755)
    result = selection.try_binary("fake", fake(tmp_path / "bwrap", body), (str(tmp_path),))
    assert result.state is ProbeState.FAULTY


def test_a_trial_jail_on_the_hosts_namespaces_is_not_sound(jail: NamespaceJail) -> None:
    words = selection.trial(jail._backend)
    assert selection.faults_seen(words, jail._backend) == []
    for name in ("user", "pid", "net", "ipc", "uts", "mnt", "cgroup"):
        ours = str(Path(f"/proc/self/ns/{name}").readlink())
        bent = [f"{name}={ours}" if word.startswith(f"{name}=") else word for word in words]
        assert selection.faults_seen(bent, jail._backend) == [f"the {name} namespace is the host's"]
    for bad in ("root", "home", "shadow", "writable"):
        assert len(selection.faults_seen([*words, bad], jail._backend)) == 1
    assert len(selection.faults_seen([w for w in words if w != "NoNewPrivs:1"], jail._backend)) == 1
    assert selection.faults_seen([], jail._backend)


def test_nothing_sound_is_cannot_enforce_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "SYSTEM_FOLDERS", (str(tmp_path),))
    fake(tmp_path / "bwrap", "exit 1")
    selection.probed.cache_clear()
    try:
        with pytest.raises(CannotEnforce, match="does not start") as caught:
            selection.find_backend(allow_third_party=False)
    finally:
        selection.probed.cache_clear()
    assert "the policy takes none out of a Python package" in str(caught.value)
    for part in ("the system's own", "apparmor_restrict_unprivileged_userns", "container", "doctor"):
        assert part in caught.value.remedy


def test_the_process_limit_is_really_tried(jail: NamespaceJail) -> None:
    assert selection.process_limit_binds(replace(jail._backend, cgroups=None))


def test_levels_are_ordered_and_each_adds_a_layer() -> None:
    for (_, lower, _), (name, upper, text) in pairwise(LEVELS):
        assert lower < upper
        assert level_of(upper) == name
        assert text
    assert level_of({Layer.NAMESPACES, Layer.SECCOMP}) == "L1"
    assert level_of(set()) == "L0"
    assert at_least("L3", "L1")
    assert not at_least("L1", "L2")
