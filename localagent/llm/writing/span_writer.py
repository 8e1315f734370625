"""`EditWriter` over the confined child: regions of suspicious places, searched in turn, the cheapest first.

Contributes nothing where the model is absent, dropped or slow, and stops nothing. Only the snapshot's own files are
written upon, never a kept candidate's.
"""

import math
from collections.abc import Callable, Sequence

from localagent.code.symbols import FactIndex
from localagent.domain.edit import Edit, Written
from localagent.domain.outcome import Baseline, Failure
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.edit.external_edits import CodeLine, Page
from localagent.llm.process.model_client import Served
from localagent.llm.scoring import source_windows
from localagent.llm.scoring.decoder import ModelDecoder
from localagent.llm.scoring.repair_prompt import BODY_BYTES, TESTS_BYTES, lead_of, shown_as_wrong
from localagent.llm.writing.span_search import SpanRegion
from localagent.ports import Sources

MAX_PLACES = 40
REGION_BYTES = 1200
LEAD_BYTES = 700
STEP_SECONDS = 20.0
_STAY = 1.0  # nats by which another region must be cheaper before its trunk is worth decoding
_MAX_SILENT_STEPS = 3


class SpanWriter:
    """One task's search. `begin` names the places, `more` goes on for a while. Not for several threads at once."""

    def __init__(
        self,
        served: Served,
        context: Callable[[RepoPath, Baseline], str],
        *,
        localization: float,
        malus: float,
    ) -> None:
        """`context` gives what stands in front of a file; `malus` is what every span costs, in nats.

        `localization` weighs log(best suspicion / suspicion).
        """
        self._context, self._served = context, served
        self._decoder = ModelDecoder(served)
        self._localization, self._malus = localization, malus
        self._plan: list[tuple[Page, str, list[tuple[CodeLine, float]]]] = []  # file, what stands in front, places
        self._mending = False
        self._regions: list[SpanRegion] = []
        self._current: SpanRegion | None = None
        self._silent = 0

    @property
    def tokens_used(self) -> int:
        """Tokens decoded for spans."""
        return self._decoder.tokens_used

    @property
    def next_cost(self) -> float:
        """What the cheapest open span costs by now, malus included; infinite when there is nothing to go on with."""
        if not self._decoder.alive or self._silent >= _MAX_SILENT_STEPS:
            return math.inf
        return self._malus + min((region.next_cost for region in self._regions), default=math.inf)

    def begin(self, sources: Sources, places: Sequence[Suspicion], baseline: Baseline) -> None:
        """Plan the search over the most suspicious lines of code."""
        index, lines = FactIndex(), lines_of(places)
        best = max(lines.values(), default=0.0) or 1.0
        pages: dict[RepoPath, Page] = {}
        spots: dict[RepoPath, list[tuple[CodeLine, float]]] = {}
        count = 0
        for (path, line), score in sorted(lines.items(), key=lambda item: (-item[1], item[0])):
            page = pages.setdefault(path, Page(path, sources, index)) if path in sources else None
            if page is None or not page.usable:
                continue
            weight = self._localization * math.log(best / max(score, best / 50))
            for place in page.code_lines([line]):
                spots.setdefault(path, []).append((place, weight))
                count += 1
            if count >= MAX_PLACES:
                break
        self._plan = [(pages[path], self._context(path, baseline), found) for path, found in spots.items()]
        self._divide()

    def _divide(self) -> None:
        """The regions: of a model that mends those in which it does."""
        self._mending, self._current = self._served.mends, None
        self._regions = [
            region
            for page, context, found in self._plan
            for region in (self._mended if self._mending else self._plain)(page, context, found)
        ]

    def _plain(self, page: Page, context: str, found: Sequence[tuple[CodeLine, float]]) -> list[SpanRegion]:
        return [
            self._region(page, group, context, _lead(page.text, min(place.start for place, _ in group)))
            for group in _grouped(found)
        ]

    def _mended(self, page: Page, context: str, found: Sequence[tuple[CodeLine, float]]) -> list[SpanRegion]:
        """One for each stretch that is read twice; as for another model where a place is in none."""
        stretches = source_windows.plan_windows(
            page.text, [_around(page, place) for place, _ in found], body_bytes=BODY_BYTES
        )
        regions = []
        for stretch in stretches:
            begin = page.text.rfind(b"\n", 0, stretch.start) + 1
            lead = lead_of(page.text, begin).decode("utf-8", "replace")
            shown = f"{_tail(context, TESTS_BYTES)}# {page.path}\n{lead}"
            wrong = shown_as_wrong(page.text[begin : stretch.end])
            regions.append(self._region(page, [found[m] for m in stretch.members], shown, begin, wrong))
        held = {member for stretch in stretches for member in stretch.members}
        return regions + self._plain(page, context, [f for n, f in enumerate(found) if n not in held])

    def _region(
        self, page: Page, places: Sequence[tuple[CodeLine, float]], context: str, lead: int, wrong: bytes = b""
    ) -> SpanRegion:
        return SpanRegion(
            page,
            places,
            context=context,
            lead=lead,
            room_tokens=lambda: self._served.path_tokens,
            malus=self._malus,
            wrong=wrong,
        )

    def heard(self, edit: Edit, failures: Sequence[Failure]) -> None:
        """The search goes by likelihood alone: nothing is learned from what failed."""

    def more(self, *, timeout_seconds: float = STEP_SECONDS) -> Sequence[Written]:
        """One batch further. Empty where nothing came of it; `next_cost` says whether to go on."""
        if math.isinf(self.next_cost):
            return []
        if self._mending and not self._served.mends:  # loading left the mender behind
            self._divide()
        cheapest = min(self._regions, key=lambda r: r.next_cost)
        stays = self._current is not None and self._current.next_cost <= cheapest.next_cost + _STAY
        if not stays or self._current is None:
            self._current = cheapest
        found = self._current.step(self._decoder, timeout_seconds=timeout_seconds)
        self._silent = self._silent + 1 if found is None else 0
        return found or []


def lines_of(places: Sequence[Suspicion]) -> dict[tuple[RepoPath, int], float]:
    """The best suspicion of each line."""
    lines: dict[tuple[RepoPath, int], float] = {}
    for place in places:
        for line in range(place.line, place.end_line + 1):
            lines[place.path, line] = max(lines.get((place.path, line), 0.0), place.score)
    return lines


def _grouped(found: Sequence[tuple[CodeLine, float]]) -> list[list[tuple[CodeLine, float]]]:
    """Places near enough to each other for one trunk."""
    groups: list[list[tuple[CodeLine, float]]] = []
    for place, weight in sorted(found, key=lambda f: f[0].start):
        if groups and place.start - groups[-1][0][0].start <= REGION_BYTES:
            groups[-1].append((place, weight))
        else:
            groups.append([(place, weight)])
    return groups


def _around(page: Page, place: CodeLine) -> source_windows.EditSpan:
    """A place with the function, or the statements, around it."""
    lines = page.lines(place.line)
    if lines is None:
        return source_windows.EditSpan(start=place.start, end=place.end, scope_start=place.start, scope_end=place.end)
    begin, end = page.line_span(lines[0])[0], page.line_span(lines[-1])[1]
    return source_windows.EditSpan(start=place.start, end=place.end, scope_start=begin, scope_end=end)


def _tail(text: str, limit_bytes: int) -> str:
    """The last whole lines of a text, at most so many bytes."""
    data = text.encode("utf-8", "replace")
    return (data if len(data) <= limit_bytes else data[data.find(b"\n", len(data) - limit_bytes) + 1 :]).decode()


def _lead(text: bytes, start: int) -> int:
    """Where the text in front of the first place begins: at a line, some bytes before it."""
    line_start = text.rfind(b"\n", 0, start) + 1
    if line_start <= LEAD_BYTES:
        return 0
    return text.find(b"\n", line_start - LEAD_BYTES, line_start) + 1 or line_start
