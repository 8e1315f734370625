"""Nothing that a child does keeps its parent waiting past the box, and nothing of it outlives the end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fix_builder import Home, home
from support.git_builder import Repo

from localagent.cli.timeboxed_child import FailedApart, Say, work_apart
from localagent.errors import AnswerIsNo, CannotEnforce, LocalagentError, UsageFault


def for_seconds(seconds: float) -> Callable[[float], float]:
    until = time.monotonic() + seconds
    return lambda _late: until - time.monotonic()


def until_said(said: Path) -> Callable[[float], float]:
    """Time without end, and none at all from the moment that a file is there."""
    return lambda _late: 0.0 if said.exists() else 60.0


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_what_is_said_comes_in_order() -> None:
    def work(say: Say) -> None:
        for n in range(3):
            say({"n": n, "text": "\udcff\n\x00" * 50_000})

    told = work_apart(work, for_seconds(600))
    assert [m["n"] for m in told.said] == [0, 1, 2]
    assert {m["text"] for m in told.said} == {"\udcff\n\x00" * 50_000}
    assert not told.over


def in_one_step_of_c() -> None:
    sum(range(10**15))


def deaf() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        time.sleep(60)


def clearing_up() -> None:
    try:
        raise ValueError
    finally:
        time.sleep(10**6)


@pytest.mark.parametrize("stuck", [in_one_step_of_c, deaf, clearing_up])
def test_no_child_is_waited_for(stuck: Callable[[], None], tmp_path: Path) -> None:
    """Where it hears no signal, holds the interpreter, or does not come to the end of its clearing up."""
    there = tmp_path / "there"

    def work(say: Say) -> None:
        say({"pid": os.getpid()})
        there.touch()
        stuck()

    told = work_apart(work, until_said(there))
    assert told.over
    pid = told.said[0]["pid"] if told.said else 0
    while pid and not gone(pid):
        time.sleep(0.01)


def test_without_time_nothing_begins(tmp_path: Path) -> None:
    told = work_apart(lambda _say: (tmp_path / "began").touch(), lambda _late: 0.0)
    assert (told.over, told.said, (tmp_path / "began").exists()) == (True, [], False)


@pytest.mark.parametrize(
    "fault",
    [CannotEnforce("no jail", remedy="get one"), AnswerIsNo("no"), UsageFault(["a", "b"], remedy="c")],
    ids=lambda fault: type(fault).__name__,
)
def test_faults_are_raised_here(fault: LocalagentError) -> None:
    def work(_say: Say) -> None:
        raise fault

    with pytest.raises(type(fault)) as caught:
        work_apart(work, for_seconds(600))
    assert (str(caught.value), caught.value.remedy) == (str(fault), fault.remedy)
    assert getattr(caught.value, "faults", ()) == getattr(fault, "faults", ())


def test_a_bug_keeps_its_traceback() -> None:
    def work(_say: Say) -> None:
        raise KeyError("x")

    with pytest.raises(FailedApart, match="KeyError: 'x'") as caught:
        work_apart(work, for_seconds(600))
    assert "in work" in caught.value.__notes__[0]


def test_a_child_that_was_killed_is_told() -> None:
    with pytest.raises(CannotEnforce, match="was killed"):
        work_apart(lambda _say: os.kill(os.getpid(), signal.SIGKILL), for_seconds(600))


def test_nothing_of_ours_is_held_open_by_it() -> None:
    """Whoever reads our output is not kept waiting by a child that is not dead yet."""

    def work(say: Say) -> None:
        say({"open": sorted({str(Path(f"/proc/self/fd/{n}").readlink()) for n in range(3)})})

    assert work_apart(work, for_seconds(600)).said == [{"open": ["/dev/null"]}]


ENDLESS = (
    "import os\nimport signal\nimport subprocess\nimport sys\nimport time\n\n\ndef test_add():\n"
    "    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):\n"
    "        signal.signal(number, signal.SIG_IGN)\n"
    "    for _ in range(3):\n"
    "        subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)', os.environ.get('X', 'ENDLESS')],"
    " start_new_session=True)\n"
    "    time.sleep(1000)\n"
)


def running(needle: bytes) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if needle in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


SEES = """
import sys
from pathlib import Path
from localagent.cli.deadline import Deadline

def runs(mark=sys.argv[1].encode()):
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            found = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"time.sleep(1000)\\0" + mark in found:  # one that the tests started, not we
            return True
    return False

{closed}
from localagent.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def hook(place: Home, mark: str, closed: str) -> "subprocess.CompletedProcess[str]":
    """`hook suggest` in a process of its own. Its jails bear a mark; the box is over by `closed` when they run."""
    place.write({"test_adder.py": "import adder\n" + ENDLESS.replace("ENDLESS", mark)})
    Repo(place.repo).git("add", "-A")
    argv = [sys.executable, "-c", SEES.format(closed=closed), mark, "hook", "suggest", "--deadline", "600s", "--json"]
    return subprocess.run(argv, cwd=place.repo, env=place.environment(), capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.parametrize("end", ["soft", "hard"])
def test_the_jail_s_whole_tree_goes_with_the_box(end: str) -> None:
    """Tests that start others and hear no signal: nothing runs on, whether the child clears up or is killed."""
    mark = f"localagent-endless-{os.getpid()}-{time.monotonic_ns()}"
    soft = "Deadline.left = lambda self: 0.0 if runs() else 600.0"
    hard = "Deadline.left = lambda self: 600.0; Deadline.shown = lambda self, late: 0.0 if runs() else 600.0"
    with home() as place:
        done = hook(place, mark, soft if end == "soft" else hard)
        assert (done.returncode, done.stderr) == (0, "")
        assert "the time (600s) ran out" in done.stdout
        while running(mark.encode()):
            time.sleep(0.05)
        left = list(place.scratch.iterdir())
        assert bool(left) == (end == "hard"), "a child that is killed clears nothing up: the next run does"
        if left:
            again = [sys.executable, "-c", "import sys; from localagent.jail.api import sweep; sweep(sys.argv[1])"]
            while list(place.scratch.iterdir()):
                subprocess.run([*again, str(place.scratch)], check=True)
