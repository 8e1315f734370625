"""What makes importing and collecting in a session what it is under `python -m pytest`."""

from __future__ import annotations

import os
import sys
import types
from typing import Any, List


def fresh_main() -> None:
    """Make `__main__` look as under `python -m pytest`."""
    module = types.ModuleType("__main__")
    spec = None
    try:
        import importlib.util

        spec = importlib.util.find_spec("pytest.__main__")
    except (ImportError, ValueError):
        spec = None
    if spec is not None:
        module.__spec__ = spec
        module.__file__ = spec.origin
        sys.argv[0] = spec.origin or "pytest"
    sys.modules["__main__"] = module


def forget_stale_bytecode(root: str) -> None:
    """Never read compiled files below the root: they may be older than the patched source."""
    external = sys.modules.get("_frozen_importlib_external")
    original = getattr(external, "cache_from_source", None)
    if external is None or original is None:
        return
    prefix = root.rstrip("/") + "/"

    def cache_from_source(path: Any, debug_override: Any = None, *, optimization: Any = None) -> Any:
        if os.path.abspath(os.fspath(path)).startswith(prefix):
            raise NotImplementedError("compiled files below the repository are not read")
        return original(path, debug_override, optimization=optimization)

    setattr(external, "cache_from_source", cache_from_source)  # noqa: B010
    try:
        from _pytest.assertion import rewrite

        setattr(rewrite, "_read_pyc", lambda *args, **kwargs: None)  # noqa: B010
    except ImportError:
        return


def quiet_plugins(options: List[str]) -> List[str]:
    """Options that still installed plugins which trace or shuffle; none when the host asked for no options."""
    import importlib.util

    found: List[str] = []
    if options and importlib.util.find_spec("pytest_cov") is not None:
        found.append("--no-cov")
    if options and importlib.util.find_spec("pytest_randomly") is not None:
        found += ["-p", "no:randomly"]
    return found
