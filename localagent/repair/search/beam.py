"""What is kept of candidates that got further without being plausible, and how they are joined (tree-of-code).

A candidate that turned failing tests, or whose failure moved on, has a place in the beam and its own edits enter the
frontier. Two candidates that turned different tests are also joined at once: one's edit on top of the other's program,
which finds faults at several places for the price of one run each.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from localagent.domain.edit import Candidate, Edit, EditEffect
from localagent.domain.outcome import Failure, QuickResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import NearMiss
from localagent.repair.acceptance.ranking import malus
from localagent.repair.acceptance.undefined_names import half_mended
from localagent.repair.search.code_equivalence import behaviour_key, scope_of
from localagent.repair.search.combine_candidates import rebased, same_change
from localagent.repair.search.dynamic_suspicion import reached
from localagent.repair.search.expansion import Expansion
from localagent.repair.search.partial_progress import WrittenLines, progress_of, stage_of, written_lines
from localagent.repair.search.run_context import RunContext
from localagent.repair.search.search_node import Lineage, SearchStep, shifted_lines

WIDTH = 3
MAX_ROUNDS = 5
MAX_EXPANSIONS = 12
MAX_PARTS = 20
JOINS_PER_PART = 6
MAX_JOINS = 60
MAX_AGAIN = 12  # times that the edit space is asked for an edit which cannot be carried over,
MOST_AGAIN = 1_000  # and edits of its lines that are looked through
PARSED = WIDTH  # candidates that made the snapshot parse, after which others that would are hardly needed
MAX_ALIKE = 2  # kept candidates that change the same line of the same program and fail alike: rivals for one fault
_ENDLESS = "RecursionError"  # which any way out of the recursion ends, and wherever it crashed
_MOST_FRESH = 40  # failures that are looked at for what ran before them
_HALF_MENDED = 1.0  # for each name that a candidate mends in one place and leaves undefined in another


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """A candidate that turned some failing tests and broke none."""

    child: Lineage
    step: SearchStep
    turned: frozenset[str]


class Beam:
    """The beam of one task."""

    def __init__(self, run: RunContext, expansion: Expansion) -> None:
        self._run, self._expansion = run, expansion
        self._ranks: dict[int, list[tuple[float, float]]] = {}
        self._alike: Counter[object] = Counter()
        self._parts: list[_Part] = []
        self._joined = self._expanded = self._asked = self._parsed = 0

    def holds(self, parent: Lineage) -> bool:
        """Whether a kept candidate still has its place."""
        return self._rank(parent.edits, parent.cost, parent.progress) in self._ranks.get(parent.round, [])

    @staticmethod
    def _rank(edits: Sequence[Edit], cost: float, progress: float) -> tuple[float, float]:
        """Best first. How far a failure moved does not count: deleting moves it furthest."""
        if progress >= 1:
            return (-progress, cost)
        return (-0.5, cost + sum(malus(e, choosing=False) for e in edits))

    def build_upon(self, kept: Lineage) -> None:
        """Enumerate the edits on top of a kept candidate, if it still has its place."""
        s = self._run.state
        if self.holds(kept) and self._expanded < MAX_EXPANSIONS:
            self._expanded += 1
            s.rounds = max(s.rounds, kept.round + 1)
            self._expansion.expand(kept, kept.lines, score_model=True)

    def identity(self, step: SearchStep) -> object | None:
        """What the program after this step behaves like; None if it does not compile or equals the snapshot."""
        edit, keys = step.edit, self._run.state.keys
        before = step.parent.sources(self._run.parts.sources)[edit.path]
        after = edit.apply(before)
        key = behaviour_key(after, edit.scope, len(after) - len(before))
        if key is None:
            return None
        where = scope_of(edit)
        if not step.parent.edits and where not in keys:
            keys[where] = behaviour_key(before, edit.scope, 0)
        return step.identity(key, keys.get(where)) or None

    def take(self, step: SearchStep, candidate: Candidate, result: QuickResult) -> None:
        """Book a candidate that is not plausible: keep it if it got further, join it with others that did."""
        progress = progress_of(step.parent.failures, self._run.baseline, result, *self._touched(step))
        moved_again = 0 < progress < 1 and 0 < step.parent.progress < 1
        if progress <= step.parent.progress and not moved_again:
            return
        child = self._child(step, candidate, result, progress)
        if progress >= 1:
            self._book(step, candidate, result, child)
        self._keep(step, child)

    def _book(self, step: SearchStep, candidate: Candidate, result: QuickResult, child: Lineage) -> None:
        """Remember what turned tests, for the report, for the choice of a part, and for joining."""
        s = self._run.state
        s.parts = sorted([*s.parts, (candidate, result.turned)], key=lambda x: (-len(x[1]), x[0].cost))[:MAX_PARTS]
        summaries = tuple(e.summary for e in candidate.edits)
        miss = NearMiss(number=candidate.number, edits=summaries, turned=result.turned, broken=result.broken)
        s.misses = sorted([*s.misses, (child.progress, miss)], key=lambda m: -m[0])[:5]
        new = _Part(child=child, step=step, turned=frozenset(result.turned))
        self._join_all(new)
        self._parts.append(new)

    def _join_all(self, new: _Part) -> None:
        """Push steps that unite a new part with earlier ones which turned other tests, most tests first."""
        better = [p for p in self._parts if len(new.turned | p.turned) > max(len(new.turned), len(p.turned))]
        better.sort(key=lambda p: (-len(new.turned | p.turned), p.child.cost))
        for other in better[:JOINS_PER_PART]:
            joined = self._join(new, other)
            if joined is not None and self._joined < MAX_JOINS:
                self._joined += 1
                self._run.frontier.push_urgent(joined, joined.cost - len(new.turned | other.turned))

    def _join(self, a: _Part, b: _Part) -> SearchStep | None:
        """The later part's edit on the earlier one's program, if either is a single edit of the snapshot."""
        for base, other in ((b, a), (a, b)):
            if other.step.parent.edits:
                continue
            edit = self._carried(other.step.edit, base.child.edits) or self._again(other.step.edit, base.child)
            if edit is not None:
                cost = self._cost_upon(base, other)
                if not base.step.parent.edits:
                    cost = min(cost, self._cost_upon(other, base))  # which of them came first means nothing
                return SearchStep(
                    parent=base.child, edit=edit, cost=cost, model_score=other.step.model_score, joins=True
                )
        return None

    def _cost_upon(self, base: _Part, other: _Part) -> float:
        return self._run.order.entry_cost(base.child, was_syntax=False) + other.child.cost

    def _carried(self, edit: Edit, over: Sequence[Edit]) -> Edit | None:
        """A snapshot's edit, carried over the edits of a program; None where they touch."""
        sources: dict[RepoPath, bytes] = {}
        for done in over:
            before = sources.get(done.path, self._run.parts.sources[done.path])
            moved = rebased(edit, done, before)
            if moved is None:
                return None
            edit = moved
            sources[done.path] = done.apply(before)
        return edit

    def _again(self, edit: Edit, child: Lineage) -> Edit | None:
        """An edit that touches the one edit of a child, and is of its kind: as the edit space has it there."""
        if len(child.edits) != 1 or not child.edits[0].is_like(edit) or self._asked >= MAX_AGAIN:
            return None
        self._asked += 1
        run, lines = self._run, frozenset(range(edit.line, edit.end_line + 1))
        sources = child.sources(run.parts.sources)
        found = run.parts.space.edits(edit.path, sources, lines=lines, failures=child.failures)
        return same_change(edit, run.parts.sources[edit.path], islice(found, MOST_AGAIN), sources[edit.path])

    def _touched(self, step: SearchStep) -> tuple[RepoPath, WrittenLines]:
        """The file of the candidate that its last edit changed, and what it wrote there."""
        before = step.parent.sources(self._run.parts.sources)[step.edit.path]
        return step.edit.path, written_lines(step.edit, before)

    def _keep(self, step: SearchStep, child: Lineage) -> None:
        """A place in the beam for a candidate that got further, if there is one."""
        ranks = self._ranks.setdefault(child.round, [])
        rank = self._rank(child.edits, child.cost, child.progress)
        if child.round >= MAX_ROUNDS or (len(ranks) >= WIDTH and rank >= max(ranks)):
            return
        told = frozenset((f.exception, f.steady) for f in child.failures)
        alike = (step.parent.number, step.edit.path, step.edit.line, told)
        if child.progress < 1 and self._alike[alike] >= MAX_ALIKE:
            return
        self._alike[alike] += 1
        self._ranks[child.round] = sorted([*ranks, rank])[:WIDTH]
        self._run.emit("kept", number=child.number, progress=round(child.progress, 2), round=child.round)
        syntax = any(stage_of(f) == 0 for f in step.parent.failures)
        if child.progress < 1 and not syntax and all(f.exception != _ENDLESS for f in step.parent.failures):
            self._run.rivals.remember(step)
        parses = EditEffect.MENDS_SYNTAX in step.edit.effects and all(stage_of(f) != 0 for f in child.failures)
        if parses and not step.parent.edits:
            self._parsed += 1
            self._run.frontier.parsed = self._parsed >= PARSED
        self._run.frontier.push_expansion(child, self._run.order.entry_cost(child, was_syntax=syntax))

    def _child(self, step: SearchStep, candidate: Candidate, result: QuickResult, progress: float) -> Lineage:
        before = step.parent.sources(self._run.parts.sources)[step.edit.path]
        failures = tuple(result.failures.values()) or step.parent.failures
        lines = shifted_lines(step.parent.lines or self._expansion.root_lines(), step.edit, before)
        changed = {c.path: c.after for c in candidate.patch.changes}
        identity = self.identity(step)
        return Lineage(
            number=candidate.number,
            edits=candidate.edits,
            changed=changed,
            identity=identity if isinstance(identity, frozenset) else frozenset(),
            cost=candidate.cost + _HALF_MENDED * half_mended(candidate),
            round=candidate.round,
            failures=failures,
            lines=self._with_frames(lines, failures, changed, step),
            progress=progress,
        )

    def _with_frames(
        self,
        lines: dict[RepoPath, dict[int, float]],
        failures: Sequence[Failure],
        changed: Mapping[RepoPath, bytes],
        step: SearchStep,
    ) -> dict[RepoPath, dict[int, float]]:
        """Lines of the new failure's frames become as suspicious as the best, those that ran before it less.

        A file that did not parse opens whole.
        """
        run = self._run
        best = run.suspicions[0].score or 1.0
        for path, source in changed.items():
            if all(s.why == "does not parse" for s in run.suspicions if s.path == path):
                scores = lines.setdefault(path, {})
                for k in range(1, min(source.count(b"\n") + 2, 600)):
                    scores.setdefault(k, 0.6 * best)
        for failure in failures:
            for frame in failure.frames:
                place = frame.path
                if place is not None and place in run.parts.sources and run.editable(place, frame.line):
                    lines.setdefault(place, {})[frame.line] = best
        fresh = [f for f in failures if f not in step.parent.failures]
        for place, line, crashed in dict.fromkeys(_where(f, step.edit, changed) for f in fresh[:_MOST_FRESH]):
            scores = lines.setdefault(place, {})
            for k, share in reached(changed[place], line, crashed=crashed).items():
                scores[k] = max(scores.get(k, 0.0), share * best)
        return lines


def _where(failure: Failure, edit: Edit, changed: Mapping[RepoPath, bytes]) -> tuple[RepoPath, int, bool]:
    """The innermost line of the changed files that a failure names, and whether there is one; else the edit's."""
    inner = next((f for f in reversed(failure.frames) if f.path in changed), None)
    if inner is None or inner.path is None:
        return edit.path, edit.line, False
    return inner.path, inner.line, True
