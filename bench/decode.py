"""Batched scoring of continuations on one prefix, beside the same through llama-cpp-python's `Llama` with prefix reuse.

  decode.py                    96 continuations, 5 rounds in turn, the same thread count; exit 1 where a bar is missed
  decode.py --threads 2 --rounds 9
  decode.py --public           beside the public call that answers log-probabilities: one continuation takes a minute

Both sides score every token of every continuation, the prefix being in the cache already. `Llama` is called by its
cheapest way (`eval` of the continuation alone, rows read from `scores`). Ours runs in the product's confined child, so
pipe and jail count. Bars: 8 times as fast (median of the rounds' ratios), the child at most 450 MB resident. Load is
printed: a ratio of two sides measured in turn bears it better than seconds do, but not any load.
"""

import argparse
import math
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from localagent.app import Settings
from localagent.jail.open import open_jail
from localagent.llm.branches import Branch, Row
from localagent.llm.decoder import ModelDecoder
from localagent.llm.registry import Registry
from localagent.llm.scorer import ModelScorer

RATIO_BAR = 8.0
MEMORY_BAR_BYTES = 450 << 20
_NAMES = ("line", "value", "name", "rows", "fields", "total", "self.path", "other")
_ENDS = (
    ".strip()",
    ".split(',')",
    "[1:]",
    " + 1",
    ".lower()",
    "[0]",
    " or ''",
    ".get(name)",
    " % 7",
    "(value)",
    "",
    ".rows",
)


def prefix_text() -> bytes:
    """A real piece of Python of some 700 tokens, which ends where a value is wanted."""
    source = Path(__file__).read_bytes()[:2600]
    return source[: source.rfind(b"\n")] + b"\n\n\ndef parse(line, rows, fields):\n    value ="


def batched(decoder: ModelDecoder, prefix: list[int], continuations: list[list[int]]) -> list[float]:
    """Log-probability of each continuation, all through one request."""
    branches = [
        Branch(
            at=len(prefix),
            tokens=tuple(tokens[:-1]),
            rows=tuple(Row(index=k - 1, asked=(token,)) for k, token in enumerate(tokens)),
        )
        for tokens in continuations
    ]
    answers = decoder.grow(prefix, branches, timeout_seconds=300)
    if answers is None:
        raise SystemExit("decode: the child did not answer")
    return [sum(asked[0] for _, asked in rows) for rows in answers]


class HighLevel:
    """The same through `Llama`: the prefix stays in its cache, continuations are evaluated one after the other."""

    def __init__(self, path: Path, threads: int) -> None:
        from llama_cpp import Llama  # noqa: PLC0415 - the package with its front end, in this process only

        self.llama = Llama(
            str(path),
            n_ctx=1536,
            n_batch=128,
            n_threads=threads,
            n_threads_batch=threads,
            logits_all=True,
            verbose=False,
        )

    def read(self, prefix: list[int]) -> None:
        """The prefix into the cache."""
        self.llama.reset()
        self.llama.eval(prefix)

    def score(self, prefix: list[int], continuations: list[list[int]]) -> list[float]:
        """Log-probability of each continuation."""
        out = []
        for tokens in continuations:
            self.llama.n_tokens = len(prefix)  # what `generate` does where a prompt begins as the last one did
            self.llama.eval(tokens)
            rows = self.llama.scores[len(prefix) - 1 : len(prefix) - 1 + len(tokens)]
            most = rows.max(axis=1)
            totals = most + np.log(np.exp(rows - most[:, None]).sum(axis=1))
            out.append(float(sum(rows[k, token] - totals[k] for k, token in enumerate(tokens))))
        return out

    def complete(self, prefix: bytes, continuation: bytes) -> None:
        """One of them through the public call that answers log-probabilities."""
        text = (prefix + continuation).decode()
        self.llama.create_completion(text, max_tokens=1, echo=True, logprobs=1, temperature=0.0)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--public", action="store_true")
    args = parser.parse_args()
    settings = Settings.from_environ()
    model = Registry(settings.models_dir, settings.data_dir).verify("")
    scorer = ModelScorer(model, open_jail(), threads=args.threads)
    decoder = ModelDecoder(scorer)
    texts = [f" {name}{end}\n".encode() for name in _NAMES for end in _ENDS]
    tokens = decoder.tokenize([prefix_text(), *texts], timeout_seconds=120)
    if tokens is None or model.path is None:
        raise SystemExit(f"decode: {scorer.warning}")
    prefix, continuations = tokens[0], tokens[1:]
    beside = HighLevel(model.path, args.threads)
    ratios, ours_best, theirs_best, apart = [], math.inf, math.inf, 0.0
    for number in range(args.rounds):
        fresh = prefix[number:]  # another beginning each round: both sides read the whole prefix anew
        beside.read(fresh)
        if decoder.grow(fresh, [Branch(at=1, tokens=(), rows=())], timeout_seconds=300) is None:
            raise SystemExit("decode: the child did not answer")
        begun = time.perf_counter()
        ours = batched(decoder, fresh, continuations)
        middle = time.perf_counter()
        theirs = beside.score(fresh, continuations)
        ended = time.perf_counter()
        ratios.append((ended - middle) / (middle - begun))
        ours_best, theirs_best = min(ours_best, middle - begun), min(theirs_best, ended - middle)
        apart = max(apart, statistics.median(abs(a - b) for a, b in zip(ours, theirs, strict=True)))
        print(
            f"round {number}: ours {middle - begun:.2f} s, Llama {ended - middle:.2f} s, {ratios[-1]:.1f} times",
            flush=True,
        )
    if args.public:
        begun = time.perf_counter()
        beside.complete(prefix_text(), texts[0])
        one = time.perf_counter() - begun
        print(f"create_completion(echo, logprobs): {one:.1f} s for one, {one * len(texts) / ours_best:.0f} times ours")
    ratio, resident = statistics.median(ratios), scorer.resident_bytes
    scorer.close()
    total = sum(map(len, continuations))
    print(
        f"{len(continuations)} continuations of {total} tokens on a prefix of {len(prefix)}, {args.threads} thread(s): "
        f"{ratio:.1f} times as fast (bar {RATIO_BAR:g}); answers apart by {apart:.2f} nats (worst round's median); "
        f"child {resident >> 20} MiB (bar {MEMORY_BAR_BYTES >> 20}); load {os.getloadavg()[0]:.1f}"
    )
    return 0 if ratio >= RATIO_BAR and resident <= MEMORY_BAR_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
