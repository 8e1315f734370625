"""What the gates cost a candidate, beside bandit without any of our cutting and keeping, in the same run.

`python bench/gate.py [--candidates 400]`: real candidates of the edit space over a file of the standard library.
Processor time. Amortised is the mean of one chain over all of them, as `fix` uses it; cold is the first candidate of a
chain that has seen nothing, its opening not counted. Bars: 3 ms amortised, 15 ms cold, a fifth of bandit.
"""

import argparse
import importlib
import io
import statistics
import sys
import textwrap
import time
import warnings
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localagent.app.fix.prior import load_prior  # noqa: E402
from localagent.domain.edit import Candidate, FileChange, Patch  # noqa: E402
from localagent.domain.gate import Allow  # noqa: E402
from localagent.domain.outcome import Baseline  # noqa: E402
from localagent.domain.paths import RepoPath  # noqa: E402
from localagent.edit.space import open_edit_space  # noqa: E402
from localagent.gate.repair_gates import open_gate_chain  # noqa: E402
from localagent.policy.load import load_policy  # noqa: E402

PATH = RepoPath("pkg/wrap.py")


def candidates(source: bytes, most: int) -> list[Candidate]:
    """Edits spread over the whole file."""
    space = open_edit_space(load_prior(ROOT / "models" / "prior.json"))
    edits = list(space.edits(PATH, {PATH: source}, lines=None, failures=()))
    step = max(1, len(edits) // most)
    return [
        Candidate(
            number=n,
            patch=Patch(changes=(FileChange(path=PATH, before=source, after=edit.apply(source)),)),
            edits=(edit,),
            cost=0.0,
        )
        for n, edit in enumerate(edits[::step][:most], 1)
    ]


def plain_bandit() -> Callable[[bytes], int]:
    """Bandit over a whole source, in this process."""
    visitor = importlib.import_module("bandit.core.node_visitor").BanditNodeVisitor
    tests = importlib.import_module("bandit.core.test_set").BanditTestSet(
        importlib.import_module("bandit.core.config").BanditConfig()
    )
    metrics = importlib.import_module("bandit.core.metrics").Metrics()
    metrics.begin("./x.py")

    def look(source: bytes) -> int:
        made = visitor("./x.py", io.BytesIO(source), None, tests, False, {}, metrics)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.process(source)
        return len(made.tester.results)

    return look


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> int:
    """Measure and print; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=400)
    wanted = parser.parse_args().candidates
    source = Path(textwrap.__file__).read_bytes()
    made = candidates(source, wanted)
    policy = load_policy(ROOT / "policies" / "default.toml")
    base, sources = Baseline(tests=()), {PATH: source}
    open_gate_chain(policy, ()).review(made[0], base, sources)  # imports, and what Python keeps
    cold = []
    for candidate in made[:: max(1, len(made) // 25)]:
        chain = open_gate_chain(policy, ())
        cold.append(seconds(lambda c=candidate, g=chain: g.review(c, base, sources)))
    chain = open_gate_chain(policy, ())
    denied = 0
    start = time.process_time()
    for candidate in made:
        denied += list(chain.review(candidate, base, sources))[-1].answer is not Allow.ALLOW
    each = (time.process_time() - start) / len(made)
    bandit = plain_bandit()
    sample = made[:: max(1, len(made) // 40)]
    plain = statistics.mean(
        seconds(lambda c=c: (bandit(c.patch.changes[0].before), bandit(c.patch.changes[0].after))) for c in sample
    )
    middle = statistics.median(cold)
    print(f"{len(made)} candidates of {Path(textwrap.__file__).name}, {denied} denied")
    print(
        f"amortised {each * 1000:.2f} ms, cold {middle * 1000:.1f} ms (median of {len(cold)}), "
        f"bandit before and after {plain * 1000:.1f} ms: {plain / each:.0f} times as long"
    )
    return int(each > 0.003 or middle > 0.015 or plain < 5 * each)


if __name__ == "__main__":
    raise SystemExit(main())
