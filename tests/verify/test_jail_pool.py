"""A worker that is still starting is ended by `cancel` as well."""

import socket
import threading
import time
from typing import Any, cast

import pytest

from localagent.domain.jailspec import JailResult
from localagent.domain.outcome import JailOutcome
from localagent.errors import Interrupted
from localagent.jail.files.workspace import Workspace
from localagent.jail.limits.policy_limits import PolicyLimits
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_client import WorkerLost
from localagent.verify.worker.worker_spec import WorkerSpec, WorkerUse


class Mute:
    """A jail whose program never says a word; its end of the channel closes when it is killed."""

    def __init__(self) -> None:
        self.channel, self._other = socket.socketpair()
        self.started = threading.Event()
        self.killed = False

    def kill(self) -> JailResult:
        self.killed = True
        self._other.close()
        return JailResult(
            ending=JailOutcome.CANCELLED, returncode=-9, stdout=b"", stderr=b"", wall_seconds=0.0, backend="", level=""
        )


class Somewhere:
    """A place that starts it; the workspace is only removed."""

    repo = "/repo"
    bounds = PolicyLimits()
    removed = False

    def __init__(self, process: Mute) -> None:
        self._process = process

    def workspace(self, changes: object, use: WorkerUse) -> Workspace:
        return cast("Workspace", self)

    def start(self, workspace: Workspace, use: WorkerUse) -> Any:
        self._process.started.set()
        return self._process

    def remove(self) -> None:
        self.removed = True


def test_cancel_ends_a_worker_that_is_starting() -> None:
    process = Mute()
    place = Somewhere(process)
    jails = JailPool(cast("WorkerSpec", place))
    told: list[BaseException] = []

    def start() -> None:
        with pytest.raises(Interrupted) as raised:
            jails.start({}, WorkerUse.QUICK)
        told.append(raised.value)

    thread = threading.Thread(target=start)
    thread.start()
    process.started.wait()
    while not jails._starting:
        pass
    jails.cancel()
    assert process.killed
    thread.join()
    assert (len(told), place.removed, jails._starting) == (1, True, [])
    process.channel.close()


def test_nothing_starts_once_cancelled() -> None:
    process = Mute()
    jails = JailPool(cast("WorkerSpec", Somewhere(process)))
    jails.cancel()
    with pytest.raises(Interrupted):
        jails.start({}, WorkerUse.QUICK)
    assert not process.started.is_set()
    for end in (process.channel, process._other):
        end.close()


def test_no_worker_starts_when_the_time_is_used_up() -> None:
    process = Mute()
    jails = JailPool(cast("WorkerSpec", Somewhere(process)))
    jails.until = time.monotonic()
    with pytest.raises(WorkerLost, match="the time was used up"):
        jails.start({}, WorkerUse.QUICK)
    assert not process.started.is_set()
    with jails.beside(60.0):
        inside = jails.late
    assert (inside, jails.late) == (False, True)
    process.channel.close()
    process._other.close()


def test_a_part_of_the_time_is_given_back() -> None:
    jails = JailPool(cast("WorkerSpec", None))
    jails.until = until = time.monotonic() + 1000.0
    with jails.within(0.25):
        assert jails.until < until - 700.0
    assert jails.until == until
