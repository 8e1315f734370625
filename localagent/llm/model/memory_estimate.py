"""What a model's process needs, from the header of its file: how long texts may be, memory, and time to load.

Counted from tensors that lie in the file, so that a hostile header claims no more than a few times its own size. What
is counted is the limit of the process, more than it took in what was measured (docs/models.md); that llama.cpp never
takes more is not promised. One file has one answer, whatever the machine.
"""

import math
from dataclasses import dataclass
from pathlib import Path

from localagent.errors import CannotEnforce
from localagent.llm.model.gguf import GgufFault, GgufHeader, Tensor, read_header
from localagent.llm.process.protocol import CONTEXT_TOKENS
from localagent.llm.process.shared_prefix import BATCH_TOKENS, BRANCH_CELLS

MOST_PATH_TOKENS = 8192
_STEP_TOKENS = 256
_BASE_BYTES = 160 << 20  # interpreter, llama.cpp, vocabulary, what a request needs
_LEAST_BESIDE_BYTES = 384 << 20  # beside the weights: a chat template may take 256 of them for a moment
_NUMBER_BYTES = 2  # of the cache
_CACHE_SHARE = 4  # the cache of a model of N weights takes N / 4 bytes at most, but for the shortest texts
_LEAST_CACHE_BYTES = 1 << 30  # what a header may claim where its file is smaller
_LOAD_SECONDS = 60.0
_SLOW_DISK_BYTES = 50e6  # a second
_MEMORY = Path("/proc/meminfo")


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """`path_tokens`: of prompt and answer together. `branch_cells`: of many answers at once, beside the prompt."""

    path_tokens: int = CONTEXT_TOKENS
    branch_cells: int = BRANCH_CELLS
    weights_bytes: int = 0
    cache_bytes: int = 96 << 20
    scratch_bytes: int = 96 << 20

    @property
    def used_bytes(self) -> int:
        """What the process is expected to take at most, but for the interpreter."""
        return self.weights_bytes + self.cache_bytes + self.scratch_bytes

    @property
    def resident_bytes(self) -> int:
        """The limit of its memory: an eighth of the weights more, for tensors are read one by one and repacked."""
        beside = max(_LEAST_BESIDE_BYTES, _BASE_BYTES + self.cache_bytes + self.scratch_bytes)
        return beside + self.weights_bytes + self.weights_bytes // 8

    @property
    def address_space_bytes(self) -> int:
        """The limit of its addresses, of which shared libraries take many."""
        return (4 << 30) + 2 * self.used_bytes

    @property
    def load_seconds(self) -> float:
        """How long loading may take: the file is read once for its digest and once by llama.cpp, from a slow disk."""
        return _LOAD_SECONDS + 2 * self.weights_bytes / _SLOW_DISK_BYTES

    def refuse_without_memory(self) -> None:
        """CannotEnforce where this machine has not as much memory free: it would make everything else slow."""
        free = free_bytes()
        if free is not None and free < self.used_bytes:
            raise CannotEnforce(
                f"it needs {_shown(self.used_bytes)} of memory, of which {_shown(free)} are free",
                remedy="close other programs, or use a smaller model or quantization",
            )


def needs_of(header: GgufHeader, file_bytes: int, beside_bytes: int = 0, *, mends: bool = False) -> Needs:
    """For a model's file, and files that are loaded beside it; `mends`: a mender among them, which reads beside it."""
    tensors = {tensor.name: tensor for tensor in header.tensors}
    parameters = sum(math.prod(tensor.shape) for tensor in header.tensors)
    each = _cached_bytes(header, tensors)
    path = _path_tokens(header.context_tokens, parameters // (_CACHE_SHARE * each) if each else 0)
    cells = max(BRANCH_CELLS, path // 2)
    cache = ((2 if mends else 1) * CONTEXT_TOKENS + path + cells) * each
    return Needs(
        path_tokens=path,
        branch_cells=cells,
        weights_bytes=file_bytes + 2 * beside_bytes,
        cache_bytes=min(cache, max(2 * file_bytes, _LEAST_CACHE_BYTES)),
        scratch_bytes=_scratch_bytes(header, tensors, path + cells),
    )


def needs_of_file(path: Path, beside_bytes: int = 0, *, mends: bool = False) -> Needs:
    """The same for a file on disk; the least for one whose header is none, which the child refuses. OSError."""
    size = path.stat().st_size
    try:
        with path.open("rb") as stream:
            return needs_of(read_header(stream), size, beside_bytes, mends=mends)
    except GgufFault:
        return Needs(weights_bytes=size + 2 * beside_bytes)


def free_bytes() -> int | None:
    """Memory that can be had without anything else losing its own; None where the kernel does not say."""
    try:
        rows = _MEMORY.read_text(encoding="ascii").split("\n")
        return next(int(row.split()[1]) << 10 for row in rows if row.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _path_tokens(trained: int, cells: int) -> int:
    """The longest text where the cache may have so many cells; never more than the model was trained for."""
    room = (cells - CONTEXT_TOKENS) * 2 // 3 // _STEP_TOKENS * _STEP_TOKENS
    path = min(MOST_PATH_TOKENS, max(CONTEXT_TOKENS, room))
    return min(path, trained) if trained > 0 else CONTEXT_TOKENS


def _cached_bytes(header: GgufHeader, tensors: dict[str, Tensor]) -> int:
    """Of one token, by the projections that lie in the file; by what the header says where a block has none."""
    width = _width(tensors)
    blocks = {name.split(".")[1] for name in tensors if name.startswith("blk.")}
    total = 0
    for block in blocks:
        halves = [tensors[n] for n in (f"blk.{block}.attn_{half}.weight" for half in "kv") if n in tensors]
        joined = tensors.get(f"blk.{block}.attn_qkv.weight")
        if len(halves) == 2:
            total += sum(half.shape[-1] for half in halves)
        elif joined is not None:
            total += joined.shape[-1]
        else:
            total += _declared_width(header, width)
    return _NUMBER_BYTES * total


def _declared_width(header: GgufHeader, width: int) -> int:
    """Of keys and values, where no tensor has it (latent attention): at most eight times the model's width."""

    def scalar(name: str) -> int:
        value = header.scalars.get(f"{header.architecture}.attention.{name}", 0)
        return value if isinstance(value, int) else 0

    found = scalar("head_count") * (scalar("key_length") + scalar("value_length"))
    return min(found, 8 * width) if found > 0 else 2 * width


def _width(tensors: dict[str, Tensor]) -> int:
    found = tensors.get("token_embd.weight")
    return found.shape[0] if found is not None else 0


def _scratch_bytes(header: GgufHeader, tensors: dict[str, Tensor], cells: int) -> int:
    """Of two contexts: logits of a batch twice, a block's activations, and attention's scores."""
    embedding = tensors.get("token_embd.weight")
    words = embedding.shape[-1] if embedding is not None else 0
    width = _width(tensors)
    widest = max((max(t.shape[:2]) for t in tensors.values() if t.name.startswith("blk.")), default=width)
    heads = header.scalars.get(f"{header.architecture}.attention.head_count", 0)
    heads = max(1, min(heads if isinstance(heads, int) else width, width // 32))
    activations = 4 * (2 * widest + 8 * width)
    return BATCH_TOKENS * (2 * 2 * 4 * words + 2 * activations + 4 * heads * cells)


def _shown(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
