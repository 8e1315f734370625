"""Many continuations of one text, decoded together: the shared beginning lies in the KV cache once.

A `Grove` holds one trunk of tokens and branches that leave it anywhere. Branches share cells of a unified cache
(`llama_memory_seq_cp`), a whole batch of them goes through one `llama_decode`, and each row of logits is reduced at
once to the few numbers asked for. Runs in the confined child only. One build, thread count and series of requests give
one series of answers; the same branch in other company may differ by tenths of a nat.
"""

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localagent.errors import CannotEnforce
from localagent.llm.process.logits import log_total

BATCH_TOKENS = 128
SEQUENCES = 128  # resident at most, the trunk among them
GROUP = SEQUENCES // 2  # branches at once
BRANCH_CELLS = 1024  # of the cache, beside the trunk's: at least
MAX_TOP = 64


class ContextFull(Exception):  # noqa: N818
    """Trunk and branches do not fit into the context: nothing was cut, nothing was answered."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogitRow:
    """What is asked of the distribution that follows a branch's token `index` (-1: the trunk's last token used)."""

    index: int
    top: int = 0
    asked: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Branch:
    """Tokens that follow `trunk[:at]`, and what is asked along them. Rows are sorted by index."""

    at: int
    tokens: tuple[int, ...]
    rows: tuple[LogitRow, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class LogitReading:
    """The answer to one row: the likeliest tokens with log-probabilities, and those of the asked tokens; nats."""

    branch: int
    row: int
    top: tuple[tuple[int, float], ...]
    asked: tuple[float, ...]


class _Asking(NamedTuple):
    branch: int
    number: int
    row: LogitRow


class _Slot(NamedTuple):
    sequences: list[int]
    asked: list[_Asking]


def adapt(llama: Any, context: Any, adapter: Any) -> None:
    """Let a context use a loaded adapter at full weight, and no other; None: none at all."""
    count = 0 if adapter is None else 1
    adapters, scales = (llama.llama_adapter_lora_p_ctypes * 1)(adapter), (ctypes.c_float * 1)(1.0)
    if llama.llama_set_adapters_lora(context, adapters, count, scales) != 0:
        raise CannotEnforce("llama.cpp cannot use the adapter")


class Grove:
    """A context of its own beside the engine's, over the same weights."""

    def __init__(
        self,
        llama: Any,
        model: Any,
        *,
        threads: int,
        trunk_tokens: int,
        cancelled: Callable[[], bool],
        adapter: Any = None,
        branch_cells: int = BRANCH_CELLS,
    ) -> None:
        """`trunk_tokens` is the longest path, trunk and branch together; `adapter` what is loaded beside the model.

        `branch_cells` is the room of all branches that are resident at once.
        """
        self._llama = llama
        self._cancelled = cancelled
        self.path_tokens, self.branch_cells = trunk_tokens, branch_cells
        self._vocabulary = int(llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model)))
        params = llama.llama_context_default_params()
        params.n_ctx = trunk_tokens + branch_cells
        params.n_batch = params.n_ubatch = BATCH_TOKENS
        params.n_seq_max = SEQUENCES
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = True
        params.no_perf = True
        self._abort = llama.ggml_abort_callback(lambda _data: cancelled())
        params.abort_callback = self._abort
        self._context = llama.llama_init_from_model(model, params)
        if not self._context:
            raise CannotEnforce("llama.cpp cannot make room for a context of many sequences")
        self._adapter = adapter
        adapt(llama, self._context, adapter)
        self._memory = llama.llama_get_memory(self._context)
        self._batch = llama.llama_batch_init(BATCH_TOKENS, 0, SEQUENCES)
        self._parts = np.empty(self._vocabulary, dtype=np.float32)  # what a row is reduced in
        self._trunk: list[int] = []
        self._resident: OrderedDict[int, tuple[int, ...]] = OrderedDict()  # sequence -> its whole path
        self._rooted: dict[int, int] = {}  # sequence -> how many of its first tokens lie in the trunk's own cells
        self.tokens_decoded = 0

    def use(self, adapter: Any) -> None:
        """From now on with this adapter, or None. What was decoded with another one is forgotten."""
        if adapter is self._adapter:
            return
        self._forget()
        self._llama.llama_memory_clear(self._memory, True)
        self._trunk = []
        adapt(self._llama, self._context, adapter)
        self._adapter = adapter

    def grow(
        self, trunk: Sequence[int], branches: Sequence[Branch], *, fresh: bool = False
    ) -> Iterator[list[LogitReading]]:
        """Readings of each decoded batch. Ends early, without error, when cancelled. NoRoom before anything ran.

        `fresh`: nothing is used of branches that were grown before.
        """
        longest = max((b.at + len(b.tokens) for b in branches), default=0)
        if max(len(trunk), longest) > self.path_tokens:
            raise ContextFull(f"{max(len(trunk), longest)} tokens do not fit into {self.path_tokens}")
        widest = max((len(b.tokens) + 1 for b in branches), default=0)
        if widest > self.branch_cells:
            raise ContextFull(f"a branch of {widest} tokens does not fit into {self.branch_cells}")
        if self._plant(trunk):
            if fresh:
                self._forget()
            for group in _groups(branches, self.branch_cells):
                yield from self._grow(group)
                if self._cancelled():
                    return

    def seat(self, trunk: Sequence[int]) -> NDArray[np.float32] | None:
        """The trunk without branches, and a copy of the logits that follow it; None when cancelled."""
        if not trunk or not self._plant(trunk):
            return None
        self._forget()
        self.share(1, len(trunk) - 1)
        try:
            return self.logits(0).copy() if self.decode([(trunk[-1], len(trunk) - 1, [1], True)]) else None
        finally:
            self.free(1)

    def share(self, sequence: int, until: int) -> None:
        """Let a sequence begin with the trunk's first tokens."""
        self._llama.llama_memory_seq_cp(self._memory, 0, sequence, 0, until)

    def free(self, sequence: int) -> None:
        """Drop a sequence's tokens."""
        self._llama.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def _plant(self, trunk: Sequence[int]) -> bool:
        """The trunk in sequence 0, kept as far as it begins alike in whole batches; False when cancelled."""
        if list(trunk) == self._trunk:
            return True
        keep = 0
        for old, new in zip(self._trunk, trunk, strict=False):
            if old != new:
                break
            keep += 1
        keep = keep // BATCH_TOKENS * BATCH_TOKENS
        self._forget()
        if not self._llama.llama_memory_seq_rm(self._memory, 0, keep, -1):
            self._llama.llama_memory_clear(self._memory, True)
            keep = 0
        self._trunk = list(trunk[:keep])
        for start in range(keep, len(trunk), BATCH_TOKENS):
            piece = trunk[start : start + BATCH_TOKENS]
            slots = [(token, start + k, [0], False) for k, token in enumerate(piece)]
            if not self.decode(slots):
                self._llama.llama_memory_seq_rm(self._memory, 0, len(self._trunk), -1)
                return False
            self._trunk += piece
        return True

    def _forget(self) -> None:
        """Drop every branch."""
        for sequence in self._resident:
            self._llama.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        self._resident.clear()
        self._rooted.clear()

    def _grow(self, group: Sequence[tuple[int, Branch]]) -> Iterator[list[LogitReading]]:
        """One group of branches, each in a sequence of its own that begins as the likest resident one does."""
        cells = sum(len(path) - self._rooted[sequence] for sequence, path in self._resident.items())
        if cells + sum(len(b.tokens) + 1 for _, b in group) > self.branch_cells:
            self._forget()
        fresh: dict[int, tuple[int, ...]] = {}
        # What branches share is decoded once, by the path that ends there; but not where they begin at different
        # places (one's likest was dropped for the other): llama.cpp takes no token for sequences that have diverged.
        slots: dict[tuple[int, tuple[int, ...]], _Slot] = {}
        for number, branch in group:
            path = (*self._trunk[: branch.at], *branch.tokens)
            asking = {branch.at + row.index: _Asking(number, k, row) for k, row in enumerate(branch.rows)}
            source, common = self._likest(path)
            start = min(common, min(asking, default=len(path)))
            sequence = self._free(source, fresh)
            self._llama.llama_memory_seq_cp(self._memory, source, sequence, 0, start)
            fresh[sequence] = path
            self._rooted[sequence] = min(start, self._rooted.get(source, start))  # the trunk itself is all its own
            for at in range(start, len(path)):
                slot = slots.setdefault((start, path[: at + 1]), _Slot([], []))
                slot.sequences.append(sequence)
                slot.asked.extend([asking[at]] if at in asking else [])
        todo = list(slots.items())
        size = _even(len(todo))
        for first in range(0, len(todo), size):
            batch = todo[first : first + size]
            if not self.decode([(p[-1], len(p) - 1, slot.sequences, bool(slot.asked)) for (_, p), slot in batch]):
                self._resident.update(fresh)
                self._forget()  # some cells of this group were never written
                return
            yield [reading for k, (_, slot) in enumerate(batch) for reading in self._read(k, slot.asked)]
        self._resident.update(fresh)

    def _likest(self, path: Sequence[int]) -> tuple[int, int]:
        """(sequence, tokens it has in common with a path) of the resident sequence that begins most alike."""
        best, common = 0, _common(path, self._trunk)
        for sequence, other in self._resident.items():
            shared = _common(path, other)
            if shared > common:
                best, common = sequence, shared
        if best:
            self._resident.move_to_end(best)
        return best, common

    def _free(self, but: int, fresh: Collection[int]) -> int:
        """A sequence that may be written: an unused one, else the one that was used longest ago."""
        for sequence in range(1, SEQUENCES):
            if sequence not in self._resident and sequence not in fresh:
                return sequence
        sequence = next(s for s in self._resident if s != but)
        del self._resident[sequence]
        self._llama.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        return sequence

    def decode(self, slots: Sequence[tuple[int, int, list[int], bool]]) -> bool:
        """Tokens at positions, each for some sequences; False when cancelled."""
        batch = self._batch
        batch.n_tokens = len(slots)
        for slot, (token, position, sequences, asked) in enumerate(slots):
            batch.token[slot] = token
            batch.pos[slot] = position
            batch.n_seq_id[slot] = len(sequences)
            for k, sequence in enumerate(sequences):
                batch.seq_id[slot][k] = sequence
            batch.logits[slot] = asked
        status = self._llama.llama_decode(self._context, batch)
        if status != 0:
            if status == 2 or self._cancelled():
                return False
            raise CannotEnforce(f"llama.cpp stopped decoding with status {status}")
        self.tokens_decoded += len(slots)
        return True

    def logits(self, slot: int) -> NDArray[np.float32]:
        """The row of the last decoded batch, valid until the next."""
        pointer = self._llama.llama_get_logits_ith(self._context, slot)
        if not pointer:
            raise CannotEnforce("llama.cpp gave no logits")
        return np.ctypeslib.as_array(pointer, shape=(self._vocabulary,))

    def _read(self, slot: int, asked: Sequence[_Asking]) -> Iterator[LogitReading]:
        if not asked:
            return
        logits = self.logits(slot)
        total = log_total(logits, self._parts)
        for branch, number, row in asked:
            top: list[tuple[int, float]] = []
            if row.top:
                ids = np.argpartition(logits, -row.top)[-row.top :]
                ids = ids[np.lexsort((ids, -logits[ids]))]
                top = [(int(k), min(0.0, float(logits[k]) - total)) for k in ids]
            told = tuple(min(0.0, float(logits[k]) - total) for k in row.asked)
            yield LogitReading(branch=branch, row=number, top=tuple(top), asked=told)


def _groups(branches: Sequence[Branch], most_cells: int = BRANCH_CELLS) -> Iterator[list[tuple[int, Branch]]]:
    """Numbered branches in groups whose sequences and cells are there at once."""
    group: list[tuple[int, Branch]] = []
    cells = 0
    for number, branch in enumerate(branches):
        cells += len(branch.tokens) + 1
        if group and (len(group) == GROUP or cells > most_cells):
            yield group
            group, cells = [], len(branch.tokens) + 1
        group.append((number, branch))
    if group:
        yield group


def _even(tokens: int) -> int:
    """How many tokens a batch gets: as many in each, for few tokens cost much more each than many do."""
    return max(1, -(-tokens // max(1, -(-tokens // BATCH_TOKENS))))


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
