"""What reading the likeliest edits on is worth: ranks of mined fixes after the first pass, and with it.

`localagent train --from CLONE... --preset ranker` first, which keeps its samples in the data directory; then
`python bench/onward.py [--most 100] [--every N] [--seconds 120] [--json FILE]`. No line is more suspicious than
another, and nothing runs. `learned` is the order that `train` would keep, learned from other projects than the fix's.
Printed: the median rank of the true edit among all that are open, and the share among the first 10, 50 and 100.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localagent.app.jail_level import least_level  # noqa: E402
from localagent.app.settings import Settings as House  # noqa: E402
from localagent.domain.edit import digest_of  # noqa: E402
from localagent.jail.api import open_jail  # noqa: E402
from localagent.llm.model.quantized_store import serving  # noqa: E402
from localagent.llm.model.registry import Registry  # noqa: E402
from localagent.llm.scoring.continuation_score import ModelOnward  # noqa: E402
from localagent.llm.scoring.decoder import ModelDecoder  # noqa: E402
from localagent.llm.scoring.scorer import ModelScorer  # noqa: E402
from localagent.repair.ordering.ranker_features import Matrix  # noqa: E402
from localagent.repair.ordering.weights import load_weights  # noqa: E402
from localagent.training.ranker_corpus import Corpus  # noqa: E402
from localagent.training.ranker_judging import FOLDS, figures, fold_of, rank, scored  # noqa: E402
from localagent.training.ranker_learning import Listed, RankerSettings, learn, listed  # noqa: E402
from localagent.training.ranker_run import SAMPLES  # noqa: E402
from localagent.training.ranker_samples import Sample  # noqa: E402

Read = tuple[Sample, Listed]


def samples(house: House) -> list[Read]:
    """All that a model has read, each source once."""
    weights = load_weights(house.models_dir / "order.json")
    found: dict[tuple[str, str], Read] = {}
    for folder in sorted((house.data_dir / SAMPLES).glob("*/")):
        for _, sample in Corpus(repo=folder, folder=folder).samples():
            if any(r is not None for r in sample.readings):
                found.setdefault((sample.path, digest_of(sample.source)), (sample, listed(sample, weights)[0]))
    return list(found.values())


def permuted(scores: Matrix, read: Sequence[int], nats: Sequence[float | None]) -> Matrix:
    """The scores of those that were read, shared out anew among them: the search's rule, with its weight."""
    known = [(k, n) for k, n in zip(read, nats, strict=True) if n is not None]
    at = np.array([k for k, _ in known], dtype=np.int64)
    worth = scores[at] + np.array([min(0.0, n) for _, n in known])
    out = scores.copy()
    out[at[np.argsort(-worth, kind="stable")]] = np.sort(scores[at])[::-1]
    return out


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=100, help="edits of each order that are read on")
    parser.add_argument("--every", type=int, default=1, help="every Nth fix")
    parser.add_argument("--seconds", type=float, default=120.0, help="for the reading of one fix")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    house = House.from_environ()
    found = samples(house)
    real = [x for x in found if x[0].kind == "real"][:: args.every]
    if not real:
        print("no samples: run `localagent train --from CLONE... --preset ranker` first", file=sys.stderr)
        return 2
    folds = {f: [s for x, s in found if x.truth and fold_of(s.group) != f] for f in range(FOLDS)}
    learned = {f: learn(some, RankerSettings(), with_model=True) for f, some in folds.items()}
    model = serving(Registry(house.models_dir, house.data_dir).default(), house.data_dir)
    scorer = ModelScorer(model, open_jail(least=least_level(house)), threads=1)
    onward = ModelOnward(ModelDecoder(scorer), scorer)
    ranks: dict[str, list[int]] = {}
    began = time.monotonic()
    for k, (sample, numbers) in enumerate(real, 1):
        for name, scores in (
            ("hand", numbers.hand),
            ("learned", numbers.hand + scored(learned[fold_of(numbers.group)], numbers)),
        ):
            read = [int(n) for n in np.argsort(-scores, kind="stable")[: args.most]]
            nats = onward.read_on(sample.source, [sample.edits[n] for n in read], timeout_seconds=args.seconds)
            ranks.setdefault(f"{name}, first pass", []).append(rank(numbers, scores))
            ranks.setdefault(f"{name}, read on", []).append(rank(numbers, permuted(scores, read, nats)))
        if scorer.warning:
            print(scorer.warning, file=sys.stderr)
            return 1
        if k % 10 == 0:
            print(f"{k} of {len(real)}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    scorer.close()
    print(f"{len(real)} fixes, the first {args.most} edits read on")
    for name, some in ranks.items():
        told = figures(some)
        shares = "  ".join(f"{told[f'first-{n}']:6.1%}" for n in (10, 50, 100))
        print(f"{name:22} median {told['median']:7.1f}   first 10, 50, 100  {shares}")
    if args.json:
        args.json.write_text(json.dumps(ranks, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
