"""A llama-family model in float32 with low-rank matrices beside its upper projections, for learning those.

Weights are read from a GGUF by llama.cpp's own Python package, and the arithmetic follows llama.cpp's graph of that
family (RMS norm, rotary positions over neighbouring pairs, grouped attention, SwiGLU; Touvron et al. 2023), so what is
learned fits what serves. Low-rank adaptation: Hu et al. 2021. Runs in the confined child only. Not promised: any other
architecture, biases, experts or scaled positions; they are refused.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from localagent.errors import CannotEnforce

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
