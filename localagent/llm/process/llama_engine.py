"""llama.cpp behind a narrow face: load a model from an open file, tokenize, and compare logits at chosen positions.

Only logits that were asked for leave this module, and only as differences; a row of the vocabulary is never copied.
One build, usual thread count and question give one answer; the same place asked
in other company may differ by tenths of a nat, since quantized kernels depend on the number of tokens decoded at once.
Runs in the confined child only.
"""

import ctypes
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from localagent.errors import CannotEnforce
from localagent.llm.model.memory_estimate import Needs
from localagent.llm.model.thread_count import TRIAL_SECONDS, ThreadCount
from localagent.llm.process.chunks import CHUNK_TOKENS, LEAST_FRONT_TOKENS, Chunks
from localagent.llm.process.first_difference import Known
from localagent.llm.process.logits import log_total
from localagent.llm.process.shared_prefix import Grove, adapt

_READING, _MENDING = 0, 1  # llama.cpp's numbers of the sequences
_TRIAL_TOKENS, _LARGE_TRIAL_TOKENS = 16, 4
_LARGE_BYTES = 1 << 30  # of weights, from where a trial of sixteen tokens takes seconds
_GUARD = b"\x01"  # a byte that no source has, so that no vocabulary joins it to another

# What a position is asked: (index of the asker, token that stands there, token that would).
Ask = tuple[int, int, int]
# What it answers: (index of the asker, log P(new) - log P(old), log P(old)); nats.
Answer = tuple[int, float, float]


def bindings() -> Any:
    """The low-level bindings without the package's front end (chat formats, disk caches that unpickle)."""
    if "llama_cpp" not in sys.modules:
        spec = importlib.util.find_spec("llama_cpp")
        if spec is None or spec.submodule_search_locations is None:
            raise CannotEnforce("llama-cpp-python is not installed", remedy="run `make setup`")
        package = ModuleType("llama_cpp")
        package.__path__ = list(spec.submodule_search_locations)
        package.__spec__ = spec
        sys.modules["llama_cpp"] = package
    llama = importlib.import_module("llama_cpp.llama_cpp")
    _load_variants(llama)
    return llama


def _load_variants(llama: Any) -> None:
    """A portable build keeps its kernels in libraries of their own, of which the best for this processor is loaded.

    Before llama.cpp looks for them itself: it would also look in the current folder, which may be a repository.
    """
    library = llama._lib
    library.ggml_backend_reg_count.restype = ctypes.c_size_t
    if library.ggml_backend_reg_count() == 0:
        library.ggml_backend_load_all_from_path(os.fsencode(Path(library._name).parent))
        if library.ggml_backend_reg_count() == 0:
            raise CannotEnforce("llama.cpp has no kernels for this processor", remedy="install it anew: `make setup`")


# the formats that weights are rewritten in, the most faithful first -> llama.cpp's number of each
FORMATS = {"BF16": 32, "Q8_0": 7, "Q4_0": 2}


def requantize(source: int, target: int, form: str) -> None:
    """Writes the model open at descriptor `source` to `target` in one of FORMATS. CannotEnforce if it cannot be."""
    llama = bindings()
    silence = llama.llama_log_callback(lambda _level, _text, _data: None)
    llama.llama_log_set(silence, ctypes.c_void_p(0))
    llama.llama_backend_init()
    params = llama.llama_model_quantize_default_params()
    params.ftype = FORMATS[form]
    params.allow_requantize = True
    params.nthread = 1
    names = (f"/proc/self/fd/{number}".encode() for number in (source, target))
    if llama.llama_model_quantize(*names, ctypes.byref(params)) != 0:
        raise CannotEnforce(f"llama.cpp cannot write the model as {form}")


def _stream(descriptor: int) -> Any:
    """A C stream over an open file; NULL where there can be none."""
    libc = ctypes.CDLL(None)
    libc.fdopen.restype = ctypes.c_void_p
    return libc.fdopen(ctypes.c_int(descriptor), b"rb")


class Engine:
    """One loaded model with a sequence of context, with a mender two: each reused as far as its next text begins alike.

    What is read with the mender is another text, of other numbers; between the two nothing has to be read again.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        threads: int,
        context_tokens: int,
        cancelled: Callable[[], bool],
        adapter: int | None = None,
        mender: int | None = None,
        needs: Needs = Needs(),  # noqa: B008 - a value
        gpu_layers: int = 0,
    ) -> None:
        """`descriptor`, `adapter` and `mender` are open files that were checked; they are closed by who loads them.

        `needs` says how long the texts are on which many continuations grow (`grove`), `gpu_layers` how many layers
        go to a GPU (-1: all), where this build of llama.cpp can.
        """
        self._needs = needs
        self._llama = llama = bindings()
        self._cancelled = cancelled
        self._silence = llama.llama_log_callback(lambda _level, _text, _data: None)
        llama.llama_log_set(self._silence, ctypes.c_void_p(0))
        llama.llama_backend_init()
        self._offloads = gpu_layers != 0 and bool(llama.llama_supports_gpu_offload())
        self._model = self._load(descriptor, gpu_layers)
        self._adapter = None if adapter is None else self._load_adapter(adapter)
        self._mender = None if mender is None else self._load_adapter(mender)
        self._vocab = llama.llama_model_get_vocab(self._model)
        trained = int(llama.llama_model_n_ctx_train(self._model))
        self.context_tokens = min(context_tokens, trained) if trained > 0 else context_tokens
        self.path_tokens = min(needs.path_tokens, trained) if trained > 0 else needs.path_tokens
        self._context = self._open_context(threads)
        self._batch = llama.llama_batch_init(CHUNK_TOKENS, 0, 1)
        self.vocabulary = int(llama.llama_vocab_n_tokens(self._vocab))
        self.byte_level = llama.llama_vocab_type(self._vocab) == llama.LLAMA_VOCAB_TYPE_BPE
        self.end_token = self._document_end()
        self.front_token = self._front()
        self._pieces: dict[int, bytes] = {}
        self.known: Known = {}
        self._guard = self._guarding()
        self._threads = threads
        self._crew: ThreadCount | None = None
        self._sequence = _READING
        self._chunks = {_READING: Chunks(), _MENDING: Chunks()}
        self.tokens_decoded = 0

    def _load(self, descriptor: int, gpu_layers: int) -> Any:
        params = self._llama.llama_model_default_params()
        params.load_mode = self._llama.LLAMA_LOAD_MODE_NONE  # mapped, weights that are repacked would lie there twice
        params.n_gpu_layers = gpu_layers if self._llama.llama_supports_gpu_offload() else 0
        stream = _stream(descriptor)
        model = self._llama.llama_model_load_from_file_ptr(stream, params) if stream else None
        if not model:
            raise CannotEnforce("llama.cpp cannot load the model")
        return model

    def _load_adapter(self, descriptor: int) -> Any:
        """Before any context is made: llama.cpp counts an adapter's operations when it plans one."""
        stream = _stream(descriptor)
        found = self._llama.llama_adapter_lora_init_from_file_ptr(self._model, stream) if stream else None
        if not found:
            raise CannotEnforce("llama.cpp cannot load the adapter")
        return found

    def _open_context(self, threads: int) -> Any:
        llama = self._llama
        params = llama.llama_context_default_params()
        sequences = 1 if self._mender is None else 2
        params.n_ctx = sequences * self.context_tokens
        params.n_batch = params.n_ubatch = CHUNK_TOKENS
        params.n_seq_max = sequences
        params.kv_unified = False  # so many tokens for each
        params.n_threads = params.n_threads_batch = threads
        params.no_perf = True
        self._abort = llama.ggml_abort_callback(lambda _data: self._cancelled())
        params.abort_callback = self._abort
        context = llama.llama_init_from_model(self._model, params)
        if not context:
            raise CannotEnforce("llama.cpp cannot make room for a context")
        adapt(llama, context, self._adapter)
        return context

    def _document_end(self) -> int:
        """The token that stands between two documents, so also before the first."""
        marks = (ctypes.c_int32 * 16)()
        text = b"<|endoftext|>"
        if self._llama.llama_tokenize(self._vocab, text, len(text), marks, 16, False, True) == 1:
            return marks[0]
        return max(0, int(self._llama.llama_vocab_eos(self._vocab)))

    def _front(self) -> int:
        if self._llama.llama_vocab_get_add_bos(self._vocab):
            return max(0, int(self._llama.llama_vocab_bos(self._vocab)))
        return self.end_token

    @property
    def llama(self) -> Any:
        """The bindings."""
        return self._llama

    @property
    def model(self) -> Any:
        """llama.cpp's model."""
        return self._model

    @property
    def vocab(self) -> Any:
        """llama.cpp's vocabulary."""
        return self._vocab

    def ends(self, token: int) -> bool:
        """Whether a token ends what the model says: any control token does."""
        return bool(
            self._llama.llama_vocab_is_eog(self._vocab, token) or self._llama.llama_vocab_is_control(self._vocab, token)
        )

    def tokenize(self, data: bytes, *, special: bool = False) -> list[int]:
        """Tokens of a text in UTF-8; special tokens written in it are plain text unless `special`.

        Nothing is put in front: where the vocabulary would put a space there, it stands before a byte that is cut off.
        """
        guard = self._guard
        if guard and data:
            tokens = self._tokens(_GUARD + data, special=special)
            if tuple(tokens[: len(guard)]) == guard:
                return tokens[len(guard) :]
        return self._tokens(data, special=special)

    def _tokens(self, data: bytes, *, special: bool) -> list[int]:
        room = len(data) + 8
        tokens = (ctypes.c_int32 * room)()
        count = self._llama.llama_tokenize(self._vocab, data, len(data), tokens, room, False, special)
        return list(tokens[: max(0, count)])

    def _guarding(self) -> tuple[int, ...]:
        """The tokens of a lone `_GUARD` where the vocabulary puts a space in front of a text; none elsewhere."""
        found = self._tokens(_GUARD, special=False)
        return tuple(found) if b"".join(map(self.piece, found)) == b" " + _GUARD else ()

    def piece(self, token: int) -> bytes:
        """The bytes of a text that a token stands for; control tokens stand for none."""
        known = self._pieces.get(token)
        if known is None:
            room = ctypes.create_string_buffer(512)
            size = max(0, int(self._llama.llama_token_to_piece(self._vocab, token, room, 512, 0, False)))
            known = self._pieces[token] = room.raw[:size]
        return known

    def token_bytes(self, token: int) -> int:
        """How many bytes a token stands for."""
        return len(self.piece(token))

    def grove(self, *, mending: bool = False) -> Grove:
        """Where many continuations are decoded together, `mending`: with the mender instead of an adapter."""
        self._grove.use(self._mender if mending else self._adapter)
        return self._grove

    @cached_property
    def _grove(self) -> Grove:
        """Its memory is taken when it is first asked for."""
        return Grove(
            self._llama,
            self._model,
            threads=self._threads,
            trunk_tokens=self.path_tokens,
            branch_cells=self._needs.branch_cells,
            cancelled=self._cancelled,
            adapter=self._adapter,
        )

    def rate(self, threads: int) -> float:
        """Tokens a second with so many threads, tried for a moment. What was decoded before is forgotten."""
        self.use(threads)
        trial = [self.end_token] * (_TRIAL_TOKENS if self._needs.weights_bytes < _LARGE_BYTES else _LARGE_TRIAL_TOKENS)
        decoded, began = 0, 0.0
        while not decoded or time.monotonic() - began < TRIAL_SECONDS:
            self._resume([], 0)
            if not self._decode(trial, 0, len(trial), {}):
                break
            decoded += len(trial) if began else 0  # the first one wakes threads and reads weights in
            began = began or time.monotonic()
        self._resume([], 0)
        return decoded / max(1e-6, time.monotonic() - began)

    def try_once(self) -> None:
        """One token, which damaged weights do not survive: CannotEnforce. What was decoded before is forgotten."""
        self._resume([], 0)
        if self._decode([self.front_token], 0, 1, {0: ()}):
            list(self._answers(0, [(0, 0, 0)]))
        self._resume([], 0)
        self.tokens_decoded = 0

    def use(self, threads: int) -> None:
        """From now on so many threads."""
        self._threads = threads
        self._llama.llama_set_n_threads(self._context, threads, threads)

    def use_idle_cores(self, crew: ThreadCount) -> None:
        """From now on it says how many threads compare. Not beside a GPU, for which threads wait."""
        if not self._offloads:
            self._crew = crew

    @property
    def cancelled(self) -> bool:
        """Whether the request in work is no longer wanted."""
        return self._cancelled()

    @property
    def mends(self) -> bool:
        """Whether it has a mender."""
        return self._mender is not None

    @contextmanager
    def mending(self) -> Iterator[None]:
        """Inside, positions are compared with the mender instead of an adapter, and in a sequence of its own."""
        adapt(self._llama, self._context, self._mender)
        self._sequence = _MENDING
        try:
            yield
        finally:
            self._sequence = _READING
            adapt(self._llama, self._context, self._adapter)

    def prepare(self, front: Sequence[int]) -> None:
        """Read the front of the next texts. Ends early, without error, when cancelled."""
        if LEAST_FRONT_TOKENS <= len(front) <= self.context_tokens:
            for _ in self._read(front, len(front), {}, front=len(front), most=len(front)):
                pass

    def compare(
        self, tokens: Sequence[int], asks: Mapping[int, Sequence[Ask]], *, front: int = 0
    ) -> Iterator[list[Answer]]:
        """For each position asked, what it says of new and old given tokens[:position]; one list a decoded chunk.

        So many of the first tokens are a front that many texts have: a chunk ends with it. Ends early, without
        error, when cancelled. Positions start at 1; tokens beyond the context are not decoded.
        """
        if not asks:
            return
        rows = {position - 1: asked for position, asked in asks.items()}
        last = min(max(rows) + 1, self.context_tokens, len(tokens))
        for at, stop in self._read(tokens, last, rows, front=front, most=min(rows)):
            yield [answer for row in range(at, stop) if row in rows for answer in self._answers(row - at, rows[row])]

    def _read(
        self, tokens: Sequence[int], last: int, rows: Mapping[int, object], *, front: int, most: int
    ) -> Iterator[tuple[int, int]]:
        """Decode what is not there yet of the first `last` tokens, and tell each chunk; `most` may be there already."""
        at = self._resume(tokens, most, front)
        while at < last and not self._cancelled():
            stop = self._here.stop(at, last)
            if not self._decode_by_crew(tokens, at, stop, rows):
                return
            yield at, stop
            at = stop

    @property
    def _here(self) -> Chunks:
        return self._chunks[self._sequence]

    def _resume(self, tokens: Sequence[int], most: int, front: int = 0) -> int:
        """How many of the first tokens are there already and stay; nothing else does."""
        keep = self._here.begin(tokens, front=front, most=most)
        memory = self._llama.llama_get_memory(self._context)
        if not self._llama.llama_memory_seq_rm(memory, self._sequence, keep, -1):
            self._llama.llama_memory_seq_rm(memory, self._sequence, -1, -1)
            keep = self._here.cut(0)
        return keep

    def _decode_by_crew(self, tokens: Sequence[int], start: int, stop: int, rows: Mapping[int, object]) -> bool:
        """By as many threads as have cores; a lone token by the usual number, on which its answer depends."""
        crew = self._crew
        if crew is None:
            return self._decode(tokens, start, stop, rows)
        self._llama.llama_set_n_threads(self._context, self._threads, crew.next())
        wall, cpu = time.monotonic(), time.process_time()
        done = self._decode(tokens, start, stop, rows)
        if stop - start > 1:
            crew.worked(wall_seconds=time.monotonic() - wall, cpu_seconds=time.process_time() - cpu)
        return done

    def _decode(self, tokens: Sequence[int], start: int, stop: int, rows: Mapping[int, object]) -> bool:
        batch = self._batch
        batch.n_tokens = stop - start
        for slot, position in enumerate(range(start, stop)):
            batch.token[slot] = tokens[position]
            batch.pos[slot] = position
            batch.n_seq_id[slot] = 1
            batch.seq_id[slot][0] = self._sequence
            batch.logits[slot] = position in rows
        status = self._llama.llama_decode(self._context, batch)
        if status != 0:
            if status == 2 or self._cancelled():
                return False
            raise CannotEnforce(f"llama.cpp stopped decoding with status {status}")
        self._here.decoded(tokens[start:stop])
        self.tokens_decoded += stop - start
        return True

    def _answers(self, slot: int, asked: Sequence[Ask]) -> Iterator[Answer]:
        row = self._llama.llama_get_logits_ith(self._context, slot)
        if not row:
            raise CannotEnforce("llama.cpp gave no logits")
        logits = np.ctypeslib.as_array(row, shape=(self.vocabulary,))
        whole = log_total(logits)
        for asker, old, new in asked:
            stood = float(logits[old])
            yield asker, float(logits[new]) - stood, min(0.0, stood - whole)
