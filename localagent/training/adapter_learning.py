"""The parent of the child that learns an adapter: starts it in a jail, hands it tokens, keeps its checkpoints.

Whatever the child says or writes is bounded, hashed and parsed. Not promised: that a run that was ended learns the same
as one that was not; it goes on from the last whole state.
"""

import hashlib
import json
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from localagent.domain.jailspec import Bind, JailSpec
from localagent.errors import CannotEnforce
from localagent.fs.openat import move_file
from localagent.llm.model.gguf import MAX_ADAPTER_BYTES, GgufHeader, read_adapter, read_header
from localagent.llm.model.gpu import Offload, devices
from localagent.llm.model.quantization_benchmark import copied, writable
from localagent.llm.model.registry import ModelFile
from localagent.llm.model.thread_count import free_threads
from localagent.llm.process.child_jail import child_spec
from localagent.llm.process.protocol import FrameBuffer, FrameFault, Message, send
from localagent.training.adapter_examples import TokenExample

LARGEST_MODEL_BYTES = 2 << 30
RESUME = "/run/model/resume.npz"
_RESIDENT_EACH = 12  # bytes of memory a byte of quantized weights, as float32, twice while it is read
_RESIDENT_BESIDE_BYTES = 4 << 30
_ADDRESS_SPACE_BYTES = 64 << 30  # torch reserves much; what is resident is bounded
_LOADING_SECONDS = 600.0
_STEP_SECONDS = 600.0
_EXAMPLES_AT_ONCE = 500
_TOLD_EVERY_SECONDS = 10.0

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterSettings:
    """How an adapter learns; what stands here decides, with the examples, what is learned in so many steps."""

    rank: int = 8
    alpha: float = 16.0
    rate: float = 3e-4
    batch: int = 8
    epochs: int = 3
    seed: int = 1


def cuda_devices() -> tuple[str, ...]:
    """The nodes of NVIDIA's devices that this process may open, which torch's CUDA needs."""
    return tuple(node for node in devices() if node.startswith("/dev/nvidia"))


class Learning:
    """One confined child that learns, and the checkpoints that it goes on from."""

    def __init__(
        self, model: ModelFile, place: Path, jail: Any, say: Say, scratch: Path, settings: AdapterSettings, device: str
    ) -> None:
        self.model, self.place, self.jail, self.say = replace(model, adapter=None), place, jail, say
        self.scratch, self.settings, self.device = scratch, settings, device
        self._threads = free_threads()
        self._told_at = 0.0

    def run(self, examples: Sequence[TokenExample], told: str, made: Path, *, ends: float) -> Message:
        """Learn until `ends` or to the end of the last epoch; the adapter as a new file `made`."""
        if self.model.path is None or self.model.bytes > LARGEST_MODEL_BYTES:
            raise CannotEnforce(
                f"no adapter is learned for {self.model.name}: models of at most {LARGEST_MODEL_BYTES >> 20} MB are",
                remedy="learn the order alone: --preset ranker",
            )
        with self.model.path.open("rb") as stream:
            header = read_header(stream)
        checkpoint = Checkpoint(self.place, self._key(told))
        with writable(self.scratch) as target:
            resume = checkpoint.found()
            process = self.jail.start(self._spec(target, resume))
            try:
                written = self._served(process.channel, examples, target, resume is not None, checkpoint, ends)
            except (OSError, FrameFault) as fault:
                raise CannotEnforce(f"the child that learns failed: {fault}") from None
            finally:
                process.kill()
                process.channel.close()
            sha256, _ = copied(target, made, MAX_ADAPTER_BYTES)
        if sha256 != written["sha256"]:
            raise CannotEnforce("the child that learns wrote another adapter than it said")
        _proved(made, header)
        return written

    def _key(self, told: str) -> str:
        """What a checkpoint belongs to."""
        parts = [self.model.sha256, told, json.dumps(asdict(self.settings), sort_keys=True), self.device]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def _spec(self, target: Path, resume: Path | None) -> JailSpec:
        shown_devices = Offload(devices=cuda_devices()) if self.device == "cuda" else Offload()
        spec = child_spec(
            self.model,
            "localagent.training.adapter_child",
            target=target,
            writes_bytes=MAX_ADAPTER_BYTES,
            offload=shown_devices,
        )
        shown = (Bind(source=str(resume), target=RESUME),) if resume is not None else ()
        return replace(
            spec,
            binds=(*spec.binds, *shown),
            limits=replace(
                spec.limits,
                resident_bytes=_RESIDENT_EACH * self.model.bytes + _RESIDENT_BESIDE_BYTES,
                address_space_bytes=max(_ADDRESS_SPACE_BYTES, spec.limits.address_space_bytes)
                if shown_devices.devices
                else _ADDRESS_SPACE_BYTES,
            ),
        )

    def _served(
        self,
        channel: Any,
        examples: Sequence[TokenExample],
        target: Path,
        resumed: bool,
        checkpoint: "Checkpoint",
        ends: float,
    ) -> Message:
        seconds = max(1.0, ends - time.monotonic())
        how = {**asdict(self.settings), "threads": self._threads, "device": self.device, "seconds": seconds}
        about = {"bytes": self.model.bytes, "sha256": self.model.sha256, "settings": how, "resume": resumed}
        buffer, waiting = FrameBuffer(), list[Message]()
        send(channel, {"kind": "learn", **about})
        _next(channel, buffer, waiting, _LOADING_SECONDS, "ready")
        for at in range(0, len(examples), _EXAMPLES_AT_ONCE):
            some = examples[at : at + _EXAMPLES_AT_ONCE]
            send(channel, {"kind": "examples", "items": [[list(e.tokens), e.first, e.end, e.old] for e in some]})
        send(channel, {"kind": "begin"})
        self.say(f"adapter: learning from {len(examples)} examples" + (", going on from before" if resumed else ""))
        while True:
            message = _next(channel, buffer, waiting, _STEP_SECONDS, "step", "checkpoint", "written")
            if message["kind"] == "written":
                return message
            if message["kind"] == "checkpoint":
                checkpoint.keep(target, self.scratch / "checkpoint", str(message["sha256"]))
                send(channel, {"kind": "go"})
            elif time.monotonic() - self._told_at > _TOLD_EVERY_SECONDS:
                self._told_at = time.monotonic()
                left = max(0, round(ends - time.monotonic()))
                self.say(f"adapter: step {message['step']}, loss {message['loss']}, at most {left} s more")


class Checkpoint:
    """The last whole state of one learning, in a file whose name says what it belongs to and what is in it."""

    def __init__(self, place: Path, key: str) -> None:
        self._place, self._key = place, key

    def found(self) -> Path | None:
        """The state to go on from; what is not what its name says is taken away."""
        for path in sorted(self._place.glob(f"checkpoint-{self._key}-*.npz")):
            with path.open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() == path.stem.rpartition("-")[2]:
                    return path
            path.unlink()
        return None

    def keep(self, source: Path, fresh: Path, sha256: str) -> None:
        """Put what a child wrote in the place of every state before. OSError or CannotEnforce if it cannot be."""
        fresh.unlink(missing_ok=True)
        if copied(source, fresh, MAX_ADAPTER_BYTES)[0] != sha256:
            raise CannotEnforce("the child that learns wrote another checkpoint than it said")
        before = list(self._place.glob("checkpoint-*.npz"))
        target = self._place / f"checkpoint-{self._key}-{sha256}.npz"
        move_file(fresh, target)
        for path in before:
            if path != target:
                path.unlink(missing_ok=True)


def _next(channel: Any, buffer: FrameBuffer, waiting: list[Message], seconds: float, *kinds: str) -> Message:
    until = time.monotonic() + seconds
    while not waiting:
        left = until - time.monotonic()
        if left <= 0 or not select.select([channel], [], [], left)[0]:
            raise CannotEnforce(f"the child that learns said nothing for {seconds:.0f} s")
        data = channel.recv(1 << 16)
        if not data:
            raise CannotEnforce("the child that learns ended", remedy="is there memory enough? `localagent doctor`")
        waiting += buffer.feed(data)
    message = waiting.pop(0)
    if message["kind"] not in kinds:
        raise CannotEnforce(f"no adapter was learned: {str(message.get('why', message['kind']))[:500]}")
    return message


def _proved(made: Path, base: GgufHeader) -> None:
    with made.open("rb") as stream:
        read_adapter(stream, base)
