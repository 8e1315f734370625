"""What an adapter learns from: small fixes of a history and bugs put into code, as tokens in the engine's own prompt.

An example is the text that a task's model would read before the place, then what people wrote there. Sources in which
anything looks like a secret are passed over. Not promised: that what a commit calls a fix is one.
"""

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from localagent.domain.paths import RepoPath
from localagent.errors import CannotEnforce, UsageFault
from localagent.gate.content.secrets import holds_secret
from localagent.llm.scoring.decoder import ModelDecoder
from localagent.llm.scoring.test_context import build_context
from localagent.repo.git import Git
from localagent.training.ranker_history import BYTES, HistoryFix, commits_of, fixes
from localagent.training.ranker_injection import injected

LEAD_BYTES = 900  # of the file in front of a change
CONTEXT_TOKENS = 48  # of what stands in front of the file
MOST_TOKENS = 384
MOST_WRITTEN = 40  # tokens of a change; longer ones are passed over
MOST_PAIRS = 2_000  # of one repository
_COMMITS = 6_000
_TOGETHER = 40
_TEXTS = 240
_TOKENIZING_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPair:
    """A text as it was and as it was made, alike up to the change and ending with the line behind it."""

    context: str
    before: bytes
    after: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenExample:
    """Tokens of which those in [first, end) were written by people; `old` stood where the first of them stands."""

    tokens: tuple[int, ...]
    first: int
    end: int
    old: int


def pair_of(fix: HistoryFix) -> TextPair | None:
    """The texts around a fix; None where a secret is near, or the path is none that a task could have."""
    if holds_secret(fix.before) or holds_secret(fix.after):
        return None
    try:
        path = RepoPath(fix.path)
    except (UsageFault, ValueError):
        return None
    front = 0
    while front < min(len(fix.before), len(fix.after)) and fix.before[front] == fix.after[front]:
        front += 1
    back = 0
    while back < min(len(fix.before), len(fix.after)) - front and fix.before[-1 - back] == fix.after[-1 - back]:
        back += 1
    start = fix.before.rfind(b"\n", 0, max(0, front - LEAD_BYTES)) + 1
    return TextPair(
        context=build_context([], [], path, source=fix.before),
        before=fix.before[start : _second_line_end(fix.before, len(fix.before) - back)],
        after=fix.after[start : _second_line_end(fix.after, len(fix.after) - back)],
    )


def _second_line_end(source: bytes, at: int) -> int:
    """Behind the line that holds byte `at` and the line after it."""
    for _ in range(2):
        at = source.find(b"\n", at) + 1 or len(source)
    return at


def pairs_of(
    git: Git, name: str, files: Sequence[tuple[str, str]], learns: Callable[[str], bool], *, seed: int
) -> Iterator[TextPair]:
    """Fixes of one history, newest first, and as many bugs put into its code. `learns` says of an origin whether."""
    draw = random.Random(f"{name} {seed}")  # noqa: S311 - a draw, not a secret
    commits = commits_of(git, _COMMITS)
    found = 0
    for at in range(0, len(commits), _TOGETHER):
        for fix in fixes(git, name, commits[at : at + _TOGETHER]):
            real = [fix] if learns(fix.origin) else []
            put = _put_in(git, name, files, draw)
            for pair in filter(None, map(pair_of, [*real, *([put] if put is not None and learns(name) else [])])):
                yield pair
                found += 1
        if found >= MOST_PAIRS:
            return


def _put_in(git: Git, name: str, files: Sequence[tuple[str, str]], draw: random.Random) -> HistoryFix | None:
    if not files:
        return None
    blob, path = draw.choice(files)
    source = git.run("cat-file", "blob", blob)
    return injected(name, path, source, draw) if len(source) <= BYTES else None


def examples_of(pairs: Sequence[TextPair], decoder: ModelDecoder) -> list[TokenExample]:
    """The pairs as tokens; those whose change is none in tokens, or too long, are passed over."""
    found: list[TokenExample] = []
    step = _TEXTS // 3
    for at in range(0, len(pairs), step):
        some = pairs[at : at + step]
        texts = [text for pair in some for text in (pair.context.encode(), pair.before, pair.after)]
        told = decoder.tokenize(texts, timeout_seconds=_TOKENIZING_SECONDS)
        if told is None:
            raise CannotEnforce(
                "the model does not answer what texts are in tokens", remedy="`localagent model verify`, then again"
            )
        for k in range(len(some)):
            example = _example(*told[3 * k : 3 * k + 3])
            if example is not None:
                found.append(example)
    return found


def _example(context: Sequence[int], before: Sequence[int], after: Sequence[int]) -> TokenExample | None:
    front = 0
    while front < min(len(before), len(after)) and before[front] == after[front]:
        front += 1
    if front == min(len(before), len(after)):
        return None
    back = 0
    while back < min(len(before), len(after)) - front and before[-1 - back] == after[-1 - back]:
        back += 1
    end = len(after) - back + 1  # and where the old text goes on
    if end - front > MOST_WRITTEN:
        return None
    shown = [*context[-CONTEXT_TOKENS:], *after[:end]]
    cut = max(0, len(shown) - MOST_TOKENS)
    first = len(context[-CONTEXT_TOKENS:]) + front - cut
    tokens = tuple(shown[cut:])
    if first < 1:
        return None
    return TokenExample(tokens=tokens, first=first, end=len(tokens), old=before[front])


def digest(examples: Sequence[TokenExample]) -> str:
    """`sha256:<hex>` of all of them, in their order."""
    text = json.dumps([[e.tokens, e.first, e.end, e.old] for e in examples])
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
