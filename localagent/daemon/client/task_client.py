"""A task by way of the daemon: upload what it lacks of a snapshot, follow the work, take the answer home as the user.

The daemon opens nothing of the user's; what it answers is parsed strictly, and a patch lands only where every file is
what the patch was made for. The task is kept below the user's own state, under the daemon's id, like any other.
"""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from localagent import __version__
from localagent.app.agent.session_store import assumed_of
from localagent.app.evidence.task_evidence import BUNDLE, land_recorded
from localagent.app.policies import open_policy
from localagent.app.review.approvals import approve_by, needs_person, refuse_unapproved
from localagent.app.settings import Settings
from localagent.daemon.client.approval_client import note, service_of
from localagent.domain.edit import Patch, digest_of
from localagent.domain.task import Event, Snapshot, Stage, Task
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, Interrupted, LocalagentError, UsageFault
from localagent.fs.atomic_files import write_private, write_through
from localagent.jail.api import scratch_folder
from localagent.ports import Sink
from localagent.protocol.http_client import Client, DaemonGone, DaemonRefuses, wait_after
from localagent.protocol.snapshot_manifest import pack_manifest
from localagent.protocol.task_order import TASK_ID, TaskOrder, TaskState, pack_order
from localagent.protocol.uploads import upload
from localagent.record.journal import Journal
from localagent.record.patchfile import parse_patch
from localagent.record.store import TaskRecord, TaskStore
from localagent.repair.search.event_fanout import combined
from localagent.repo.snapshot import take_snapshot
from localagent.report.task_report import write_report

_BUSY_SECONDS = 60.0  # how long a busy daemon is asked again
_API = 1
_SAME = "bring daemon and client to the same version, or run without --daemon"
_HELD = (
    "task {task} is held until somebody else approves it: an account with the role `approve` says "
    "`localagent tasks approve {task}`; Ctrl-C cancels it"
)
_LOST = "order it again; the daemon's log says more (`journalctl -u localagent`)"
_GONE_SECONDS = 120.0  # how long a daemon that went away is waited for while it works for us


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteRequest:
    """What is ordered, and what is done at home with the answer. `task` is kept here; `order` lacks its snapshot."""

    repo: Path
    order: TaskOrder
    task: Task
    policy: Path | None = None
    out: Path | None = None
    report: Path | None = None
    apply: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteOutcome:
    """What came home. `diff` is the accepted patch; proposals are kept with the task."""

    exit: int
    reason: str
    remedy: str
    task_id: str
    warnings: tuple[str, ...]
    report: dict[str, Any] = field(default_factory=dict)
    diff: bytes = b""
    applied: bool = False


def run_task(request: RemoteRequest, socket: Path, settings: Settings, sink: Sink) -> RemoteOutcome:
    """The task at the daemon. DaemonGone when nobody is there."""
    client = Client(socket)
    try:
        theirs = _version(client)  # nobody there at all is said at once; who goes away later is waited for
        with _of_version(theirs):
            with scratch_folder(settings.scratch_dir) as scratch:
                sink.emit(Event(kind="stage", at_seconds=0.0, data={"stage": Stage.SNAPSHOT.value}))
                snapshot = take_snapshot(request.repo, scratch / "store")
                task = _ordered(client, request.order, snapshot, sink)
            return _followed(client, request, task, settings, sink)
    finally:
        client.close()


def _version(client: Client) -> str:
    """The daemon's version. CannotEnforce where what answers is no daemon of ours, or speaks of another interface."""
    try:
        found = client.get("/version").json()
    except InternalFault as fault:
        raise CannotEnforce(
            f"what answers at {client.path} is no daemon of localagent: {fault}", remedy=_SAME
        ) from fault
    if not isinstance(found, dict) or found.get("api") != _API:
        told = found.get("version") if isinstance(found, dict) else None
        raise CannotEnforce(
            f"the daemon at {client.path} is localagent {told}, whose interface this one ({__version__}) does not know",
            remedy=_SAME,
        )
    return str(found.get("version"))


@contextmanager
def _of_version(theirs: str) -> Iterator[None]:
    """What goes wrong with a daemon of another version says so, and is no bug of ours."""
    try:
        yield
    except (InternalFault, UsageFault, AnswerIsNo) as fault:
        if theirs == __version__:
            raise
        told = f"the daemon is localagent {theirs}, this is {__version__}"
        if isinstance(fault, InternalFault):
            raise CannotEnforce(f"{fault}; {told}", remedy=_SAME) from fault
        fault.remedy = f"{fault.remedy}; {told}: {_SAME}" if fault.remedy else f"{told}: {_SAME}"
        raise


def _ordered(client: Client, asked: TaskOrder, snapshot: Snapshot, sink: Sink) -> str:
    """Uploads and orders; the task's id. Busy daemons are asked again for a minute, with the same key.

    That a task waits for somebody's approval is said; it is followed all the same.
    """
    data = pack_manifest(snapshot)
    manifest = digest_of(data)
    order = pack_order(replace(asked, snapshot=manifest))
    key = secrets.token_hex(16)
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            upload(client, snapshot, manifest, data)
            found = client.post("/v1/tasks", order, headers={"idempotency-key": key}).json()
            if not isinstance(found, dict) or not TASK_ID.fullmatch(str(found.get("id"))):
                raise InternalFault("the daemon's answer to an order is not a task")
            if found.get("state") == TaskState.HELD:
                held = _HELD.format(task=found["id"])
                sink.emit(Event(kind="warning", at_seconds=0.0, data={"text": held}))
            return str(found["id"])
        except DaemonRefuses as no:
            if no.kind == "missing" and time.monotonic() < until:
                time.sleep(0.2)
                continue  # removed between our question and our order
            if no.kind == "quota" or not wait_after(no, until=until, most=_BUSY_SECONDS):
                raise
        except DaemonGone:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def _followed(client: Client, request: RemoteRequest, task: str, settings: Settings, sink: Sink) -> RemoteOutcome:
    record = TaskStore(settings.state_dir).create(request.task, named=task)
    note(record, client.path)
    with Journal(record.journal_path) as journal:
        try:
            ended = _await_end(client, task, combined((journal, sink)))
        except KeyboardInterrupt:
            with suppress(LocalagentError):
                client.close()
                client.post(f"/v1/tasks/{task}/cancel", {})
            raise Interrupted("interrupted; the daemon was asked to end the task, and the tree is as it was") from None
    return _taken_home(client, request, record, ended, settings)


def _await_end(client: Client, task: str, sink: Sink) -> dict[str, Any]:
    """Every event once, in order, over however many connections; the task as it is when it is over."""
    after = 0
    gone_since: float | None = None
    while True:
        try:
            for event in client.stream(f"/v1/tasks/{task}/events", after=after):
                gone_since = None
                if event.kind == "end":
                    found: dict[str, Any] = json.loads(event.data)
                    return found
                after = max(after, event.id)
                sink.emit(_event(event.data))
        except DaemonGone as gone:
            gone_since = gone_since or time.monotonic()
            if time.monotonic() - gone_since > _GONE_SECONDS:
                raise DaemonGone(
                    f"the daemon went away and did not come back; task {task} is kept there: {gone}",
                    remedy=f"when it is back: localagent tasks show {task}",
                ) from gone
        except DaemonRefuses as no:
            if not wait_after(no, until=time.monotonic() + _GONE_SECONDS, most=30.0):
                raise
        time.sleep(0.2)


def _event(text: str) -> Event:
    try:
        found = json.loads(text)
        return Event(kind=str(found["kind"]), at_seconds=float(found["at_seconds"]), data=dict(found["data"]))
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        raise InternalFault(f"an event of the daemon is not as agreed: {fault}") from fault


def _taken_home(
    client: Client, request: RemoteRequest, record: TaskRecord, ended: dict[str, Any], settings: Settings
) -> RemoteOutcome:
    """Report and patches kept here, written where the request names, landed when asked."""
    task = record.id
    if ended.get("state") != TaskState.DONE:
        raise AnswerIsNo(
            f"task {task} {ended.get('state')}: {ended.get('reason')}",
            remedy="order it again" if ended.get("state") == TaskState.CANCELLED else _LOST,
        )
    report = client.get(f"/v1/tasks/{task}/report").json()
    if not isinstance(report, dict):
        raise InternalFault("the daemon's report is not an object")
    report = {**report, "task": task, "repo": record.task.repo, "attestation": _attested(record, report)}
    outcome = RemoteOutcome(
        exit=int(report.get("exit", 1)),
        reason=str(report.get("reason", "")),
        remedy=str(report.get("remedy", "")),
        task_id=task,
        warnings=tuple(str(text) for text in report.get("warnings", ())),
    )
    patch = _patches(client, record, report)
    if patch is not None:
        diff = str(report.get("patch") or "").encode("utf-8", "surrogateescape")
        outcome = replace(outcome, diff=diff)
        if not outcome.exit and request.out is not None:
            write_through(request.out, diff)
        if request.apply:
            outcome = _landed(request, record, patch, outcome, settings)
    elif (remedy := _of_a_person(request, record, settings)) and outcome.exit:
        outcome = replace(outcome, remedy=remedy)
    record.adopt_report(report)
    if request.report is not None:
        write_report(request.report, report)
    return replace(outcome, report=report)


def _of_a_person(request: RemoteRequest, record: TaskRecord, settings: Settings) -> str:
    """How the first proposal gets in, where it touches what a person must look at; "" where it does not."""
    policy = open_policy(settings, request.policy, request.repo).policy
    first = record.proposal(1)
    if first is None or not needs_person(first, policy):
        return ""
    return f"{approve_by(record.id, policy.approvals)}, then `localagent apply {record.id} --choose 1`"


def _patches(client: Client, record: TaskRecord, report: dict[str, Any]) -> Patch | None:
    """The accepted patch, checked and kept; proposals are kept as well, for `apply --choose`."""
    for found in client.get(f"/v1/tasks/{record.id}/proposals").json():
        number = found.get("number") if isinstance(found, dict) else None
        if isinstance(number, int) and 0 < number < 100:
            record.save_proposal(number, parse_patch(found.get("patch"), "a proposal of the daemon"))
    if report.get("patch_digest") is None:
        return None
    patch = parse_patch(client.get(f"/v1/tasks/{record.id}/patch").json(), "the daemon's patch")
    if patch.digest != report["patch_digest"]:
        raise InternalFault("the daemon's patch is not the one that its report speaks of")
    record.save_patch(patch)
    return patch


def _attested(record: TaskRecord, report: dict[str, Any]) -> dict[str, str] | None:
    """The daemon's attestation, kept beside the report; what the report of a task at home says of it."""
    said = report.get("attestation")
    if said is None:
        return None
    try:
        bundle, key = said["bundle"].encode("ascii"), str(said["key"])
    except (TypeError, KeyError, AttributeError, UnicodeEncodeError) as fault:
        raise InternalFault(f"the daemon's attestation is not as agreed: {fault}") from fault
    write_private(record.dir / BUNDLE, bundle)
    return {"file": BUNDLE, "key": key}


def _landed(
    request: RemoteRequest, record: TaskRecord, patch: Patch, outcome: RemoteOutcome, settings: Settings
) -> RemoteOutcome:
    repo = request.repo.resolve()
    try:
        service = service_of(None, record)
        asked = record.task.instruction
        refuse_unapproved(
            patch, repo, request.policy, settings, task=record.id, service=service, instruction=asked,
            assumed=assumed_of(record),
        )  # fmt: skip
        land_recorded(settings, record, patch, repo)
    except AnswerIsNo as no:
        reason = f"a patch was accepted but not applied: {no}"
        return replace(outcome, exit=no.exit_code, reason=reason, remedy=no.remedy)
    return replace(outcome, applied=True)
