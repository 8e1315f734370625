"""What a candidate does to the processes that serve the next one: the session, which forked it, and the supervisor.

They run as the same user, so the kernel lets a test change their limits, priority and processors, and without Yama
their memory. What cannot be closed is seen after the test, and ends the session: the next candidate gets a new jail.
"""

import os

import pytest
from support.house_builder import house

from localagent.domain.outcome import Outcome, TestResult
from localagent.verify.worker.worker_client import OpenRequest, RunRequest
from localagent.verify.worker.worker_messages import Collected, RunEnd
from localagent.verify.worker.worker_spec import WorkerUse

HEAD = """
import os, resource, signal


def parent(pid):
    return int(open(f"/proc/{pid}/stat", "rb").read().rpartition(b")")[2].split()[1])


def supervisor():
    return parent(os.getppid())
"""
CHANGES = {
    "a limit of the session": "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (99, 99))",
    "a soft limit of the session": "resource.prlimit(os.getppid(), resource.RLIMIT_STACK, (1 << 20, -1))",
    "the session's priority": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
    "the session's scheduling": "os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0))",
    "a limit of the supervisor": "resource.prlimit(supervisor(), resource.RLIMIT_NOFILE, (99, 99))",
    "the supervisor's priority": "os.setpriority(os.PRIO_PROCESS, supervisor(), 19)",
    "the session's I/O priority": "import ctypes; assert ctypes.CDLL(None).syscall(251, 1, os.getppid(), 3 << 13) == 0",
    "the signal of what a fork shares": "import fcntl; fcntl.fcntl(1, 10, 12)",
    "the mode of what a fork shares": "os.fchmod(1, 0o604)",
    "the end of the session": "os.kill(os.getppid(), signal.SIGKILL)",
    "what the session's output does": "import fcntl; fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK)",
}
NOTHING = TestResult(id="", outcome=Outcome.ERROR)
CLOSED = {
    "the session's memory": "open(f'/proc/{os.getppid()}/mem', 'r+b')",
    "the session's map": "open(f'/proc/{os.getppid()}/maps').read()",
    "the session's descriptors": "os.listdir(f'/proc/{os.getppid()}/fd')",
    "the supervisor's memory": "open(f'/proc/{supervisor()}/mem', 'r+b')",
}


def _run(body: str) -> tuple[TestResult, RunEnd, TestResult | None]:
    """What is said of a test, how that run ended, and what the same session says of a test that does nothing."""
    tests = f"{HEAD}\n\ndef test_first():\n    {body}\n\n\ndef test_next():\n    pass\n"
    with house({"m.py": "", "test_m.py": tests}) as h, h.verifier._jails.start({}, WorkerUse.QUICK) as worker:
        got = worker.client.open(OpenRequest(options=("--tb=no",)))
        assert isinstance(got, Collected)
        first, following = got.items
        request = RunRequest(items=[first], cpu_seconds=2.0, wall_seconds=10.0, budget_seconds=20.0)
        ran = worker.client.run(request)
        if ran.end is RunEnd.SESSION_ENDED:
            return ran.results.get(first.index, NOTHING), ran.end, None
        after = worker.client.run(RunRequest(items=[following], cpu_seconds=2.0, wall_seconds=10.0))
        return ran.results[first.index], ran.end, after.results[following.index]


@pytest.mark.long
@pytest.mark.parametrize("name", CHANGES)
def test_whoever_changes_what_serves_the_next_ends_the_session(name: str) -> None:
    if CHANGES[name].startswith("os.setpriority") and os.getpriority(os.PRIO_PROCESS, 0) == 19:
        pytest.skip("these tests have the lowest priority themselves, so nothing can be lowered")
    said, end, _ = _run(CHANGES[name])
    assert end is RunEnd.SESSION_ENDED
    if name != "the end of the session":
        assert said.outcome is Outcome.PASSED  # the change was made


@pytest.mark.long
@pytest.mark.parametrize("name", CLOSED)
def test_what_serves_the_next_cannot_be_looked_into(name: str) -> None:
    said, end, after = _run(CLOSED[name])
    assert said.failure is not None
    assert said.failure.exception == "PermissionError"
    assert end is RunEnd.DONE
    assert after is not None
    assert after.outcome is Outcome.PASSED


@pytest.mark.long
@pytest.mark.parametrize("body", ["os.setpriority(os.PRIO_PROCESS, 0, 19)", "pass", "open('/proc/self/maps').read()"])
def test_what_a_test_does_to_itself_ends_nothing(body: str) -> None:
    said, end, after = _run(body)
    assert said.outcome is Outcome.PASSED
    assert end is RunEnd.DONE
    assert after is not None
    assert after.outcome is Outcome.PASSED


SCRATCH = """
import os
import pytest


def test_leaves():
    for folder in ("/tmp", "/dev/shm"):
        try:
            os.setxattr(folder, "user.left", b"1")
        except OSError:
            pass  # a kernel whose tmpfs has none
        os.mkdir(folder + "/left")
        os.chmod(folder, 0)


def test_meets_nothing():
    for folder in ("/tmp", "/dev/shm"):
        assert os.listxattr(folder) == []
        assert not {"left", "mine"} & set(os.listdir(folder))
        open(folder + "/mine", "w").close()
"""


def test_a_scratch_folder_that_one_candidate_closed_is_open_and_empty_for_the_next() -> None:
    with house({"test_m.py": SCRATCH}) as h, h.verifier._jails.start({}, WorkerUse.QUICK) as worker:
        got = worker.client.open(OpenRequest(options=("--tb=no",)))
        assert isinstance(got, Collected)
        for item in (*got.items, *got.items):
            ran = worker.client.run(RunRequest(items=[item], cpu_seconds=2.0, wall_seconds=10.0, budget_seconds=20.0))
            assert [(r.outcome, r.failure) for r in ran.results.values()] == [(Outcome.PASSED, None)]
            assert ran.end is RunEnd.DONE
