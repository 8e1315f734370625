"""Importing once, in the first process, what pytest would import again in each session: itself and known plugins.

Only from where pytest itself lies, never from the repository: what is imported here runs beside the channel. A session
forgets what the repository has a module of the same name for (`yield_names`): it gets that one, as under
`python -m pytest`. Not promised: that a plugin's own asserts are rewritten.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any, Iterable, Iterator, List, Optional, Set

# Kept, widely installed, without effects at import and without threads. Of others nobody knows that: they are imported
# by each session, as pytest does.
PLUGINS = (
    "_hypothesis_pytestplugin",
    "anyio.pytest_plugin",
    "pytest_asyncio.plugin",
    "pytest_cov.plugin",
    "pytest_mock.plugin",
    "pytest_timeout",
    "xdist.looponfail",
    "xdist.plugin",
)
_OWN = ("resource", "ctypes")  # imported by this worker alone
_FINDERS: Any = (
    importlib.machinery.BuiltinImporter,
    importlib.machinery.FrozenImporter,
    importlib.machinery.PathFinder,
)
_preloaded: List[str] = []


def borrow() -> bool:
    """Put the pytest that the host lends last on the path, where this Python has none; whether there is one."""
    lent = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_la_lent")
    if _origin("pytest") is not None or not os.path.isdir(lent):
        return False
    sys.path.append(lent)
    return True


def preload(root: str) -> Optional[str]:
    """Import pytest from outside the repository; its version, or None when this Python has none."""
    origin = _origin("pytest")
    if origin is None:
        return None
    if _below(origin, root):
        return "of the repository"  # the repository is pytest itself: only a session may import it
    library, before = os.path.dirname(os.path.dirname(origin)), set(sys.modules)
    gc.disable()  # modules are many objects and no garbage: a fifth of the time otherwise
    try:
        with _only_outside(root):
            version = _import_pytest()
            _preload_plugins(library)
            from . import pytest_session  # noqa: F401  (imported before any fork)
    except ImportError:  # what it needs lies in the repository: it is for the sessions, all of it
        for name in set(sys.modules) - before:
            if _below(os.path.realpath(getattr(sys.modules[name], "__file__", None) or ""), library):
                del sys.modules[name]
        del _preloaded[:]
        return "of the repository"
    else:
        gc.freeze()  # sessions need not look through what was here before them
        return version
    finally:
        gc.enable()


def _import_pytest() -> str:
    import _pytest.config
    import pytest

    for name in _pytest.config.default_plugins:
        try:
            __import__("_pytest." + name)
        except ImportError:
            continue
    return str(pytest.__version__)


@contextlib.contextmanager
def _only_outside(root: str) -> Iterator[None]:
    """Nothing of the repository can be imported meanwhile, though an editable install puts it on the path."""
    path, finders = list(sys.path), list(sys.meta_path)
    kept = [p for p in path if not _below(os.path.realpath(p) + "/", root)]
    sys.path[:] = kept
    sys.meta_path[:] = [finder for finder in finders if finder in _FINDERS]
    try:
        yield
    finally:
        sys.path[:] = path + [p for p in sys.path if p not in kept]
        sys.meta_path[:] = finders + [finder for finder in sys.meta_path if finder not in finders]


def _preload_plugins(library: str) -> None:
    """Import those of the known plugins that lie beside pytest."""
    before = set(sys.modules)
    for name in PLUGINS:
        origin = _origin(name.split(".", 1)[0])
        if origin is None or not _below(origin, library):
            continue
        try:
            __import__(name)
        except Exception:  # each session imports it again, and pytest tells what is wrong
            continue
    _preloaded.extend(sorted(set(sys.modules) - before))


def _origin(name: str) -> Optional[str]:
    """Where a top-level module would come from."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return None if spec is None or not spec.origin else os.path.realpath(spec.origin)


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def yield_names(root: str, folders: Iterable[str]) -> None:
    """Forget what was imported here by a name that the repository has a module of, in one of these folders."""
    theirs: Set[str] = set()
    for folder in folders:
        if not _below(os.path.realpath(folder) + "/", root):
            continue
        try:
            theirs.update(entry.split(".", 1)[0] for entry in os.listdir(folder))
        except OSError:
            continue
    tops = {name.split(".", 1)[0] for name in (*_preloaded, *_OWN)} & theirs
    for name in [n for n in sys.modules if n.split(".", 1)[0] in tops]:
        del sys.modules[name]


def allow_preloaded() -> None:
    """Let pytest not warn that what was imported here cannot be rewritten any more; projects make warnings errors."""
    from _pytest.assertion import rewrite

    hook = rewrite.AssertionRewritingHook
    warn = getattr(hook, "_warn_already_imported", None)
    if warn is None:
        return
    known = frozenset(_preloaded)

    def warn_of_others(self: object, name: str) -> None:
        if name not in known:
            warn(self, name)

    setattr(hook, "_warn_already_imported", warn_of_others)  # noqa: B010
