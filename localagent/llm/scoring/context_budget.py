"""How much a model is shown and how long it may answer, by how long a text it reads.

What was chosen for the bundled model, which reads CONTEXT_TOKENS at once, grows and shrinks in proportion. Answers are
as long as what they replace asks for, never more than a third of what the model reads: the rest is the question's.
Not promised: that a question fits; the child counts its tokens and says so, and it is asked again with less beside.
"""

from dataclasses import dataclass, replace

from localagent.llm.process.protocol import CONTEXT_TOKENS
from localagent.llm.writing.reply_parser import MOST_TOKENS, PromptView, ReplyFormat

CODE_BYTES = 2400
KNOWN_BYTES = 500  # of signatures, where the code leaves room
TESTS_BYTES = 900
HEARD_BYTES = 600
SHOWN_LINES = 60
_ANSWER_SHARE = 3
_LEAST_BESIDE = 0.25
_BYTES_A_TOKEN = 2.0  # of code, at least: answers that are longer than thought are worth nothing
_ENVELOPE_TOKENS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextBudget:
    """Sizes of one question. `beside`: how much of what stands beside the code is shown, 1 is all."""

    path_tokens: int = CONTEXT_TOKENS
    beside: float = 1.0

    @property
    def code_bytes(self) -> int:
        """Of the code that is shown."""
        return self._scaled(CODE_BYTES)

    @property
    def shown_lines(self) -> int:
        """Of the code that is shown."""
        return max(1, self._scaled(SHOWN_LINES))

    @property
    def known_bytes(self) -> int:
        """Of signatures."""
        return round(self.beside * self._scaled(KNOWN_BYTES))

    @property
    def tests_bytes(self) -> int:
        """Of the failing tests."""
        return round(self.beside * self._scaled(TESTS_BYTES))

    @property
    def heard_bytes(self) -> int:
        """Of what became of earlier answers."""
        return round(self.beside * self._scaled(HEARD_BYTES))

    def tighter(self) -> "ContextBudget | None":
        """Half as much beside the code; None where nothing is left to leave out."""
        return replace(self, beside=self.beside / 2) if self.beside > _LEAST_BESIDE else None

    def answer_tokens(self, way: ReplyFormat, view: PromptView, line: int) -> int:
        """The most that an answer may have, by what it replaces."""
        stretch = view.function if way is ReplyFormat.FUNCTION else view.page.statement(line)
        old = 0 if stretch is None else stretch.end - stretch.start
        wanted = _ENVELOPE_TOKENS + round(old / _BYTES_A_TOKEN)
        return min(max(MOST_TOKENS[way], wanted), max(MOST_TOKENS[way], self.path_tokens // _ANSWER_SHARE))

    def _scaled(self, size: int) -> int:
        return size * self.path_tokens // CONTEXT_TOKENS
