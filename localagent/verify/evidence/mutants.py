"""Mutants of the changed, covered lines: would the tests that count notice if the patch were subtly wrong?

Mutants are edits of the repair search's own edit space, one at a time, run as candidates in the warm quick check. One
that compiles to what stood there is none. Not promised: that a mutant which lives differs in behaviour at all.
"""

import ast
import builtins
import concurrent.futures as cf
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice, takewhile
from types import MappingProxyType

from localagent.code.source_text import line_starts, parse_or_none
from localagent.code.spans import byte_span
from localagent.domain.edit import Candidate, Edit, FileChange, Patch, Scope
from localagent.domain.outcome import JailOutcome, Outcome, QuickResult
from localagent.domain.paths import RepoPath
from localagent.domain.verification import Mutants
from localagent.ports import EditSpace, QuickCheck
from localagent.text.visible_text import shortened

MOST = 40
SECONDS = 60.0
CPU_SECONDS = 0.5
ALIVE_SHOWN = 20
ASKED_ALIVE, ANSWERS_LEAST, _SAME_MOST = 12, 30, 0.9
_ENUMERATED = 4_000
OPERATORS = frozenset(
    {
        "compare-swap", "arithmetic-swap", "augmented-swap", "operand-order", "operand-drop", "off-by-one", "sign",
        "negate", "and-or", "condition-drop", "constant-step", "truth-flip", "text-edit", "name-swap", "attribute-swap",
        "argument-swap", "callee-swap", "index-usual", "slice-bounds", "range-bounds", "statement-delete",
        "break-continue", "return-value", "branch-swap", "else-drop", "exception-swap",
    }
)  # fmt: skip


class MutantFate(Enum):
    """What became of one mutant. `LATE`: killed, for it ran over limits of its own."""

    ALIVE = "alive"
    KILLED = "killed"
    LATE = "late"


Key = Callable[[bytes, Scope | None, int], bytes | None]
"""What a function compiles to, for `source`, `scope` and how far the end of the scope moved."""


def mutants_of(
    space: EditSpace,
    sources: Mapping[RepoPath, bytes],
    lines: Mapping[RepoPath, frozenset[int]],
    key: Key,
    *,
    seed: int,
    most: int = MOST,
    until: float = math.inf,
    instead: Mapping[RepoPath, frozenset[int]] = MappingProxyType({}),
) -> tuple[list[Candidate], int]:
    """Mutants in an order that the seed decides, the lines taking turns; and how many there would have been.

    `instead` are lines that are mutated where these have no mutant, such as one inside a long text.
    `until`: on the monotonic clock; then what was found by that time is all there is.
    """
    by_line: dict[tuple[RepoPath, int], list[Edit]] = {}
    for path in sorted(lines):
        for edit in takewhile(lambda _: time.monotonic() < until, _distinct(space, sources, path, lines[path], key)):
            by_line.setdefault((path, edit.line), []).append(edit)
    if not by_line and instead:
        return mutants_of(space, sources, instead, key, seed=seed, most=most, until=until)
    rng = random.Random(seed)  # noqa: S311 - an order, not a secret
    for edits in by_line.values():
        rng.shuffle(edits)
        seen: dict[str, int] = {}
        turns = {id(e): seen.setdefault(e.operator, 0) for e in edits}
        for edit in edits:
            turns[id(edit)] = seen[edit.operator]
            seen[edit.operator] += 1
        edits.sort(key=lambda e: turns[id(e)])
    chosen: list[Edit] = []
    queues = [list(reversed(edits)) for _, edits in sorted(by_line.items())]
    while len(chosen) < most and any(queues):
        chosen += [queue.pop() for queue in queues if queue]
    total = sum(len(edits) for edits in by_line.values())
    return [_candidate(n, edit, sources[edit.path]) for n, edit in enumerate(chosen[:most], 1)], total


def _distinct(
    space: EditSpace, sources: Mapping[RepoPath, bytes], path: RepoPath, lines: frozenset[int], key: Key
) -> Iterator[Edit]:
    """Edits that mutate, lie on the lines, and compile to something of their own."""
    source = sources[path]
    unread = _annotations(source)
    known: dict[tuple[str, bytes], None] = {}
    for edit in islice(space.edits(path, sources, lines=lines, failures=()), _ENUMERATED):
        if edit.operator not in OPERATORS or edit.line not in lines:
            continue
        if any(start <= s.start and s.end <= end for s in edit.splices for start, end in unread):
            continue
        shift = sum(len(s.text) - (s.end - s.start) for s in edit.splices)
        made = key(edit.apply(source), edit.scope, shift)
        name = edit.scope.qualname if edit.scope is not None else ""
        if made is None or made == key(source, edit.scope, 0) or (name, made) in known:
            continue
        known[(name, made)] = None
        yield edit


def _annotations(source: bytes) -> list[tuple[int, int]]:
    """Where annotations stand: a program seldom reads them, so no test could notice."""
    tree = parse_or_none(source)
    nodes = list(ast.walk(tree)) if tree is not None else []
    found = [n.annotation for n in nodes if isinstance(n, ast.arg | ast.AnnAssign)]
    found += [n.returns for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    starts = line_starts(source)
    return [byte_span(node, starts) for node in found if node is not None]


def _candidate(number: int, edit: Edit, source: bytes) -> Candidate:
    change = FileChange(path=edit.path, before=source, after=edit.apply(source))
    return Candidate(number=number, patch=Patch(changes=(change,)), edits=(edit,), cost=0.0)


def try_mutants(
    check: QuickCheck,
    chosen: Sequence[Candidate],
    total: int,
    *,
    jobs: int,
    answers: Callable[[Sequence[Candidate]], Mapping[int, Sequence[str]]],
    seconds: float = SECONDS,
) -> Mutants:
    """Run them; killed is what a test that passes on the patched tree fails on, or what ends its process.

    `answers` gives the rows of those that live, as `alike` takes them. One that is begun is run to its end: the quick
    check's limits are multiples of what the tests take unmutated.
    """
    until = time.monotonic() + seconds

    def fate(candidate: Candidate) -> MutantFate | None:
        if time.monotonic() > until:
            return None
        return fate_of(check.check(candidate, cpu_seconds=CPU_SECONDS, stop_early=True))

    with cf.ThreadPoolExecutor(max(1, jobs), thread_name_prefix="mutant") as pool:
        said = list(pool.map(fate, chosen))
    ran = [(c, f) for c, f in zip(chosen, said, strict=True) if f is not None]
    cut = f"{len(chosen) - len(ran)} of {len(chosen)} were not run within {seconds:.0f} s"
    alive = living(ran)
    return booked(ran, total, cut if len(ran) < len(chosen) else "", alike(answers(alive)) if alive else frozenset())


def fate_of(result: QuickResult) -> MutantFate | None:
    """What a quick check tells of a mutant; None where it did not come to its end for no fault of the mutant."""
    if any(result.outcomes[i] is not Outcome.TIMED_OUT for i in result.broken):
        return MutantFate.KILLED
    if result.ending is JailOutcome.CANCELLED:
        return None
    if result.broken or result.ending in (JailOutcome.CPU, JailOutcome.WALL):
        return MutantFate.LATE
    if result.ending is not JailOutcome.EXITED:
        return MutantFate.KILLED
    return MutantFate.ALIVE if result.complete else None


def fate_of_run(outcomes: Sequence[Outcome], *, whole: bool, in_time: bool) -> MutantFate | None:
    """What the outcomes of its tests tell of a mutant. `whole`: all were asked; `in_time`: our own time was not up.

    Where it was up, a test that ran out of time may have been cut off by us: nothing is known then.
    """
    bad = {outcome for outcome in outcomes if not outcome.good}
    if bad - {Outcome.TIMED_OUT}:
        return MutantFate.KILLED
    if bad:
        return MutantFate.LATE if in_time else None
    return MutantFate.ALIVE if whole else None


def alike(rows: Mapping[int, Sequence[str]]) -> frozenset[int]:
    """Numbers of programs that answer every input as program 0 does, which is the patch; `rows` as of `Behaviours`.

    The doubt of mutation testing is the equivalent mutant, which no test can notice (Madeyski et al., "Overcoming the
    Equivalent Mutant Problem", 2014). Nothing is said where the patch has few answers, or nearly always the same.
    """
    own = rows.get(0, ())
    results = _results(own)
    if results.total() < ANSWERS_LEAST or max(results.values()) > _SAME_MOST * results.total():
        return frozenset()
    return frozenset(number for number, row in rows.items() if number and row == own)


def same_answer(rows: Mapping[int, Sequence[str]]) -> int:
    """How many inputs the patch was asked where it gave the same result to all of them, 0 where it did not.

    Tests are among them: then a constant in the place of what is worked out would pass them, too.
    """
    results = _results(rows.get(0, ()))
    return results.total() if len(results) == 1 and results.total() >= ANSWERS_LEAST else 0


def _results(row: Sequence[str]) -> Counter[str]:
    return Counter(cell.rpartition(":")[2] for cell in row if cell.startswith("ok:"))


def living(ran: Sequence[tuple[Candidate, MutantFate]]) -> list[Candidate]:
    """Those that may be asked whether they are alike: none where so many live that the tests are weak in any case."""
    alive = [mutant for mutant, fate in ran if fate is MutantFate.ALIVE]
    return alive if len(alive) <= ASKED_ALIVE else []


def booked(
    ran: Sequence[tuple[Candidate, MutantFate]], total: int, cut: str, alike: Collection[int] = frozenset()
) -> Mutants:
    """The count. `cut` says what was not run, ""; `alike` are the numbers of living ones that answer as the patch."""
    ran = [(c, fate) for c, fate in ran if c.number not in alike]
    living = sorted((c for c, fate in ran if fate is MutantFate.ALIVE), key=lambda c: _bytes(c.edits[0]))
    alive = [describe(c.edits[0]) for c in living]
    late = sum(fate is MutantFate.LATE for _, fate in ran)
    notes = (
        cut,
        f"{late} of the killed ran over their own limits of time" if late else "",
        f"{len(alike)} more answer every input that was tried as the patch does" if alike else "",
    )
    return Mutants(
        tried=len(ran),
        killed=len(ran) - len(alive),
        timed_out=late,
        alike=len(alike),
        space=total,
        alive=tuple(alive[:ALIVE_SHOWN]),
        constant=tuple(describe(c.edits[0]) for c in living if _is_constant_answer(c))[:ALIVE_SHOWN],
        wider=tuple(describe(c.edits[0]) for c in living if _raises_a_base(c))[:ALIVE_SHOWN],
        note="; ".join(note for note in notes if note),
    )


def _is_constant_answer(mutant: Candidate) -> bool:
    """Whether it returns a literal where something is worked out (Niedermayr et al. 2016: extreme mutation)."""
    edit, source = mutant.edits[0], mutant.patch.changes[0].before
    if edit.operator != "return-value" or len(edit.splices) != 1:
        return False
    (splice,) = edit.splices
    return _is_literal(splice.text) and not _is_literal(source[splice.start : splice.end])


def _raises_a_base(mutant: Candidate) -> bool:
    """Whether it raises a base of what is raised: then the tests ask for no more than that."""
    edit, source = mutant.edits[0], mutant.patch.changes[0].before
    if edit.operator != "exception-swap" or len(edit.splices) != 1:
        return False
    (splice,) = edit.splices
    if not source[: splice.start].rstrip().endswith(b"raise"):
        return False
    raised, wider = (
        getattr(builtins, name.decode("utf-8", "replace"), None)
        for name in (source[splice.start : splice.end], splice.text)
    )
    return isinstance(raised, type) and isinstance(wider, type) and raised is not wider and issubclass(raised, wider)


def _is_literal(text: bytes) -> bool:
    try:
        ast.literal_eval(text.decode("utf-8", "replace").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True


def _bytes(edit: Edit) -> int:
    """How much of the text an edit changes."""
    return sum(len(s.text) + s.end - s.start for s in edit.splices)


def describe(edit: Edit) -> str:
    """A mutant in a line."""
    return shortened(f"{edit.path}:{edit.line} {edit.operator}: {edit.note}", 300)
