"""What decoding two tasks' order requests in one `llama_decode` would bring, and whether each keeps its numbers.

  company.py                   the bundled model, two texts of 128 tokens and of odd lengths; 5 rounds in turn
  company.py --threads 2 --rounds 9

A: two texts one after the other, each in a sequence of its own, as the child does now. B: both in one call, with a
cache for each sequence and with one for both. Told: processor seconds of both ways, which other work on the machine
alters least, and how many of the rows of logits are the
same bytes as those of the text alone. See docs/adr/0036-tasks-take-turns-in-the-model.md.
"""

import argparse
import ctypes
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from localagent.app import Settings
from localagent.llm.model.quantized_store import serving
from localagent.llm.model.registry import Registry
from localagent.llm.process.llama_engine import bindings

CONTEXT_TOKENS = 512
LENGTHS = ((128, 128), (128, 77), (77, 77), (37, 21))


class Room:
    """A context for two sequences."""

    def __init__(self, llama: Any, model: Any, *, threads: int, unified: bool) -> None:
        params = llama.llama_context_default_params()
        params.n_ctx = CONTEXT_TOKENS * 2
        params.n_batch = params.n_ubatch = 256
        params.n_seq_max = 2
        params.kv_unified = unified
        params.n_threads = params.n_threads_batch = threads
        params.no_perf = True
        self._llama, self._context = llama, llama.llama_init_from_model(model, params)
        self._batch = llama.llama_batch_init(256, 0, 1)
        self._size = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))

    def decode(self, *texts: tuple[int, list[int]]) -> tuple[float, list[np.ndarray]]:
        """Processor seconds, and each text's rows of logits, of (sequence, tokens) decoded at once."""
        self._llama.llama_memory_clear(self._llama.llama_get_memory(self._context), True)
        slots = [(sequence, at, token) for sequence, text in texts for at, token in enumerate(text)]
        self._batch.n_tokens = len(slots)
        for slot, (sequence, at, token) in enumerate(slots):
            self._batch.token[slot], self._batch.pos[slot] = token, at
            self._batch.n_seq_id[slot], self._batch.seq_id[slot][0] = 1, sequence
            self._batch.logits[slot] = True
        began = time.process_time()
        if self._llama.llama_decode(self._context, self._batch) != 0:
            raise SystemExit("llama.cpp does not decode")
        rows = [self._row(slot) for slot in range(len(slots))]
        seconds = time.process_time() - began
        found, at = [], 0
        for _, text in texts:
            found.append(np.stack(rows[at : at + len(text)]))
            at += len(text)
        return seconds, found

    def _row(self, slot: int) -> np.ndarray:
        pointer = self._llama.llama_get_logits_ith(self._context, slot)
        return np.ctypeslib.as_array(pointer, shape=(self._size,)).copy()


def loaded(path: Path) -> tuple[Any, Any]:
    """The bindings and a model."""
    llama = bindings()
    silent = llama.llama_log_callback(lambda _level, _text, _data: None)
    llama.llama_log_set(silent, ctypes.c_void_p(0))
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
    loaded.kept = silent  # type: ignore[attr-defined] - llama.cpp calls it for as long as we live
    return llama, model


def tokens_of(llama: Any, model: Any, path: Path) -> list[int]:
    text = path.read_bytes()[:4000]
    room = (ctypes.c_int32 * 4000)()
    count = llama.llama_tokenize(llama.llama_model_get_vocab(model), text, len(text), room, 4000, False, False)
    return list(room[:count])


def pair(text: str) -> tuple[int, int]:
    """Two lengths."""
    one, _, two = text.partition(",")
    return int(one), int(two)


def measure(llama: Any, model: Any, args: argparse.Namespace, *, unified: bool) -> None:
    room = Room(llama, model, threads=args.threads, unified=unified)
    one = tokens_of(llama, model, Path(__file__))
    two = tokens_of(llama, model, Path(__file__).with_name("decode.py"))
    for first, second in args.lengths:
        a, b = (0, one[:first]), (1, two[:second])
        turns, together = [], []
        for _ in range(args.rounds):
            (s1, (alone_a,)), (s2, (alone_b,)) = room.decode(a), room.decode(b)
            turns.append(s1 + s2)
            seconds, (both_a, both_b) = room.decode(a, b)
            together.append(seconds)
        ratio = statistics.median(x / y for x, y in zip(turns, together, strict=True))
        same = sum(bool((x == y).all()) for x, y in zip((*alone_a, *alone_b), (*both_a, *both_b), strict=True))
        furthest = max(float(np.abs(alone_a - both_a).max()), float(np.abs(alone_b - both_b).max()))
        print(
            f"{'one cache for both' if unified else 'a cache for each'}: {first} and {second} tokens: in turn "
            f"{statistics.median(turns):.3f} s, together {statistics.median(together):.3f} s, ratio {ratio:.2f}; "
            f"{same} of {first + second} rows the same bytes, furthest apart {furthest:.4f}",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lengths", type=pair, nargs="+", default=LENGTHS, metavar="A,B", help="tokens, at most 128")
    parser.add_argument("--model", type=Path, help="a GGUF file; default: the one that serves on this machine")
    args = parser.parse_args()
    settings = Settings.from_environ()
    path = args.model
    if path is None:
        registered = Registry(settings.models_dir, settings.data_dir).resolve("")
        path = serving(registered, settings.data_dir).path
    llama, model = loaded(path)
    print(f"{path.name}; {args.threads} threads; load {os.getloadavg()[0]:.1f}")
    for unified in (False, True):
        measure(llama, model, args, unified=unified)
    return 0


if __name__ == "__main__":
    sys.exit(main())
