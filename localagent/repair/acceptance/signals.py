"""What the search knows of a plausible candidate, as numbers: what a calibrated confidence is made of.

Each number comes with the sentence that a developer would want to read beside it. Pure: nothing runs here. Limitations:
a number that could not be had is the one that says nothing (0), and a signal of its own tells so.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from localagent.code.source_text import parse_or_none
from localagent.code.test_literals import Literals
from localagent.domain.behaviour import Behaviours
from localagent.domain.collateral import Changes, Collateral
from localagent.domain.edit import Candidate, EditEffect
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.ports import Sources
from localagent.repair.acceptance.behaviour_clusters import mass
from localagent.repair.acceptance.contradictions import ContradictionWeight, PatchContext, read
from localagent.repair.acceptance.copied_literals import copied
from localagent.repair.acceptance.effects import EffectKind, patch_effects
from localagent.repair.acceptance.ranking import RankedCandidate
from localagent.repair.ordering.cost import reaches

_MOST_NATS = 6.0
NEAR_NATS = 1.0  # of 19 labelled choices with a rival that cost no more than this, 5 were right
_MOST_TOKENS = 40
_CLOSE = 3  # lines
_MOST_FAILING = 4  # failing tests count, and
_LEAST_RATE = -2.7  # is the logarithm of the least rate of programs that pass: as far as labels go
_MOST_REASONS = 2  # more contradictions of one patch say no more
_GROUPS: Mapping[str, frozenset[EffectKind]] = {
    "negates": frozenset({EffectKind.NEGATES_CONDITION}),
    "condition": frozenset({EffectKind.WIDENS_CONDITION, EffectKind.NARROWS_CONDITION, EffectKind.CHANGES_COMPARISON}),
    "drops": frozenset(
        {
            EffectKind.DROPS_STATEMENT,
            EffectKind.DROPS_GUARD,
            EffectKind.DROPS_ARGUMENT,
            EffectKind.DROPS_ELEMENT,
            EffectKind.UNWRAPS_IF,
            EffectKind.UNWRAPS_BLOCK,
            EffectKind.CONSTANT_FOR_EXPRESSION,
        }
    ),
    "guards": frozenset({EffectKind.ADDS_GUARD, EffectKind.WRAPS_IN_IF}),
    "constant": frozenset({EffectKind.CHANGES_NUMBER, EffectKind.CHANGES_CONSTANT}),
    "text": frozenset({EffectKind.CHANGES_TEXT, EffectKind.CHANGES_MESSAGE}),
    "name": frozenset({EffectKind.CHANGES_NAME, EffectKind.CHANGES_ATTRIBUTE, EffectKind.CHANGES_CALLEE}),
    "argument": frozenset(
        {EffectKind.ADDS_ARGUMENT, EffectKind.CHANGES_ARGUMENT, EffectKind.SWAPS_ARGUMENTS, EffectKind.CHANGES_DEFAULT}
    ),
    "statement": frozenset({EffectKind.ADDS_STATEMENT, EffectKind.MOVES_STATEMENT, EffectKind.CHANGES_INDENT}),
    "operator": frozenset({EffectKind.CHANGES_OPERATOR, EffectKind.SWAPS_OPERANDS}),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Signal:
    """One number of a candidate. `text` says it in words; "" where it is not worth a sentence."""

    value: float
    text: str = ""


Signals = Mapping[str, Signal]


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """All plausible candidates, best first, and what the task knows: what the signals of each are taken from.

    `verified` is how many programs ran; `natural` what the model makes of texts, nats by candidate number; `tested` the
    literals of the failing tests; `reverted` files with only what broke the tests taken back.
    """

    order: Sequence[RankedCandidate]
    near: Behaviours
    baseline: Baseline
    suspicions: Sequence[Suspicion]
    sources: Sources
    verified: int
    natural: Mapping[int, float]
    tested: Literals
    reverted: Collection[tuple[RepoPath, bytes]] = frozenset()


def signals(choice: Choice) -> dict[int, Signals]:
    """The signals of each candidate, by its number."""
    rivals = _Rivals.of(choice.order)
    context = _context(choice)
    found: dict[int, Signals] = {}
    for standing in choice.order:
        number = standing.candidate.number
        found[number] = {
            **rivals.signals(standing, choice.verified),
            **_collateral(choice.near.collateral.get(number)),
            **_near(choice, number),
            **_of_patch(standing.candidate, choice, context),
        }
    return found


def hardened_signals(candidate: Candidate, before: Signals, choice: Choice) -> Signals:
    """The signals of a plausible candidate to which edits were added: what it does is that of the one before."""
    return {**before, **_of_patch(candidate, choice, _context(choice))}


def _of_patch(candidate: Candidate, choice: Choice, context: PatchContext) -> dict[str, Signal]:
    return {
        **_edit(candidate, choice),
        **_tests(candidate, choice.baseline),
        **_distance_signals(candidate, choice),
        **_read(candidate, context),
        **_effects(candidate),
        **_parsing(candidate),
        **_reverting(candidate, choice.reverted),
        **_following(candidate),
    }


def _following(candidate: Candidate) -> dict[str, Signal]:
    """Whether it only imports a name from the one place where it lies now."""
    alone = len(candidate.edits) == 1 and EditEffect.FOLLOWS_MOVE in candidate.edits[0].effects
    text = "the name that could not be imported lies there now" if alone else ""
    return {"follows-move": Signal(value=float(alone), text=text)}


def _reverting(candidate: Candidate, reverted: Collection[tuple[RepoPath, bytes]]) -> dict[str, Signal]:
    """Whether it only takes back what broke the tests: runs on the parent's tree have shown that this did."""
    if not reverted:
        return {}
    back = bool(candidate.patch.changes) and all((c.path, c.after) in reverted for c in candidate.patch.changes)
    text = "it takes back what broke the tests in the first bad commit, and nothing else" if back else ""
    return {"takes-back": Signal(value=float(back), text=text)}


def _parsing(candidate: Candidate) -> dict[str, Signal]:
    """Whether it is one edit that mends a file that no parser takes: a slip of typing has few ways to be meant.

    More edits than one do more than to mend the slip.
    """
    changed = [c for c in candidate.patch.changes if c.path.endswith(".py")]
    broken = len(candidate.edits) == 1 and any(parse_or_none(c.before) is None for c in changed)
    text = "the file did not parse before, and a slip of typing has few repairs" if broken else ""
    return {"did-not-parse": Signal(value=float(broken), text=text)}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rivals:
    """The clusters of equal behaviour: the logarithm of the mass of each, and the least cost in it."""

    masses: Mapping[object, float]
    costs: Mapping[object, float]

    @classmethod
    def of(cls, order: Sequence[RankedCandidate]) -> "_Rivals":
        clusters: dict[object, list[RankedCandidate]] = {}
        for standing in order:
            clusters.setdefault(_behaviour(standing), []).append(standing)
        return cls(
            masses={key: mass(members) for key, members in clusters.items()},
            costs={key: min(s.cost for s in members) for key, members in clusters.items()},
        )

    def signals(self, standing: RankedCandidate, verified: int) -> dict[str, Signal]:
        key = _behaviour(standing)
        top = max(self.masses.values())
        whole = sum(math.exp(m - top) for m in self.masses.values())
        share = math.exp(self.masses[key] - top) / whole
        others = [cost for other, cost in self.costs.items() if other != key]
        lead = _MOST_NATS if not others else min(others) - standing.cost
        kinds = len(self.masses)
        told = (
            "no other repair that was tried passes the tests and behaves otherwise"
            if kinds == 1
            else f"{kinds - 1} other behaviour{'s' * (kinds > 2)} that passed the same tests"
        )
        plausible = len(self.masses)
        return {
            "share": Signal(value=share),
            "kinds": Signal(value=math.log(kinds), text=told),
            "lead": Signal(value=max(-_MOST_NATS, min(_MOST_NATS, lead))),
            "pass-rate": Signal(
                value=max(_LEAST_RATE, math.log10(max(plausible, 1) / max(verified, 1))),
                text=f"of {verified} candidates that ran, only this one's behaviour passes the tests"
                if plausible == 1
                else f"of {verified} candidates that ran, {plausible} different behaviours pass the tests",
            ),
            "cost": Signal(value=max(0.0, min(2 * _MOST_NATS, standing.cost))),
        }


def near_rival(number: int, order: Sequence[RankedCandidate]) -> dict[str, Signal]:
    """Whether another behaviour costs hardly more in the choice: `order` is what passes the checks so far."""
    mine = next((s for s in order if s.candidate.number == number), None)
    others = {_behaviour(s) for s in order if mine is not None and s.cost < mine.cost + NEAR_NATS}
    near = mine is not None and bool(others - {_behaviour(mine)})
    text = "a repair that behaves otherwise passes the same tests and is about as likely" if near else ""
    return {"near-rival": Signal(value=float(near), text=text)}


def _behaviour(standing: RankedCandidate) -> object:
    return standing.row or standing.candidate.number


def _collateral(found: Collateral | None) -> dict[str, Signal]:
    tested, near = (found.tested, found.near) if found is not None else (Changes(), Changes())
    crashing = found.crashing if found is not None else 0
    calls = tested.calls + near.calls
    crashes = tested.crashes + near.crashes
    return {
        "collateral-known": Signal(
            value=float(calls > 0), text="" if calls else "no call of passing tests could be compared with before"
        ),
        "collateral-tested": Signal(
            value=tested.share,
            text=f"changes the answers to {tested.altered} of {tested.calls} calls that passing tests make"
            if tested.altered
            else ""
            if tested.mended
            else f"answers all {tested.calls} calls that passing tests make as before"
            if tested.calls
            else "",
        ),
        "collateral-near": Signal(
            value=near.share,
            text=f"changes the answers to {near.altered} of {near.calls} calls like those of passing tests"
            if near.calls
            else "",
        ),
        "new-crashes": Signal(
            value=crashes / calls if calls else 0.0,
            text=f"crashes on {crashes} of {calls} calls that were answered before" if crashes else "",
        ),
        "new-refusals": Signal(
            value=(tested.refused + near.refused) / calls if calls else 0.0,
            text=f"turns down {tested.refused + near.refused} of {calls} calls that were answered before"
            if tested.refused + near.refused
            else "",
        ),
        "passes-by-crash": Signal(
            value=float(crashing > 0),
            text="the failing tests pass because something crashes in the patched program" if crashing else "",
        ),
    }


def _near(choice: Choice, number: int) -> dict[str, Signal]:
    """On inputs near those of the failing tests."""
    near = choice.near
    row, old = near.rows.get(number, ()), near.rows.get(0, ())
    crashed = len(near.crashed(number))
    wide = sum(near.kept) if row else 0
    changed = sum(a != b for a, b in zip(row, old, strict=True)) / len(row) if row and old else 0.0
    return {
        "near-known": Signal(value=float(bool(row))),
        "near-changed": Signal(value=changed),
        "near-crashes": Signal(
            value=crashed / wide if wide else 0.0,
            text=f"crashes on {crashed} of {wide} inputs near those of the tests" if crashed else "",
        ),
    }


def _edit(candidate: Candidate, choice: Choice) -> dict[str, Signal]:
    added = sum(len(c.after.split()) - len(c.before.split()) for c in candidate.patch.changes)
    literals = copied(candidate, choice.tested)
    natural = choice.natural.get(candidate.number)
    written = any(EditEffect.WRITTEN_BY_MODEL in e.effects for e in candidate.edits)
    return {
        "edits": Signal(
            value=float(len(candidate.edits) - 1),
            text=f"{len(candidate.edits)} edits together" if len(candidate.edits) > 1 else "one single edit",
        ),
        "written": Signal(value=float(written), text="the model wrote a part of it" if written else ""),
        "words-removed": Signal(
            value=math.log1p(min(_MOST_TOKENS, max(0, -added))), text="it takes code away" if added < 0 else ""
        ),
        "words-added": Signal(value=math.log1p(min(_MOST_TOKENS, max(0, added)))),
        "copied": Signal(
            value=float(min(literals, 2)), text="it brings in a literal of the failing tests" if literals else ""
        ),
        "natural-known": Signal(value=float(natural is not None)),
        "natural": Signal(
            value=0.0 if natural is None else max(-2 * _MOST_NATS, min(_MOST_NATS, natural)),
            text=""
            if natural is None
            else f"to the model it reads {'more' if natural > 0 else 'less'} naturally than what stood there",
        ),
    }


def _context(choice: Choice) -> PatchContext:
    wanted = set(choice.baseline.failing)
    failing = [t for t in choice.baseline.tests if t.id in wanted]
    failures = [t.failure for t in failing if t.failure is not None]
    failures += [c.failure for c in choice.baseline.checks if c.failure is not None]
    return PatchContext(
        sources=choice.sources,
        failures=tuple(failures),
        covered={t.id: t.lines for t in failing if t.lines},
        expected=frozenset(choice.tested.expected),
    )


def _read(candidate: Candidate, context: PatchContext) -> dict[str, Signal]:
    """What the patch contradicts and what it agrees with, by reading alone."""
    try:
        against, agreeing = read(candidate.patch, context)
    except RecursionError:
        why = "its code is nested too deeply to be read for what it contradicts"
        return {"hard-contradictions": Signal(value=0.0), "soft-contradictions": Signal(value=1.0, text=why)}
    hard = [c.why for c in against if c.severity is ContradictionWeight.HARD]
    soft = [c.why for c in against if c.severity is ContradictionWeight.SOFT]
    return {
        "hard-contradictions": Signal(value=float(min(len(hard), _MOST_REASONS)), text="; ".join(hard[:_MOST_REASONS])),
        "soft-contradictions": Signal(value=float(min(len(soft), _MOST_REASONS)), text="; ".join(soft[:_MOST_REASONS])),
        "supports": Signal(
            value=float(min(len(agreeing), _MOST_REASONS)), text="; ".join(s.why for s in agreeing[:_MOST_REASONS])
        ),
    }


def _effects(candidate: Candidate) -> dict[str, Signal]:
    kinds = {effect.kind for effect in patch_effects(candidate.patch)}
    return {f"effect-{name}": Signal(value=float(bool(kinds & group))) for name, group in _GROUPS.items()}


def _tests(candidate: Candidate, baseline: Baseline) -> dict[str, Signal]:
    passing = set(baseline.passing)
    failing = len({name.partition("[")[0] for name in baseline.failing})  # one test with many parameters is one
    watching = sum(t.id in passing and bool(t.lines) and reaches(t.lines or {}, candidate) for t in baseline.tests)
    return {
        "failing": Signal(
            value=math.log2(1 + min(failing, _MOST_FAILING)),
            text=f"it turns {failing} failing tests" if failing > 1 else "",
        ),
        "watching": Signal(value=math.log2(1 + min(watching, 256))),
        "unwatched": Signal(
            value=float(not watching),
            text=f"{watching} passing test{'s' * (watching > 1)} run{'s' * (watching == 1)} what it changes"
            if watching
            else "no passing test runs what it changes",
        ),
        "tests": Signal(value=math.log2(1 + min(len(baseline.tests) + len(baseline.checks), 1024))),
    }


def _distance_signals(candidate: Candidate, choice: Choice) -> dict[str, Signal]:
    """Where it edits, beside where the failures come from."""
    wanted = set(choice.baseline.failing)
    failures = [t.failure for t in choice.baseline.tests if t.id in wanted and t.failure is not None]
    inner: set[tuple[RepoPath, int]] = set()
    functions: set[tuple[RepoPath, str]] = set()
    for failure in failures:
        frames = [f for f in failure.frames if f.path is not None and f.path not in choice.baseline.test_files]
        functions |= {(f.path, f.function.rpartition(".")[2]) for f in frames if f.path is not None}
        inner |= {(f.path, f.line) for f in frames[-1:] if f.path is not None}
    at_crash = any(
        path == e.path and e.line - _CLOSE <= line <= e.end_line + _CLOSE
        for e in candidate.edits
        for path, line in inner
    )
    in_frame = any(e.scope is not None and (e.path, e.scope.name) in functions for e in candidate.edits)
    best = max((s.score for s in choice.suspicions), default=0.0)
    score = max(
        (
            s.score
            for s in choice.suspicions
            for e in candidate.edits
            if s.path == e.path and s.line <= e.line <= s.end_line
        ),
        default=0.0,
    )
    return {
        "at-crash": Signal(
            value=float(at_crash), text="it edits the place where the exception was raised" if at_crash else ""
        ),
        "in-traceback": Signal(
            value=float(in_frame),
            text="" if in_frame or not functions else "no traceback of the failing tests goes through what it edits",
        ),
        "traceback-known": Signal(value=float(bool(functions))),
        "suspicion": Signal(value=score / best if best else 0.0),
        "repository": Signal(value=math.log10(1 + len(choice.sources))),
    }
