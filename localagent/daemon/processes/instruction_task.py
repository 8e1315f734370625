"""An instruction as a task of the daemon: a session on the daemon's terms, that outlives the worker which begins it.

The session lies in a folder of the task's own until the task is over: the next worker goes on at the last complete
event, on the same tree. Which model writes, the daemon's settings say; nobody is there to be asked, and nothing lands.
"""

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from localagent.agent.approval import Trust
from localagent.agent.limits import Limits
from localagent.app.agent.request import DoOutcome, DoRequest
from localagent.app.agent.run import resume_do, run_do
from localagent.app.agent.session_outcome import recorded_outcome
from localagent.app.agent.session_run import Frontend
from localagent.app.agent.session_store import Session, is_session, open_session
from localagent.app.cancellation import Stop
from localagent.app.settings import Settings
from localagent.daemon.processes.configuration import Configuration
from localagent.daemon.store.task_store import ANYBODY, Rows
from localagent.domain.task import Choosing, Event, Task, TaskResult, Verdict
from localagent.errors import AnswerIsNo, CannotEnforce
from localagent.fs.atomic_files import CannotRecord, RecordDamaged, open_lock
from localagent.jail.files.workspace import remove_tree
from localagent.ports import Sink
from localagent.protocol.task_order import TaskOrder
from localagent.record.store import TaskRecord, TaskStore

SESSIONS = "sessions"
_LOCK = "lock"


@contextlib.contextmanager
def session_folder(folder: Path, task: str) -> Iterator[Path]:
    """The folder of a task's session below the daemon's `folder`; a worker that has not quite ended is waited for."""
    place = folder / SESSIONS / task
    for path in (place.parent, place):
        path.mkdir(mode=0o700, exist_ok=True)
    lock = open_lock(place / _LOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place
    finally:
        os.close(lock)


def forget_sessions(folder: Path, rows: Rows) -> None:
    """Remove the sessions of tasks that are over; what is still being let go of, the next time."""
    for place in (folder / SESSIONS).glob("*"):
        row = rows.find(place.name, ANYBODY)
        if row is None or row.state.over:
            with contextlib.suppress(OSError):
                remove_tree(place)


def do_request(order: TaskOrder, repo: Path, configuration: Configuration, policy: Path) -> DoRequest:
    """The order on the daemon's terms: its policy, interpreters, bounds and models; nobody is asked, nothing lands."""
    model = configuration.chat_model(order.model) if order.use_model else None
    return DoRequest(
        instruction=order.instruction.strip(),
        repo=repo,
        tests=order.tests,
        checks=order.checks,
        python=dict(configuration.interpreters).get(order.python, sys.executable),
        model=model.model if model is not None else "",
        trust=Trust.AUTO,
        assume=order.choosing is Choosing.ASSUME,
        limits=Limits(
            steps=order.max_steps,
            seconds=min(order.max_seconds, configuration.task_seconds),
            tokens=min(order.max_tokens, model.max_tokens) if model is not None else order.max_tokens,
        ),
        seed=order.seed,
        policy=policy,
    )


def carry_out(request: DoRequest, settings: Settings, sink: Sink, stop: Stop) -> DoOutcome:
    """What `do` answers: kept by a worker before, gone on with where one was ended, or begun.

    A model that is not there, and whatever else ends it before anything is spent, is an answer too.
    """
    record = TaskStore(settings.state_dir).latest()
    known, kept = None, None
    try:
        known = _recorded_answer(record) if record is not None else None
        kept = _session_of(record) if record is not None else None
    except RecordDamaged as damage:
        text = f"the session cannot be gone on with and is begun anew: {damage}"
        sink.emit(Event(kind="warning", at_seconds=0.0, data={"text": text}))
    if known is not None:
        return known
    front = Frontend(sink=sink, stop=stop)
    try:
        if kept is not None:
            return resume_do(replace(kept, request=request), settings, front)
        return run_do(request, settings, front)
    except (CannotRecord, RecordDamaged):
        raise
    except (AnswerIsNo, CannotEnforce) as no:
        return _refused(no, request, settings)


def _session_of(record: TaskRecord) -> Session | None:
    """The session of a worker that was ended before there was an answer; None where nothing of it was kept."""
    return open_session(record) if is_session(record) and record.journal_path.exists() else None


def _recorded_answer(record: TaskRecord) -> DoOutcome | None:
    """The answer of a worker that was ended before it could hand it over; None where there is none."""
    report = record.result_json()
    if report is None or report["outcome"] == Verdict.INTERRUPTED.value:
        return None
    return recorded_outcome(record, report)


def _refused(no: AnswerIsNo | CannotEnforce, request: DoRequest, settings: Settings) -> DoOutcome:
    """The answer where nothing was begun, with a report like any other."""
    record = TaskStore(settings.state_dir).create(
        Task(id="", repo=str(request.repo.resolve()), tests=request.tests, text=request.instruction)
    )
    verdict = Verdict.CANNOT_ENFORCE if isinstance(no, CannotEnforce) else Verdict.NEEDS_PERSON
    remedy = "see the daemon's log, and ask whoever keeps it" if request.model else no.remedy
    result = TaskResult(verdict=verdict, reason=str(no), exit=no.exit_code, remedy=remedy)
    report = record.save_result(result)
    return DoOutcome(exit=result.exit, reason=result.reason, remedy=result.remedy, session=record.id, report=report)
