"""What llama.cpp was built for on this machine; asked in a child, so that the parent never loads it."""

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

from localagent.errors import CannotEnforce

PACKAGE = Path(__file__).resolve().parents[2]
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from localagent.llm.model.llama_build import main; sys.exit(main())"
)
_SECONDS = 30.0
_OUTPUT_BYTES = 4096
_GPU_TYPES = (1, 2)  # GGML_BACKEND_DEVICE_TYPE_GPU and _IGPU


def backend_name() -> str:
    """`CPU (AVX2, AVX512, ...)`, `CUDA`, `Vulkan`, ... Raises CannotEnforce when llama.cpp does not load."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _PROGRAM, str(PACKAGE.parent)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise CannotEnforce(f"llama.cpp could not be asked: {fault}", remedy="run `make setup`") from None
    if done.returncode != 0:
        why = done.stderr.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1][:300]
        raise CannotEnforce(f"llama.cpp does not load: {why}", remedy="run `make setup`")
    return described(done.stdout[:_OUTPUT_BYTES].decode("utf-8", "replace"))


def described(answer: str) -> str:
    """One short line: the devices beside the processor, then the processor's features."""
    features, *devices = answer.split("\n")
    _, _, processor = features.rpartition("CPU :")
    found = [
        name.strip() for name, equals, value in (p.partition("=") for p in processor.split("|")) if value.strip() == "1"
    ]
    named = [device.strip() for device in devices if device.strip() and not device.startswith("CPU")]
    return "; ".join([*named, f"CPU ({', '.join(found)})" if found else "CPU"])


def gpus(llama: Any) -> int:
    """How many GPUs llama.cpp sees in this process; `llama` are its bindings."""
    library = _library(llama)
    library.ggml_backend_dev_type.restype = ctypes.c_int
    found = (library.ggml_backend_dev_get(ctypes.c_size_t(k)) for k in range(library.ggml_backend_dev_count()))
    return sum(library.ggml_backend_dev_type(ctypes.c_void_p(device)) in _GPU_TYPES for device in found)


def _library(llama: Any) -> Any:
    library = ctypes.CDLL(llama._lib._name)
    library.ggml_backend_dev_count.restype = ctypes.c_size_t
    library.ggml_backend_dev_get.restype = ctypes.c_void_p
    return library


def main() -> int:
    """In the child: llama.cpp's own words, then a line for each device, to standard output."""
    from localagent.llm.process.llama_engine import bindings  # noqa: PLC0415

    llama = bindings()
    llama.llama_log_set(llama.llama_log_callback(lambda _level, _text, _data: None), ctypes.c_void_p(0))
    llama.llama_backend_init()
    library = _library(llama)
    library.ggml_backend_dev_name.restype = ctypes.c_char_p
    library.ggml_backend_dev_description.restype = ctypes.c_char_p
    lines: list[bytes] = [llama.llama_print_system_info()]
    for index in range(library.ggml_backend_dev_count()):
        device = ctypes.c_void_p(library.ggml_backend_dev_get(ctypes.c_size_t(index)))
        lines.append(library.ggml_backend_dev_name(device) + b" " + library.ggml_backend_dev_description(device))
    sys.stdout.buffer.write(b"\n".join(lines))
    return 0
