"""What a worker is asked stays within a policy's seconds, whatever the request wants; what ran out of them is told."""

import math
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from localagent.domain.jailspec import JailResult
from localagent.domain.outcome import JailOutcome
from localagent.domain.policy import LimitRules
from localagent.jail.limits.policy_limits import PolicyLimits
from localagent.ports import JailProcess
from localagent.runner.json_frames import Reader, send
from localagent.verify.worker.worker_client import DifferRequest, OpenRequest, RunRequest, WorkerClient, WorkerLost
from localagent.verify.worker.worker_messages import Item

ITEM = Item(index=0, id="test_it.py::test", path=None, line=1)
HELLO: dict[str, Any] = {"python": [3, 12, 0], "pytest": "8"}
RAN = {"kind": "ran", "results": []}
Ask = Callable[[WorkerClient], object]


class Heard:
    """A worker that keeps what it is asked and gives the answers it was told."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.channel, self._theirs = socket.socketpair()
        self.messages: list[dict[str, Any]] = []
        self._answers = [HELLO, *answers]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        reader = Reader(self._theirs.fileno())
        for answer in self._answers:
            message = reader.receive(None)
            self.messages.append(message)
            send(reader.fd, {**answer, "nonce": message["nonce"], "seq": message["seq"]})

    def kill(self) -> JailResult:
        self._thread.join()
        return JailResult(
            ending=JailOutcome.CANCELLED, returncode=-9, stdout=b"", stderr=b"", wall_seconds=0.0, backend="", level=""
        )


def asked(bounds: PolicyLimits, ask: Ask, answer: dict[str, Any]) -> dict[str, Any]:
    worker = Heard(answer)
    client = WorkerClient(cast("JailProcess", worker), "/repo", bounds)
    try:
        ask(client)
    except WorkerLost:  # the answer was none to this request
        assert answer == {"kind": "?"}
    worker.kill()
    worker.channel.close()
    worker._theirs.close()
    return worker.messages[1]


def command(client: WorkerClient) -> object:
    return client.command(["make"], trace=False, cpu_seconds=60, wall_seconds=120)


def behave(client: WorkerClient) -> object:
    return client.behave(items=[ITEM], functions=[], programs=[[]] * 9, seed=0, cpu_seconds=60)


def differ(client: WorkerClient) -> object:
    request = DifferRequest(items=[ITEM], functions=[], inverses=[], given=[], letters=[], numbers=[], seed=0)
    return client.differ(request)


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda c: c.open(OpenRequest()), {"kind": "?"}),
        (lambda c: c.run(RunRequest(items=[ITEM], cpu_seconds=60)), RAN),
        (command, {"kind": "?"}),
        (behave, {"kind": "behaved"}),
        (differ, {"kind": "differed"}),
    ],
    ids=["open", "run", "command", "behave", "differ"],
)
def test_no_request_gets_more_than_the_policy_gives(ask: Ask, answer: dict[str, Any]) -> None:
    free = asked(PolicyLimits(), ask, answer)
    bound = asked(PolicyLimits(LimitRules(cpu_seconds=3, wall_seconds=7)), ask, answer)
    assert free["cpu_seconds"] > 3
    assert free["wall_seconds"] > 7
    assert (bound["cpu_seconds"], bound["wall_seconds"]) == (3, 7)
    assert bound.get("budget_seconds", 7) == 7
    assert bound.get("test_seconds", 3) <= 3


def test_a_command_that_ran_out_of_the_policys_seconds_is_told() -> None:
    late = {"kind": "command", "outcome": "timed-out", "status": -9, "seconds": 3.0, "output": "", "lines": None}
    tight, wide = PolicyLimits(LimitRules(cpu_seconds=3)), PolicyLimits(LimitRules(cpu_seconds=100))
    asked(tight, command, late)
    asked(wide, command, late)
    assert [r.partition(";")[0] for r in tight.remarks] == ["the policy's limits.cpu_seconds = 3 was reached"]
    assert wide.remarks == ()


def test_an_answer_after_the_tasks_time_is_a_lost_worker() -> None:
    worker = Heard()
    times = iter([math.inf, time.monotonic() + 0.1])  # of the greeting, and of what is asked
    client = WorkerClient(cast("JailProcess", worker), "/repo", until=lambda: next(times))
    with pytest.raises(WorkerLost, match="before the time was used up") as lost:
        client.open(OpenRequest())
    assert lost.value.ending is JailOutcome.WALL
    worker.channel.close()
    worker._theirs.close()


def test_no_more_tests_begin_than_the_tasks_time_allows() -> None:
    worker = Heard(RAN)
    client = WorkerClient(cast("JailProcess", worker), "/repo", until=lambda: time.monotonic() + 5)
    client.run(RunRequest(items=[ITEM], budget_seconds=600.0))
    worker.kill()
    assert worker.messages[1]["budget_seconds"] <= 5
    worker.channel.close()
    worker._theirs.close()
