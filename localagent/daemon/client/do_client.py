"""`do` by way of the daemon: the instruction is ordered with what the model may use; which model, the daemon says."""

import time
from pathlib import Path

from localagent.agent.approval import Trust
from localagent.agent.events import IMPLEMENTER, event_of
from localagent.app.agent.request import DoOutcome, DoRequest
from localagent.app.agent.session_store import journal_log, save_session
from localagent.app.settings import Settings
from localagent.daemon.client.task_client import RemoteRequest, run_task
from localagent.domain.task import Budget, Choosing, Task
from localagent.errors import InternalFault, UsageFault
from localagent.ports import Sink
from localagent.protocol.http_client import Client, DaemonRefuses
from localagent.protocol.task_order import TaskOrder
from localagent.record.journal import Journal
from localagent.record.store import TaskRecord, TaskStore
from localagent.repo.diff.write_diff import unified_diff


def run_do_remote(request: DoRequest, socket: Path, settings: Settings, sink: Sink) -> DoOutcome:
    """The instruction at the daemon. UsageFault for what only works without it; DaemonGone when nobody is there."""
    _refuse(request)
    choosing = Choosing.ASSUME if request.assume else Choosing.ASK
    asked = RemoteRequest(
        repo=request.repo,
        order=TaskOrder(
            snapshot="",
            tests=request.tests,
            checks=request.checks,
            python=request.python,
            seed=request.seed,
            max_seconds=request.limits.seconds,
            model=request.model,
            choosing=choosing,
            instruction=request.instruction,
            max_steps=request.limits.steps,
            max_tokens=request.limits.tokens,
        ),
        task=Task(
            id="",
            repo=str(request.repo.resolve()),
            tests=request.tests,
            checks=request.checks,
            text=request.instruction,
            python=request.python,
            seed=request.seed,
            budget=Budget(max_seconds=request.limits.seconds),
            choosing=choosing,
            instruction=request.instruction,
        ),
        out=request.out,
        report=request.report,
    )
    done = run_task(asked, socket, settings, sink)
    record = TaskStore(settings.state_dir).open(done.task_id)
    _bring_session(socket, record, request)
    proposal = record.proposal(1)
    return DoOutcome(
        exit=done.exit,
        reason=done.reason,
        remedy=done.remedy,
        session=done.task_id,
        diff=done.diff if not done.exit else b"",
        proposal=unified_diff(proposal) if proposal is not None else b"",
        report=done.report,
        warnings=done.warnings,
    )


def _bring_session(socket: Path, record: TaskRecord, request: DoRequest) -> None:
    """Keep what the daemon's session said and did with the task, where it was kept there: to be read, not gone on with.

    InternalFault where it is not as agreed.
    """
    client = Client(socket)
    try:
        found = client.get(f"/v1/tasks/{record.id}/session").json()
        told = [event_of(str(event["kind"]), event["data"]) for event in found]
    except DaemonRefuses:
        return  # too long, or of a daemon that keeps none
    except (ValueError, TypeError, KeyError) as fault:
        raise InternalFault(f"the daemon's session is not as agreed: {fault}") from fault
    finally:
        client.close()
    with Journal.reopened(record.journal_path) as journal:
        log = journal_log(journal, time.monotonic())
        for event in told:
            if event is not None:
                log.append(event)
    save_session(record, request)


def _refuse(request: DoRequest) -> None:
    faults = []
    if request.policy is not None:
        faults.append("--policy: the daemon's policy holds for all its tasks (`GET /v1/policy` shows it)")
    if request.backend is not None:
        faults.append("--backend: the daemon chooses its jail")
    if request.trust is not Trust.AUTO:
        faults.append("--trust: nobody can be asked at the daemon; it works with `auto`")
    if request.review_model or {*request.roles} - {IMPLEMENTER}:
        faults.append("--review-model, --roles: the daemon asks a model for nothing but to make the change")
    if request.from_tests:
        faults.append("--from-tests: the daemon takes tests that must pass (--test), and makes no skeletons")
    if request.files:
        faults.append("--file: the daemon makes patches; data are analysed without it")
    if request.apply:
        faults.append("--apply: what nobody looked at is not written into the tree; `localagent apply ID` does it")
    if faults:
        raise UsageFault(faults, remedy="leave it away, or work without --daemon")
