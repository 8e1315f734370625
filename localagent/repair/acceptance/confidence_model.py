"""From signals to one calibrated probability that a repair is right: a logistic model whose weights are a data file.

`models/confidence.json` holds the weights, `models/confidence.md` says what they were fitted on and how well they hold;
`bench/right/fit.py` makes both. Each signal counts by weight x (value - centre), where the centre is its mean over the
patches that it was fitted on, so that a contribution says how much better or worse than usual a patch looks.

Limitations: the probability is that of a patch like those it was fitted on. Another search, another model or another
kind of project may be served worse; for models that it was not fitted with it is marked as not calibrated.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.domain.confidence import Confidence
from localagent.domain.guard import GuardResult
from localagent.domain.outcome import FullResult
from localagent.domain.strength import LEAST_MUTANTS, Grade, Share
from localagent.domain.verification import Assessment
from localagent.errors import UsageFault
from localagent.repair.acceptance.signals import Signal, Signals

SCHEMA = "localagent/confidence/1"
REASONS = 5
_WORTH_TELLING = 0.15  # of a change of the log-odds
_MOST = 0.995
_MOST_DOUBTED = 0.69  # with one of these: below what any shipped policy accepts
_DOUBTS = ("hard-contradictions", "near-rival", "leaves-failing")
_NOTICED_LEAST = 0.4  # of the mutants: below, the tests hardly notice what stands on the changed lines
_MAX_BYTES = 1 << 20
_LARGEST = 1e6  # of a number in the file


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfidenceModel:
    """Weights by the name of a signal; what has none counts for nothing.

    `order` are nats that a signal adds to the cost in the choice among plausible candidates, per unit of it. `models`
    are digests of the language models that it was fitted with, "" for none of them.
    """

    name: str
    bias: float
    weights: Mapping[str, float]
    centres: Mapping[str, float]
    order: Mapping[str, float]
    models: frozenset[str]

    def penalty(self, signals: Signals) -> float:
        """Nats to add to a candidate's cost in the choice."""
        return sum(weight * signals[name].value for name, weight in self.order.items() if name in signals)

    def judge(self, signals: Signals, *, language_model: str) -> Confidence:
        """How likely a patch with these signals is right; `language_model` is the digest of what ordered the search."""
        parts = {
            name: weight * (signals[name].value - self.centres[name])
            for name, weight in self.weights.items()
            if name in signals
        }
        telling = sorted(parts, key=lambda name: (-abs(parts[name]), name))
        telling = [n for n in telling if abs(parts[n]) >= _WORTH_TELLING and signals[n].text]
        most = _MOST_DOUBTED if any(signals[name].value > 0 for name in _DOUBTS if name in signals) else _MOST
        return Confidence(
            probability=min(most, max(1 - _MOST, _logistic(self.bias + sum(parts.values())))),
            calibrated=language_model in self.models,
            model=self.name,
            supporting=_texts(signals, [n for n in telling if parts[n] > 0]),
            opposing=_texts(signals, [n for n in telling if parts[n] < 0]),
            signals={name: round(signal.value, 4) for name, signal in sorted(signals.items())},
        )


def _texts(signals: Signals, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(signals[name].text for name in names[:REASONS]))


def guard_signals(guard: GuardResult | None) -> dict[str, Signal]:
    """What running the tests outside the goal adds: those that did not run may be broken."""
    if guard is None or not guard.found:
        lost = guard is not None and guard.unknown
        why = f"no test outside the goal was run: {guard.why}" if guard is not None and lost else ""
        return {"guard-not-run": Signal(value=float(lost), text=why)}
    open_ = guard.not_run + len(guard.undecided)
    return {
        "guard-not-run": Signal(
            value=min(1.0, open_ / guard.found),
            text=f"{open_} of {guard.found} tests outside the goal were not run to an end"
            if open_
            else f"all {guard.found} tests outside the goal ran, and none is broken",
        )
    }


def progress_signals(full: FullResult | None) -> dict[str, Signal]:
    """What it says that some of the tests that were asked for still fail."""
    left = len(full.still_failing) if full is not None else 0
    text = f"{left} test{'s' * (left > 1)} that should pass still fail{'s' * (left == 1)}" if left else ""
    return {"leaves-failing": Signal(value=float(bool(left)), text=text)}


def strength_signals(assessment: Assessment | None) -> dict[str, Signal]:
    """What measuring the strength of the tests adds."""
    strength = assessment.strength if assessment is not None else None
    if strength is None:
        return {"strength-unknown": Signal(value=1.0, text="how well the tests watch the change was not measured")}
    killed = strength.mutants if strength.mutants is not None and strength.mutants.whole >= LEAST_MUTANTS else None
    return {
        "strength-unknown": Signal(value=0.0),
        "same-answer": Signal(
            value=float(assessment is not None and assessment.same_answer > 0),
            text="the changed code gives all inputs that were tried the same answer, as in the tests"
            if assessment is not None and assessment.same_answer
            else "",
        ),
        **grade_signals(strength.grade),
        **comparison_signals(strength.grade, _share(strength.functions)),
        "mutants-known": Signal(value=float(killed is not None)),
        "mutants-killed": Signal(
            value=_share(killed),
            text=f"the tests notice {killed.part} of {killed.whole} mutants of the changed lines" if killed else "",
        ),
        "unnoticed": Signal(
            value=float(killed is not None and _share(killed) < _NOTICED_LEAST),
            text=f"the tests pass with {killed.whole - killed.part} of {killed.whole} mutants of the changed lines, too"
            if killed is not None
            else "",
        ),
        "lines-covered": Signal(
            value=_share(strength.lines),
            text=""
            if strength.lines is None
            else f"the tests run {strength.lines.part} of {strength.lines.whole} changed lines",
        ),
        "functions-compared": Signal(value=_share(strength.functions)),
    }


def grade_signals(grade: Grade) -> dict[str, Signal]:
    """One for each grade that is better than this: what is lost with each step, so that none can gain by it."""
    text = f"the evidence is of strength {grade} (A to E)"
    return {
        f"under-{better.value.lower()}": Signal(
            value=float(not grade.reaches(better)), text=text if grade is Grade.A or not grade.reaches(better) else ""
        )
        for better in (Grade.A, Grade.B, Grade.C, Grade.D)
    }


def comparison_signals(grade: Grade, compared: float) -> dict[str, Signal]:
    """What evidence of strength A says instead of passing tests that run what changes; nothing for other evidence.

    `compared`: the share of the touched functions that were compared with before on inputs near the tests'. Where that
    is all of them, it says no less than such tests: of labelled choices of strength A against which nothing else speaks
    41 of 44 are right where no passing test runs what changes, and 48 of 52 elsewhere.
    """
    if grade is not Grade.A or compared < 1:
        return {}
    return {"unwatched": Signal(value=0.0), "collateral-known": Signal(value=1.0)}


def with_strength(known: Signals, assessment: Assessment | None) -> Signals:
    """What is known of a patch with what measuring the strength of the tests adds; it wins where both say something."""
    strength = strength_signals(assessment)
    return {**known, **{n: s for n, s in strength.items() if n not in known or known[n].value != s.value}}


def _share(share: Share | None) -> float:
    return share.share if share is not None else 0.0


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def load_confidence(path: Path) -> ConfidenceModel:
    """The weights in a file. UsageFault with every fault of it."""
    try:
        data = path.read_bytes()
        found = json.loads(data) if len(data) <= _MAX_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageFault(f"{path}: cannot be read: {error}", remedy="install localagent anew") from error
    faults: list[str] = []
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise UsageFault(f"{path}: must be an object with schema {SCHEMA!r}", remedy="install localagent anew")
    tables = {key: _numbers(found.get(key), key, faults) for key in ("weights", "centres", "order")}
    models = found.get("models")
    if not isinstance(models, list) or not all(isinstance(m, str) for m in models):
        faults.append("models must be an array of texts")
    bias = _numbers({"bias": found.get("bias")}, "file", faults).get("bias", 0.0)
    faults += [f"weights.{name} has no centre" for name in tables["weights"] if name not in tables["centres"]]
    if faults:
        raise UsageFault([f"{path}: {fault}" for fault in faults], remedy="install localagent anew")
    return ConfidenceModel(
        name=str(found.get("name", "")),
        bias=bias,
        weights=tables["weights"],
        centres=tables["centres"],
        order=tables["order"],
        models=frozenset(models) if isinstance(models, list) else frozenset(),
    )


def _numbers(value: object, key: str, faults: list[str]) -> dict[str, float]:
    if not isinstance(value, dict):
        faults.append(f"{key} must be an object of numbers")
        return {}
    faults += [f"{key}.{name} must be a finite number" for name, number in value.items() if not _is_number(number)]
    return {name: float(number) for name, number in value.items() if _is_number(number)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
