"""What a session may use, and whether that is used up."""

from collections.abc import Sequence
from dataclasses import dataclass

from localagent.agent.events import AgentEvent, Ended, EndKind, Replied


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a session may use: replies of the model, seconds, tokens of prompts and replies together."""

    steps: int = 200
    seconds: float = 1800.0
    tokens: int = 2_000_000

    def used(self, events: Sequence[AgentEvent]) -> Ended | None:
        """The end of a run whose events used up its replies or tokens; None where it may go on."""
        replies = [e for e in events if isinstance(e, Replied)]
        tokens = sum(max(0, r.prompt_tokens) + max(0, r.reply_tokens) for r in replies)
        for used, most, what in (
            (len(replies), self.steps, "replies of the model (--max-steps)"),
            (tokens, self.tokens, "tokens (--max-tokens)"),
        ):
            if used >= most:
                return _used_up(most, what)
        return None

    def late(self, seconds: float) -> Ended | None:
        """The end of a run that took so many seconds; None where there is time left."""
        return _used_up(self.seconds, "seconds (--max-seconds)") if seconds >= self.seconds else None


def _used_up(most: float, what: str) -> Ended:
    return Ended(kind=EndKind.LIMITS_EXCEEDED, reason=f"the budget of {most:g} {what} is used up")
