"""The confined child that learns an adapter: sees one model and tokens, writes one file, reaches nothing else.

Frames as in `localagent.llm.process.protocol`:

    learn       bytes, sha256, settings, resume         ready       (more examples may come)
    examples    items: [[tokens, first, end, old], ...]
    begin                                               step        step, examples, loss
                                                        checkpoint  step, bytes, sha256 (of what TARGET holds)
    go                                                  written     steps, loss_first, loss_last, bytes, sha256
                                                        refused     why

Whatever it writes is as hostile to the parent as any model. Not promised: that two runs that were given other seconds
learn the same; equal settings, examples and steps on one machine do.
"""

import hashlib
import os
import random
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import numpy as np
import torch

from localagent.errors import CannotEnforce, LocalagentError
from localagent.llm.process.child import NICENESS, checked
from localagent.llm.process.protocol import TARGET, WEIGHTS, FrameBuffer, FrameFault, Message, receive_first, send

# A llama-family model in float32 with low-rank matrices beside its upper projections, for learning those.
#
# Weights are read from a GGUF by llama.cpp's own Python package, and the arithmetic follows llama.cpp's graph of that
# family (RMS norm, rotary positions over neighbouring pairs, grouped attention, SwiGLU; Touvron et al. 2023), so what
# is learned fits what serves. Low-rank adaptation: Hu et al. 2021. Runs in the confined child only. Not promised: any
# other architecture, biases, experts or scaled positions; they are refused.

PROJECTIONS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
_BLOCK = {*(f"{name}.weight" for name in PROJECTIONS), "attn_norm.weight", "ffn_norm.weight"}
_WHOLE = {"token_embd.weight", "output.weight", "output_norm.weight"}


class Adapted:
    """The frozen model and its adapter; the upper half of its blocks is adapted, so that learning costs less."""

    def __init__(self, place: str, *, rank: int, device: str, seed: int) -> None:
        """Read the file at `place`. CannotEnforce where it is of a kind that is not known here."""
        reader = gguf.GGUFReader(place)
        self.device = torch.device(device)
        self._read(reader)
        weights = {t.name: t for t in reader.tensors}
        odd = sorted(n for n in weights if n not in _WHOLE and n.partition("blk.")[2].partition(".")[2] not in _BLOCK)
        if odd:
            raise CannotEnforce(f"no adapter can be learned for a model with {odd[0]}")
        self._weights = {name: self._tensor(tensor) for name, tensor in weights.items()}
        self._output = self._weights.get("output.weight", self._weights["token_embd.weight"])
        self.rank = rank
        self.halves: dict[str, Any] = dict(self._matrices(seed))

    def _read(self, reader: Any) -> None:
        fields = reader.fields

        def field(name: str, default: Any = None) -> Any:
            return fields[name].contents() if name in fields else default

        if field("general.architecture") != "llama":
            raise CannotEnforce(f"an adapter can be learned for llama models, not for {field('general.architecture')}")
        if field("llama.rope.scaling.type", "none") not in ("none", "") or field("llama.expert_count", 0):
            raise CannotEnforce("no adapter can be learned for a model with scaled positions or experts")
        self.blocks = int(field("llama.block_count"))
        self.width = int(field("llama.embedding_length"))
        self.heads = int(field("llama.attention.head_count"))
        self.kv_heads = int(field("llama.attention.head_count_kv", self.heads))
        self.head_width = int(field("llama.rope.dimension_count", self.width // self.heads))
        self._base = float(field("llama.rope.freq_base", 10000.0))
        self._small = float(field("llama.attention.layer_norm_rms_epsilon"))
        if self.head_width * self.heads != self.width:
            raise CannotEnforce("no adapter can be learned for a model whose heads do not make up its width")
        self.front = self._front(field)

    @staticmethod
    def _front(told: Any) -> int:
        """The token that stands before every text, as the engine chooses it."""
        if told("tokenizer.ggml.add_bos_token", False):
            return int(told("tokenizer.ggml.bos_token_id"))
        tokens = told("tokenizer.ggml.tokens")
        return tokens.index("<|endoftext|>") if "<|endoftext|>" in tokens else int(told("tokenizer.ggml.eos_token_id"))

    def _tensor(self, tensor: Any) -> Any:
        values = np.array(gguf.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        return torch.from_numpy(values).to(self.device)

    def _matrices(self, seed: int) -> Iterator[tuple[str, Any]]:
        """A pair of matrices a projection: the first drawn, the second zero, so that nothing changes at the start."""
        draw = torch.Generator().manual_seed(seed)
        for block in range(self.blocks // 2, self.blocks):
            for name in PROJECTIONS:
                weight = self._weights[f"blk.{block}.{name}.weight"]
                down = torch.randn((self.rank, weight.shape[1]), generator=draw) / weight.shape[1] ** 0.5
                up = torch.zeros((weight.shape[0], self.rank))
                for end, half in (("a", down), ("b", up)):
                    yield f"blk.{block}.{name}.weight.lora_{end}", half.to(self.device).requires_grad_()

    def logits(self, tokens: Sequence[int], rows: Sequence[int], scale: float) -> Any:
        """Logits that follow the tokens at `rows`; shape [rows, vocabulary]."""
        positions = torch.arange(len(tokens), device=self.device, dtype=torch.float32)
        steps = torch.arange(0, self.head_width, 2, device=self.device, dtype=torch.float32) / self.head_width
        angles = positions[:, None] * self._base**-steps
        turn = torch.cos(angles)[:, None, :], torch.sin(angles)[:, None, :]
        with torch.no_grad():
            x = self._weights["token_embd.weight"][torch.tensor(list(tokens), device=self.device)]
            for block in range(self.blocks // 2):
                x = self._block(x, block, turn, scale)
        for block in range(self.blocks // 2, self.blocks):
            x = self._block(x, block, turn, scale)
        x = self._norm(x[torch.tensor(list(rows), device=self.device)], "output_norm.weight")
        return x @ self._output.T

    def _block(self, x: Any, block: int, turn: tuple[Any, Any], scale: float) -> Any:
        at = f"blk.{block}."
        h = self._norm(x, at + "attn_norm.weight")
        q = self._turned(self._project(h, at + "attn_q.weight", scale).view(len(h), self.heads, -1), turn)
        k = self._turned(self._project(h, at + "attn_k.weight", scale).view(len(h), self.kv_heads, -1), turn)
        v = self._project(h, at + "attn_v.weight", scale).view(len(h), self.kv_heads, -1)
        times = self.heads // self.kv_heads
        k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
        seen = torch.nn.functional.scaled_dot_product_attention(
            q.transpose(0, 1)[None], k.transpose(0, 1)[None], v.transpose(0, 1)[None], is_causal=True
        )
        x = x + self._project(seen[0].transpose(0, 1).reshape(len(h), -1), at + "attn_output.weight", scale)
        h = self._norm(x, at + "ffn_norm.weight")
        gate = torch.nn.functional.silu(self._project(h, at + "ffn_gate.weight", scale))
        return x + self._project(gate * self._project(h, at + "ffn_up.weight", scale), at + "ffn_down.weight", scale)

    def _project(self, x: Any, name: str, scale: float) -> Any:
        found = x @ self._weights[name].T
        down = self.halves.get(f"{name}.lora_a")
        return found if down is None else found + scale * ((x @ down.T) @ self.halves[f"{name}.lora_b"].T)

    def _norm(self, x: Any, name: str) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self._small) * self._weights[name]

    @staticmethod
    def _turned(x: Any, turn: tuple[Any, Any]) -> Any:
        """Rotary positions: each neighbouring pair of numbers turned by its angle."""
        (cos, sin), even, odd = turn, x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)

    def write(self, place: Path, alpha: float) -> None:
        """The adapter as a GGUF of float32 matrices."""
        writer = gguf.GGUFWriter(str(place), "llama")
        writer.add_type("adapter")
        writer.add_string("adapter.type", "lora")
        writer.add_float32("adapter.lora.alpha", alpha)
        for name, half in self.halves.items():
            writer.add_tensor(name, half.detach().cpu().numpy().astype(np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


RESUME = "/run/model/resume.npz"
SCRATCH = Path("/tmp")  # noqa: S108 - the jail's own
_CHECKPOINT_SECONDS = 60.0
_STEPS_AVERAGED = 20
_WARMING_STEPS = 20
_LARGEST_GRADIENT = 1.0


class AdapterRunSettings(NamedTuple):
    """How it learns. `seconds` bound this run, `epochs` all runs together."""

    rank: int
    alpha: float
    rate: float
    batch: int
    epochs: int
    seed: int
    threads: int
    device: str
    seconds: float


class Channel:
    """Frames of the parent, one after the other."""

    def __init__(self, channel: socket.socket) -> None:
        self.socket = channel
        self._buffer = FrameBuffer()
        self._waiting: list[Message] = []

    def next(self, *kinds: str) -> Message:
        """The next frame, of one of these kinds; FrameFault for anything else, OSError at the end."""
        while not self._waiting:
            data = self.socket.recv(1 << 16)
            if not data:
                raise OSError("the parent is gone")
            self._waiting += self._buffer.feed(data)
        found = self._waiting.pop(0)
        if found["kind"] not in kinds:
            raise FrameFault(f"{found['kind']} where {' or '.join(kinds)} was expected")
        return found


class Learner:
    """Adam (Kingma and Ba 2014) over the adapter's matrices: likelier what people wrote, above all than what stood."""

    def __init__(self, model: Adapted, settings: AdapterRunSettings) -> None:
        self.model, self.settings = model, settings
        self.halves = [model.halves[name] for name in sorted(model.halves)]
        self.optimizer = torch.optim.Adam(self.halves, lr=settings.rate)
        self.step = 0
        self.losses: list[float] = []

    def batches(self, examples: Sequence[Any]) -> Iterator[list[Any]]:
        """Batches from where it stands to the end of the last epoch, shuffled anew in each by the seed."""
        size = self.settings.batch
        each = max(1, -(-len(examples) // size))
        while self.step < each * self.settings.epochs:
            epoch, at = divmod(self.step, each)
            order = random.Random(f"{self.settings.seed} {epoch}").sample(range(len(examples)), len(examples))  # noqa: S311
            yield [examples[k] for k in order[at * size : (at + 1) * size]]

    def learn(self, batch: Sequence[Any]) -> None:
        """One step. CannotEnforce where numbers are none any more."""
        total = 0.0
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate * min(1.0, (self.step + 1) / _WARMING_STEPS)
        for tokens, first, end, old in batch:
            shown = [self.model.front, *tokens]
            rows = list(range(first, end))
            logits = self.model.logits(shown[:end], rows, self.settings.alpha / self.settings.rank)
            chances = torch.log_softmax(logits, dim=-1)
            wanted = torch.tensor(tokens[first:end], device=self.model.device)
            written = -chances.gather(1, wanted[:, None]).mean()
            against = torch.nn.functional.softplus(chances[0, old] - chances[0, tokens[first]])
            loss = (written + against) / len(batch)
            loss.backward()
            total += float(loss.detach())
        if not np.isfinite(total):
            raise CannotEnforce(f"learning went astray at step {self.step}")
        torch.nn.utils.clip_grad_norm_(self.halves, _LARGEST_GRADIENT)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.losses.append(total)

    def state(self) -> dict[str, Any]:
        """All of it as arrays."""
        arrays: dict[str, Any] = {"step": np.array(self.step), "losses": np.array(self.losses)}
        for k, half in enumerate(self.halves):
            arrays[f"half-{k}"] = half.detach().cpu().numpy()
            for name, value in self.optimizer.state.get(half, {}).items():
                arrays[f"{name}-{k}"] = value.detach().cpu().numpy()
        return arrays

    def resume(self, arrays: Any) -> None:
        """Go on from `state`; KeyError or ValueError where it is of another model or settings."""
        self.step, self.losses = int(arrays["step"]), [float(x) for x in arrays["losses"]]
        for k, half in enumerate(self.halves):
            with torch.no_grad():
                half.copy_(torch.from_numpy(arrays[f"half-{k}"]))
            if f"exp_avg-{k}" in arrays:
                self.optimizer.state[half] = {
                    name: torch.from_numpy(arrays[f"{name}-{k}"]).to(half.device if name != "step" else "cpu")
                    for name in ("step", "exp_avg", "exp_avg_sq")
                }


def main(arguments: list[str]) -> int:
    """Serve the one request of a parent."""
    os.nice(NICENESS)
    channel = socket.socket(fileno=int(arguments[0]))
    opened = receive_first(channel, "learn")
    try:
        descriptor = os.open(WEIGHTS, os.O_RDONLY | os.O_CLOEXEC)
        checked(opened, descriptor)
        told = _learned(opened, Channel(channel))
    except (LocalagentError, OSError, FrameFault, KeyError, ValueError, TypeError, RuntimeError) as fault:
        send(channel, {"kind": "refused", "why": f"{fault}"[:500]})
        return 1
    send(channel, told)
    return 0


def _learned(opened: Message, channel: Channel) -> Message:
    settings = AdapterRunSettings(**opened["settings"])
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise CannotEnforce("torch finds no GPU in the jail: is it a build with CUDA, and does the driver suit it?")
    learner = Learner(Adapted(WEIGHTS, rank=settings.rank, device=settings.device, seed=settings.seed), settings)
    if opened["resume"]:
        with np.load(RESUME, allow_pickle=False) as arrays:
            learner.resume(arrays)
    send(channel.socket, {"kind": "ready"})
    examples: list[Any] = []
    while (message := channel.next("examples", "begin"))["kind"] == "examples":
        examples += message["items"]
    ends = time.monotonic() + settings.seconds
    kept = time.monotonic()
    for batch in learner.batches(examples):
        if time.monotonic() >= ends:
            break
        learner.learn(batch)
        mean = float(np.mean(learner.losses[-_STEPS_AVERAGED:]))
        send(channel.socket, {"kind": "step", "step": learner.step, "loss": round(mean, 4)})
        if time.monotonic() - kept > _CHECKPOINT_SECONDS:
            _checkpoint(learner, channel)
            kept = time.monotonic()
    _checkpoint(learner, channel)
    made = SCRATCH / "adapter.gguf"
    learner.model.write(made, settings.alpha)
    return {
        "kind": "written",
        "steps": learner.step,
        "loss_first": round(float(np.mean(learner.losses[:_STEPS_AVERAGED] or [0.0])), 4),
        "loss_last": round(float(np.mean(learner.losses[-_STEPS_AVERAGED:] or [0.0])), 4),
        **_handed(made),
    }


def _checkpoint(learner: Learner, channel: Channel) -> None:
    made = SCRATCH / "checkpoint.npz"
    np.savez(made, **learner.state())
    send(channel.socket, {"kind": "checkpoint", "step": learner.step, **_handed(made)})
    channel.next("go")


def _handed(made: Path) -> dict[str, object]:
    """What was made, in the one file that the parent sees, with its size and digest."""
    data = made.read_bytes()
    made.unlink()
    descriptor = os.open(TARGET, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    with open(descriptor, "wb") as out:  # noqa: PTH123
        out.write(data)
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
