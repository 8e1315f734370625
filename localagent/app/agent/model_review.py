"""The reviewer in a session: asked about a change that gates, tests and `verify` let through, and about no other.

An objection goes back once to the model that works; the second one, or no answer that counts, leaves the change to a
person. An approval lets nothing through: what needed a person before still does.
"""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from localagent.agent.agent_ports import JudgeAnswer
from localagent.agent.events import REVIEWER, EventLog, Replied, ReviewAnswer, Reviewed, last_said
from localagent.agent.reviewer import Reviewer
from localagent.app.agent.chat_model import open_chat_model
from localagent.app.agent.request import DoRequest, other_reviewer
from localagent.app.agent.session_store import whole_instruction
from localagent.app.cancellation import Stop
from localagent.app.settings import Settings
from localagent.domain.chat import Sampling
from localagent.domain.verification import Verification
from localagent.gate.content.prompt_injection import spoken_in
from localagent.ports import ChatModel, Jail

_NAMED = 10
_TEMPERATURE = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelReview:
    """Asks the reviewer, keeps what it says in the session's log, and says what becomes of the change."""

    reviewer: Reviewer
    request: DoRequest
    log: EventLog

    def settle(
        self, answer: JudgeAnswer, reason: str, diff: bytes, found: Verification, paths: Collection[str]
    ) -> tuple[JudgeAnswer, str]:
        """The judge's answer as it stands after the review: never better than it was."""
        if answer is JudgeAnswer.REFUSED:
            return answer, reason
        since = self._since_person()
        text = diff.decode("utf-8", "replace")
        said = self.reviewer.review(
            whole_instruction(self.request, self.log.events), text, _evidence(reason, found), paths
        )
        if said.answer is ReviewAnswer.APPROVE and spoken_in(b"\n".join(line[1:] for line in diff.split(b"\n"))):
            why = "the change or its surroundings hold a text that speaks to a machine, so its approval does not count"
            said = replace(said, answer=ReviewAnswer.NONE, reason=why)
        self.log.append(said)
        match said.answer:
            case ReviewAnswer.APPROVE:
                return answer, reason
            case ReviewAnswer.NONE:
                return JudgeAnswer.NEEDS_PERSON, f"{reason}; it was not reviewed: {said.reason}"
        objections = "\n".join(f"- {one}" for one in said.objections)
        worker = any(isinstance(e, Replied) for e in since)
        if worker and not any(isinstance(e, Reviewed) and e.answer is ReviewAnswer.OBJECT for e in since):
            told = "not finished, a reviewer objects; mend what is right in it, then call finish again"
            return JudgeAnswer.REFUSED, f"{told}:\n{objections}"
        again = "still objects" if worker else "objects"
        return (
            JudgeAnswer.NEEDS_PERSON,
            f"{reason}; the reviewer, a model, {again}: {'; '.join(map(str, said.objections))}",
        )

    def _since_person(self) -> tuple[object, ...]:
        """What happened since a person spoke last."""
        return self.log.events[last_said(self.log.events) + 1 :]


@contextlib.contextmanager
def open_review(
    request: DoRequest,
    settings: Settings,
    worker: ChatModel,
    jail: Callable[[], Jail],
    stop: Stop,
    log: EventLog,
    cancelled: threading.Event,
) -> Iterator[ModelReview | None]:
    """The review of a session, None where it has no reviewer. AnswerIsNo where its model cannot be had."""
    if REVIEWER not in request.roles:
        yield None
        return
    with contextlib.ExitStack() as stack:
        model = worker
        if other := other_reviewer(request):
            model = stack.enter_context(open_chat_model(other, settings, jail, stop, roles=(REVIEWER,)))
        sampling = Sampling(temperature=_TEMPERATURE, seed=request.seed, max_tokens=1024)
        reviewer = Reviewer(model=model, sampling=sampling, cancelled=cancelled)
        yield ModelReview(reviewer=reviewer, request=request, log=log)


def _evidence(reason: str, found: Verification) -> list[str]:
    """What was shown of the change, a line each."""
    told = [reason]
    if found.full is not None:
        turned = [str(name) for name in found.full.fail_to_pass]
        told.append(f"tests that failed before and pass now: {', '.join(turned[:_NAMED]) or 'none'}")
    if found.strength is not None:
        told.append(f"strength of the evidence: {found.strength.grade.value} of A to E")
        told += [f"not shown: {limit}" for limit in found.strength.limits[:_NAMED]]
    if found.unrun:
        told.append(f"changed code that no test ran: {', '.join(map(str, found.unrun[:_NAMED]))}")
    return told
