"""Answers of a worker in which one value, anywhere, is another: refused with a reason, and never another exception."""

import copy
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from localagent.domain.jailspec import JailResult
from localagent.domain.outcome import JailOutcome
from localagent.ports import JailProcess
from localagent.runner.json_frames import Reader, send
from localagent.verify.evidence.behaviour_diff import calls_of, missed_of
from localagent.verify.worker.worker_client import OpenRequest, RunRequest, WorkerClient, WorkerLost
from localagent.verify.worker.worker_messages import Item, Malformed, collected_of, command_of, ran_of, refused_of

Answer = dict[str, Any]
ITEM = Item(index=0, id="t.py::a", path=None, line=1)
HELLO: Answer = {"python": [3, 11, 7], "pytest": "8.0"}
FAILURE = {"type": "E", "message": "m", "frames": [["t.py", 3, "f"]], "left": "1", "right": "2"}
RESULT = {"i": 0, "outcome": "failed", "seconds": 0.1, "failure": FAILURE, "lines": {"m.py": [1, 2]}}
COLLECTED: Answer = {
    "kind": "collected",
    "items": [["t.py::a", "t.py", 1]],
    "errors": [{"path": "t.py", "id": "t", "failure": FAILURE}],
    "import_lines": {"m.py": [1]},
    "rootdir": "/r",
    "unforkable": "",
}
REFUSED: Answer = {
    "kind": "refused", "why": "usage", "text": "t", "log": "l", "path": "/r/t.py", "failure": FAILURE,
    "errors": [], "import_lines": None,
}  # fmt: skip
RAN: Answer = {"kind": "ran", "results": [RESULT], "why": "", "started": 0}
COMMAND: Answer = {
    "kind": "command", "outcome": "passed", "status": 0, "seconds": 0.5, "output": "o", "lines": {"m.py": [1]}
}  # fmt: skip
CALL = {
    "f": 0, "item": 0, "how": "near", "key": "k", "call": "f(1)", "args": "(1,)", "kwargs": "{}", "own": 0,
    "parts": [[0, "d"], ["name", "d"]],
    "runs": [{"p": {"even": True}, "t": "1", "k": "ok", "d": "d", "r": "r", "l": [1]}] * 2,
}  # fmt: skip
DIFFERED: Answer = {"calls": [CALL], "live": [True], "missed": {"0": "why"}}
PARSERS: dict[str, tuple[Answer, Callable[[Answer], object]]] = {
    "collected": (COLLECTED, collected_of),
    "refused": (REFUSED, lambda answer: refused_of(answer, "/r")),
    "ran": (RAN, lambda answer: ran_of(answer, [ITEM])),
    "command": (COMMAND, command_of),
    "calls": (DIFFERED, lambda answer: list(calls_of(answer, 1, {0: "t.py::a"}, frozenset()))),
    "missed": (DIFFERED, lambda answer: missed_of(answer, 1)),
}
ODD: tuple[Any, ...] = (
    None, True, -1, 10**400, float("nan"), float("inf"), 1.5, "", "x", "\ud800\x1b[2J", "../x", "²", "9" * 5000,
    [], ["a"], ["a", "b"], ["a", "b", 1], [[]], {}, {"²": "x"}, {"a": []},
)  # fmt: skip


def altered(value: Any) -> Iterator[Any]:
    """The value with one part of it, at any depth, replaced, shortened or lengthened."""
    yield from ODD
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: one for name, one in value.items() if name != key}
            yield from ({**value, key: one} for one in altered(inner))
    elif isinstance(value, list):
        yield from (value[:-1], [*value, *value[-1:]])
        for n, inner in enumerate(value):
            yield from ([*value[:n], one, *value[n + 1 :]] for one in altered(inner))


@pytest.mark.parametrize("name", PARSERS)
def test_one_odd_value_is_malformed_or_harmless(name: str) -> None:
    answer, parse = PARSERS[name]
    parse(copy.deepcopy(answer))
    refused = 0
    for odd in altered(answer):
        if isinstance(odd, dict):  # a frame that is no object never comes so far
            try:
                parse(odd)
            except Malformed:
                refused += 1
    assert refused > 20


class Forged:
    """A worker that answers what it was given, whatever it is asked."""

    def __init__(self, *answers: Answer) -> None:
        self.channel, self._theirs = socket.socketpair()
        self._answers = answers
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with self._theirs:
            reader = Reader(self._theirs.fileno())
            for answer in self._answers:
                message = reader.receive(None)
                send(reader.fd, {**answer, "nonce": message["nonce"], "seq": message["seq"]})

    def kill(self) -> JailResult:
        self._thread.join()
        return JailResult(
            ending=JailOutcome.CANCELLED, returncode=-9, stdout=b"", stderr=b"", wall_seconds=0.0, backend="", level=""
        )


def talk(worker: Forged) -> None:
    with worker.channel:
        client = WorkerClient(cast("JailProcess", worker), "/r")
        client.open(OpenRequest())
        client.run(RunRequest(items=[ITEM], cpu_seconds=1))


def frames(*found: Any) -> Answer:
    return {**RAN, "results": [{**RESULT, "failure": {**FAILURE, "frames": list(found)}}]}


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (({"python": [3], "pytest": "8"},), "array of 3 expected"),
        ((HELLO, {**COLLECTED, "items": [["t.py::a", "t.py"]]}), "array of 3 expected"),
        ((HELLO, {**COLLECTED, "items": [["t.py::a"] * 4]}), "array of 3 expected"),
        ((HELLO, {**REFUSED, "why": []}), "none of usage, conftest"),
        ((HELLO, COLLECTED, frames([])), "array of 3 expected"),
        ((HELLO, COLLECTED, frames(["t.py", 3])), "array of 3 expected"),
        ((HELLO, COLLECTED, {**RAN, "results": [{**RESULT, "outcome": {}}]}), "none of passed, failed"),
        ((HELLO, COLLECTED, {**RAN, "results": [{**RESULT, "seconds": 10**400}]}), "number expected"),
    ],
)
def test_the_worker_is_given_up_and_the_reason_told(answers: tuple[Answer, ...], why: str) -> None:
    with pytest.raises(WorkerLost, match=rf"the worker sent what its own code does not send \({why}"):
        talk(Forged(*answers))
