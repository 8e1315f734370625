"""What a span search holds: lines as tokens, texts half written upon them, and what the model is asked of each."""

from dataclasses import dataclass, field

from localagent.domain.edit import Edit
from localagent.edit.external_edits import CodeLine
from localagent.llm.process.shared_prefix import Branch, LogitRow

TOP = 24
MAX_REMOVED = 12
MAX_REST_TOKENS = 6


@dataclass(slots=True)
class Stem:
    """A place in tokens: they leave the trunk at `at`; those of the old line are [first, end], `end` its line end."""

    place: CodeLine
    at: int
    tokens: list[int]
    starts: list[int]  # offset in the file of each token of the old line, by token - first
    first: int
    end: int
    old: list[float] = field(default_factory=list)  # log-probability of each token of the old line


@dataclass(frozen=True, slots=True)
class Node:
    """Tokens written at position `at` of a stem's line; `removed` < 0 while open, else the old tokens replaced."""

    stem: Stem
    at: int
    tokens: tuple[int, ...]
    text: bytes
    cost: float
    removed: int = -1
    edit: Edit | None = None


def _continuations(stem: Stem, at: int) -> tuple[int, ...]:
    """The old tokens with which the line may go on after something was written at a position."""
    return tuple(stem.tokens[at : min(stem.end, at + MAX_REMOVED) + 1])


def stem_branch(stem: Stem) -> Branch:
    """A whole line: at each token the likeliest others, and the old ones with which it may go on."""
    rows = [LogitRow(index=k - 1, top=TOP, asked=_continuations(stem, k)) for k in range(stem.first, stem.end + 1)]
    return Branch(at=stem.at, tokens=tuple(stem.tokens), rows=tuple(rows))


def node_branch(node: Node) -> Branch:
    """What was written so far: how it goes on, or where it was joined again what follows there."""
    stem = node.stem
    head = (*stem.tokens[: node.at], *node.tokens)
    if node.removed < 0:
        row = LogitRow(index=len(head) - 1, top=TOP, asked=_continuations(stem, node.at))
        return Branch(at=stem.at, tokens=head, rows=(row,))
    join = node.at + node.removed
    rest = stem.tokens[join : min(stem.end, join + MAX_REST_TOKENS) + 1]
    rows = [LogitRow(index=len(head) + k, asked=(token,)) for k, token in enumerate(rest[1:])]
    return Branch(at=stem.at, tokens=(*head, *rest[:-1]), rows=tuple(rows))
