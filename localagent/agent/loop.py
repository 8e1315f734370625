"""The loop: view, complete, calls, one choke point, results, append.

Flow out of it is by typed outcomes. Whatever a model or its server does ends in one of them: nothing raises for it.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from localagent.agent import context
from localagent.agent.agent_ports import Answer
from localagent.agent.approval import ChokePoint
from localagent.agent.containment import containment
from localagent.agent.events import (
    AgentEvent,
    Answered,
    Ended,
    EndKind,
    EventLog,
    NoReply,
    Noted,
    Replied,
    ResultKind,
    Started,
    pending_calls,
)
from localagent.agent.limits import Limits
from localagent.agent.replies import as_event, outcome_of, quoted
from localagent.agent.stuck import stuck, too_often_refused
from localagent.agent.tools.tool import Done, Tool, Workshop, bounded, parse_arguments
from localagent.agent.tools.working_copy import ToolFault, ToolRefusal
from localagent.domain.chat import ChatFailure, ChatFault, ChatReply, ChatRequest, Sampling, ToolCall
from localagent.ports import ChatModel
from localagent.text.visible_text import one_line, shortened

_RETRIES = 6  # of faults in a row
_WAITS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
_REPLY_SECONDS = 300.0
_NO_CALL = "error: your reply holds no tool call. Answer with a call of a tool; when all is done, call finish."


@dataclass(frozen=True, kw_only=True, slots=True)
class Loop:
    """One session at work."""

    model: ChatModel
    opening: context.Opening
    tools: Mapping[str, Tool]
    workshop: Workshop
    choke: ChokePoint
    log: EventLog
    limits: Limits
    sampling: Sampling
    metadata: Mapping[str, str]
    cancelled: threading.Event
    tell: Callable[[AgentEvent], None]
    on_text: Callable[[str], None] | None = None  # streams the replies' text
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep

    def run(self, begin: float | None = None, earlier: Sequence[AgentEvent] = ()) -> Ended:
        """Until there is an outcome; it is in the log then.

        `begin` (now where it is left out) and the `earlier` events are of other roles on the same budget.
        """
        begin, first, faults = self.clock() if begin is None else begin, len(self.log.events), 0
        ended = self._carry_out(begin)
        while ended is None:
            ended = self.limits.used((*earlier, *self.log.events[first:])) or self._late(begin)
            if ended is not None:
                break
            said = self._complete(begin)
            if isinstance(said, ChatFailure):
                faults += 1
                ended = self._after(said, faults, begin)
                continue
            faults = 0
            self._append(as_event(said, self.tools, self.log.whole_session))
            ended = self._carry_out(begin) or self._circles()
        self._append(ended)
        return ended

    def _append(self, event: AgentEvent) -> None:
        self.log.append(event)
        self.tell(event)

    def _late(self, begin: float) -> Ended | None:
        """Whether the time is up, or nobody wants the answer any more."""
        if self.cancelled.is_set():
            return Ended(kind=EndKind.LIMITS_EXCEEDED, reason="cancelled")
        return self.limits.late(self.clock() - begin)

    def _complete(self, begin: float) -> ChatReply | ChatFailure:
        """Ask the model, the conversation made to fit."""
        schemas = tuple(tool.schema for tool in self.tools.values())
        budget = context.prompt_budget(self.model.context_tokens)
        messages = context.render(self.opening, self.log.events)
        while context.estimate(messages, schemas) > budget and self._condensed():
            messages = context.render(self.opening, self.log.events)
        left = self.limits.seconds - (self.clock() - begin)
        return self.model.complete(
            ChatRequest(messages=messages, tools=schemas, sampling=self.sampling, metadata=self.metadata),
            timeout_seconds=max(1.0, min(_REPLY_SECONDS, left)),
            on_text=self.on_text,
            cancelled=self.cancelled,
        )

    def _condensed(self) -> bool:
        step = context.condense(self.log.events)
        if step is not None:
            self._append(step)
        return step is not None

    def _after(self, failure: ChatFailure, faults: int, begin: float) -> Ended | None:
        """What a failure leads to: another try, a shorter conversation, or the end."""
        self._append(NoReply(fault=failure.fault.value, reason=failure.reason))
        if (late := self._late(begin)) is not None:
            return late
        if failure.fault is ChatFault.CONTEXT_EXCEEDED:
            if self._condensed():
                return None
            why = "the task does not fit into the model's context, though all that can be left out is"
            return Ended(kind=EndKind.GAVE_UP, reason=f"{why}; use a model with a larger one")
        if failure.fault.again and faults <= _RETRIES:
            self.wait(_WAITS[min(faults, len(_WAITS)) - 1])
            return None
        return Ended(kind=EndKind.GAVE_UP, reason=f"the model gave no reply: {failure.reason}")

    def _circles(self) -> Ended | None:
        """Say it once when the session goes round in circles; then end it."""
        events = self.log.events
        last = events[-1]
        sign = stuck(events)
        if sign is not None and sign.told:
            return Ended(kind=EndKind.GAVE_UP, reason=f"the model is stuck: {sign.kind.value}")
        if sign is not None:
            self._append(Noted(text=sign.advice))
        elif isinstance(last, Replied) and not last.calls:
            self._append(Noted(text=_NO_CALL))
        return None

    def _carry_out(self, begin: float) -> Ended | None:
        """The calls of the last reply, those that have no result yet; an outcome where one ends the session.

        Where the time is up the rest of them waits for a session that is resumed.
        """
        for call, started in pending_calls(self.log.events):
            if (late := self._late(begin)) is not None:
                return late
            if started:  # before the program was ended: whether it was done is not known, so it is not done again
                answer, done = (
                    _answer(call, ResultKind.ERROR, "error: interrupted before it ended; call it again"),
                    None,
                )
            else:
                self._append(Started(call_id=call.id))
                answer, done = self.call(call)
            if self.choke.review.speaks_to_machine(quoted(answer)):
                answer = replace(answer, injected=one_line(f"{call.name} {shortened(call.arguments, 80)}"))
            self._append(answer)
            for event in containment(self.log.events):
                self._append(event)
            if done is not None and (ended := outcome_of(done)) is not None:
                return ended
        return too_often_refused(self.log.events)

    def call(self, call: ToolCall) -> tuple[Answered, Done | None]:
        """Carry out one call, if the choke point lets it be; nothing is logged."""
        tool = self.tools.get(call.name)
        try:
            if tool is None:
                raise ToolFault(f"there is no tool {shortened(call.name, 60)!r}; the tools are {', '.join(self.tools)}")
            action = tool.prepare(self.workshop, parse_arguments(tool, call.arguments))
            said = self.choke.decide(action, self.workshop.copy, self.log.whole_session)
            if said.answer is not Answer.ALLOW:
                raise ToolRefusal(said.reason, said.broken, for_person=said.for_person)
            done = action.perform()
        except ToolRefusal as no:
            text = bounded(f"refused: {no}", self.workshop.limit, "left out")
            refused = _answer(call, ResultKind.REFUSED, text)
            return replace(refused, broken=no.broken, for_person=no.for_person), None
        except ToolFault as fault:
            return _answer(call, ResultKind.ERROR, bounded(f"error: {fault}", self.workshop.limit, "left out")), None
        answer = _answer(call, ResultKind.DONE, done.text)
        writes = (*action.writes, *done.writes)
        return replace(answer, writes=writes, plan=done.plan, agreement=done.agreement), done


def _answer(call: ToolCall, kind: ResultKind, text: str) -> Answered:
    return Answered(call_id=call.id, tool=call.name, kind=kind, text=text)
