"""Filling the frontier: the edits of suspicious lines, their costs, and the model reordering them beside the search."""

import concurrent.futures as cf
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice, takewhile

from localagent.domain.edit import Edit, EditEffect, Reading, Splice
from localagent.domain.paths import RepoPath
from localagent.repair.ordering.cost import crash_line, suspicion_at
from localagent.repair.ordering.model_rescoring import ReadingOn
from localagent.repair.ordering.model_scoring import Ordering, ScoringRequest, Told
from localagent.repair.ordering.model_time_budget import worth_waiting
from localagent.repair.ordering.ranker_features import File
from localagent.repair.ordering.scored_edit import Open
from localagent.repair.search.run_context import RunContext
from localagent.repair.search.search_node import Lineage, SearchStep
from localagent.repair.search.syntax_only import unparsed
from localagent.text.byte_diff import changed_span
from localagent.text.int_digit_limit import WHY, unwritable

# What the model said of the edits of a program holds for the same edits of a program that is almost the same.
#
# A kept candidate's program differs from the snapshot, and from other candidates', in a line or two. On all other
# lines its edits are theirs, moved: the model has read them, and asking it once more would take longer than running
# them. Only what stands on changed lines is new. Not promised: that the model, shown the change, would say the same
# again.

_Splices = tuple[Splice, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    source: bytes
    opened: Mapping[_Splices, Open]


class Heritage:
    """Edits of programs that the model has spoken of, or will. One task's."""

    def __init__(self) -> None:
        self._known: dict[RepoPath, list[_Known]] = {}

    def note(self, path: RepoPath, source: bytes, edits: Sequence[Open]) -> None:
        """Edits of a file as it stands in some program."""
        opened = {each.step.edit.splices: each for each in edits}
        self._known.setdefault(path, []).append(_Known(source=source, opened=opened))

    def of(self, path: RepoPath, source: bytes, edits: Sequence[Edit]) -> list[Open | None]:
        """For each edit of a file the same edit of the likest text of that file of which it was noted, if any."""
        shared = [(alike(known.source, source), known) for known in self._known.get(path, ())]
        out: list[Open | None] = [None] * len(edits)
        for (before, behind), known in sorted(shared, key=lambda each: -sum(each[0])):
            grown = len(source) - len(known.source)
            for at, edit in enumerate(edits):
                if out[at] is None:
                    there = moved(edit.splices, before, len(source) - behind if behind else len(source) + 1, -grown)
                    out[at] = None if there is None else known.opened.get(there)
        return out


def alike(one: bytes, other: bytes) -> tuple[int, int]:
    """How many bytes of whole lines two texts have in common where they begin, and where they end; never both."""
    start, end, new_end = changed_span(one, other)
    if start == len(one) == len(other):
        return start, 0
    before = one.rfind(b"\n", 0, start) + 1
    if all(at == 0 or text[at - 1 : at] == b"\n" for text, at in ((one, end), (other, new_end))):
        return before, len(one) - end
    line = one.find(b"\n", end) + 1
    return before, len(one) - line if line else 0


def moved(splices: _Splices, before: int, behind: int, grown: int) -> _Splices | None:
    """Splices that lie in front of byte `before`, or from `behind` on, where they stand `grown` bytes further on.

    None where one lies between, or touches what does.
    """
    out = []
    for splice in splices:
        if splice.start < before and splice.end <= before:
            out.append(splice)
        elif splice.start >= behind:
            out.append(Splice(start=splice.start + grown, end=splice.end + grown, text=splice.text))
        else:
            return None
    return tuple(out)


TRANCHE_STATEMENTS = 80
EDITS_PER_GROUP = 6_000
EDITS_PER_CHILD = 2_500
EDITS_PER_PATH = 300
ENUMERATION_SHARE = 0.25  # of the seconds left, for one group: the edits come cheapest first, the rest is left out,
LEAST_EDITS = 100  # but for so many of each file
OPENING_MARGIN = 1.5  # times what the first edit of a file took must be left to open it again
USUAL_WAIT_SECONDS = 2.0  # until the model has spoken, before anything is measured
PROCESS_SECONDS = 0.02  # what a candidate costs beside its tests
ENOUGH_VERIFIED = 10  # candidates that tell what one costs
HEAD_START = 25  # one in so many of the budget may run in the prior order before the model has spoken
_UNWRITABLE = "{path} is not edited: it holds {why}; write it in parts, or as bytes"
_MOMENT = 0.05  # seconds, of a wait for the model


class Expansion:
    """Enumerates for one task. The model works on a thread of its own; close it with `close`."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._tranche = 0
        self._ordering = Ordering(run)
        self._heritage = Heritage()
        self._files: dict[RepoPath, File] = {}  # as each was first opened
        self._awaited: Sequence[cf.Future[Told]] = ()
        self._held_for: Sequence[cf.Future[Told]] = ()  # what was awaited last, and may be there by now
        self._searching_from = self._held_from = self._hold_until = 0.0
        self._asked = False  # whether the model was asked about the snapshot, or a kept candidate in its place
        self._kept_first = False  # which of the two
        self._onward = ReadingOn(run)
        self._opening_seconds: dict[RepoPath, float] = {}  # until the first edit of a file came, when last asked

    def close(self) -> None:
        """Give up what the model has not begun."""
        self._ordering.close()
        self._onward.close()

    def prepare(self) -> None:
        """Let the model begin with what it can read while edits are enumerated."""
        self._ordering.prepare(self._run.suspicions[0].path)

    def root_lines(self) -> dict[RepoPath, dict[int, float]]:
        """Suspicion by line of the first tranche of statements."""
        return self._lines(0, TRANCHE_STATEMENTS)

    def _lines(self, first: int, last: int) -> dict[RepoPath, dict[int, float]]:
        lines: dict[RepoPath, dict[int, float]] = {}
        for s in self._run.suspicions[first:last]:
            scores = lines.setdefault(s.path, {})
            for k in range(s.line, s.end_line + 1):
                scores[k] = max(scores.get(k, 0.0), s.score)
        return lines

    def _report_unedited_file(self, path: RepoPath, source: bytes) -> None:
        """A file that looks sound and has no edits."""
        said = _UNWRITABLE.format(path=path, why=WHY)
        if unwritable(source) and said not in self._run.state.warnings:
            self._run.state.warnings.append(said)

    def next_tranche(self, root: Lineage) -> bool:
        """Enumerate the edits of the next most suspicious statements; False when there are none left."""
        first, self._tranche = self._tranche, self._tranche + TRANCHE_STATEMENTS
        if first >= len(self._run.suspicions):
            return False
        self.expand(root, self._lines(first, self._tranche), score_model=first == 0 or self._run.left() > 10)
        return True

    def expand(self, parent: Lineage, lines: Mapping[RepoPath, Mapping[int, float]], *, score_model: bool) -> None:
        """Push the edits of some lines of a program.

        Of a file that does not parse the parser says more than the model (docs/adr/0056), which is not asked: such
        edits cost what an average one does by its answers, so that they do not come before those it speaks of.
        """
        run = self._run
        sources = parent.sources(run.parts.sources)
        broken = unparsed(parent.failures, sources)
        lines = {path: scores for path, scores in lines.items() if not broken or path in broken}
        best = run.suspicions[0].score or 1.0
        shares = shared_out(EDITS_PER_CHILD if parent.round else EDITS_PER_GROUP, lines)
        until, end = run.clock() + ENUMERATION_SHARE * run.left(), run.clock() + run.left()
        ahead = [max(scores.values(), default=0.0) for scores in lines.values()]
        for n, (path, scores) in enumerate(lines.items(), 1):
            if run.left() <= 0:
                break
            if run.left() <= OPENING_MARGIN * self._opening_seconds.get(path, 0.0):
                continue  # its edits would come too late
            priced, begin = run.order.priced(scores, best, lambda: run.left() <= 0), run.clock()
            open_here = run.parts.space.edits(path, sources, lines=priced, failures=parent.failures)
            coming = in_time(open_here, shares[path], until, run.clock, end)
            found = list(islice(coming, 1))
            self._opening_seconds[path] = run.clock() - begin
            found += coming
            run.state.enumerated += len(found)
            if not found:
                self._report_unedited_file(path, sources[path])
            file = self._file(path, sources[path])
            edits = self._opened(parent, path, sources[path], file, found, scores)
            by_tokens = any(EditEffect.MENDS_SYNTAX in e.effects for e in found[:1])
            wanted = self._ordering.wanted and score_model and bool(edits) and not by_tokens
            run.emit("expanded", path=path, edits=len(found), asked=wanted)
            if by_tokens and score_model and run.parts.scorer is not None and not run.state.by_hand:
                run.frontier.push(self._ordering.unasked(edits))
                continue
            if not wanted or run.parts.scorer is None:
                run.frontier.push([each.step for each in edits])
                continue
            self._asked = self._asked or not parent.round
            run.frontier.push(self._ordering.priced(edits))
            self._heritage.note(path, sources[path], edits)
            self._ordering.note(ScoringRequest(parent=parent, path=path, edits=edits, gains=partial(self._gains, file)))
            if not self._ordering.coming:  # it would have nothing to do until all files are enumerated
                self._ordering.ask(least=max(ahead[n:], default=0.0))
        self._ordering.ask()
        self._wait_for_first_parent(parent, lines)

    def _wait_for_first_parent(self, parent: Lineage, lines: Mapping[RepoPath, Mapping[int, float]]) -> None:
        """Wait as for the snapshot where that was not asked about: what is said here, later kept ones inherit."""
        if not parent.round or self._asked or not lines:
            return
        worst = max(lines, key=lambda path: max(lines[path].values(), default=0.0))
        answers = self._ordering.of(parent, worst)
        if answers:
            self._asked = self._kept_first = True
            self._onward.read_of(parent)
            self._hold(answers)

    def _opened(
        self,
        parent: Lineage,
        path: RepoPath,
        source: bytes,
        file: File | None,
        found: Sequence[Edit],
        scores: Mapping[int, float],
    ) -> list[Open]:
        """The edits of a file as they cost without the model."""
        order, best = self._run.order, self._run.suspicions[0].score or 1.0
        crash = crash_line(parent, path)
        crowds = crowds_of(found)
        gains = self._learned(file, found, crowds, None)
        opened = [
            Open(
                step=SearchStep(
                    parent=parent, edit=e, cost=order.cost(parent, e, scores, best, crash, crowd=crowd) - gain
                ),
                crowd=crowd,
                suspicion=suspicion_at(e, scores),
                gain=gain,
                bare_gain=gain,
            )
            for e, crowd, gain in zip(found, crowds, gains, strict=True)
        ]
        for each, elder in zip(opened, self._heritage.of(path, source, found), strict=True):
            if elder is not None:
                each.inherit(elder)
        return opened

    def _file(self, path: RepoPath, source: bytes) -> File | None:
        """What the learned order counts in; None where none is in use."""
        if self._run.parts.ranker is None or not self._run.parts.weights.learned:
            return None
        elder = self._files.get(path)
        file = File(source, elder)
        self._files.setdefault(path, file)
        return file

    def _gains(self, file: File | None, edits: Sequence[Open]) -> list[float]:
        return self._learned(file, [e.step.edit for e in edits], [e.crowd for e in edits], [e.reading for e in edits])

    def _learned(
        self, file: File | None, edits: Sequence[Edit], crowds: Sequence[int], readings: Sequence[Reading | None] | None
    ) -> list[float]:
        """What the learned order takes off the costs of edits of one file, where it is in use."""
        ranker = self._run.parts.ranker
        if ranker is None or file is None:
            return [0.0] * len(edits)
        return ranker.corrections(file, edits, crowds, readings, self._run.parts.weights)

    def hold(self) -> None:
        """Let only the likeliest candidates run, from now on, until the model has ordered the open ones, or a while."""
        self._searching_from = self._run.clock()
        self._hold(self._ordering.coming)
        self.wait()

    def _hold(self, awaited: Sequence[cf.Future[Told]]) -> None:
        self._awaited = self._held_for = awaited
        self._held_from = self._run.clock()
        self._hold_until = self._held_from + min(15.0, 0.2 * self._run.task.budget.max_seconds)

    def waits_for_model(self) -> bool:
        """True while waiting for the model is worth more than running the next candidate."""
        run = self._run
        if self._onward.awaited:
            return True
        if not self._awaited or self._ahead():
            return False
        ended = run.clock() > self._hold_until or all(job.done() for job in self._awaited)
        ended = ended or (self._kept_first and bool(run.state.plausible))
        if ended or not self._worth_waiting():
            self._awaited = ()
        return bool(self._awaited)

    def _ahead(self) -> bool:
        """Whether the likeliest candidates still have their head start; with slow tests there is none."""
        head = max(2, self._run.task.budget.max_candidates // HEAD_START)
        return self._each_seconds() < USUAL_WAIT_SECONDS and self._run.state.verified < head

    def _worth_waiting(self) -> bool:
        """Who has waited for long will wait for as long again."""
        run = self._run
        return worth_waiting(
            candidates=run.task.budget.max_candidates - run.state.verified,
            seconds=run.left(),
            each_seconds=self._each_seconds(),
            wait_seconds=max(USUAL_WAIT_SECONDS, run.clock() - self._held_from),
        )

    def _each_seconds(self) -> float:
        """What a candidate costs: its failing tests once more, and a process; several at once share it."""
        return (self._failing_seconds + PROCESS_SECONDS) / max(1, self._run.task.budget.jobs)

    @cached_property
    def _failing_seconds(self) -> float:
        """Of the failing tests together; asked for once the baseline is there."""
        wanted = set(self._run.baseline.failing)
        return sum(t.seconds for t in self._run.baseline.tests if t.id in wanted)

    def _taken_each(self) -> float:
        """What candidates of this search have cost so far, all told; 0 before there are enough."""
        verified = self._run.state.verified
        return (self._run.clock() - self._searching_from) / verified if verified >= ENOUGH_VERIFIED else 0.0

    def wait(self) -> None:
        """Wait a moment for the model, then take what it has."""
        answers = [job for job in self._awaited if not job.done()]
        if answers:
            cf.wait(answers, timeout=_MOMENT)
        else:
            self._onward.wait(_MOMENT)
        self.take_scores()

    def take_scores(self) -> None:
        """Reorder the frontier by what the model has said since."""
        self._onward.take()
        self._ordering.take()
        coming = self._ordering.coming
        if self._kept_first:  # of others there is hardly a moment when nothing is asked
            coming = [job for job in coming if job in self._held_for]
        if self._ordering.spoke and not coming:
            self._onward.consider(max(self._each_seconds(), self._taken_each()))


def in_time(
    edits: Iterable[Edit], most: int, until: float, clock: Callable[[], float], end: float = math.inf
) -> Iterator[Edit]:
    """The first edits, at most so many; after `until` on the clock no more than the least, after `end` none."""

    def wanted(at: tuple[int, Edit]) -> bool:
        now = clock()
        return now < until or (at[0] < LEAST_EDITS and now < end)

    return (e for _, e in takewhile(wanted, enumerate(islice(edits, most))))


def shared_out(most: int, lines: Mapping[RepoPath, Mapping[int, float]]) -> dict[RepoPath, int]:
    """How many of so many edits each file may have: by how suspicious its lines are together, each at least some."""
    worth = {path: sum(scores.values()) for path, scores in lines.items()}
    whole = sum(worth.values()) or 1.0
    return {path: max(EDITS_PER_PATH, int(most * each / whole)) for path, each in worth.items()}


def crowds_of(edits: Sequence[Edit]) -> list[int]:
    """For each edit, how many likelier ones the same operator makes at the same line."""
    seen: Counter[tuple[str, int]] = Counter()
    out = [0] * len(edits)
    for at in sorted(range(len(edits)), key=lambda k: -edits[k].prior):
        where = (edits[at].operator, edits[at].line)
        out[at] = seen[where]
        seen[where] += 1
    return out
