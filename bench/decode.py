"""Batched decoding in the product's confined child, beside the same through llama-cpp-python's `Llama`.

  decode.py                    both workloads below, side by side on one thread; exit 1 where a bar is missed
  decode.py --threads 2 --rounds 9 --only flat
  decode.py --registered       the registered file on both sides, not the one that `model tune` made of it
  decode.py --public           beside the public call that answers log-probabilities: one continuation takes a minute

`flat`: 96 continuations of one prefix, each scored whole. `search`: the questions that a span search really asks on a
bug of the built-in set, where each builds on branches of earlier ones. Both sides get the same file, the same threads,
the same prefix in the cache already, and the same rows to answer. `Llama` is used as cheaply as it can be: the longest
beginning that it still has is never decoded again (as its `generate` reuses it), branches come in the order in which
they share most, rows that it keeps are read where they lie, and what needs no decoding is not. Ours goes through pipe,
jail and frames. Bars: 8 times as fast (median of the rounds) on both, the child at most 450 MB resident.
Answers differ because kernels round by the number of tokens decoded at once; `Llama` beside itself, decoding token by
token, says how much. Processor seconds are compared, the clock's stand in brackets: the child is nicer to others than
this process, so on a busy machine the clock says more about the others. Load is printed.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from localagent.app import Settings
from localagent.app.fix.edit_writers import open_writer
from localagent.app.models.bench import load_bugs
from localagent.domain.edit import SPAN
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Suspicion, Task
from localagent.jail.api import open_jail
from localagent.llm.model.quantized_store import serving
from localagent.llm.model.registry import Registry
from localagent.llm.process.protocol import CONTEXT_TOKENS, Message
from localagent.llm.process.shared_prefix import Branch, LogitRow
from localagent.llm.scoring.decoder import ModelDecoder
from localagent.llm.scoring.scorer import ModelScorer
from localagent.repair.ordering.weights import load_weights

RATIO_BAR = 8.0
MEMORY_BAR_BYTES = 450 << 20
_SECONDS = 300.0
_STEPS = 12
_BUG = "price-label"
_NAMES = ("line", "value", "name", "rows", "fields", "total", "self.path", "other")
_ENDS = (".strip()", ".split(',')", "[1:]", " + 1", ".lower()", "[0]", " or ''", ".get(name)", " % 7", "(value)")
_TEXTS = [f" {name}{end}\n".encode() for name in _NAMES for end in (*_ENDS, "", ".rows")]

# per branch and row: log-probabilities of the asked tokens
Answers = list[list[tuple[float, ...]]]


class Question(NamedTuple):
    """One request: what continues which trunk."""

    trunk: list[int]
    branches: list[Branch]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Questions on one trunk, asked one after the other."""

    name: str
    questions: list[Question]

    @property
    def rows(self) -> int:
        """Distributions that are asked for."""
        return sum(len(branch.rows) for question in self.questions for branch in question.branches)


class Recording(ModelScorer):
    """Keeps what was asked to grow."""

    asked: list[Question]

    def exchange(self, request: Message, *args: object, **more: object) -> Iterator[Message]:  # type: ignore[override]
        if request["kind"] == "grow":
            branches = [
                Branch(
                    at=at,
                    tokens=tuple(tokens),
                    rows=tuple(LogitRow(index=i, top=t, asked=tuple(a)) for i, t, a in rows),
                )
                for at, tokens, rows in request["branches"]
            ]
            self.asked.append(Question(request["trunk"], branches))
        yield from super().exchange(request, *args, **more)  # type: ignore[arg-type]


def prefix_text() -> bytes:
    """A real piece of Python of some 700 tokens, which ends where a value is wanted."""
    source = Path(__file__).read_bytes()[:2600]
    return source[: source.rfind(b"\n")] + b"\n\n\ndef parse(line, rows, fields):\n    value ="


def flat(decoder: ModelDecoder) -> Workload:
    """Continuations, each scored whole; the last token of each is asked for and not decoded."""
    told = decoder.tokenize([prefix_text(), *_TEXTS], timeout_seconds=120)
    if told is None:
        raise SystemExit("decode: the child did not answer")
    prefix, *texts = told
    branches = [
        Branch(
            at=len(prefix),
            tokens=tuple(tokens[:-1]),
            rows=tuple(LogitRow(index=k - 1, asked=(token,)) for k, token in enumerate(tokens)),
        )
        for tokens in texts
    ]
    return Workload(name="flat", questions=[Question(prefix, branches)])


def search(scorer: Recording, settings: Settings) -> Workload:
    """What a span search at a known place asks in its first steps."""
    bug = next(bug for bug in load_bugs(settings.models_dir) if bug.id == _BUG)
    path = RepoPath(bug.path)
    sources = {path: bug.before.encode(), RepoPath("tests/test_it.py"): bug.tests.encode()}
    task = Task(id="", repo="", tests=(), checks=(), text="", python="", seed=0, budget=Budget())
    weights = load_weights(settings.models_dir / "order.json")
    writer = open_writer(scorer, (SPAN,), weights, sources, task, tests=bug.tests)
    place = Suspicion(path=path, line=bug.line, end_line=bug.line, score=1.0)
    writer.begin(sources, (place,), Baseline(tests=(), failing=(), passing=()))
    scorer.asked = []
    for _ in range(_STEPS):
        writer.more(timeout_seconds=_SECONDS)
    return Workload(name="search", questions=[q for q in scorer.asked if q.trunk == scorer.asked[0].trunk])


def ours(decoder: ModelDecoder, work: Workload) -> Answers:
    """Each question in one request."""
    out: Answers = []
    for trunk, branches in work.questions:
        told = decoder.grow(trunk, branches, timeout_seconds=_SECONDS)
        if told is None:
            raise SystemExit("decode: the child did not answer")
        out += [[asked for _, asked in rows] for rows in told]
    return out


class HighLevel:
    """The same through `Llama`, which holds one text at a time."""

    def __init__(self, path: Path, threads: int) -> None:
        from llama_cpp import Llama  # noqa: PLC0415 - the package with its front end, in this process only

        self.llama = Llama(
            str(path),
            n_ctx=CONTEXT_TOKENS,
            n_batch=128,
            n_threads=threads,
            n_threads_batch=threads,
            logits_all=True,
            verbose=False,
        )

    def read(self, tokens: Sequence[int], at_once: int = 128) -> None:
        """What follows the longest beginning that is there already into the cache."""
        llama, keep = self.llama, 0
        for known, token in zip(llama.input_ids[: llama.n_tokens].tolist(), tokens, strict=False):
            if known != token:
                break
            keep += 1
        llama.n_tokens = keep
        for start in range(keep, len(tokens), at_once):
            llama.eval(tokens[start : start + at_once])

    def answer(self, work: Workload, at_once: int = 128) -> Answers:
        """All rows, in the order of the questions."""
        out: Answers = []
        for trunk, branches in work.questions:
            told: dict[int, list[tuple[float, ...]]] = {}
            for which in sorted(range(len(branches)), key=lambda k: (*trunk[: branches[k].at], *branches[k].tokens)):
                branch = branches[which]
                last = max((row.index for row in branch.rows), default=-1) + 1
                self.read([*trunk[: branch.at], *branch.tokens[:last]], at_once)
                told[which] = [self._row(branch.at + row.index, row) for row in branch.rows]
            out += [told[k] for k in range(len(branches))]
        return out

    def _row(self, at: int, row: LogitRow) -> tuple[float, ...]:
        logits: NDArray[np.float32] = self.llama.scores[at]
        most = float(logits.max())
        total = most + float(np.log(np.exp(logits - most).sum(dtype=np.float64)))
        if row.top:
            ids = np.argpartition(logits, -row.top)[-row.top :]
            ids = ids[np.lexsort((ids, -logits[ids]))]
        return tuple(float(logits[token]) - total for token in row.asked)

    def complete(self, prefix: bytes, continuation: bytes) -> None:
        """One of them through the public call that answers log-probabilities."""
        text = (prefix + continuation).decode()
        self.llama.create_completion(text, max_tokens=1, echo=True, logprobs=1, temperature=0.0)


def apart(one: Answers, other: Answers) -> tuple[float, float]:
    """Median and largest difference of what was asked, in nats."""
    found = [
        abs(a - b)
        for rows, others in zip(one, other, strict=True)
        for row, also in zip(rows, others, strict=True)
        for a, b in zip(row, also, strict=True)
    ]
    return statistics.median(found), max(found)


def shifted(work: Workload, by: int) -> Workload:
    """The same with another beginning, so that nothing of a round before is in any cache."""
    questions = [
        Question(q.trunk[by:], [Branch(at=b.at - by, tokens=b.tokens, rows=b.rows) for b in q.branches])
        for q in work.questions
    ]
    return Workload(name=work.name, questions=questions)


def busy() -> float:
    """Processor seconds of this process and of everything below it, the confined child among them."""
    below = psutil.Process().children(recursive=True)
    return time.process_time() + sum(sum(one.cpu_times()[:2]) for one in below)


def measure(decoder: ModelDecoder, beside: HighLevel, work: Workload, rounds: int) -> float:
    """The median ratio; a line for each round."""
    ratios = []
    for number in range(rounds):
        fresh = shifted(work, number)
        trunk = fresh.questions[0].trunk
        beside.llama.reset()
        beside.read(trunk)
        if decoder.grow(trunk, [Branch(at=1, tokens=(), rows=())], timeout_seconds=_SECONDS) is None:
            raise SystemExit("decode: the child did not answer")
        before, begun, cost = decoder.tokens_used, time.perf_counter(), busy()
        own = ours(decoder, fresh)
        middle, between, spent = time.perf_counter(), busy(), decoder.tokens_used - before
        other = beside.answer(fresh)
        ended, after = time.perf_counter(), busy()
        ratios.append((after - between) / (between - cost))
        print(
            f"{work.name} {number}: ours {between - cost:.2f} ({middle - begun:.2f} s, {spent} tokens),"
            f" Llama {after - between:.2f} ({ended - middle:.2f} s): {ratios[-1]:.1f} times;"
            f" apart by %.3f nats (median), %.2f at most" % apart(own, other),
            flush=True,
        )
    few = Workload(name=work.name, questions=[Question(q.trunk, q.branches[:8]) for q in work.questions[:1]])
    together = beside.answer(few)
    beside.read(few.questions[0].trunk[:-1])
    beside.llama.n_tokens = len(few.questions[0].trunk) - 1
    alone = apart(together, beside.answer(few, 1))
    print(f"{work.name}: {work.rows} rows; Llama beside itself, token by token: apart by %.3f, %.2f at most" % alone)
    return statistics.median(ratios)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=["flat", "search"])
    parser.add_argument("--registered", action="store_true")
    parser.add_argument("--public", action="store_true")
    args = parser.parse_args()
    settings = Settings.from_environ()
    registered = Registry(settings.models_dir, settings.data_dir).verify("")
    model = registered if args.registered else serving(registered, settings.data_dir)
    if model.path is None:
        raise SystemExit("decode: the model's file is not installed")
    scorer = Recording(model, open_jail(), threads=args.threads)
    scorer.asked = []
    decoder = ModelDecoder(scorer)
    works = [flat(decoder)] * (args.only != "search")
    works += [search(scorer, settings)] if args.only != "flat" else []
    beside = HighLevel(model.path, args.threads)
    ratios = {work.name: measure(decoder, beside, work, args.rounds) for work in works}
    if args.public:
        begun = time.perf_counter()
        beside.complete(prefix_text(), _TEXTS[0])
        print(f"create_completion(echo, logprobs): {time.perf_counter() - begun:.1f} s for one continuation")
    resident = scorer.resident_bytes
    scorer.close()
    told = ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items())
    print(
        f"{model.quantization}, {args.threads} thread(s), times as fast: {told} (bar {RATIO_BAR:g}); "
        f"child {resident >> 20} MiB (bar {MEMORY_BAR_BYTES >> 20}); load {os.getloadavg()[0]:.1f}"
    )
    return 0 if min(ratios.values()) >= RATIO_BAR and resident <= MEMORY_BAR_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
