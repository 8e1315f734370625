"""A repair of failing tests, asked of the daemon while work goes on here.

It gets the snapshot with what is staged, and half of the time that is left; then its answer is no longer waited for.
What it answers is a stranger's patch: it must fit what is staged byte for byte, and every gate that judges candidates
found here judges it. That its tests pass is the daemon's word. Not promised: that the daemon ends a task at once which
nobody waits for; where this process is killed nobody cancels it, and it ends as the daemon ends any.
"""

import json
import secrets
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localagent import __version__
from localagent.app.review.patch_tests import Tree
from localagent.domain.confidence import Confidence
from localagent.domain.edit import Candidate, Patch, digest_of
from localagent.domain.gate import Allow
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.errors import AnswerIsNo, InternalFault, LocalagentError
from localagent.gate.repair_gates import open_gate_chain
from localagent.protocol.http_client import Client
from localagent.protocol.snapshot_manifest import pack_manifest
from localagent.protocol.task_order import TASK_ID, TaskOrder, TaskState, pack_order
from localagent.protocol.uploads import upload
from localagent.record.patchfile import parse_patch
from localagent.text.visible_text import one_line

SHARE = 0.5  # of what is left when it is asked; the other half is for finding it here
MOST_CANDIDATES = 200
MOST_ANSWER_BYTES = 8 << 20  # a repair of a few lines, both sides of its files whole
_GRACE_SECONDS = 0.1  # for a thread that comes to its end with the time
_CANCEL_SECONDS = 0.2
_MOST_WORDS = 300
_LATE = "did not answer in the time that there was"


class NoRepair(AnswerIsNo):
    """The daemon has none, or none that is taken."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _End:
    """What the end of a task says, as the daemon says it."""

    state: str
    exit: object
    reason: str
    confidence: Confidence | None


class AtDaemon:
    """One order. `repair` waits for its answer; `drop` gives it up. `confidence`: of the answer, by its word."""

    def __init__(self, socket: Path, tree: Tree, seconds: float) -> None:
        self._socket, self._tree = socket, tree
        self._until = time.monotonic() + seconds
        self._client = Client(socket, until=self._until, most_bytes=MOST_ANSWER_BYTES)
        self._task = ""
        self.confidence: Confidence | None = None
        threads = ThreadPoolExecutor(1, thread_name_prefix="daemon")
        self._answer: Future[Patch] = threads.submit(self._request_patch, max(0.1, round(seconds, 3)))
        threads.shutdown(wait=False)

    def repair(self, baseline: Baseline, policy: Policy) -> Patch:
        """A patch that fits and that the gates let pass. NoRepair says in one line why there is none."""
        try:
            patch = self._answer.result(max(0.0, self._until - time.monotonic()) + _GRACE_SECONDS)
            self._judge(patch, baseline, policy)
        except TimeoutError:
            why = _LATE
        except LocalagentError as no:
            late = time.monotonic() >= self._until
            why = _LATE if late else one_line(str(no).replace(f"the daemon at {self._socket} ", ""), _MOST_WORDS)
        else:
            return patch
        raise NoRepair(f"the daemon at {self._socket}: {why}")

    def drop(self) -> None:
        """Nobody waits any more: the task is cancelled, as far as a moment allows."""
        self._client.interrupt()
        with suppress(TimeoutError, LocalagentError):  # whatever it answers is not wanted
            self._answer.result(_GRACE_SECONDS + _CANCEL_SECONDS)

    def _judge(self, patch: Patch, baseline: Baseline, policy: Policy) -> None:
        """NoRepair for what would not be a candidate here: not these bytes, not such a file, or denied by a gate."""
        if not any(change.before != change.after for change in patch.changes):
            raise NoRepair("its patch changes nothing")
        candidate = Candidate(number=1, patch=patch, edits=(), cost=0.0)
        chain = open_gate_chain(policy, [RepoPath(name) for name in self._tree.task.tests])
        decisions = chain.review(candidate, baseline, self._tree.sources)
        if found := [finding.message for decision in decisions for finding in decision.findings]:
            raise NoRepair(f"its patch is refused: {'; '.join(found)}")
        if not decisions or any(decision.answer is not Allow.ALLOW for decision in decisions):
            raise NoRepair("its patch is refused")

    def _request_patch(self, seconds: float) -> Patch:
        ended = False
        try:
            self._order(seconds)
            end = self._end()
            ended = True
            self.confidence = end.confidence
            return self._patch(end)
        finally:
            self._client.close()
            if self._task and not ended:
                self._cancel()

    def _order(self, seconds: float) -> None:
        told = self._client.get("/version").json()
        version = told.get("version") if isinstance(told, dict) else None
        if version != __version__:
            raise NoRepair(f"is of version {version}, and this is {__version__}")
        data = pack_manifest(self._tree.snapshot)
        manifest = digest_of(data)
        upload(self._client, self._tree.snapshot, manifest, data)
        order = TaskOrder(
            snapshot=manifest,
            tests=self._tree.task.tests,
            guard=self._tree.task.guard.specs,
            max_candidates=MOST_CANDIDATES,
            max_seconds=seconds,
        )
        key = {"idempotency-key": secrets.token_hex(16)}
        found = self._client.post("/v1/tasks", pack_order(order), headers=key).json()
        if not isinstance(found, dict) or not TASK_ID.fullmatch(str(found.get("id"))):
            raise InternalFault("its answer to an order is not a task")
        self._task = str(found["id"])
        if found.get("state") == TaskState.HELD:
            raise NoRepair("holds the task until somebody approves it")

    def _end(self) -> _End:
        """How the task ended."""
        for event in self._client.stream(f"/v1/tasks/{self._task}/events", after=0):
            if event.kind == "end":
                return _parse_end(event.data)
        raise InternalFault("it ended its events without an end")

    def _patch(self, end: _End) -> Patch:
        if end.state != TaskState.DONE:
            raise NoRepair(f"its task {end.state}: {end.reason}")
        if end.exit == 0:
            return parse_patch(self._client.get(f"/v1/tasks/{self._task}/patch").json(), "its patch")
        found = self._client.get(f"/v1/tasks/{self._task}/proposals").json()
        if isinstance(found, list) and found and isinstance(found[0], dict):
            return parse_patch(found[0].get("patch"), "its proposal")
        raise NoRepair(f"found no repair: {end.reason}")

    def _cancel(self) -> None:
        client = Client(self._socket, until=time.monotonic() + _CANCEL_SECONDS, most_bytes=MOST_ANSWER_BYTES)
        with suppress(LocalagentError):  # then it ends with its seconds
            client.post(f"/v1/tasks/{self._task}/cancel", {})
        client.close()


def _confidence(told: Any) -> Confidence | None:
    if told is None:
        return None
    probability = told["probability"]
    if not isinstance(probability, int | float) or not 0 <= probability <= 1:
        raise ValueError("a confidence is from 0 to 1")
    model = one_line(str(told["model"]), _MOST_WORDS)
    return Confidence(probability=probability, calibrated=told["calibrated"] is True, model=model)


def _parse_end(text: str) -> _End:
    try:
        found = json.loads(text)
        return _End(
            state=str(found["state"]),
            exit=found["exit"],
            reason=str(found["reason"]),
            confidence=_confidence(found.get("confidence")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise InternalFault(f"its end of a task is not as agreed: {fault}") from fault
