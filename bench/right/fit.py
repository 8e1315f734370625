"""Fits the confidence of repairs on labelled patches, and says how well it holds on projects that it never saw.

  fit.py                                each project judged without its fold of projects; nothing is written
  fit.py --write models/confidence.json the weights of the whole learning half
  fit.py --judge models/confidence.json the judging half: precision, calibration, intervals by bootstrap over projects

Reads `labels.jsonl` beside it: one line per patch with its digest, label and signals, made by `collect.py`. Two things
are fitted: what signals add to the cost in the choice (a conditional logit: among the plausible patches of one project
the right ones should cost least), and the probability that the one that is chosen is right (logistic, L2).
"""

import argparse
import json
import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from localagent.repair.acceptance.confidence_model import SCHEMA, ConfidenceModel, load_confidence
from localagent.repair.acceptance.signals import NEAR_NATS, Signal

HERE = Path(__file__).resolve().parent
LABELS = HERE / "labels.jsonl"
RIGHT, WRONG = frozenset({"same", "equal", "right"}), frozenset({"differs", "wrong"})
# Where the fit begins, and what it is pulled back to where labels say little: log-odds per unit of a signal, by hand.
EXPECTED = {
    "lead": 0.25, "pass-rate": -0.9, "under-a": -1.0, "under-b": -0.6, "under-c": -0.3, "under-d": -0.3,
    "strength-unknown": -2.0, "hard-contradictions": -2.5, "soft-contradictions": -1.2, "supports": 0.5,
    "near-known": 0.3,
    "effect-constant": -1.3, "effect-negates": -1.0, "effect-drops": -0.7, "unwatched": -0.9, "failing": 0.5,
    "collateral-tested": -3.0, "new-crashes": -6.0, "near-crashes": -2.0, "edits": -0.6,
    "copied": -0.5, "written": -0.5, "repository": -0.4,
    "did-not-parse": 4.0,
}  # fmt: skip
# Of a lone behaviour (`lead` 6) of some hundred programs (`pass-rate` -2), one failing test, a repository of six files,
# calls of which could be compared.
INTERCEPT = 2.7 - 6 * 0.25 - 2 * 0.9 - 0.5 + 0.4 * 0.8 - 0.3
EXPECTED_ORDER = {
    "hard-contradictions": 1.2, "soft-contradictions": 0.8, "collateral-tested": 1.5, "collateral-near": 2.0,
    "new-crashes": 3.0, "near-crashes": 0.5, "supports": -0.5, "takes-back": -3.0, "follows-move": -2.0,
}  # fmt: skip
# What few labelled patches vary in, and what is lost where it is not as it should be: weight and centre.
BY_HAND = {
    "guard-not-run": (-1.0, 0.0),
    "collateral-known": (0.5, 1.0),
    "takes-back": (3.5, 0.0),
    "follows-move": (2.7, 0.0),
    "near-rival": (-0.5, 0.0),
    "leaves-failing": (-2.0, 0.0),
    "same-answer": (-2.5, 0.0),
    "unnoticed": (-1.5, 0.0),
}
AT = (0.7, 0.8, 0.9, 0.95, 0.97)
_RESAMPLED = 2000
_STEPS, _STEP = 600, 0.03
_FOLDS = 12
# What a patch counts by where it is from: the small cases were written to tempt, real projects are few.
OF_HALF = {"small": 0.25, "mutated": 1.0, "syntax": 0.5, "faults": 2.0, "learning": 1.0, "judging": 0.0}
OTHERS = 0.15  # what a patch counts that the order would not take


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One labelled patch. `first`: it is what the hand's order would have taken of those that pass the full check."""

    name: str
    group: str
    half: str
    digest: str
    cost: float
    behaviour: str
    right: bool
    full: bool | None
    asks: bool
    signals: Mapping[str, float]


def read(path: Path) -> list[Row]:
    """The labelled patches; whatever is unclear is left out."""
    rows = []
    for line in path.read_text("utf-8").splitlines():
        told = json.loads(line)
        if told["label"] in RIGHT | WRONG:
            rows.append(
                Row(
                    name=told["name"],
                    group=told["group"],
                    half=told["half"],
                    digest=told["digest"],
                    cost=told["cost"],
                    behaviour=told["behaviour"] or told["digest"],
                    right=told["label"] in RIGHT,
                    full=told["full"],
                    asks=told["asks"],
                    signals=told["signals"],
                )
            )
    return rows


def by_name(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The patches of each project."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.name].append(row)
    return found


def matrix(rows: Sequence[Row], names: Sequence[str]) -> np.ndarray:
    """A row for each patch, a column for each signal; 0 where a patch has none."""
    return np.array([[row.signals.get(name, 0.0) for name in names] for row in rows], dtype=float).reshape(
        len(rows), len(names)
    )


def fit_order(rows: Sequence[Row], *, l2: float) -> dict[str, float]:
    """Nats that a unit of each signal adds to the cost, pulled back to EXPECTED_ORDER."""
    names = sorted(EXPECTED_ORDER)
    groups = [g for g in by_name(rows).values() if any(r.right for r in g) and not all(r.right for r in g)]
    if not groups:
        return dict(EXPECTED_ORDER)
    parts = [(matrix(g, names), np.array([r.cost for r in g]), np.array([r.right for r in g])) for g in groups]
    spread = np.concatenate([x for x, _, _ in parts]).std(axis=0)
    spread[spread == 0] = 1.0
    scaled = np.concatenate([x for x, _, _ in parts]) / spread
    cost = np.concatenate([c for _, c, _ in parts])
    right = np.concatenate([r for _, _, r in parts])
    starts = np.cumsum([0, *(len(c) for _, c, _ in parts)][:-1])
    of = np.repeat(np.arange(len(parts)), [len(c) for _, c, _ in parts])
    expected = np.array([EXPECTED_ORDER[name] for name in names]) * spread
    weights = expected.copy()
    for _ in range(_STEPS):
        z = -(cost + scaled @ weights)
        every = np.exp(z - np.maximum.reduceat(z, starts)[of])
        among = every / np.add.reduceat(every, starts)[of]
        good = np.where(right, every, 0.0)
        wanted = good / np.add.reduceat(good, starts)[of]
        weights -= _STEP * (l2 * (weights - expected) + scaled.T @ (wanted - among))
    weights[weights * expected < 0] = 0.0
    return {name: round(float(w / s), 4) for name, w, s in zip(names, weights, spread, strict=True) if abs(w) > 1e-3}


def fit_logistic(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray, expected: np.ndarray, *, l2: float
) -> tuple[np.ndarray, float]:
    """Weights of standardised columns and a bias, by Newton's method; pulled to `expected`, whose last is the bias."""
    n, k = x.shape
    z = np.hstack([x, np.ones((n, 1))])
    beta, prior = expected.copy(), expected
    ridge = l2 * np.eye(k + 1)
    for _ in range(100):
        p = 1 / (1 + np.exp(-np.clip(z @ beta, -30, 30)))
        slope = z.T @ (weight * (p - y)) + ridge @ (beta - prior)
        curve = (z * (weight * p * (1 - p))[:, None]).T @ z + ridge
        step = np.linalg.solve(curve, slope)
        beta -= np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-8:
            break
    return beta[:-1], float(beta[-1])


def fit(
    rows: Sequence[Row], *, name: str, models: Sequence[str], l2: float = 15.0, l2_order: float = 2.0
) -> ConfidenceModel:
    """Order first, then the probability of what that order takes; others count a little, for rivals are judged too."""
    order = fit_order(rows, l2=l2_order)
    flat = ConfidenceModel(name="", bias=0.0, weights={}, centres={}, order=order, models=frozenset())
    firsts = {row.digest + row.name for row in chosen(rows, flat).values()}
    weight = np.array([(1.0 if row.digest + row.name in firsts else OTHERS) * OF_HALF[row.half] for row in rows])
    y = np.array([float(row.right) for row in rows])
    kept = sorted({n for row in rows for n in row.signals} & set(EXPECTED))
    kept = [n for n, spread in zip(kept, matrix(rows, kept).std(axis=0), strict=True) if spread > 1e-9]
    while True:
        x, by_hand = matrix(rows, kept), np.array([EXPECTED[n] for n in kept])
        centres, spread = x.mean(axis=0), x.std(axis=0)
        expected = np.append(by_hand * spread, INTERCEPT + by_hand @ centres)
        beta, bias = fit_logistic((x - centres) / spread, y, weight, expected, l2=l2)
        turned = beta * by_hand < 0  # too few labels to turn round what a signal means
        if not turned.any():
            break
        kept = [n for n, t in zip(kept, turned, strict=True) if not t]
    return ConfidenceModel(
        name=name,
        bias=round(bias, 4),
        weights={
            **{n: round(float(b / s), 4) for n, b, s in zip(kept, beta, spread, strict=True)},
            **{name: weight for name, (weight, _) in BY_HAND.items()},
        },
        centres={
            **{n: round(float(c), 4) for n, c in zip(kept, centres, strict=True)},
            **{name: centre for name, (_, centre) in BY_HAND.items()},
        },
        order=order,
        models=frozenset(models),
    )


def _signals(row: Row) -> dict[str, Signal]:
    return {name: Signal(value=value) for name, value in row.signals.items()}


def chosen(rows: Sequence[Row], model: ConfidenceModel) -> dict[str, Row]:
    """What the order takes of each project: the cheapest that the full check lets pass, as far as that is known.

    With `near-rival` as `fix` has it: whether another behaviour costs hardly more.
    """
    found = {}
    for name, group in by_name(rows).items():
        costs = {r.digest: r.cost + model.penalty(_signals(r)) for r in group if r.full is not False}
        ranked = sorted((r for r in group if r.digest in costs), key=lambda r: costs[r.digest])
        if ranked:
            first = ranked[0]
            near = [r for r in ranked if costs[r.digest] < costs[first.digest] + NEAR_NATS]
            rival = float(any(r.behaviour != first.behaviour for r in near))
            found[name] = replace(first, signals={**first.signals, "near-rival": rival})
    return found


def probability(row: Row, model: ConfidenceModel) -> float:
    """As `fix` has it."""
    return model.judge(_signals(row), language_model="").probability


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """What is chosen of one project, how likely that is right, whether it is, and whether a right one was found."""

    group: str
    probability: float
    right: bool
    possible: bool


def judge(rows: Sequence[Row], model_of: Callable[[str], ConfidenceModel]) -> list[Judged]:
    """One for each project; `model_of` gives the weights for a group of projects."""
    out = []
    every = by_name(rows)
    for name, group in every.items():
        if group[0].asks:
            continue
        model = model_of(group[0].group)
        taken = chosen(group, model).get(name)
        if taken is not None:
            out.append(
                Judged(
                    group=taken.group,
                    probability=probability(taken, model),
                    right=taken.right,
                    possible=any(r.right for r in group),
                )
            )
    return out


def interval(found: Sequence[Judged], of: Callable[[Sequence[Judged]], float], seed: int = 0) -> tuple[float, float]:
    """The middle 95 % of a figure when projects are drawn anew."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in found:
        groups[one.group].append(one)
    names, chance = sorted(groups), random.Random(seed)
    values = []
    for _ in range(_RESAMPLED):
        drawn = [one for _ in names for one in groups[chance.choice(names)]]
        value = of(drawn)
        if not math.isnan(value):
            values.append(value)
    values.sort()
    return (values[int(0.025 * len(values))], values[int(0.975 * len(values)) - 1]) if values else (math.nan, math.nan)


def precision(at: float) -> Callable[[Sequence[Judged]], float]:
    """Right ones among those accepted at a threshold."""

    def of(found: Sequence[Judged]) -> float:
        taken = [one.right for one in found if one.probability >= at]
        return sum(taken) / len(taken) if taken else math.nan

    return of


def kept(at: float) -> Callable[[Sequence[Judged]], float]:
    """Right ones that are accepted, among projects for which a right one was found."""

    def of(found: Sequence[Judged]) -> float:
        possible = [one for one in found if one.possible]
        return sum(one.right and one.probability >= at for one in possible) / len(possible) if possible else math.nan

    return of


def calibration_error(found: Sequence[Judged], bins: int = 5) -> float:
    """Expected calibration error over bins of equal size, by what is chosen."""
    ranked = sorted(found, key=lambda one: one.probability)
    if not ranked:
        return math.nan
    parts = [ranked[k * len(ranked) // bins : (k + 1) * len(ranked) // bins] for k in range(bins)]
    return sum(
        len(p) / len(ranked) * abs(sum(x.probability for x in p) / len(p) - sum(x.right for x in p) / len(p))
        for p in parts
        if p
    )


def chance_error(found: Sequence[Judged], seed: int = 0) -> tuple[float, float]:
    """The calibration error of a figure that is exactly right, on as many: its mean, and what 95 of 100 stay below."""
    chance = random.Random(seed)
    errors = sorted(
        calibration_error([replace(one, right=chance.random() < one.probability) for one in found])
        for _ in range(_RESAMPLED // 4)
    )
    return sum(errors) / len(errors), errors[int(0.95 * len(errors))]


def show(title: str, found: Sequence[Judged]) -> None:
    """A table for people."""
    possible = [one for one in found if one.possible]
    first = sum(one.right for one in possible)
    print(f"{title}: {len(found)} projects with a plausible patch, {len(possible)} of them with a right one")
    print(f"  the first is right: {first} of {len(possible)}; of all {sum(o.right for o in found)} of {len(found)}")
    mean, most = chance_error(found)
    error = calibration_error(found)
    print(f"  calibration error {error:.3f} (of chance alone, on so few: {mean:.3f}, rarely more than {most:.3f})")
    for at in AT:
        taken = [one for one in found if one.probability >= at]
        low, high = interval(found, precision(at))
        low2, high2 = interval(found, kept(at))
        print(
            f"  at {at:.2f}: {sum(o.right for o in taken)} right of {len(taken)} accepted"
            f" = {precision(at)(found):.2f} [{low:.2f}, {high:.2f}];"
            f" right ones kept {kept(at)(found):.2f} [{low2:.2f}, {high2:.2f}]"
        )


def as_json(model: ConfidenceModel) -> str:
    """The file."""
    told: dict[str, Any] = {
        "schema": SCHEMA,
        "name": model.name,
        "bias": model.bias,
        "models": sorted(model.models),
        "order": dict(sorted(model.order.items())),
        "weights": dict(sorted(model.weights.items())),
        "centres": dict(sorted(model.centres.items())),
    }
    return json.dumps(told, indent=1) + "\n"


def main() -> int:
    """0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--judge", type=Path, metavar="FILE")
    parser.add_argument("--name", default="right-4")
    parser.add_argument("--model", action="append", default=[], metavar="DIGEST", help='of a language model; "": none')
    parser.add_argument("--l2", type=float, default=15.0)
    parser.add_argument("--l2-order", type=float, default=2.0)
    args = parser.parse_args()
    rows = read(args.labels)
    if args.judge:
        model = load_confidence(args.judge)
        show("judging half", judge([r for r in rows if r.half == "judging"], lambda _: model))
        return 0
    learning = [r for r in rows if r.half != "judging"]

    def fitted(some: Sequence[Row]) -> ConfidenceModel:
        return fit(some, name=args.name, models=args.model, l2=args.l2, l2_order=args.l2_order)

    groups = sorted({r.group for r in learning})
    random.Random(0).shuffle(groups)
    fold = {group: n % _FOLDS for n, group in enumerate(groups)}
    without: dict[int, ConfidenceModel] = {}

    def model_of(group: str) -> ConfidenceModel:
        """Fitted without the projects of its fold."""
        n = fold[group]
        if n not in without:
            without[n] = fitted([r for r in learning if fold[r.group] != n])
        return without[n]

    for half in ("learning", "faults", "small", "mutated", "syntax"):
        some = [r for r in learning if r.half == half]
        by_hand = ConfidenceModel(name="", bias=0.0, weights={}, centres={}, order={}, models=frozenset())
        before = judge(some, lambda _, hand=by_hand: hand)  # type: ignore[misc]
        print(f"{half}: by the hand's order the first is right in {sum(x.right for x in before)} of {len(before)}")
        show(f"{half}, each project judged by weights that did not see it", judge(some, model_of))
    show("all of these together", judge(learning, model_of))
    if args.write:
        args.write.write_text(as_json(fitted(learning)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
