"""A plausible program that crashes on inputs near the tests' has a second fault that no test shows (implicit oracle).

The edits of boundaries on top of it (of names, where a name is missing) are tried, nearest to the crashes first: a test
that passes anyway says little against wilder ones. One that still passes the tests, does not crash on those
inputs any more and answers as before on all others takes its place: it only says more than the program did.
"""

import concurrent.futures as cf
from collections.abc import Iterator, Sequence
from itertools import islice

from localagent.code.spans import lines_of
from localagent.domain.behaviour import Behaviours, Crash
from localagent.domain.edit import Candidate, EditEffect
from localagent.domain.outcome import QuickResult
from localagent.domain.paths import RepoPath
from localagent.ports import QuickCheck
from localagent.repair.acceptance.ranking import RankedCandidate, malus, ranked
from localagent.repair.search.code_equivalence import behaviour_key
from localagent.repair.search.enclosing_function import outermost_function
from localagent.repair.search.run_context import RunContext
from localagent.repair.search.search_node import Lineage, SearchStep

CANDIDATES = 80
EDITS = 3_000
PROGRAMS = 23  # beside the crashing one, in one table of behaviours
_SYMPTOM = 1.5  # nats; an index moved where it crashed reads another place, the bound before it was wrong
_NAME_FAULTS = ("NameError", "UnboundLocalError", "AttributeError")
LEFT = 0.2  # of the crashes may stay
_FRAME_SCORE, _FUNCTION_SCORE = 0.8, 0.4


class Hardening:
    """Tries edits on top of plausible candidates, on the search's own workers and within its budget."""

    def __init__(self, run: RunContext, quick: QuickCheck, pool: cf.Executor, *, cpu_seconds: float) -> None:
        self._run, self._quick, self._pool, self._cpu = run, quick, pool, cpu_seconds

    def sturdier(self, candidate: Candidate, crashes: Sequence[Crash]) -> Candidate | None:
        """One more edit that ends the crashes and changes no answer, or None."""
        run = self._run
        run.emit("hardening", number=candidate.number, calls=[c.call for c in crashes])
        passing = list(self._children(candidate, crashes))
        good: list[RankedCandidate] = []
        for first in range(0, len(passing), PROGRAMS):
            children = passing[first : first + PROGRAMS]
            near = run.parts.verifier.behaviours([candidate, *children], run.baseline, seed=run.task.seed)
            good += ranked([c for c in children if ends_crashes(near, candidate.number, c.number)], near)
        return min(good, key=lambda s: s.cost).candidate if good else None

    def _children(self, candidate: Candidate, crashes: Sequence[Crash]) -> Iterator[Candidate]:
        """The candidates with one more edit that pass the failing and the covering tests, in order."""
        run = self._run
        flying: list[tuple[Candidate, cf.Future[QuickResult]]] = []
        for step in self._steps(candidate, crashes):
            if run.state.verified >= run.task.budget.max_candidates or run.left() <= 0:
                break
            child = run.build(step)
            if child is None:
                continue
            run.state.verified += 1
            run.emit("started", number=child.number)
            flying.append((child, self._pool.submit(self._checked, child)))
            while len(flying) > run.task.budget.jobs:
                yield from self._landed(flying)
        while flying:
            yield from self._landed(flying)

    def _landed(self, flying: list[tuple[Candidate, cf.Future[QuickResult]]]) -> Iterator[Candidate]:
        """Judged in the order they were started, here and not on a worker's thread: events keep their order."""
        child, job = flying.pop(0)
        result = job.result()
        self._run.emit_checked(child, result)
        if result.plausible:
            yield child

    def _checked(self, child: Candidate) -> QuickResult:
        return self._quick.check(child, cpu_seconds=self._cpu, stop_early=True)

    def _steps(self, candidate: Candidate, crashes: Sequence[Crash]) -> list[SearchStep]:
        """Edits of the functions that crashed, cheapest first, each behaviour once."""
        run = self._run
        changed = {c.path: c.after for c in candidate.patch.changes}
        lineage = Lineage(
            number=candidate.number,
            edits=candidate.edits,
            changed=changed,
            identity=frozenset(),
            cost=candidate.cost,
            round=candidate.round,
            failures=tuple(c.failure for c in crashes),
            lines={},
            progress=1.0,
        )
        sources = lineage.sources(run.parts.sources)
        steps: list[SearchStep] = []
        for path, scores in self._lines(lineage, crashes).items():
            found = islice(
                run.parts.space.edits(path, sources, lines=frozenset(scores), failures=lineage.failures), EDITS
            )
            before = sources[path]
            seen: set[bytes | None] = {None}
            names = all(c.failure.exception in _NAME_FAULTS for c in crashes)
            wanted = EditEffect.MENDS_NAME if names else EditEffect.MOVES_BOUNDARY
            for edit in sorted(found, key=lambda e: -e.prior):
                if wanted not in edit.effects:
                    continue
                after = edit.apply(before)
                key = behaviour_key(after, edit.scope, len(after) - len(before))
                if key in seen:
                    continue
                seen.add(key)
                own = run.order.cost(lineage, edit, scores, 1.0, None)
                own += malus(edit, b" ".join(before[s.start : s.end] for s in edit.splices))
                if EditEffect.SHIFTS_NUMBER in edit.effects and scores.get(edit.line, 0.0) >= 1.0:
                    own += _SYMPTOM
                steps.append(SearchStep(parent=lineage, edit=edit, cost=candidate.cost + own))
        return sorted(steps, key=lambda s: s.cost)[:CANDIDATES]

    def _lines(self, lineage: Lineage, crashes: Sequence[Crash]) -> dict[RepoPath, dict[int, float]]:
        """Scores of the lines of every function on a crash's way; where it crashed, 1."""
        run = self._run
        sources = lineage.sources(run.parts.sources)
        lines: dict[RepoPath, dict[int, float]] = {}
        for crash in crashes:
            places = [
                (f.path, f.line)
                for f in crash.failure.frames
                if f.path is not None and f.path in run.parts.sources and run.editable(f.path, f.line)
            ]
            for n, (path, line) in enumerate(places):
                scores = lines.setdefault(path, {})
                around = outermost_function(sources[path], line)
                if around is not None:
                    for k in lines_of(around):
                        scores.setdefault(k, _FUNCTION_SCORE)
                best = 1.0 if n == len(places) - 1 else _FRAME_SCORE
                scores[line] = max(scores.get(line, 0.0), best)
        return lines


def ends_crashes(near: Behaviours, before: int, after: int) -> bool:
    """Whether a program crashes (almost) nowhere the other did, and answers the same wherever that one answered."""
    crashed = near.crashed(before)
    old, new = near.rows.get(before), near.rows.get(after)
    if not crashed or old is None or new is None or len(near.crashed(after)) > LEFT * len(crashed):
        return False
    if any(not new[n].startswith("ok:") for n in crashed - near.crashed(after)):
        return False
    return all(b == a for b, a in zip(old, new, strict=True) if b.startswith("ok:"))
