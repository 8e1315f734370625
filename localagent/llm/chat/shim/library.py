"""Where the compiled chat shim lies: beside llama.cpp's libraries, named after the digest of its source.

An environment without a compiler, or a kit made before there was one, has none; callers then use our own format.
"""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("chat_shim.cpp")


def library_name(source: bytes) -> str:
    """The file name of the library that this source compiles to."""
    return f"liblocalagent_chat-{hashlib.sha256(source).hexdigest()[:8]}.so"


@cache
def find_library() -> Path | None:
    """The library of this very source, or None."""
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or not spec.submodule_search_locations or not SOURCE.is_file():
        return None
    package, name = Path(next(iter(spec.submodule_search_locations))), library_name(SOURCE.read_bytes())
    found = (package / "lib" / name, package.parent / "lib" / name)
    return next((path for path in found if path.is_file()), None)
