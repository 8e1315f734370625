"""The reviewer: a model in a fresh context that reads instruction, evidence and diff, and approves or objects.

It has no tools and no memory of how the change came to be. What it says is a model's word: whoever asks may be stopped
by it, and never let through. A change that it cannot read whole, and an answer that cannot be read, are no review.
"""

import hashlib
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from localagent.agent.context import CHARACTERS_PER_TOKEN, prompt_budget
from localagent.agent.events import Objection, Replied, ReviewAnswer, Reviewed
from localagent.agent.prompts import REVIEWER
from localagent.agent.replies import as_event
from localagent.agent.tools.tool import Kind, Parameter, ToolSpec, parse_arguments
from localagent.agent.tools.working_copy import ToolFault
from localagent.domain.chat import ChatFailure, ChatFault, ChatReply, ChatRequest, ChatRole, Message, Sampling
from localagent.ports import ChatModel
from localagent.text.escaping import escaped
from localagent.text.visible_text import one_line

_TRIES = 3
_MOST_OBJECTIONS = 8
_MOST_REASON = 500
_MOST_LINE = 10_000_000
_APPROVE = ToolSpec(
    name="approve",
    description="The change does what was asked, and nothing else.",
    parameters=(Parameter(name="reason"),),
)
_OBJECT = ToolSpec(
    name="object",
    description="One fault that must be mended first, with its place in the changed files.",
    parameters=(
        Parameter(name="reason"),
        Parameter(name="path", required=False),
        Parameter(name="line", kind=Kind.INTEGER, required=False),
    ),
)
_SPECS = {spec.name: spec for spec in (_APPROVE, _OBJECT)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Reviewer:
    """One reviewer. Each review is a conversation of its own; `seconds` are for one try at a reply."""

    model: ChatModel
    sampling: Sampling
    cancelled: threading.Event
    seconds: float = 300.0

    def review(self, instruction: str, diff: str, evidence: Sequence[str], paths: Collection[str]) -> Reviewed:
        """What it says of a change. `paths`: the files that an objection may name. Never raises for what it says."""
        shown = _shown(instruction, diff, evidence)
        if len(shown) + len(REVIEWER) > prompt_budget(self.model.context_tokens) * CHARACTERS_PER_TOKEN:
            return self._none("the change does not fit into the reviewer's context, and is not shown in parts")
        messages = [Message(role=ChatRole.SYSTEM, text=REVIEWER), Message(role=ChatRole.USER, text=shown)]
        request = ChatRequest(
            messages=tuple(messages),
            tools=tuple(spec.schema for spec in _SPECS.values()),
            sampling=self.sampling,
            must_call=True,
            metadata={"role": "reviewer"},
        )
        why = ""
        for _ in range(_TRIES):
            said = self.model.complete(request, timeout_seconds=max(1.0, self.seconds), cancelled=self.cancelled)
            if isinstance(said, ChatFailure):
                why = f"the reviewer's model gave no reply: {said.reason}"
                if said.fault is ChatFault.REFUSED and request.must_call:
                    request = replace(request, must_call=False)  # a server that cannot force a call
                elif not said.fault.again:
                    break
                continue
            reply = as_event(said, _SPECS, ())
            try:
                return self._read(reply, paths)
            except ToolFault as fault:
                why = f"the reviewer's answer cannot be read: {fault}"
                request = replace(request, messages=(*messages, *_retry(said, str(fault))))
        return self._none(why)

    def _read(self, reply: Replied, paths: Collection[str]) -> Reviewed:
        """The calls of a reply; who approves and objects at once objects. ToolFault where it says neither."""
        if not reply.calls:
            raise ToolFault("it holds no call; call approve or object")
        objections: list[Objection] = []
        approval = ""
        for call in reply.calls:
            spec = _SPECS.get(call.name)
            if spec is None:
                raise ToolFault(f"there is no tool {call.name!r}; call approve or object")
            given = parse_arguments(spec, call.arguments)
            reason = one_line(given["reason"].strip(), _MOST_REASON)
            if not reason:
                raise ToolFault(f"say in {call.name} why")
            if spec is _APPROVE:
                approval = reason
                continue
            path = given.get("path", "").strip().removeprefix("./")
            line = given.get("line", 0)
            known = path in paths
            objections.append(
                Objection(
                    path=path if known else "", line=line if known and 0 < line < _MOST_LINE else 0, reason=reason
                )
            )
        answer = ReviewAnswer.OBJECT if objections else ReviewAnswer.APPROVE
        return Reviewed(
            answer=answer,
            model=one_line(self.model.name, 200),
            digest=self.model.digest,
            reason="" if objections else approval,
            objections=tuple(objections[:_MOST_OBJECTIONS]),
            prompt_tokens=reply.prompt_tokens,
            reply_tokens=reply.reply_tokens,
        )

    def _none(self, why: str) -> Reviewed:
        return Reviewed(
            answer=ReviewAnswer.NONE,
            model=one_line(self.model.name, 200),
            digest=self.model.digest,
            reason=one_line(why, _MOST_REASON),
        )


def _shown(instruction: str, diff: str, evidence: Sequence[str]) -> str:
    """What the reviewer reads. The mark is made of the data, so that the data cannot hold it."""
    facts = "\n".join(f"- {one_line(fact, 300)}" for fact in evidence)
    plain = escaped(diff)[0]
    mark = hashlib.sha256(f"{facts}\n{plain}".encode("utf-8", "replace")).hexdigest()[:24]
    return (
        f"The user's instruction:\n{instruction}\n\nWhat was shown of the change, then the change, "
        f"between the marks {mark}:\n{mark}\n{facts}\n\n{plain}\n{mark}\n\nCall approve or object."
    )


def _retry(said: ChatReply, fault: str) -> tuple[Message, Message]:
    """An answer that could not be read, and why, for another try."""
    return (
        Message(role=ChatRole.ASSISTANT, text=said.text[:4_000] or "(no text)"),
        Message(role=ChatRole.USER, text=f"error: {one_line(fault, 300)}"),
    )
