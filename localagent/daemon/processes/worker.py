"""The worker: one process, one attempt at one task. Lays the snapshot out, runs `fix` or `do`, answers under its lease.

It ends with its parent, whatever ends that. Whatever ends it, the launcher ends its jails, and the parent settles the
lease. The request names no path that came from a client.
"""

import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from localagent.agent.events import event_json
from localagent.app.agent.request import DoOutcome
from localagent.app.agent.session_store import assumed_of, is_session, open_session
from localagent.app.cancellation import Stop
from localagent.app.fix.request import FixOutcome, FixRequest
from localagent.app.fix.run import run_fix
from localagent.app.policies import open_policy
from localagent.app.review.instruction_review import instruction_reviewer
from localagent.app.review.patch_gate import GateRequest, review_changes
from localagent.app.settings import Settings
from localagent.daemon.processes.configuration import Configuration, load_configuration
from localagent.daemon.processes.instruction_task import carry_out, do_request, session_folder
from localagent.daemon.processes.logs import log_to_stderr
from localagent.daemon.processes.materialize import lay_out
from localagent.daemon.store.approval_store import ReviewedPatch
from localagent.daemon.store.blobs import Blobs
from localagent.daemon.store.leases import MOST_EVENT_BYTES, Lease, LeaseLost, append, finish
from localagent.daemon.store.schema import StoreBusy, StoreFull
from localagent.daemon.store.task_store import Result, Rows, retrying
from localagent.domain.chat import PREFIX
from localagent.domain.edit import Patch
from localagent.domain.guard import guard_of
from localagent.domain.task import Budget, Event, Verdict
from localagent.errors import InternalFault, Interrupted, LocalagentError, UsageFault
from localagent.fs.atomic_files import read_bounded
from localagent.gate.assumed_answers import ASSUMED, TESTS
from localagent.jail.files.workspace import remove_tree
from localagent.protocol.task_order import TaskOrder
from localagent.record.patchfile import patch_json
from localagent.record.store import TaskRecord, TaskStore
from localagent.repo.diff.write_diff import unified_diff
from localagent.report.confidence_text import best_confidence
from localagent.text.strict_json import dump, load

# What the gates ask of the patches that a task left, while its tree still lies there: kept for whoever may approve.
#
# The policy is the daemon's, tightened by the tree's own; the gates are those of `localagent gate`. Not promised:
# that a client's policy asks the same; a word is held against what is asked where the patch goes in.

ACCEPTED = 0  # the number of the accepted patch; proposals count from 1


def judge_patches(
    record: TaskRecord, numbers: tuple[int, ...], repo: Path, policy: Path, settings: Settings, instruction: str = ""
) -> tuple[ReviewedPatch, ...]:
    """The accepted patch and the proposals of these numbers, each put to all gates, as for an `instruction` if any."""
    opened = open_policy(settings, policy, repo).policy
    assumed = ASSUMED | TESTS if assumed_of(record) else frozenset[str]()
    people = "\n".join(opened.approvals.people)
    found = []
    for number in (ACCEPTED, *numbers):
        patch: Patch | None = record.patch() if number == ACCEPTED else record.proposal(number)
        if patch is None or not patch.changes:
            continue
        diff = unified_diff(patch)
        request = GateRequest(patch=diff, repo=repo, policy=policy, everything=True, approvals=False)
        told = assumed if number == ACCEPTED else ()
        reviewer = instruction_reviewer(instruction, told) if instruction else review_changes
        review = reviewer(request, opened, settings)[0]
        found.append(
            ReviewedPatch(
                number=number,
                verdict=review.verdict.value,
                patch=review.digest,
                change=review.change,
                asked="\n".join(review.questions),
                policy=opened.name,
                people=people,
                diff=diff,
            )
        )
    return tuple(found)


PATIENCE_SECONDS = 600.0  # how long an answer waits for room on the disk
NICE = 10
STOPPED = 75  # exit code: ended on purpose before there was an answer
_ASKED = "say what is asked in the instruction, and order it again"
NO_MODEL = "no model: the daemon's model process is not there just now"
_GATHER_SECONDS = 0.25
MOST_TOLD_BYTES = 16 << 20  # of one attempt's events; a hostile tree may give every test a name of thousands of bytes
_ALWAYS = ("stage", "attempt")
MOST_BUNDLE_BYTES = 16 << 20
_MOST_REPORT_BYTES = 32 << 20
_MOST_PATCH_BYTES = 128 << 20
_MOST_SESSION_BYTES = 32 << 20
_log = logging.getLogger("localagent.worker")


class StoreSink:
    """Gathers events and keeps them in the database a few times a second; at once where a stage begins.

    When the lease is lost the work is stopped: nothing of it would count. When there is no room, events are dropped.
    """

    def __init__(self, rows: Rows, lease: Lease, stop: Stop) -> None:
        self._rows, self._lease, self._stop = rows, lease, stop
        self._gathered: list[Event] = []
        self._lock = threading.Lock()
        self._last = 0.0
        self._told_bytes = 0
        self.lost = False

    def emit(self, event: Event) -> None:
        """From any thread."""
        size = len(dump(event.data))
        with self._lock:
            if event.kind not in _ALWAYS and self._told_bytes + size > MOST_TOLD_BYTES:
                return
            self._told_bytes += min(size, MOST_EVENT_BYTES)  # a larger one is left out where it is kept
            self._gathered.append(event)
            now = time.monotonic()
            if self.lost or (event.kind != "stage" and now - self._last < _GATHER_SECONDS):
                return
            self._last = now
            self._flush()

    def flush(self) -> None:
        """Keep what is gathered."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        events, self._gathered = self._gathered, []
        try:
            append(self._rows, self._lease, events)
        except LeaseLost:
            self.lost = True
            self._stop.now()
            raise Interrupted("the task is another worker's now") from None
        except (StoreFull, StoreBusy) as no:
            _log.error("events of task %s are not kept: %s", self._lease.task, no)


def request_for(
    order: TaskOrder, repo: Path, configuration: Configuration, policy: Path, line: int | None
) -> FixRequest:
    """The order on the daemon's terms: its policy, its interpreters, its bounds, its model process or none."""
    return FixRequest(
        repo=repo,
        tests=order.tests,
        checks=order.checks,
        text=order.text,
        python=dict(configuration.interpreters).get(order.python, sys.executable),
        seed=order.seed,
        budget=Budget(
            max_candidates=order.max_candidates,
            max_seconds=min(order.max_seconds, configuration.task_seconds),
            jobs=min(order.jobs or configuration.jobs, configuration.jobs),
        ),
        use_model=order.use_model and line is not None,
        model=order.model if line is not None else "",
        policy=policy,
        model_line=line,
        choosing=order.choosing,
        guard=guard_of(order.guard, min(order.guard_seconds, configuration.task_seconds)),
        min_confidence=order.min_confidence,
    )


def result_of(lease: Lease, outcome: FixOutcome | DoOutcome, state_dir: Path, socket: str = "") -> Result:
    """Report and patches under the daemon's id of the task; nothing in them names a place of the daemon.

    `socket`: the path of that of the model that was asked.
    """
    record = TaskStore(state_dir).open(outcome.task_id)
    made = record.patch()
    numbers = [int(p["number"]) for p in outcome.report.get("proposals", ())]
    kept = [(n, record.proposal(n)) for n in numbers]
    remedy = str(outcome.report["remedy"]).replace(record.task.repo, ".").replace(record.id, lease.task)
    if is_session(record) and outcome.report["outcome"] == Verdict.NEEDS_PERSON.value and not numbers:
        remedy = _ASKED  # the session ends with the task: nobody goes on with it
    changes = {
        "task": lease.task,
        "repo": "",
        "attestation": attested(record, outcome.report.get("attestation")),
        "remedy": remedy,
    }
    hidden = {record.task.repo: "."}
    hidden |= {f"{PREFIX}{socket}": "the chat model", socket: "its socket"} if socket else {}
    report = dump(without(outcome.report, changes, hidden))
    patch = None if made is None else dump(patch_json(made))
    proposals = dump([{"number": n, "patch": patch_json(p)} for n, p in kept if p is not None])
    if len(report) > _MOST_REPORT_BYTES or len(patch or b"") + len(proposals) > _MOST_PATCH_BYTES:
        raise InternalFault("the report or the patch is larger than is kept")
    return Result(report=report, patch=patch, proposals=proposals, session=_session(record, hidden))


def _session(record: TaskRecord, hidden: Mapping[str, str]) -> bytes | None:
    """The events of a session; None where there are none, or more than is kept."""
    if not is_session(record):
        return None
    told = [{"kind": kind, "data": data} for kind, data in map(event_json, open_session(record).events)]
    data = dump([without(event, {}, hidden) for event in told])
    return data if len(data) <= _MOST_SESSION_BYTES else None


def attested(record: TaskRecord, said: dict[str, str] | None) -> dict[str, str] | None:
    """What the report says of an attestation, with the attestation itself: the folder that it lies in goes."""
    if said is None:
        return None
    return {**said, "bundle": read_bounded(record.dir / said["file"], MOST_BUNDLE_BYTES).decode("ascii")}


def without(report: dict[str, Any], changes: dict[str, Any], hidden: Mapping[str, str]) -> Any:
    """The report with `changes`, and in every text what stands instead of what is `hidden`: the tree's folder."""

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            for name, shown in hidden.items():
                value = value.replace(name, shown)
            return value
        if isinstance(value, dict):
            return {key: clean(inner) for key, inner in value.items()}
        return [clean(inner) for inner in value] if isinstance(value, list | tuple) else value

    return {**clean(report), **changes}


def settings_of(order: dict[str, Any]) -> Settings:
    """The daemon's settings, as an order carries them."""
    paths: dict[str, Any] = {name: Path(path) for name, path in order["settings"].items()}
    return Settings(**paths, system_owner=int(order["system_owner"]), gpu_layers=str(order.get("gpu_layers", "")))


def work(order: dict[str, Any], stop: Stop) -> int:
    """One attempt; the process's exit code, 0 when there is an answer."""
    folder, place = Path(order["folder"]), Path(order["place"])
    lease = Lease(**order["lease"])
    configuration = load_configuration(Path(order["configuration"]))
    settings = replace(
        settings_of(order),
        state_dir=place / "state",
        cache_dir=place / "cache",
        scratch_dir=place,
        recorder=int(order["recorder"]),
    )
    rows = Rows(folder)
    row = rows.find(lease.task, lease.uid)
    if row is None:
        return STOPPED
    sink = StoreSink(rows, lease, stop)
    with contextlib.ExitStack() as stack:
        repo = place / "repo"
        if row.order.instruction:
            kept = stack.enter_context(session_folder(folder, lease.task))
            settings, repo = replace(settings, state_dir=kept / "state"), kept / "repo"
            remove_tree(repo)  # of a worker that was ended
        lay_out(Blobs(folder, rows), lease.uid, row.order.snapshot, repo)
        return _answered(order, row.order, configuration, settings, repo, (rows, lease, sink), stop)


def _answered(
    order: dict[str, Any],
    asked: TaskOrder,
    configuration: Configuration,
    settings: Settings,
    repo: Path,
    queue: tuple[Rows, Lease, StoreSink],
    stop: Stop,
) -> int:
    """The work on a tree that lies there, and its answer under the lease."""
    (rows, lease, sink), policy = queue, Path(order["policy"])
    outcome: FixOutcome | DoOutcome
    socket = ""
    if asked.instruction:
        do = do_request(asked, repo, configuration, policy)
        socket = do.model.removeprefix(PREFIX) if do.model.startswith(PREFIX) else ""
        outcome = _outcome(lambda: carry_out(do, settings, sink, stop), settings)
    else:
        fix = request_for(asked, repo, configuration, policy, order["model"])
        if asked.use_model and not fix.use_model:
            sink.emit(Event(kind="warning", at_seconds=0.0, data={"text": NO_MODEL}))
        outcome = _outcome(lambda: run_fix(fix, settings, sink, stop), settings)
    if outcome.exit == Interrupted.exit_code or sink.lost:
        return STOPPED
    sink.flush()
    result = result_of(lease, outcome, settings.state_dir, socket)
    numbers = tuple(int(p["number"]) for p in outcome.report.get("proposals", ()))
    record = TaskStore(settings.state_dir).open(outcome.task_id)
    judged = judge_patches(record, numbers, repo, policy, settings, asked.instruction)
    reason = str(load(result.report)["reason"])
    retrying(
        lambda: finish(
            rows,
            lease,
            result,
            answer=outcome.exit,
            reason=reason,
            judged=judged,
            confidence=best_confidence(outcome.report),
        ),
        (StoreFull, StoreBusy),
        seconds=PATIENCE_SECONDS,
    )
    return 0


def _outcome(run: Callable[[], FixOutcome | DoOutcome], settings: Settings) -> FixOutcome | DoOutcome:
    """What the work answers; a fault that it wrote a report about is an answer too."""
    try:
        return run()
    except (UsageFault, InternalFault) as fault:
        record = TaskStore(settings.state_dir).latest()
        report = record.result_json() if record is not None else None
        if record is None or report is None:
            raise
        return FixOutcome(exit=fault.exit_code, reason=str(fault), task_id=record.id, report=report)


def main(argument: str) -> int:
    """The process. `argument` is JSON, as `pool` makes it; `parent` in it is a descriptor."""
    log_to_stderr()
    os.nice(NICE)  # whoever asks how it goes is answered first
    order = json.loads(argument)
    for number in (order["parent"], order["recorder"], order["model"]):
        if number is not None:
            os.set_inheritable(number, False)  # nothing that is started here has a use for them
    stop = Stop()
    threading.Thread(target=_end_with, args=(int(order["parent"]),), name="parent", daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: _interrupt(stop))
    try:
        return work(order, stop)
    except (KeyboardInterrupt, Interrupted, LeaseLost):
        return STOPPED
    except LocalagentError as fault:
        _log.error("task %s: %s", order["lease"]["task"], fault)
        return fault.exit_code


def _interrupt(stop: Stop) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stop.now()
    raise KeyboardInterrupt


def _end_with(parent: int) -> None:
    """The parent holds the other end and writes nothing: what comes is its end, and ours."""
    os.read(parent, 1)
    os._exit(STOPPED)
