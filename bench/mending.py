"""What the mender and the learned order are worth: ranks of mined fixes by the hand's order, and with each and both.

`localagent train --from CLONE... --preset ranker` first, which keeps its samples in the data directory; then
`python bench/mending.py [--only PROJECT...] [--most 0] [--every N] [--seconds 120] [--json FILE]`. No line is more
suspicious than another, and nothing runs; in front of a source stands its path alone. With `--most` so many edits of
the order of all three are then read on by the mender, as where tests are slow (docs/adr/0054-the-mender-reads-on.md).
The bundled mender learned from other projects than those of `bench/real`: name these with `--only`
(docs/adr/0046-the-model-mends.md).
The shares are those of `models/order.json`, the learned order the bundled one, which learned from other projects, too.
Printed: the median rank of the true edit among all that are open, and the share among the first 10, 50 and 100. Fixes
whose edit is not among those that `train` keeps of a function (the first 3,000) are counted and left out.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "bench"))

from onward import permuted, samples  # noqa: E402

from localagent.app.jail_level import least_level  # noqa: E402
from localagent.app.settings import Settings as House  # noqa: E402
from localagent.jail.api import open_jail  # noqa: E402
from localagent.llm.model.quantized_store import serving  # noqa: E402
from localagent.llm.model.registry import Registry  # noqa: E402
from localagent.llm.scoring.continuation_score import ModelOnward  # noqa: E402
from localagent.llm.scoring.decoder import ModelDecoder  # noqa: E402
from localagent.llm.scoring.scorer import ModelScorer  # noqa: E402
from localagent.repair.ordering.ranker import load_ranker  # noqa: E402
from localagent.repair.ordering.weights import load_weights, mended_value  # noqa: E402
from localagent.training.ranker_judging import figures, rank, scored  # noqa: E402


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="PROJECT", help="fixes of these projects alone")
    parser.add_argument("--most", type=int, default=0, help="edits of the whole order that are read on")
    parser.add_argument("--every", type=int, default=1, help="every Nth fix")
    parser.add_argument("--seconds", type=float, default=120.0, help="for one fix")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    house = House.from_environ()
    wanted = {name.replace("-", "_") for name in args.only}
    real = [x for x in samples(house) if x[0].kind == "real" and (not wanted or _project(x[0].origin) in wanted)]
    beyond = sum(not numbers.truth for _, numbers in real)
    real = [x for x in real if x[1].truth][:: args.every]
    if not real:
        print("no samples: run `localagent train --from CLONE... --preset ranker` first", file=sys.stderr)
        return 2
    weights = load_weights(house.models_dir / "order.json")
    model = serving(Registry(house.models_dir, house.data_dir).default(), house.data_dir)
    scorer = ModelScorer(model, open_jail(least=least_level(house)), threads=1)
    ranker = load_ranker(house.models_dir / "ranker.json")
    assert ranker is not None
    onward = ModelOnward(ModelDecoder(scorer), scorer)
    ranks: dict[str, list[int]] = {"hand": [], "learned": [], "mended": [], "learned and mended": []}
    if args.most:
        ranks["and read on"] = []
    began = time.monotonic()
    for k, (sample, numbers) in enumerate(real, 1):
        nats = scorer.mend(sample.source, f"# {sample.path}\n", sample.edits, timeout_seconds=args.seconds)
        learned = weights.learned * scored(ranker.with_model, numbers)
        mended = np.array([mended_value(each, weights) for each in nats])
        for name, more in zip(ranks, (0.0, learned, mended, learned + mended), strict=False):
            ranks[name].append(rank(numbers, numbers.hand + more))
        if args.most:
            scores = numbers.hand + learned + mended
            read = [int(n) for n in np.argsort(-scores, kind="stable")[: args.most]]
            told = onward.read_on(sample.source, [sample.edits[n] for n in read], timeout_seconds=args.seconds)
            ranks["and read on"].append(rank(numbers, permuted(scores, read, told)))
        if not scorer.mends:
            print(scorer.warning or scorer.remark or f"{model.name} has no mender", file=sys.stderr)
            return 1
        if k % 10 == 0:
            print(f"{k} of {len(real)}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    scorer.close()
    print(f"{len(real)} fixes ({beyond} more lie beyond what is open); earlier and later than in the hand's order")
    for name, some in ranks.items():
        pairs = list(zip(ranks["hand"], some, strict=True))
        earlier, later = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
        figure = figures(some)
        shares = "  ".join(f"{figure[f'first-{n}']:6.1%}" for n in (10, 50, 100))
        print(f"{name:20} median {figure['median']:7.1f}   first 10, 50, 100  {shares}   {earlier:4} {later:4}")
    if args.json:
        args.json.write_text(json.dumps(ranks, indent=1))
    return 0


def _project(origin: str) -> str:
    """The name of the clone that a sample is from: `NAME.git-DIGEST@COMMIT` or `NAME-DIGEST@COMMIT`."""
    return origin.partition("@")[0].rpartition("-")[0].removesuffix(".git").replace("-", "_")


if __name__ == "__main__":
    sys.exit(main())
