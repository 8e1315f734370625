"""Sessions on disk: a task's folder with `session.json` beside the journal, which is the session."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localagent.agent.approval import Trust
from localagent.agent.events import AgentEvent, Ended, EndKind, MemoryLog, PersonSaid, event_json, event_of
from localagent.agent.limits import Limits
from localagent.app.agent.request import DoRequest
from localagent.app.settings import Settings
from localagent.domain.task import Event, Verdict
from localagent.errors import UsageFault
from localagent.fs.atomic_files import RecordDamaged, read_bounded, write_private
from localagent.jail.api import BackendKind
from localagent.record.journal import Journal, read_journal
from localagent.record.store import TaskRecord, TaskStore
from localagent.text.strict_json import dump, load

SCHEMA = "localagent/session/1"
UNFINISHED = "unfinished"
_NAME = "session.json"
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """A kept session: what was asked, and what happened so far."""

    record: TaskRecord
    request: DoRequest
    model: str
    events: tuple[AgentEvent, ...]

    @property
    def state(self) -> str:
        """How it stands, in a word."""
        last = next((e for e in reversed(self.events) if isinstance(e, Ended)), None)
        ended = last is not None and last.kind is not EndKind.NEXT_ROLE and self.events[-1] is last
        return last.kind.value if last is not None and ended else UNFINISHED


def save_session(record: TaskRecord, request: DoRequest) -> None:
    """Keep what was asked."""
    data = {
        "schema": SCHEMA,
        "instruction": request.instruction,
        "repo": str(request.repo.resolve()),
        "tests": list(request.tests),
        "checks": list(request.checks),
        "from_tests": list(request.from_tests),
        "python": request.python,
        "model": request.model,
        "review_model": request.review_model,
        "roles": list(request.roles),
        "trust": request.trust.value,
        "assume": request.assume,
        "steps": request.limits.steps,
        "seconds": request.limits.seconds,
        "tokens": request.limits.tokens,
        "seed": request.seed,
        "policy": str(request.policy) if request.policy is not None else "",
        "backend": request.backend.value if request.backend is not None else "",
        "files": [str(file.absolute()) for file in request.files],
        "results": str(request.results.absolute()) if request.results is not None else "",
    }
    write_private(record.dir / _NAME, dump(data, indent=2))


def is_session(record: TaskRecord) -> bool:
    """Whether a task is one of `localagent do`."""
    return (record.dir / _NAME).is_file()


def instruction_of(record: TaskRecord) -> str:
    """All that a person instructed, here or at a daemon, which keeps its sessions itself; "" for a repair."""
    if not is_session(record):
        return record.task.instruction
    kept = open_session(record)
    return whole_instruction(kept.request, kept.events)


def assumed_of(record: TaskRecord) -> bool:
    """Whether nobody wanted to be asked what the accepted patch of a task means."""
    report = record.result_json() or {}
    return report.get("outcome") == Verdict.ACCEPTED.value and (report.get("agent") or {}).get("assume") is True


def whole_instruction(request: DoRequest, events: Sequence[AgentEvent]) -> str:
    """The instruction and what the person said since: what a change is held against."""
    return "\n".join([request.instruction, *(e.text for e in events if isinstance(e, PersonSaid))])


def _read(record: TaskRecord) -> dict[str, Any]:
    path = record.dir / _NAME
    try:
        found = load(read_bounded(path, _MOST_BYTES))
    except FileNotFoundError:
        raise UsageFault(f"task {record.id} is no session", remedy="`localagent session list` lists them") from None
    except ValueError as error:
        raise RecordDamaged(f"{path} is damaged: {error}") from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA or not isinstance(found.get("instruction"), str):
        raise RecordDamaged(f"{path} is damaged: not a session")
    return found


def open_session(record: TaskRecord) -> Session:
    """A kept session. UsageFault for a task that is none, RecordDamaged for one that was altered."""
    found = _read(record)
    try:
        request = DoRequest(
            instruction=found["instruction"],
            repo=Path(found["repo"]),
            tests=tuple(found["tests"]),
            checks=tuple(found["checks"]),
            from_tests=tuple(found.get("from_tests", ())),
            python=found["python"],
            model=found["model"],
            review_model=found.get("review_model", ""),
            roles=tuple(found["roles"]),
            trust=Trust(found["trust"]),
            assume=bool(found["assume"]),
            limits=Limits(steps=found["steps"], seconds=found["seconds"], tokens=found["tokens"]),
            seed=found["seed"],
            policy=Path(found["policy"]) if found["policy"] else None,
            backend=BackendKind(found["backend"]) if found["backend"] else None,
            files=tuple(map(Path, found.get("files", ()))),
            results=Path(found["results"]) if found.get("results") else None,
        )
        events = [event_of(entry["kind"], entry["data"]) for entry in read_journal(record.journal_path)]
    except FileNotFoundError:
        events = []
    except (KeyError, TypeError, ValueError) as error:
        raise RecordDamaged(f"session {record.id} is damaged: {error}") from error
    kept = tuple(e for e in events if e is not None)
    return Session(record=record, request=request, model=found["model"], events=kept)


def find_session(settings: Settings, id_or_prefix: str) -> Session:
    """The session whose id starts or ends so. UsageFault if there is none or more than one, or for another task."""
    store = TaskStore(settings.state_dir)
    return open_session(store.open(id_or_prefix, what="session", lists="localagent session list"))


def sessions(settings: Settings) -> tuple[Session, ...]:
    """Every session that can be read, newest first; `session show` says what is wrong with another."""
    found = []
    for record in TaskStore(settings.state_dir).list():
        if is_session(record):
            with contextlib.suppress(RecordDamaged):
                found.append(open_session(record))
    return tuple(found)


def journal_log(journal: Journal, begin: float, events: tuple[AgentEvent, ...] = ()) -> MemoryLog:
    """A log whose events stand in a journal before they count. `begin`: monotonic seconds when it was opened."""

    def keep(event: AgentEvent) -> None:
        kind, data = event_json(event)
        journal.emit(Event(kind=kind, at_seconds=time.monotonic() - begin, data=data))

    return MemoryLog(events, keep)
