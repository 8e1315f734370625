"""Whether a model's layers go to a GPU, and what its process must be shown for that.

Only where it is asked for, and llama.cpp was built with a backend that can: then the nodes of GPU devices are shown to
the model's own confined process, and to nothing else. Not promised: that a driver is content with what a jail shows it
(CUDA's was, on the one machine with a GPU where it was tried), nor answers equal to the processor's. What came of it
the process says once it has loaded the model.
"""

import importlib.util
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from localagent.errors import CannotEnforce, UsageFault
from localagent.llm.model.llama_build import backend_name

AUTO = "auto"
ALL = -1
NO_BACKEND = "not offloaded: this build of llama.cpp has no GPU backend"
ASKED = "to run on a GPU, if its jail lets it see one; answers then differ from the processor's"
SEEN = "offloaded to a GPU; answers differ from the processor's"
UNSEEN = "not offloaded: in its jail llama.cpp sees no GPU, though devices are shown; it ran on the processor"
_LIBRARIES = ("libggml-cuda*", "libggml-hip*", "libggml-vulkan*", "libggml-sycl*")
_LIBRARIES_BYTES = 512 << 20  # what such a build was seen to take beside the same on the processor: 370 MB
_DRIVER_BYTES = 2 << 30  # of the machine's own memory, while CUDA starts: 512 MB were seen to be too few
NO_DEVICE = "not offloaded: no GPU device can be opened here (/dev/nvidia*, /dev/dri/renderD*, /dev/kfd)"
_MOST_LAYERS = 1000
_CAPABILITIES = "nvidia-caps"
_NODES = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", f"{_CAPABILITIES}/*", "dri/renderD*", "kfd")


@dataclass(frozen=True, kw_only=True, slots=True)
class Offload:
    """How many layers (ALL: as many as there are), the devices shown for it, and what is to be said of it."""

    layers: int = 0
    devices: tuple[str, ...] = ()
    said: str = ""


def checked_layers(text: str) -> str:
    """The text as it was given. UsageFault where it is neither "" nor `auto` nor a number of layers."""
    if text not in ("", AUTO) and not (text.isascii() and text.isdigit() and int(text) <= _MOST_LAYERS):
        raise UsageFault(
            f"--gpu-layers: {text!r} is neither `{AUTO}` nor a number from 0 to {_MOST_LAYERS}",
            remedy="give the number of layers to run on a GPU, or `auto` for all",
        )
    return text


def offload_of(
    text: str,
    *,
    backend: Callable[[], str] = backend_name,
    root: Path = Path("/dev"),
    opens: Callable[[Path], bool] | None = None,
) -> Offload:
    """What was asked for, as far as it can be had: `auto` goes on without, a number that cannot be had is refused.

    `opens` says whether a node can be opened. CannotEnforce where it is refused, or llama.cpp does not load.
    """
    wanted = checked_layers(text)
    if wanted == "" or (wanted != AUTO and int(wanted) == 0):
        return Offload()
    found = devices(root, opens or _opens)
    why = NO_BACKEND if not offloads(backend()) else "" if found else NO_DEVICE
    if why and wanted != AUTO:
        raise CannotEnforce(
            f"--gpu-layers {wanted}: {why}", remedy="leave it out, or say `auto`: the model runs on the processor"
        )
    return (
        Offload(said=why) if why else Offload(layers=ALL if wanted == AUTO else int(wanted), devices=found, said=ASKED)
    )


def came_of(offload: Offload, gpus: int) -> Offload:
    """The same with what came of it: `gpus` are those that the process saw."""
    return replace(offload, said=SEEN if gpus else UNSEEN) if offload.layers else offload


@cache
def libraries_bytes() -> int:
    """What the process of any model takes more where llama.cpp was built for a GPU, whether it uses one or not."""
    spec = importlib.util.find_spec("llama_cpp")
    folders = [Path(place, "lib") for place in (spec.submodule_search_locations or ())] if spec is not None else []
    there = any(any(folder.glob(name)) for folder in folders for name in _LIBRARIES)
    return _LIBRARIES_BYTES if there else 0


def beside_bytes(offload: Offload) -> int:
    """What the process of a model takes of the machine's memory for GPUs, beside what its file needs."""
    return libraries_bytes() + (_DRIVER_BYTES if offload.devices else 0)


def offloads(backend: str) -> bool:
    """Whether `backend_name` names anything but the processor."""
    return any(not part.startswith(("CPU", "BLAS")) for part in backend.split("; "))


def devices(root: Path = Path("/dev"), opens: Callable[[Path], bool] | None = None) -> tuple[str, ...]:
    """The nodes of GPU devices that this process may open, by name."""
    can = opens or _opens
    return tuple(str(path) for pattern in _NODES for path in sorted(root.glob(pattern)) if can(path))


def _opens(path: Path) -> bool:
    """Whether it is a device that this process may open; a capability (for parts of a GPU): that anyone may read."""
    try:
        mode = path.lstat().st_mode
        if path.parent.name == _CAPABILITIES:
            return stat.S_ISCHR(mode) and bool(mode & stat.S_IROTH) and os.access(path, os.R_OK)
        return stat.S_ISCHR(mode) and os.access(path, os.R_OK | os.W_OK)
    except OSError:
        return False
