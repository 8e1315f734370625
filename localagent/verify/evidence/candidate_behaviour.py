"""Asks the worker what plausible candidates do on inputs near those of the tests (`runner/behaviour_probe.py`).

Evidence for the choice only. When it cannot be had (edits outside functions, tests that hung, a worker that died) the
answer is empty and says nothing against any candidate.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from localagent.domain.behaviour import Behaviours, Crash, DistinguishingCall, NamedFunction
from localagent.domain.collateral import Collateral, changes, crashing, only
from localagent.domain.edit import Candidate
from localagent.domain.outcome import Baseline, Outcome
from localagent.domain.paths import RepoPath
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.worker import function_regions, function_swaps
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_client import OpenRequest, WorkerLost
from localagent.verify.worker.worker_messages import (
    CollectionRefused,
    Item,
    Malformed,
    clean,
    exactly,
    failure_of,
    integer,
    mapping,
    path_of,
    sequence,
)
from localagent.verify.worker.worker_spec import WorkerUse

TESTS_LIMIT = 20
PROGRAMS_LIMIT = 24
BASES_LIMIT = 4
PROGRAM_CPU_SECONDS = 2.0
CRASHES_LIMIT = 3
CALL_LIMIT = 400
NAME_LIMIT = 200
SHOWN_LIMIT = 100
FUNCTIONS_LIMIT = 50


Orders = list[dict[str, Any]]


def behaviours(
    jails: JailPool, baseline: Baseline, request: OpenRequest, candidates: Sequence[Candidate], *, seed: int
) -> Behaviours:
    """One row of short digests per candidate number, and row 0 for the unpatched program; no rows when nobody knows.

    Where the unpatched program cannot take the candidates' functions (it does not import, or they change more than
    functions), one of the candidates is the base of the others, and there is no row 0.
    """
    chosen, programs = _base(candidates[:PROGRAMS_LIMIT], baseline)
    if not set(programs) - {0}:
        return Behaviours()
    base = {} if chosen is None else {c.path: c.after for c in chosen.patch.changes}
    functions = {(str(o["path"]), int(o["old_line"]), str(o["name"])) for orders in programs.values() for o in orders}
    functions |= set() if chosen is None else _written(chosen)
    try:
        with jails.start(base, WorkerUse.QUICK) as worker:
            opened = worker.client.open(replace(request, session="hot", swap=True))
            if isinstance(opened, CollectionRefused):
                return Behaviours()
            hung = {t.id for t in baseline.tests if t.outcome is Outcome.TIMED_OUT} if chosen is None else set()
            order = {name: n for n, name in enumerate((*baseline.failing, *baseline.passing))}
            items = sorted((i for i in opened.items if i.id not in hung), key=lambda i: order.get(i.id, len(order)))

            def ask(some: Sequence[Item]) -> Behaviours:
                answer = worker.client.behave(
                    items=some[:TESTS_LIMIT],
                    functions=sorted(functions),
                    programs=list(programs.values()),
                    seed=seed,
                    cpu_seconds=PROGRAM_CPU_SECONDS,
                )
                return parsed_behaviours(answer, list(programs))

            found = ask(items)
            names = _reaching(baseline, functions)
            guarded = [i for i in items if i.id in names]
            return replace(found, collateral=_collateral(found, ask(guarded) if guarded else Behaviours()))
    except WorkerLost:
        jails.check()
        return Behaviours()


def _reaching(baseline: Baseline, functions: Collection[tuple[str, int, str]]) -> frozenset[str]:
    """Passing tests that run a file of the functions, or whose lines are not known."""
    paths = {path for path, _, _ in functions}
    passing = set(baseline.passing)
    return frozenset(
        t.id
        for t in baseline.tests
        if t.id in passing and (t.lines is None or any(t.lines.get(RepoPath(p)) for p in paths))
    )


def _collateral(asked: Behaviours, guarded: Behaviours) -> dict[int, Collateral]:
    """By candidate number; nothing where the unpatched program was not asked."""
    found = {}
    old, safe = asked.rows.get(0), guarded.rows.get(0)
    for number in {*asked.rows, *guarded.rows} - {0}:
        one = Collateral()
        if safe is not None and number in guarded.rows:
            row = guarded.rows[number]
            near = [keeps and not seen for keeps, seen in zip(guarded.kept, guarded.seen, strict=True)]
            one = replace(
                one,
                tested=changes(only(safe, guarded.seen), only(row, guarded.seen)),
                near=changes(only(safe, near), only(row, near)),
            )
        if old is not None and number in asked.rows:
            one = replace(one, crashing=crashing(only(old, asked.seen), only(asked.rows[number], asked.seen)))
        found[number] = one
    return found if old is not None or safe is not None else {}


def _base(candidates: Sequence[Candidate], baseline: Baseline) -> tuple[Candidate | None, dict[int, Orders]]:
    """The program that takes most candidates as swaps (None: the unpatched one), and the swaps by candidate number."""
    best: tuple[Candidate | None, dict[int, Orders]] = (None, {})
    outcomes = {t.id: t.outcome for t in baseline.tests}
    asleep = all(outcomes.get(i) is Outcome.TIMED_OUT for i in baseline.failing)
    if not baseline.collect_failures and not asleep:
        best = (None, {0: []})
        for candidate in candidates:
            orders = function_swaps.plan(candidate, baseline.import_lines)
            if orders is None:
                before = {c.path: c.before for c in candidate.patch.changes}
                after = {c.path: c.after for c in candidate.patch.changes}
                orders = function_regions.changed(before, after, baseline.import_lines, heads=True)
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
            best = (chosen, programs)
    return best


def _written(candidate: Candidate) -> set[tuple[str, int, str]]:
    """The functions a candidate wrote in, as path, first line and name; all of a file's when it wrote around them."""
    found: set[tuple[str, int, str]] = set()
    for change in candidate.patch.changes:
        known = function_regions.regions(change.after)
        if known is None:
            continue
        file = ChangedFile(path=change.path, source=change.path, before=change.before, after=change.after)
        lines = file.lines()[1]
        inside = [f for f in known.functions if any(f.line <= n <= f.last_line for n in lines)]
        for function in inside or known.functions[:FUNCTIONS_LIMIT]:
            found.add((str(change.path), function.line, function.name))
    return found


def _between(files: Mapping[RepoPath, bytes], chosen: Candidate, candidate: Candidate) -> Orders | None:
    """Swaps that lead from one candidate's files to another's."""
    originals = {c.path: c.before for c in (*chosen.patch.changes, *candidate.patch.changes)}
    after = {c.path: c.after for c in candidate.patch.changes}
    return function_regions.changed(
        {path: files.get(path, text) for path, text in originals.items()},
        {path: after.get(path, text) for path, text in originals.items()},
        {},
        heads=True,
    )


def parsed_behaviours(answer: Mapping[str, Any], numbers: Sequence[int]) -> Behaviours:
    """A worker's table, checked; `numbers` are those of the programs. Empty where it is not one."""
    try:
        rows = [tuple(clean(x, 40) for x in sequence(row)) for row in sequence(answer.get("rows"))]
        kept = tuple(x is True for x in sequence(answer.get("kept")))
        seen = tuple(x is True for x in sequence(answer.get("seen")))
        crashes = [
            tuple(_crash(c) for c in sequence(found)[:CRASHES_LIMIT]) for found in sequence(answer.get("crashes"))
        ]
        shown = tuple(_shown(x, numbers, len(kept)) for x in sequence(answer.get("shown"), SHOWN_LIMIT))
    except Malformed:
        return Behaviours()
    width = len(kept)
    if len(rows) != len(numbers) or len(crashes) != len(numbers) or len(seen) != width:
        return Behaviours()
    known = [(n, row, found) for n, row, found in zip(numbers, rows, crashes, strict=True) if len(row) == width > 0]
    return Behaviours(
        rows={n: row for n, row, _ in known},
        kept=kept,
        seen=seen,
        crashes={n: found for n, _, found in known if found},
        shown=shown,
    )


def _shown(record: object, numbers: Sequence[int], width: int) -> DistinguishingCall:
    """A call that is told with its answers. Malformed where it is of no column, or has another number of answers."""
    told = mapping(record)
    column = integer(told.get("i"))
    answers = [_line(text) for text in sequence(told.get("answers"))]
    exact = sequence(told.get("exact"))
    if not 0 <= column < width or len(answers) != len(numbers) or len(exact) != len(numbers):
        raise Malformed("a call of no column")
    return DistinguishingCall(
        column=column,
        call=_line(told.get("call")),
        answers=dict(zip(numbers, answers, strict=True)),
        function=_function(told.get("function")),
        exact=frozenset(number for number, whole in zip(numbers, exact, strict=True) if whole is True),
    )


def _function(told: object) -> NamedFunction | None:
    if told is None:
        return None
    place, module, qualname = exactly(told, 3)
    if (path := path_of(place)) is None:
        return None
    return NamedFunction(path=path, module=clean(module, NAME_LIMIT), qualname=clean(qualname, NAME_LIMIT))


def _line(text: object) -> str:
    return clean(text, CALL_LIMIT).replace("\n", "\\n").replace("\t", "\\t")


def _crash(record: object) -> Crash:
    told = mapping(record)
    return Crash(call=clean(told.get("call"), CALL_LIMIT), failure=failure_of(told.get("failure")))
