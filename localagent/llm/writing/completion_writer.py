"""`EditWriter` that asks for whole answers: several drawn at once at each place, in the ways a model understands.

Each answer is an edit or is refused; what was refused, and how the tests judged what was not, stands in the next
question about the same place: at most three remarks, of the answers that failed fewest tests first. Bounded in rounds
and tokens; the search bounds its seconds. Contributes nothing where the model is absent, dropped, slow or knows no such
way. Only the snapshot's own files are written upon. Which answers come when is a matter of the model's speed; which
there are is not.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from localagent.code.symbols import FactIndex
from localagent.domain.edit import Edit, Written
from localagent.domain.outcome import Baseline, Failure, steady
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.edit.external_edits import Page
from localagent.llm.process.batched_sampling import Draw, Drawn, SampleEnd
from localagent.llm.process.model_client import Served
from localagent.llm.scoring.context_budget import ContextBudget
from localagent.llm.writing.chat_prompts import messages
from localagent.llm.writing.reply_parser import LEADS, PromptView, ReplyFormat, can_ask, edit_of, grammar
from localagent.llm.writing.sample_client import ModelSampler, Samples, chat_prompt
from localagent.llm.writing.span_writer import lines_of
from localagent.ports import Sources

MAX_TARGETS = 40
MAX_ROUNDS = 4
MAX_TOKENS = 40_000
ANSWERS = 8
HEARD = 3
_ROUND = 1.5  # nats by which a further round at a place is dearer
_DEAREST = 11.0
_MAX_SILENT = 3
_SAID = 120
_NONE = 1 << 20  # failing tests of what was refused: it comes last


@dataclass(slots=True)
class _Target:
    """One function, or run of statements, to ask about."""

    view: PromptView
    line: int
    weight: float
    tests: str
    rounds: int = 0
    room: ContextBudget = field(default_factory=ContextBudget)
    remarks: list[tuple[int, str]] = field(default_factory=list)  # failing tests, and what is said of it; oldest first

    @property
    def heard(self) -> tuple[str, ...]:
        """What stands in the next question: of the answers that failed fewest tests, then of those that were none."""
        best = sorted(enumerate(self.remarks), key=lambda r: (r[1][0], -r[0]))[:HEARD]
        return tuple(text for _, (_, text) in sorted(best))

    @property
    def cost(self) -> float:
        return self.weight + _ROUND * self.rounds if self.rounds < MAX_ROUNDS else math.inf


class SampleWriter:
    """One task's questions, by `ways` in turn. `begin` names the places, `more` asks once. One thread at a time.

    `heard` may be called from another thread.
    """

    def __init__(
        self,
        served: Served,
        context: Callable[[RepoPath, Baseline], str],
        *,
        ways: Sequence[ReplyFormat],
        task: str = "",
        seed: int = 0,
        localization: float = 2.0,
        malus: float = 2.5,
    ) -> None:
        """`context` gives the failing tests as text."""
        self._sampler = ModelSampler(served)
        self._context, self._task, self._seed = context, task, seed
        self._ways = tuple(ways)
        self._localization, self._malus = localization, malus
        self._targets: list[_Target] = []
        self._made: dict[Edit, tuple[_Target, str]] = {}  # where each edit was made, and the answer
        self._judged: deque[tuple[Edit, tuple[Failure, ...]]] = deque()
        self._asked = self._silent = 0
        self.replies = self.refused = 0

    @property
    def tokens_used(self) -> int:
        """Tokens decoded for answers."""
        return self._sampler.tokens_used

    @property
    def next_cost(self) -> float:
        """What the cheapest further answer may cost; infinite when there is nothing to go on with."""
        if not self._sampler.alive or self._silent >= _MAX_SILENT or self.tokens_used > MAX_TOKENS or not self._ways:
            return math.inf
        return self._malus + min((target.cost for target in self._targets), default=math.inf)

    def begin(self, sources: Sources, places: Sequence[Suspicion], baseline: Baseline) -> None:
        """The most suspicious functions, where the model knows conversations."""
        if "chat" not in self._sampler.knows():
            self._ways = ()
            return
        room = ContextBudget(path_tokens=self._sampler.path_tokens)
        index, scored = FactIndex(), lines_of(places)
        best = max(scored.values(), default=0.0) or 1.0
        pages: dict[RepoPath, Page] = {}
        seen: set[tuple[RepoPath, int]] = set()
        for (path, line), score in sorted(scored.items(), key=lambda item: (-item[1], item[0])):
            page = pages.setdefault(path, Page(path, sources, index)) if path in sources else None
            if page is None or not page.usable or page.statement(line) is None:
                continue
            whole = page.lines(line)
            assert whole is not None
            if (path, whole[0]) in seen:
                continue
            seen.add((path, whole[0]))
            view = PromptView(page=page, lines=_window(page, whole, line, room), function=page.function(line))
            weight = self._localization * math.log(best / max(score, best / 50))
            tests = self._context(path, baseline) + _complaint(baseline)
            self._targets.append(_Target(view=view, line=line, weight=weight, tests=tests, room=room))
            if len(self._targets) >= MAX_TARGETS:
                break

    def heard(self, edit: Edit, failures: Sequence[Failure]) -> None:
        """How the tests judged an edit; of one that this writer made, the next question says so."""
        if edit in self._made:
            self._judged.append((edit, tuple(failures)))

    def more(self, *, timeout_seconds: float) -> Sequence[Written]:
        """One question at the cheapest place. Empty where nothing came of it; `next_cost` says whether to go on."""
        self._listen()
        if math.isinf(self.next_cost):
            return []
        target = min(self._targets, key=lambda t: t.cost)
        ways = [way for way in self._ways if can_ask(way, target.view)]
        if not ways:
            target.rounds = MAX_ROUNDS
            return []
        way = ways[target.rounds % len(ways)]
        target.rounds += 1
        answer = self._ask(way, target, timeout_seconds)
        if answer.refused:
            self._tighten(target, answer.refused)
            return []
        self._silent = 0 if answer.drawn else self._silent + 1
        return list(self._edits(way, target, answer.drawn))

    def _tighten(self, target: _Target, why: str) -> None:
        """Ask with less beside the code; not at all where that is left out, or the template does not carry it."""
        tighter = target.room.tighter()
        if tighter is not None and "do not fit" in why:
            target.room = tighter
            return
        target.rounds = MAX_ROUNDS
        self._sampler.remark(f"line {target.line} of {target.view.page.path} was not asked about: {why}")

    def _seeds(self, count: int) -> tuple[int, ...]:
        """Seeds that no other question has."""
        self._asked += 1
        first = (self._seed << 20) + self._asked * 256
        return tuple(range(first, first + count))

    def _ask(self, way: ReplyFormat, target: _Target, timeout_seconds: float) -> Samples:
        how = Draw(
            seeds=self._seeds(ANSWERS),
            most_tokens=target.room.answer_tokens(way, target.view, target.line),
            grammar=grammar(way),
        )
        asked = messages(way, target.view, tests=target.tests, task=self._task, heard=target.heard, room=target.room)
        return self._sampler.draw(chat_prompt(asked, LEADS[way]), how, timeout_seconds=timeout_seconds)

    def _edits(self, way: ReplyFormat, target: _Target, drawn: Sequence[Drawn]) -> Iterator[Written]:
        """Answers as edits, each once; those that are none are remembered for the next question."""
        for said in dict.fromkeys(d.text for d in drawn):
            best = max((d for d in drawn if d.text == said), key=lambda d: d.likelihood)
            text = LEADS[way].encode() + said
            self.replies += 1
            if best.end in (SampleEnd.LENGTH, SampleEnd.SECONDS, SampleEnd.STUCK):
                found: Edit | str = "the answer was cut off: it was too long"
            else:
                found = edit_of(way, text, target.view, prior=-self._malus)
            if isinstance(found, str):
                self.refused += 1
                _remember(target, f"refused: {found}")
                continue
            words = text.decode("utf-8", "replace")
            self._made[found] = target, words.replace("```python", "").replace("```", "")[:_SAID]
            yield Written(edit=found, score=-round(min(_DEAREST, -best.likelihood), 4))

    def _listen(self) -> None:
        while self._judged:
            edit, failures = self._judged.popleft()
            target, said = self._made.get(edit, (None, ""))
            if target is not None:
                told = [f"{f.exception}: {f.steady}"[:160] for f in failures[:1]]
                sides = [(steady(f.right)[:60], steady(f.left)[:60]) for f in failures[:1] if f.left or f.right]
                wants = [f"expected {right}, got {left}" for right, left in sides]
                _remember(
                    target,
                    " ".join([said, "still fails:", *told, *wants, *_failure_location(failures[:1])]),
                    failing=len(failures),
                )


def _failure_location(failures: Sequence[Failure]) -> list[str]:
    """Where each failed: its innermost frame within the repository."""
    places = [next((f for f in reversed(failure.frames) if f.path is not None), None) for failure in failures]
    return [f"at {f.path}:{f.line} in {f.function}"[:100] for f in places if f is not None]


def _complaint(baseline: Baseline) -> str:
    """What the first failing test wanted and got, and where, as comments behind it."""
    failing = set(baseline.failing)
    first = [t.failure for t in baseline.tests if t.id in failing and t.failure is not None][:1]
    sides = [f"expected {steady(f.right)[:100]}, got {steady(f.left)[:100]}" for f in first if f.left or f.right]
    told = (" ".join(text.split()) for text in [*sides, *_failure_location(first)])
    return "".join(f"# {text}\n" for text in told)


def _remember(target: _Target, remark: str, *, failing: int = _NONE) -> None:
    line = " ".join(remark.split())[:240]
    if all(line != said for _, said in target.remarks):
        target.remarks.append((failing, line))


def _window(page: Page, whole: range, line: int, room: ContextBudget) -> range:
    """The lines of a function that are shown: all of it where it fits, else some around a line."""

    def size(lines: range) -> int:
        return sum(len(page.line_text(k)) + 6 for k in lines)

    if len(whole) <= room.shown_lines and size(whole) <= room.code_bytes:
        return whole
    first = last = line
    while True:
        wider = range(max(whole[0], first - 1), min(whole[-1], last + 1) + 1)
        if len(wider) > room.shown_lines or size(wider) > room.code_bytes or len(wider) == last - first + 1:
            return range(first, last + 1)
        first, last = wider[0], wider[-1]
