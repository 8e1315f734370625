"""`fix` ended from outside, alone or with company, with little room: the tree is as it was and nothing is left."""

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.fix_builder import ADDED, ADDER, Home, home, tree_of

NEVER = {
    "sums.py": (
        "def total(x):\n    y = x + 1\n    z = [y, x, 3]\n    for i in z:\n        y += i\n    return sum(z) + y\n"
    ),
    "test_sums.py": "from sums import total\n\n\ndef test_total():\n    assert total(7) == 'never'\n",
}
SLOW_TO_COLLECT = {**ADDER, "test_slow.py": "import time\ntime.sleep(600)\n"}


def wait_for(h: Home, process: "subprocess.Popen[bytes]", kind: str) -> None:
    """Until the journal holds an event of a kind."""
    wanted = f'"kind":"{kind}"'.encode()
    while process.poll() is None:
        if any(wanted in journal.read_bytes() for journal in h.tasks.glob("*/journal.jsonl")):
            return
        time.sleep(0.02)
    raise AssertionError(f"ended before {kind}: {process.communicate()}")


def jails_of(h: Home) -> list[str]:
    """Command lines of processes that belong to a home."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes()
        except OSError:
            continue
        if os.fsencode(h.root) in line:
            found.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return found


def gone(h: Home) -> bool:
    """Waits a while for the kernel to end what a killed parent left."""
    for _ in range(100):
        if not jails_of(h):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "kind", "files"),
    [
        (signal.SIGINT, "stage", ADDER),
        (signal.SIGTERM, "stage", SLOW_TO_COLLECT),
        (signal.SIGINT, "checked", NEVER),
    ],
    ids=["at once", "while collecting", "while searching"],
)
def test_interrupted(number: int, kind: str, files: dict[str, str]) -> None:
    with home(files) as h:
        before = tree_of(h.repo)
        with h.start(*h.arguments("--no-model", candidates=100_000)) as process:
            wait_for(h, process, kind)
            process.send_signal(number)
            out, _ = process.communicate(timeout=60)
        report = json.loads((h.root / "report.json").read_bytes())
        assert process.returncode == 130
        assert (report["exit"], report["outcome"]) == (130, "interrupted")
        assert report["reason"] == "interrupted; the tree is as it was"
        assert b"interrupted; the tree is as it was" in out
        assert tree_of(h.repo) == before
        assert list(h.scratch.iterdir()) == []
        assert not jails_of(h)


@pytest.mark.long
def test_killed() -> None:
    with home(NEVER) as h:
        before = tree_of(h.repo)
        with h.start(*h.arguments("--no-model", candidates=100_000)) as process:
            wait_for(h, process, "checked")
            process.kill()
            process.communicate(timeout=60)
        assert gone(h), jails_of(h)
        assert tree_of(h.repo) == before
        assert len(list(h.scratch.iterdir())) == 1
        ran = h.fix(candidates=1)
        assert "gave up: the budget of candidates" in ran.reason
        assert list(h.scratch.iterdir()) == []
        assert "unfinished" in h.run("history").out


@pytest.mark.slow
def test_two_at_once_on_one_repository() -> None:
    with home() as h:
        reports = [h.root / f"report-{n}.json" for n in range(2)]
        started = [
            h.start(*h.arguments("--no-model", "--apply", "--report", str(place), candidates=6)) for place in reports
        ]
        for process in started:
            with process:
                process.communicate(timeout=200)
        told = sorted((json.loads(place.read_bytes()) for place in reports), key=lambda r: str(r["outcome"]))
        assert (h.repo / "adder.py").read_bytes().endswith(ADDED)
        assert (told[0]["outcome"], told[0]["exit"]) == ("accepted", 0)
        late = "nothing to fix: every test and check passes"  # when the other had ended before this one began
        assert "'adder.py' is not what the patch was made for" in told[1]["reason"] or told[1]["reason"] == late
        assert list(h.scratch.iterdir()) == []


@pytest.mark.long
def test_no_room_for_scratch() -> None:
    """A scratch file system of a few bytes: the copy of the tree cannot be made, and the run says so."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    with home({**ADDER, "data.txt": "x" * 300_000}) as h:
        ran = h.fix(preexec_fn=limit)
        assert (ran.code, ran.report["outcome"]) == (1, "needs-person")
        assert "cannot copy the tree to" in ran.reason
        assert "File too large" in ran.reason
        assert "TMPDIR" in ran.out


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="needs a file system of its own")
def test_a_scratch_file_system_that_holds_the_tree_but_no_workspace() -> None:
    """The disk is full once the first workspace is made: an answer, not a bug of ours."""
    with home({**ADDER, "data.txt": "x" * 300_000}) as h:
        size = ["mount", "-t", "tmpfs", "-o", "size=800k,mode=1777", "none", str(h.scratch)]
        if subprocess.run(size, capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted here")
        try:
            ran = h.fix()
        finally:
            subprocess.run(["umount", str(h.scratch)], check=True)
        assert (ran.code, ran.report["outcome"]) == (1, "needs-person")
        assert "cannot write a workspace below" in ran.reason
        assert "No space left on device" in ran.reason
        assert "TMPDIR" in ran.out
        assert not (h.root / "state" / "localagent" / "faults").exists()


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="needs a file system of its own")
@pytest.mark.parametrize("size", ["4k", "16k"])
def test_a_state_file_system_that_fills_up_on_the_way(size: str) -> None:
    """No journal, no repair: the run ends with the reason, the tree is as it was, and the report is written."""
    with home() as h:
        state = h.root / "state"
        state.mkdir(exist_ok=True)
        before = {p.name: p.read_bytes() for p in h.repo.iterdir() if p.is_file()}
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "none", str(state)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted here")
        try:
            ran = h.fix()
        finally:
            subprocess.run(["umount", str(state)], check=True)
        assert ran.code == 1
        assert "No space left on device" in ran.reason
        assert {p.name: p.read_bytes() for p in h.repo.iterdir() if p.is_file()} == before
        assert list(h.scratch.iterdir()) == []


@pytest.mark.long
def test_scratch_that_cannot_be_written() -> None:
    with home(TMPDIR="/proc") as h:
        ran = h.fix()
        assert (ran.code, ran.report["outcome"]) == (4, "cannot-enforce")
        assert "no scratch folder below /proc" in ran.reason
        assert "TMPDIR" in ran.out
