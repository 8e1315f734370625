"""Orders and manifests at the border: what is right comes through as it was, what is wrong says all that is wrong."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.task import Choosing
from localagent.errors import UsageFault
from localagent.protocol.snapshot_manifest import SCHEMA, manifest_of, pack_manifest
from localagent.protocol.task_order import TaskOrder, order_of, pack_order
from localagent.repo.snapshot import take_snapshot

DIGEST = "sha256:" + "0" * 64


def test_an_order_comes_through() -> None:
    order = TaskOrder(
        snapshot=DIGEST,
        tests=("a", "-k b"),
        checks=("true x",),
        text="t",
        seed=-3,
        priority=9,
        model="m",
        choosing=Choosing.ASSUME,
        guard=("tests/unit", "-x"),
        guard_seconds=9.5,
        min_confidence=0.95,
        max_tokens=9,
    )
    assert order_of(json.loads(json.dumps(pack_order(order)))) == order


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"snapshot": "sha256:0"}, "snapshot: the digest"),
        ({"snapshot": None}, "snapshot: the digest"),
        ({"tests": "x"}, "tests: a list"),
        ({"tests": ["x"] * 257}, "tests: a list of at most 256"),
        ({"tests": ["x" * 4097]}, "tests: texts of at most"),
        ({"checks": ["'"]}, "No closing quotation"),
        ({"checks": [" "]}, "is empty"),
        ({"text": "\0"}, "without NUL"),
        ({"model": "/etc/shadow"}, "model: a name that the daemon knows, not a path"),
        ({"model": "../x"}, "not a path"),
        ({"python": "/usr/bin/python3"}, "python: a name"),
        ({"seed": True}, "seed: a whole number"),
        ({"seed": 2**70}, "seed: a whole number"),
        ({"max_candidates": 0}, "max_candidates"),
        ({"max_seconds": 1e999}, "max_seconds: a positive, finite"),
        ({"max_seconds": -1}, "max_seconds"),
        ({"jobs": 65}, "jobs"),
        ({"priority": 10}, "priority"),
        ({"use_model": "no"}, "use_model"),
        ({"choosing": "best"}, "choosing: one of ask, assume, first"),
        ({"choosing": ["ask"]}, "choosing: one of"),
        ({"guard": "none"}, "guard: a list"),
        ({"guard": ["none", "x"]}, "guard: none stands alone"),
        ({"guard": [" "]}, "guard: is empty"),
        ({"guard_seconds": 0}, "guard_seconds: more than 0"),
        ({"guard_seconds": 1e999}, "guard_seconds: more than 0 and at most 3600"),
        ({"guard_seconds": True}, "guard_seconds: a number"),
        ({"min_confidence": 1.1}, "min_confidence: a number from 0 to 1"),
        ({"min_confidence": -0.1}, "min_confidence: a number"),
        ({"min_confidence": True}, "min_confidence: a number"),
        ({"min_confidence": None}, "min_confidence: a number"),
        ({"instruction": ["rename a to b"]}, "instruction: a text"),
        ({"instruction": 7, "max_steps": "9"}, "instruction: a text"),
        ({"instruction": " \n"}, "instruction: say what is to be changed"),
        ({"instruction": "x" * 20_001}, "instruction: say what is to be changed, in at most 20000 characters"),
        ({"instruction": "rename a to b\x1b[2J"}, "instruction: holds '\\x1b', a character that is not shown"),
        ({"instruction": "rename a\0 to b"}, "instruction: holds '\\x00'"),
        ({"instruction": "rename a to \u202eb"}, "instruction: holds '\\u202e'"),
        ({"instruction": "rename a to b\U000e0041"}, "instruction: holds '\\U000e0041'"),
        ({"instruction": "rename a to \ud800"}, "instruction: holds '\\ud800'"),
        ({"instruction": "x", "model": "unix:/run/docker.sock"}, "model: a name that the daemon knows, not a path"),
        ({"instruction": "x", "max_steps": 0}, "max_steps: a whole number from 1"),
        ({"instruction": "x", "max_tokens": True}, "max_tokens: a whole number from 1"),
        ({"instruction": "x", "guard": ["none"]}, "guard: not for an instruction"),
        ({"instruction": "x", "min_confidence": 0.5}, "min_confidence: not for an instruction"),
        ({"instruction": "x", "choosing": "first"}, "choosing: not for an instruction"),
        ({"instruction": "x", "trust": "plan"}, "unknown: 'trust'"),
        ({"instruction": "x", "apply": True}, "unknown: 'apply'"),
        ({"instruction": "x", "session": "../../other"}, "unknown: 'session'"),
        ({"repo": "/home/alice"}, "unknown: 'repo'"),
        ({"policy": "x"}, "unknown: 'policy'"),
    ],
)
def test_a_wrong_order_is_refused_with_the_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageFault) as fault:
        order_of({"snapshot": DIGEST, **change})
    assert reason in str(fault.value)


def test_every_fault_of_an_order_is_told() -> None:
    with pytest.raises(UsageFault) as fault:
        order_of({"snapshot": 1, "seed": "x", "priority": -1, "odd": 1})
    assert len(fault.value.faults) == 4


@pytest.mark.long
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["snapshot", "tests", "seed", "x"]), inner),
    )
)
def test_anything_is_an_order_or_refused(value: object) -> None:
    with contextlib.suppress(UsageFault):
        order_of(value)


def test_a_snapshot_comes_through(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    (repo / "pkg").mkdir(parents=True)
    (repo / "pkg" / "a.py").write_text("x = 1\n")
    (repo / "run").write_text("#!/bin/sh\n")
    (repo / "run").chmod(0o777)
    (repo / "link").symlink_to("pkg/a.py")
    (repo / "absolute").symlink_to(repo / "pkg" / "a.py")
    Path(os.fsdecode(os.fsencode(repo) + b"/odd\xff.py")).write_text("")
    snapshot = take_snapshot(repo, tmp_path / "store")
    manifest = manifest_of(pack_manifest(snapshot))
    assert sorted(manifest.entries) == sorted(set(snapshot.entries) - {"absolute"})
    assert {p: x.digest for p, x in manifest.entries.items()} == {
        p: snapshot.entries[p].digest for p in manifest.entries
    }
    assert manifest.entries[next(p for p in manifest.entries if p == "run")].mode == 0o755
    assert manifest.total_bytes == 16


def entry(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "kind": "regular", "mode": 0o644, "size": 0, "digest": DIGEST, **more}


def link(path: str, target: Any) -> dict[str, Any]:
    return {"path": path, "kind": "symlink", "target": target}


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([entry("../x")], "not a path inside"),
        ([entry("/etc/passwd")], "not a path inside"),
        ([entry("a//b")], "not a path inside"),
        ([entry("a/./b")], "not a path inside"),
        ([entry("a\0b")], "not a path inside"),
        ([entry("a"), entry("a")], "stands twice"),
        ([entry("a"), entry("a/b")], "which is no folder"),
        ([link("a", "b"), entry("a/b")], "which is no folder"),
        ([entry(".git/config")], "version control"),
        ([entry("x/.git")], "version control"),
        ([entry("a" * 256)], "too long or too deep"),
        ([entry("/".join("a" * 101))], "too long or too deep"),
        ([entry("\ud800")], "no name of a file"),
        ([entry("a", mode=0o4755)], "the mode is"),
        ([entry("a", mode=True)], "the mode is"),
        ([entry("a", size=-1)], "the size is"),
        ([entry("a", size=1 << 40)], "the size is"),
        ([entry("a", digest="sha256:../../x")], "not a digest"),
        ([entry("a", kind="fifo")], "nothing else"),
        ([entry("a", owner=0)], "nothing else"),
        ([link("a", "/etc/passwd")], "a link out of the tree"),
        ([link("a/b", "../../x")], "a link out of the tree"),
        ([link("a", "..")], "a link out of the tree"),
        ([link("a", "")], "not a link's target"),
        ([link("a", 7)], "not a link's target"),
        ([7], "an entry of a manifest has a path"),
        ("x", "a list of at most"),
    ],
)
def test_a_wrong_manifest_is_refused_with_the_reason(entries: Any, reason: str) -> None:
    data = json.dumps({"schema": SCHEMA, "entries": entries}).encode()
    with pytest.raises(UsageFault) as fault:
        manifest_of(data)
    assert reason in str(fault.value)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"{" * 100_000, b"\xff", b'{"schema":"x","entries":[]}'])
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(UsageFault):
        manifest_of(data)
