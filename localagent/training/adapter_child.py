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

import numpy as np
import torch

from localagent.errors import CannotEnforce, LocalagentError
from localagent.llm.process.child import NICENESS, checked
from localagent.llm.process.protocol import TARGET, WEIGHTS, FrameBuffer, FrameFault, Message, receive_first, send
from localagent.training.adapter_model import Adapted

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
