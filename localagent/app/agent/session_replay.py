"""A session done again from its record: every call that its model made, on the copy as it stood before that call.

No model is asked: what it said is in the record. Each call meets the tools, the choke point, the gates and the jails of
now, under the policy of then, and what it did is compared with the record: whether it was let through, and what it
wrote. In the end the patch is proven again. Not run again: questions and plans, whose answers were a person's, and
calls that were interrupted. What tests and programs print may hold times, so another text alone is no departure.
"""

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localagent.agent.agent_ports import JudgeAnswer
from localagent.agent.events import (
    AgentEvent,
    Answered,
    MemoryLog,
    PersonSaid,
    Replied,
    ResultKind,
    RoleBegan,
    role_of,
    writes_of,
)
from localagent.agent.loop import Loop
from localagent.app.agent.jail_runs import JailRuns, opened_runs
from localagent.app.agent.recipe_run import NoModel
from localagent.app.agent.role_turns import RoleTurns
from localagent.app.agent.run import judge_of
from localagent.app.agent.session_run import Frontend, OneClock, SessionRun
from localagent.app.agent.session_store import Session, open_session
from localagent.app.cancellation import Stop
from localagent.app.evidence.replay_task import (
    PatchCheck,
    Reverified,
    SameTree,
    patch_then,
    policy_then,
    recorded_events,
)
from localagent.app.evidence.task_evidence import audit_log, begin, recorded_facts, setting_of
from localagent.app.settings import Settings
from localagent.domain.chat import ToolCall
from localagent.domain.task import Event
from localagent.errors import AnswerIsNo, Interrupted
from localagent.ports import Sink
from localagent.record.audit.entry import AuditKind
from localagent.record.store import TaskRecord
from localagent.text.visible_text import one_line

_A_PERSONS = frozenset({"ask", "plan", "no_test"})
_JUDGED = "finish"


@dataclass(frozen=True, kw_only=True, slots=True)
class CallDeparture:
    """A call that did something else than then. `number` counts the session's calls from 1."""

    number: int
    tool: str
    recorded: str
    now: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionReplayed:
    """What came of it. `calls` were carried out again, `left` were not, `other_texts` printed something else."""

    task: str
    calls: int
    left: int
    other_texts: int
    departures: tuple[CallDeparture, ...]
    same_patch: bool
    verified: Reverified

    @property
    def confirmed(self) -> bool:
        """Whether every call did the same, to the same patch, and that still holds."""
        return not self.departures and self.same_patch and self.verified.check is not PatchCheck.FAILS


@dataclass(kw_only=True, slots=True)
class _PersonThen:
    """Says what was said then: yes where the call was carried out."""

    agreed: bool = True

    @property
    def present(self) -> bool:
        return True

    def approves(self, what: str, detail: str) -> bool:
        del what, detail
        return self.agreed

    def answer(self, question: str) -> str:
        del question
        return ""


def replay_session(
    record: TaskRecord, settings: Settings, sink: Sink, stop: Stop, *, repo: Path | None = None
) -> SessionReplayed:
    """Do it again. AnswerIsNo or RecordDamaged with the reason where it cannot be; jail and usage faults propagate."""
    facts, _, mine = recorded_facts(settings, record)
    recorded_events(record, facts, mine)  # or the journal is not the one that the audit journal vouches for
    kept = open_session(record)
    if kept.request.files:
        raise AnswerIsNo(
            f"session {record.id} is an analysis of data", remedy="its results are made by the script that they hold"
        )
    if not any(isinstance(event, Replied) for event in kept.events):
        raise AnswerIsNo(
            f"session {record.id} asked no model: rules carried the instruction out",
            remedy="`localagent do` does it anew; on the same tree they give the same patch",
        )
    task = replace(record.task, repo=os.path.realpath(repo or record.task.repo))
    kept = replace(kept, request=replace(kept.request, repo=Path(task.repo)))
    policy = policy_then(record, facts)
    setting = setting_of(b"", policy.name, policy.least_jail_level.value, use_model=False, model="", backend="")
    person, started = _PersonThen(), time.monotonic()
    cancelled = threading.Event()
    with contextlib.ExitStack() as stack:
        runs = stack.enter_context(opened_runs(kept.request, settings, policy, task))
        SameTree(record, facts).check(runs.tree.snapshot)
        stack.enter_context(stop.calling(runs.cancel))
        stack.enter_context(stop.calling(cancelled.set))
        session = SessionRun(
            request=kept.request,
            settings=settings,
            policy=policy,
            record=record,
            evidence=begin(settings, record, b"", setting, None),
            model=NoModel(),
            front=Frontend(sink=sink, stop=stop, person=person),
            sink=OneClock(sink=sink, begin=started),
            log=MemoryLog(),
            begin=started,
        )
        again = _Again(session=session, runs=runs, person=person, cancelled=cancelled)
        answer = again.replayed(kept, facts)
    data = {"task": record.id, "same": answer.confirmed, "departs_at": None, "digest": "", "by": os.getuid()}
    if answer.departures:
        data["departs_at"] = answer.departures[0].number
    audit_log(settings).append(AuditKind.REPLAYED, data)
    return answer


@dataclass(kw_only=True, slots=True)
class _Again:
    """One replay at work."""

    session: SessionRun
    runs: JailRuns
    person: _PersonThen
    cancelled: threading.Event
    calls: int = 0
    left: int = 0
    other_texts: int = 0

    def replayed(self, kept: Session, facts: dict[str, Any]) -> SessionReplayed:
        """Every call in its turn, then the patch."""
        departures = tuple(self._departures(kept.events))
        patch, writes = patch_then(kept.record, facts), writes_of(kept.events)
        same = patch is None or self.runs.tree.patch(writes).digest == patch.digest
        verified = Reverified(check=PatchCheck.NO_PATCH)
        if patch is not None and same:
            self.person.agreed = True
            judge = judge_of(self.session, self.runs)
            found = judge.judge(writes, "")
            if found.answer is JudgeAnswer.REFUSED:  # what is told once before a person is left to decide
                found = judge.judge(writes, "")
            holds = found.answer in (JudgeAnswer.ACCEPTED, JudgeAnswer.NEEDS_PERSON)
            check = PatchCheck.PASSES if holds else PatchCheck.FAILS
            verified = Reverified(check=check, reasons=() if holds else (found.reason,))
        return SessionReplayed(
            task=kept.record.id,
            calls=self.calls,
            left=self.left,
            other_texts=self.other_texts,
            departures=departures,
            same_patch=same,
            verified=verified,
        )

    def _departures(self, events: Sequence[AgentEvent]) -> list[CallDeparture]:
        given = {call.id: call for e in events if isinstance(e, Replied) for call in e.calls}
        loop: Loop | None = None
        found = []
        for event in events:
            if isinstance(event, PersonSaid | RoleBegan):
                loop = None  # what was instructed, and who is asked, is another
            if isinstance(event, Answered) and event.call_id in given:
                loop = loop or self._loop()
                found += self._compared(loop, given[event.call_id], event)
            self.session.log.append(event)
        return found

    def _loop(self) -> Loop:
        turns = RoleTurns(
            session=self.session,
            tree=self.runs.tree,
            runs=self.runs,
            judge=judge_of(self.session, self.runs),
            cancelled=self.cancelled,
        )
        return turns.loop(role_of(self.session.log.events))

    def _compared(self, loop: Loop, call: ToolCall, then: Answered) -> list[CallDeparture]:
        if self.cancelled.is_set():
            raise Interrupted("interrupted; nothing was changed")
        number = self.calls + self.left + 1
        judged = then.tool == _JUDGED and then.kind is ResultKind.DONE
        if then.tool in _A_PERSONS or judged or (then.kind is ResultKind.ERROR and "interrupted" in then.text):
            self.left += 1
            return []
        self.calls += 1
        self.person.agreed = then.kind is ResultKind.DONE
        self.session.sink.emit(Event(kind="tool", at_seconds=0.0, data=_call_event(number, call)))
        now, _ = loop.call(call)
        self.other_texts += now.text != then.text
        if (now.kind, now.writes) == (then.kind, then.writes):
            return []
        return [CallDeparture(number=number, tool=then.tool, recorded=_shown(then), now=_shown(now))]


def _call_event(number: int, call: ToolCall) -> dict[str, str]:
    return {"tool": call.name, "text": f"call {number}: {one_line(call.arguments, 200)}"}


def _shown(answer: Answered) -> str:
    """What a call did, in a line."""
    wrote = ", ".join(map(str, (write.path for write in answer.writes)))
    return f"{answer.kind.value}{f', wrote {wrote}' if wrote else ''}: {one_line(answer.text, 200)}"
