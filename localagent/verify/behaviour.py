"""Asks the worker what plausible candidates do on inputs near those of the tests (`jail/worker/behave.py`).

Evidence for the choice only. When it cannot be had (edits outside functions, tests that hung, a worker that died) the
answer is empty and says nothing against any candidate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from localagent.domain.edit import Candidate, Edit, FileChange, Patch
from localagent.domain.outcome import Baseline, Outcome
from localagent.domain.paths import RepoPath
from localagent.verify import swapping
from localagent.verify.answers import Malformed, Refused, clean, sequence
from localagent.verify.client import OpenRequest, WorkerLost
from localagent.verify.place import Use
from localagent.verify.rooms import Rooms

TESTS_LIMIT = 20
PROGRAMS_LIMIT = 24
PROGRAM_CPU_SECONDS = 2.0


def behaviours(
    rooms: Rooms, baseline: Baseline, request: OpenRequest, candidates: Sequence[Candidate], *, seed: int
) -> dict[int, tuple[str, ...]]:
    """One row of short digests per candidate number, and row 0 for the unpatched program; equal length, or empty."""
    base: dict[RepoPath, bytes] = {}
    group = list(candidates[:PROGRAMS_LIMIT])
    if baseline.collect_failures:  # the unpatched program has no functions to swap
        base, group = _common_base(group)
    programs: dict[int, list[dict[str, Any]]] = {0: []}
    for candidate in group:
        orders = swapping.plan(candidate, {} if base else baseline.import_lines)
        if orders is not None:
            programs[candidate.number] = orders
    functions = {(o["path"], o["old_line"], o["name"]) for orders in programs.values() for o in orders}
    if len(programs) < 3:
        return {}
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


def _common_base(candidates: Sequence[Candidate]) -> tuple[dict[RepoPath, bytes], list[Candidate]]:
    """The program that most candidates add one edit to, as changed files, and those candidates relative to it."""
    groups: dict[tuple[Edit, ...], list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.edits[:-1], []).append(candidate)
    shared, group = max(groups.items(), key=lambda item: len(item[1]), default=((), []))
    if not shared:
        return {}, group
    originals = {c.path: c.before for candidate in group for c in candidate.patch.changes}
    base: dict[RepoPath, bytes] = {}
    for edit in shared:
        base[edit.path] = edit.apply(base.get(edit.path, originals[edit.path]))
    relative = []
    for candidate in group:
        last = candidate.edits[-1]
        before = base.get(last.path, originals[last.path])
        change = FileChange(path=last.path, before=before, after=last.apply(before))
        relative.append(replace(candidate, edits=(last,), patch=Patch(changes=(change,))))
    return base, relative


def _parsed(answer: Mapping[str, Any], numbers: Sequence[int]) -> dict[int, tuple[str, ...]]:
    try:
        rows = [tuple(clean(x, 40) for x in sequence(row)) for row in sequence(answer.get("rows"))]
    except Malformed:
        return {}
    if len(rows) != len(numbers):
        return {}
    width = max((len(r) for r in rows), default=0)
    return {n: row for n, row in zip(numbers, rows, strict=True) if row and len(row) == width}
