"""Asks the worker what plausible candidates do on inputs near those of the tests (`jail/worker/behave.py`).

Evidence for the choice only. When it cannot be had (edits outside functions, tests that hung, a worker that died) the
answer is empty and says nothing against any candidate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from localagent.domain.edit import Candidate
from localagent.domain.outcome import Baseline, Outcome
from localagent.domain.paths import RepoPath
from localagent.verify import regions, swapping
from localagent.verify.answers import Malformed, Refused, clean, sequence
from localagent.verify.client import OpenRequest, WorkerLost
from localagent.verify.place import Use
from localagent.verify.rooms import Rooms

TESTS_LIMIT = 20
PROGRAMS_LIMIT = 24
BASES_LIMIT = 4
PROGRAM_CPU_SECONDS = 2.0


Orders = list[dict[str, Any]]


def behaviours(
    rooms: Rooms, baseline: Baseline, request: OpenRequest, candidates: Sequence[Candidate], *, seed: int
) -> dict[int, tuple[str, ...]]:
    """One row of short digests per candidate number, and row 0 for the unpatched program; equal length, or empty.

    Where the unpatched program cannot take the candidates' functions (it does not import, or they change more than
    functions), one of the candidates is the base of the others, and there is no row 0.
    """
    base, programs = _base(candidates[:PROGRAMS_LIMIT], baseline)
    if len(set(programs) - {0}) < 2:
        return {}
    functions = {(o["path"], o["old_line"], o["name"]) for orders in programs.values() for o in orders}
    try:
        with rooms.start(base, Use.QUICK) as room:
            opened = room.client.open(replace(request, session="hot", swap=True))
            if isinstance(opened, Refused):
                return {}
            hung = {t.id for t in baseline.tests if t.outcome is Outcome.TIMED_OUT}
            order = {name: n for n, name in enumerate((*baseline.failing, *baseline.passing))}
            items = sorted((i for i in opened.items if i.id not in hung), key=lambda i: order.get(i.id, len(order)))
            answer = room.client.behave(
                items=items[:TESTS_LIMIT],
                functions=sorted(functions),
                programs=list(programs.values()),
                seed=seed,
                cpu_seconds=PROGRAM_CPU_SECONDS,
            )
    except WorkerLost:
        rooms.check()
        return {}
    return _parsed(answer, list(programs))


def _base(candidates: Sequence[Candidate], baseline: Baseline) -> tuple[dict[RepoPath, bytes], dict[int, Orders]]:
    """The program that takes most candidates as swaps, as changed files, and the swaps by candidate number."""
    best: tuple[dict[RepoPath, bytes], dict[int, Orders]] = ({}, {})
    if not baseline.collect_failures:
        best = ({}, {0: []})
        for candidate in candidates:
            orders = swapping.plan(candidate, baseline.import_lines)
            if orders is None:
                before = {c.path: c.before for c in candidate.patch.changes}
                after = {c.path: c.after for c in candidate.patch.changes}
                orders = regions.changed(before, after, baseline.import_lines)
            if orders is not None:
                best[1][candidate.number] = orders
    for chosen in candidates[:BASES_LIMIT]:
        if len(set(best[1]) - {0}) == len(candidates):
            break
        files = {c.path: c.after for c in chosen.patch.changes}
        programs = {}
        for candidate in candidates:
            orders = _between(files, chosen, candidate)
            if orders is not None:
                programs[candidate.number] = orders
        if len(programs) > len(set(best[1]) - {0}):
            best = (files, programs)
    return best


def _between(files: Mapping[RepoPath, bytes], chosen: Candidate, candidate: Candidate) -> Orders | None:
    """Swaps that lead from one candidate's files to another's."""
    originals = {c.path: c.before for c in (*chosen.patch.changes, *candidate.patch.changes)}
    after = {c.path: c.after for c in candidate.patch.changes}
    return regions.changed(
        {path: files.get(path, text) for path, text in originals.items()},
        {path: after.get(path, text) for path, text in originals.items()},
        {},
    )


def _parsed(answer: Mapping[str, Any], numbers: Sequence[int]) -> dict[int, tuple[str, ...]]:
    try:
        rows = [tuple(clean(x, 40) for x in sequence(row)) for row in sequence(answer.get("rows"))]
    except Malformed:
        return {}
    if len(rows) != len(numbers):
        return {}
    width = max((len(r) for r in rows), default=0)
    return {n: row for n, row in zip(numbers, rows, strict=True) if row and len(row) == width}
