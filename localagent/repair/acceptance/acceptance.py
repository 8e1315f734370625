"""The end of a search: which plausible candidate is believed, and what is kept as progress where none is.

Nothing is accepted while something that was asked for still fails.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from localagent.code.test_literals import Literals, failing_literals
from localagent.domain.behaviour import Behaviours, Crash, Row
from localagent.domain.edit import Candidate, EditEffect
from localagent.domain.outcome import FullResult
from localagent.domain.task import Ambiguity, Choosing, Stage
from localagent.ports import TextReader
from localagent.repair.acceptance.ambiguity import FEW_TESTS, explained, settled, undecided, unproven, weak
from localagent.repair.acceptance.behaviour_clusters import by_mass
from localagent.repair.acceptance.crash_hardening import Hardening
from localagent.repair.acceptance.goal_controls import examined
from localagent.repair.acceptance.ranking import READ, RankedCandidate, crashes, other_behaviours, ranked, reread
from localagent.repair.acceptance.regression_guard import guarded
from localagent.repair.acceptance.signals import Choice, signals
from localagent.repair.ordering.cost import reaches
from localagent.repair.ordering.scored_edit import repriced
from localagent.repair.search.run_context import RunContext
from localagent.report import repair_reasons
from localagent.text.byte_diff import common_beginning

# How naturally patched programs read: what the model makes of the text around their differences, read whole.
#
# The model's first surprise orders the search; of candidates that all pass, the whole text tells more: what follows an
# edit has to fit it as well. Measured on development cases with one visible example, where nothing else told the
# candidates apart (docs/adr/0022-what-reads-naturally.md).

MAX_LINES_ABOVE = 80
MAX_LINES_BELOW = 8  # chose as well as 60 on 19 development cases, in half the time
_TOP = re.compile(rb"^(?=[^\s#)\]}])", re.MULTILINE)
_LINE = re.compile(rb"^", re.MULTILINE)


def naturalness(candidates: Sequence[Candidate], reader: TextReader, seconds: float) -> dict[int, float]:
    """For each candidate log P(its text) - log P(the unpatched text), in nats, by its number; empty when not known.

    Read are, for each file that one of them changes, the top-level statements around all their differences.
    """
    changes = {c.number: {change.path: change for change in c.patch.changes} for c in candidates}
    sources = {path: change.before for per_file in changes.values() for path, change in per_file.items()}
    found = dict.fromkeys(changes, 0.0)
    for path in sorted(sources):
        texts = {number: per_file[path].after for number, per_file in changes.items() if path in per_file}
        told = _in_one_file(sources[path], texts, reader, seconds / len(sources))
        if told is None:
            return {}
        for number, nats in told.items():
            found[number] += nats
    return found


def _in_one_file(
    source: bytes, texts: Mapping[int, bytes], reader: TextReader, seconds: float
) -> dict[int, float] | None:
    start, end = window(source, texts.values())
    cut = list(dict.fromkeys([source[start:end], *(t[start : len(t) - (len(source) - end)] for t in texts.values())]))
    told = reader.likelihoods(cut, timeout_seconds=seconds)
    if told is None:
        return None
    nats = dict(zip(cut, told, strict=True))
    unpatched = nats[source[start:end]]
    return {number: nats[t[start : len(t) - (len(source) - end)]] - unpatched for number, t in texts.items()}


def window(source: bytes, texts: Iterable[bytes]) -> tuple[int, int]:
    """Byte span of `source` that holds every difference, out to whole top-level statements within the line limits."""
    first, last = len(source), 0
    for text in texts:
        ahead = common_beginning(source, text)
        behind = common_beginning(source[ahead:][::-1], text[ahead:][::-1])
        first, last = min(first, ahead), max(last, len(source) - behind)
    first, last = min(first, last), max(first, last)
    lines = [m.start() for m in _LINE.finditer(source)]
    above = [at for at in lines if at <= first][-MAX_LINES_ABOVE:] or [0]
    below = [at for at in lines if at >= last][:MAX_LINES_BELOW] or [len(source)]
    tops = {m.start() for m in _TOP.finditer(source)}
    start = next((at for at in reversed(above) if at in tops), above[0])
    end = next((at for at in below if at in tops), len(source) if len(below) < MAX_LINES_BELOW else below[-1])
    return start, max(end, last)


FULL_CHECKS = 8
MORE_AFTER_FIRST = 60
KEPT_TO_HARDEN, KEPT_SHARE = 20, 0.4
PART_CHECKS = 5
PROPOSALS = 4
READ_SECONDS = 20.0
SHAKY = 2.0  # nats of cost in the choice, set by hand
Accepted = tuple[Candidate, FullResult]


def more_after_first(run: RunContext) -> int:
    """How many more candidates to try once one is plausible, so that there is a choice.

    Where the model wrote it, twice as many: an enumerated one is worth more. None where the first is to be taken.
    Of a small budget some are kept for making one of them sturdier (`Hardening`), where few tests may leave it shaky.
    """
    if run.task.choosing is Choosing.FIRST:
        return run.parts.beside
    if all(any(EditEffect.WRITTEN_BY_MODEL in e.effects for e in c.edits) for c in run.state.plausible):
        more = max(2 * MORE_AFTER_FIRST, run.state.verified)
    else:
        more = max(MORE_AFTER_FIRST, min(2 * MORE_AFTER_FIRST, run.state.verified // 2))
    few = len(run.baseline.tests) + len(run.baseline.checks) <= FEW_TESTS
    if not few or not any(_may_harden(c) for c in run.state.plausible):
        return more
    left = run.task.budget.max_candidates - run.state.verified
    return min(more, left - min(KEPT_TO_HARDEN, int(KEPT_SHARE * left)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Weighed:
    """Plausible candidates in order, what stands beside the first, and why a person might have to look.

    `near` is what they do; `rivals` are those that nothing tells from the first, `read` is true where the model's
    reading told them; `sturdier` is the first with the edit that ends its crashes.
    """

    near: Behaviours
    order: Sequence[RankedCandidate]
    rivals: Sequence[RankedCandidate]
    read: bool
    sturdier: Candidate | None
    crash: Crash | None
    doubtful: bool
    unsure: bool


def choose(run: RunContext, hardening: Hardening) -> Accepted | None:
    """The best plausible candidate that passes the full check; None if none does or nothing tells the best apart.

    Where the tests are few, one that crashes on inputs near theirs is not believed: one more edit may end the crashes,
    or another candidate does not crash, or a person has to look (but where only the parser's complaints were mended).
    Where the task says so, the best is taken instead of asking, or the first without comparing any.
    """
    s = run.state
    s.plausible = repriced(s.plausible, s.opened, run.parts.weights, mends=s.mends, by_hand=s.by_hand)
    open_ones = [c for c in s.plausible if c.number not in s.rejected]
    if not open_ones:
        return None
    if run.task.choosing is Choosing.FIRST:
        return _first_accepted(run, open_ones)
    with run.timed(Stage.CHOOSE):
        weighed = _weigh(run, open_ones, hardening)
    if weighed.unsure and run.task.choosing is Choosing.ASK:
        _propose(run, weighed)
        return None
    return _best_accepted(run, weighed)


def _weigh(run: RunContext, open_ones: Sequence[Candidate], hardening: Hardening) -> _Weighed:
    """Compare them by what they do on inputs near the tests', and by reading where that is not enough."""
    s = run.state
    tests = len(run.baseline.tests) + len(run.baseline.checks)
    near = run.parts.verifier.behaviours(open_ones, run.baseline, seed=run.task.seed)
    few = tests <= FEW_TESTS
    tested = failing_literals(run.baseline, run.parts.sources)
    order = ranked(open_ones, near, shaky=SHAKY if few else 0.0, tested=tested)
    order = _ranked_by_signals(run, order, near, tested)
    rivals = undecided(order, tests, s.verified)
    read = False
    if rivals and (told := _read(run, order)) is not None:
        order, rivals, read = told, [], True
    if rivals:
        order, rivals = by_mass(order, rivals)
    first = order[0].candidate
    sturdier, shaky = None, few and crashes(near, first.number)
    slips = all(EditEffect.MENDS_SYNTAX in e.effects for e in first.edits)  # nothing was guessed
    if shaky and first.number not in s.hardened and _may_harden(first):
        s.hardened.add(first.number)
        sturdier = hardening.sturdier(first, near.crashes.get(first.number, ()))
    run.emit(
        "ranked",
        order=[[x.candidate.number, round(x.cost, 2)] for x in order],
        behaviours={str(k): list(v) for k, v in near.telling().items()},
        crashes={str(c.number): len(near.crashed(c.number)) for c in open_ones},
        sturdier=None if sturdier is None else sturdier.number,
    )
    doubtful = shaky and sturdier is None and not (slips and not weak(order, s.verified))
    unsure = bool(rivals) or doubtful or unproven(order, tests, len(run.baseline.failing))
    if unsure:
        run.emit("undecided", numbers=[first.number, *(r.candidate.number for r in rivals)])
    crash = next(iter(near.crashes.get(first.number, ())), None)
    return _Weighed(
        near=near,
        order=order,
        rivals=rivals,
        read=read,
        sturdier=sturdier,
        crash=crash,
        doubtful=doubtful,
        unsure=unsure,
    )


def _ranked_by_signals(
    run: RunContext, order: Sequence[RankedCandidate], near: Behaviours, tested: Literals
) -> list[RankedCandidate]:
    """The order once what else is known of each candidate counts; the signals are kept for whoever accepts."""
    s = run.state
    choice = Choice(
        order=order,
        near=near,
        baseline=run.baseline,
        suspicions=run.suspicions,
        sources=run.parts.sources,
        verified=s.verified,
        natural={},
        tested=tested,
        reverted=run.parts.reverted,
    )
    s.choice, s.signals = choice, signals(choice)
    penalty = run.parts.confidence.penalty
    dearer = [replace(x, cost=x.cost + penalty(s.signals[x.candidate.number])) for x in order]
    s.behaviours, s.order = near, tuple(sorted(dearer, key=lambda x: (x.cost, x.candidate.number)))
    return list(s.order)


def _may_harden(candidate: Candidate) -> bool:
    """Whether nothing about it was guessed, so that one more edit may be."""
    return all(explained(e) for e in candidate.edits)


def _propose(run: RunContext, weighed: _Weighed) -> None:
    """Leave the choice to a person: what passes every check is proposed; what does not is booked as rejected."""
    s = run.state
    best = weighed.order[0]
    if weighed.sturdier is not None:
        best = replace(best, candidate=weighed.sturdier)
    passed = _proposals(run, [best, *(weighed.rivals or weighed.order[1:])])
    s.proposals, s.proposed = tuple(c for c, _ in passed), tuple(full for _, full in passed)
    open_still = [x.candidate for x in (best, *weighed.rivals) if x.candidate.number not in s.rejected]
    s.undecided = tuple(open_still)  # empty when none of them passes every check: the search goes on
    s.crash = weighed.crash if weighed.doubtful else None
    if weighed.rivals and s.crash is None and weighed.sturdier is None:
        s.ambiguity = ambiguity(run, s.proposals)


def rivals(run: RunContext, chosen: Candidate) -> list[Accepted]:
    """The best plausible candidates of other behaviours that pass every check as well, while there is time."""
    rows = {x.row for x in run.state.order if x.candidate.number == chosen.number}
    others = [
        x
        for x in run.state.order
        if x.candidate.number != chosen.number and x.candidate.number not in run.state.rejected and x.row not in rows
    ]
    return _proposals(run, others, most=PROPOSALS - 1)


def ambiguity(run: RunContext, proposals: Sequence[Candidate]) -> Ambiguity | None:
    """An input on which the proposals differ, with what each makes of it; None where none can be shown."""
    numbers = {c.number: at for at, c in enumerate(proposals, 1)}
    found = run.state.behaviours.distinguishing(numbers)
    if found is None:
        return None
    answers = {numbers[n]: text for n, text in sorted(found.answers.items(), key=lambda x: numbers[x[0]])}
    run.emit("ambiguous", call=found.call, answers=[[at, text] for at, text in answers.items()])
    exact = frozenset(numbers[n] for n in found.exact)
    return Ambiguity(call=found.call, answers=answers, function=found.function, exact=exact)


def _best_accepted(run: RunContext, weighed: _Weighed) -> Accepted | None:
    """The first in order that passes the full check, the sturdier form of the best alone where there is one."""
    s = run.state
    sturdier = weighed.sturdier
    for candidate in [sturdier] if sturdier is not None else [x.candidate for x in weighed.order[:FULL_CHECKS]]:
        full = _full(run, candidate)
        if full.accepted:
            if (accepted := _believed(run, candidate, full)) is None:
                return None
            s.others = _others(run, weighed, candidate)
            if weighed.read:
                s.warnings.append(repair_reasons.most_natural(len(weighed.order)))
            if weighed.unsure:
                s.warnings.append(repair_reasons.ASSUMED + _differing(weighed, candidate))
            if sturdier is not None and weighed.crash is not None:
                s.warnings.append(repair_reasons.sturdier(weighed.crash, sturdier.edits[-1]))
            return accepted
        s.rejected[candidate.number] = full
    return None


def _others(run: RunContext, weighed: _Weighed, taken: Candidate) -> int:
    """How many known behaviours pass the tests beside that of what was taken.

    What failed a full check counts not, nor what is so much less likely in the choice (`FAR`) that it says no more than
    a mutant does; mutants are drawn and counted anyway. Of the first made sturdier only crashes differ: it stands for
    the first.
    """
    first = weighed.order[0].candidate
    number = first.number if taken is weighed.sturdier else taken.number
    mine = next(s for s in weighed.order if s.candidate.number == number)
    known = [s for s in weighed.order if s.candidate.number not in run.state.rejected]
    return other_behaviours(mine, known)


def _differing(weighed: _Weighed, taken: Candidate) -> str:
    """An input on which the patch that was taken and its rivals differ, in words; "" where none can be shown."""
    others = [s.candidate.number for s in weighed.order if s in weighed.rivals]
    found = weighed.near.distinguishing([taken.number, *others])
    if found is None or taken.number not in found.answers:
        return ""
    mine = found.answers[taken.number]
    rest = [text for text in dict.fromkeys(found.answers.values()) if text != mine]
    return f". On {found.call} it answers {mine}; others that pass: {' | '.join(rest)}"


def _first_accepted(run: RunContext, candidates: Sequence[Candidate]) -> Accepted | None:
    """The first of them that passes the full check; what does not is booked as rejected."""
    for candidate in candidates:
        full = _full(run, candidate)
        if full.accepted:
            run.state.warnings.append(repair_reasons.FIRST)
            return _believed(run, candidate, full)
        run.state.rejected[candidate.number] = full
    return None


def _read(run: RunContext, order: Sequence[RankedCandidate]) -> list[RankedCandidate] | None:
    """The order once the model has read the first of it, where that tells which is right; None where it does not."""
    reader = run.parts.reader
    if reader is None or run.left() <= 0:
        return None
    natural = naturalness([s.candidate for s in order[:READ]], reader, min(READ_SECONDS, 0.5 * run.left()))
    run.emit("read", nats={str(number): round(nats, 2) for number, nats in natural.items()})
    if not natural:
        return None
    again = reread(order, natural)
    return again if settled(again, run.state.verified) else None


def _proposals(run: RunContext, standings: Sequence[RankedCandidate], *, most: int = PROPOSALS) -> list[Accepted]:
    """What a person may choose from, checked: one of each known behaviour, and only what passes every check.

    What does not is booked as rejected, like any other plausible candidate that fails the full check.
    """
    seen: set[Row] = set()
    out: list[Accepted] = []
    for standing in standings:
        if len(out) == most:
            break
        if standing.row in seen:
            continue
        if run.left() <= 0:
            break
        full = _full(run, standing.candidate)
        if not full.accepted:
            run.state.rejected[standing.candidate.number] = full
            continue
        out.append((standing.candidate, full))
        seen.update([standing.row] if standing.row else [])
    return out


def parts_to_check(run: RunContext) -> Iterator[tuple[Candidate, list[str]]]:
    """Candidates that turned some of what fails, best first, as far as they may be progress; each with what is left."""
    lines = {t.id: t.lines for t in run.baseline.tests}
    named = run.task.tests or run.task.checks
    for candidate, turned in run.state.parts[:PART_CHECKS]:
        rest = [name for name in run.baseline.failing if name not in turned]
        if named or not any(not lines.get(i) or reaches(lines[i] or {}, candidate) for i in rest):
            yield candidate, rest


def some_turned(run: RunContext) -> Accepted | None:
    """Keep the best candidate that turns some of what fails and breaks nothing, as progress: it is never accepted.

    Where nobody named tests or checks, the rest must not run what it changes, as far as lines tell: those that do, and
    still fail, speak against it. One after which nothing fails any more, which the quick check could not see, is judged
    like any other.
    """
    s = run.state
    for candidate, rest in parts_to_check(run):
        full = _full(run, candidate, may_fail=rest)
        if not full.accepted or not full.fail_to_pass:
            continue
        if not full.still_failing:
            return _believed(run, candidate, full)
        s.progress = (candidate, full)
        s.proposals, s.proposed = (candidate,), (full,)
        return None
    return None


def _believed(run: RunContext, candidate: Candidate, full: FullResult) -> Accepted | None:
    """What passed every check, unless there are doubts that the task leaves to a person: then it is proposed."""
    s = run.state
    if full.doubts and run.task.choosing is not Choosing.ASSUME:
        s.doubts, s.undecided = full.doubts, (candidate,)
        s.proposals, s.proposed = (candidate,), (full,)
        return None
    s.warnings += map(repair_reasons.assumed, full.doubts)
    return candidate, full


def _full(run: RunContext, candidate: Candidate, *, may_fail: Sequence[str] = ()) -> FullResult:
    """The full check on the goal's tests, controls on its checks, then the guard: the one way to acceptance."""
    with run.timed(Stage.FULL):
        full = run.parts.verifier.full(candidate, run.baseline, seed=run.task.seed, may_fail=may_fail)
        if full.accepted:
            full = examined(run, candidate, full)
    if full.accepted:
        full = guarded(run, candidate, full)
    run.emit("full-check", number=candidate.number, accepted=full.accepted, reasons=list(full.reasons))
    return full
