"""Binds that are refused, and why."""

from pathlib import Path

import pytest

from localagent.domain.jailspec import Bind, JailSpec
from localagent.errors import CannotEnforce
from localagent.jail.files.mountpoints import faults_of, resolved


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/", "hide or show"),
        ("/usr", "hide or show"),
        ("/root", "hide or show"),
        ("/proc/x", "reserved"),
        ("/etc/passwd", "reserved"),
        ("/dev/shm", "reserved"),
        ("relative", "absolute, plain"),
        ("/a/../b", "absolute, plain"),
        ("/a//b", "absolute, plain"),
        ("/a/", "absolute, plain"),
    ],
)
def test_target_is_refused(target: str, reason: str) -> None:
    (fault,) = faults_of([Bind(source="/usr", target=target)])
    assert reason in fault


def test_twice_the_same_target_is_refused() -> None:
    (fault,) = faults_of([Bind(source="/usr", target="/a"), Bind(source="/bin", target="/a")])
    assert "twice" in fault


@pytest.mark.parametrize("kind", ["missing", "link", "file"])
def test_below_an_untrusted_bind_only_real_folders_count(tmp_path: Path, kind: str) -> None:
    inner = tmp_path / "inner"
    if kind == "link":
        inner.symlink_to("/usr")
    elif kind == "file":
        inner.write_text("")
    binds = [Bind(source=str(tmp_path), target="/w", untrusted=True), Bind(source="/usr", target="/w/inner/lib")]
    (fault,) = faults_of(binds)
    assert "'inner'" in fault or "'lib'" in fault
    assert "untrusted '/w'" in fault


def test_below_an_untrusted_bind_existing_folders_and_files_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "f").write_text("")
    outer = Bind(source=str(tmp_path), target="/w", untrusted=True)
    assert faults_of([outer, Bind(source="/usr", target="/w/a/b"), Bind(source="/bin/sh", target="/w/a/f")]) == []


def test_order_does_not_hide_the_fault(tmp_path: Path) -> None:
    inner, outer = Bind(source="/usr", target="/w/x/y"), Bind(source=str(tmp_path), target="/w", untrusted=True)
    assert faults_of([inner, outer]) == faults_of([outer, inner]) != []


def test_similar_names_are_no_parents(tmp_path: Path) -> None:
    outer = Bind(source=str(tmp_path), target="/w", untrusted=True)
    assert faults_of([outer, Bind(source="/usr", target="/ww/x")]) == []


def test_every_fault_of_a_spec_is_told_at_once() -> None:
    spec = JailSpec(
        argv=("a\0b",), cwd="here", env=(("A=B", ""),), binds=(Bind(source="/nowhere-at-all", target="/a"),)
    )
    with pytest.raises(CannotEnforce) as caught:
        resolved(spec)
    for part in ("NUL", "not absolute", "variable name", "/nowhere-at-all"):
        assert part in str(caught.value)


def test_sources_lose_their_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    spec = JailSpec(argv=("x",), cwd="/", binds=(Bind(source=str(tmp_path / "link"), target="/a"),))
    assert resolved(spec).binds[0].source == str(tmp_path / "real")
