"""What llama.cpp was built for on this machine; asked in a child, so that the parent never loads it."""

import subprocess
import sys
from pathlib import Path

from localagent.errors import CannotEnforce

PACKAGE = Path(__file__).resolve().parent.parent
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from localagent.llm.backend import main; sys.exit(main())"
_SECONDS = 30.0
_OUTPUT_BYTES = 4096


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


def described(system_info: str) -> str:
    """One short line out of llama.cpp's `NAME : FEATURE = 1 | ...` text."""
    devices: dict[str, list[str]] = {}
    device = "CPU"
    for part in system_info.split("|"):
        head, colon, rest = part.partition(":")
        if colon:
            device = head.strip() or device
        feature, equals, value = (rest if colon else head).partition("=")
        found = devices.setdefault(device, [])
        if equals and value.strip() == "1":
            found.append(feature.strip())
    named = {name: features for name, features in devices.items() if features or name != "CPU"}
    return (
        "; ".join(f"{name} ({', '.join(features)})" if features else name for name, features in named.items()) or "CPU"
    )


def main() -> int:
    """In the child: llama.cpp's own words to standard output."""
    from localagent.llm.engine import bindings  # noqa: PLC0415

    text: bytes = bindings().llama_print_system_info()
    sys.stdout.buffer.write(text)
    return 0
