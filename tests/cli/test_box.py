"""The box of time: counted from the process's start, and never left standing."""

import os
import signal
import subprocess
import sys
import time

import pytest

from localagent.app.cancellation import Stop
from localagent.cli import deadline as box_module
from localagent.cli.deadline import (
    MOST_SLOWED,
    RESERVE_SECONDS,
    SHOWN_SECONDS,
    Deadline,
    DeadlinePassed,
    process_age,
    slowed,
)
from localagent.cli.hook_suggest import seconds_of
from localagent.errors import Interrupted, LocalagentError, UsageFault
from localagent.fs.processor_wait import slowdown

MOST_RESERVE = MOST_SLOWED * RESERVE_SECONDS


def test_the_reserve_grows_on_a_busy_machine_within_bounds() -> None:
    spent = sum(os.times()[:4])
    assert slowed(0.0) == 1.0
    assert slowed(1e9) == MOST_SLOWED
    assert slowed(2 * max(spent, 1.0)) > 1.0


def test_the_reserve_grows_while_the_machine_grows_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1.0 <= slowdown(MOST_SLOWED) <= MOST_SLOWED
    monkeypatch.setattr(box_module, "slowed", lambda *_: 1.0)
    monkeypatch.setattr(box_module, "slowdown", lambda *_: 1.0)
    monkeypatch.setattr(box_module, "process_age", lambda: 0.0)  # half of the box at most is a reserve
    box = Deadline(100)
    before, shown = box.left(), box.shown(0.0)
    assert shown - before >= RESERVE_SECONDS - 2 * SHOWN_SECONDS, "the child has no time to clear up"
    monkeypatch.setattr(box_module, "slowdown", lambda *_: 3.0)
    assert before - box.left() >= 2 * RESERVE_SECONDS
    assert shown - box.shown(0.0) >= 2 * SHOWN_SECONDS
    assert shown - box.shown(1.0) >= 2 * SHOWN_SECONDS + 1.0
    monkeypatch.setattr(box_module, "slowdown", lambda *_: 1e9)
    assert box.left() > 0
    assert box.shown(1e9) - box.left() >= 20, "whoever waits gives up after who clears up"


def test_age_is_counted_from_the_start_of_the_process() -> None:
    code = (
        "import time; time.sleep(0.3); from localagent.cli.deadline import process_age as a; b = a(); time.sleep(0.2); "
    )
    done = subprocess.run([sys.executable, "-c", code + "print(b, a())"], capture_output=True, check=True)
    first, second = map(float, done.stdout.split())
    assert first >= 0.29
    assert second - first >= 0.19


def test_work_that_ends_in_time() -> None:
    done = []
    assert Deadline(process_age() + 60).run(lambda: done.append(1), Stop())
    assert (done, signal.getitimer(signal.ITIMER_REAL)) == ([1], (0.0, 0.0))
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_a_box_that_is_over_runs_nothing() -> None:
    box = Deadline(process_age() + RESERVE_SECONDS / 2)
    assert box.left() < 0
    assert not box.run(lambda: pytest.fail("it ran"), Stop())


def test_work_is_ended_and_its_jails_with_it() -> None:
    ended = []
    stop = Stop()

    def work() -> None:
        with stop.calling(lambda: ended.append("jails")):
            while True:
                time.sleep(60)

    assert not Deadline(process_age() + MOST_RESERVE + 0.1).run(work, stop)
    assert ended == ["jails"]


def test_what_an_ended_jail_makes_fail_is_no_fault() -> None:
    def work() -> None:
        try:
            time.sleep(60)
        except DeadlinePassed:
            raise Interrupted("the jail is gone") from None

    assert not Deadline(process_age() + MOST_RESERVE + 0.1).run(work, Stop())


def test_faults_in_time_come_out() -> None:
    def work() -> None:
        raise LocalagentError("x")

    with pytest.raises(LocalagentError, match="x"):
        Deadline(process_age() + 60).run(work, Stop())


@pytest.mark.parametrize(("text", "seconds"), [("3s", 3.0), ("1500ms", 1.5), ("2m", 120.0), ("0.5", 0.5)])
def test_times(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "x", "-1s", "0", "3h", "inf", "nan", "3sm", "1e999"])
def test_no_times(text: str) -> None:
    with pytest.raises(UsageFault, match="is not a duration"):
        seconds_of(text)
