"""Runs two tests of this worker's own many times, so that children forked later find pytest's code as in a long run.

CPython fits bytecode and the places of attributes to what runs; a child of a process in which nothing ran yet does that
anew each time, in pages that must be copied for it. Nothing of the repository runs here, and what pytest leaves in the
process is put back. Not promised: that anything becomes quicker; only that nothing else changes.
"""

from __future__ import annotations

import linecache
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from typing import Any, Dict, List

import pytest

from .plugin import SessionPlugin
from .quiet import put_off
from .runner import Watch, run_items
from .wire import pack

_TIMES = 24  # enough for the interpreters that fit themselves to what runs
_CPU_SECONDS = 60.0
_NAME = "test_localagent_rehearsal"
_TESTS = """\
def test_differs():
    found = [sum([10, 12, 7]), max(10, 12), 29 / 3]
    assert found == ["nothing", "gives", "this"]


def test_holds():
    assert len([29, 12, 3]) == 3
"""
_ARGUMENTS = ("-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--noconftest", "--tb=no")
_HOOKS = ("stdin", "stdout", "stderr", "excepthook", "unraisablehook", "breakpointhook", "displayhook")
_LAST = ("last_type", "last_value", "last_traceback", "last_exc")


def rehearse() -> None:
    """Collect the two tests and run them often. Raises what this pytest makes of it; all is as before then, too."""
    folder = tempfile.mkdtemp(prefix="la-rehearsal-")
    before = _Process()
    try:
        for name, text in ((_NAME + ".py", _TESTS), ("pytest.ini", "[pytest]\n")):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        os.chdir(folder)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        pytest.main([*_ARGUMENTS, folder], plugins=[SessionPlugin(folder, _serve, lambda path: None)])
    finally:
        before.put_back(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _serve(plugin: SessionPlugin, session: Any) -> None:
    put_off(session.config)
    watch = Watch(str(session.config.rootdir), _void)
    order = [(index, _CPU_SECONDS) for index in range(len(session.items))]
    for _ in range(_TIMES):
        run_items(plugin, session.items, order, watch, stop_on_bad=False, grace_tests=0)


def _void(message: Dict[str, Any]) -> None:
    """Where a child would send it."""
    pack(message)


class _Process:
    """What pytest may change in its process, as it was when this was made."""

    def __init__(self) -> None:
        from _pytest.python import Function

        self._cwd = os.getcwd()
        self._environment = dict(os.environ)
        self._lists: List[Any] = [(kept, list(kept)) for kept in (sys.path, sys.meta_path, sys.path_hooks)]
        self._modules = set(sys.modules)
        self._hooks: Dict[str, Any] = {name: getattr(sys, name) for name in _HOOKS if hasattr(sys, name)}
        self._thread_hook = threading.excepthook
        self._on_profile = signal.getsignal(signal.SIGPROF)
        self._filters = list(warnings.filters)
        root = logging.getLogger()
        self._logging = (root, root.level, list(root.handlers))
        self._shown = Function, Function.repr_failure

    def put_back(self, folder: str) -> None:
        """`folder` is where the tests lay."""
        os.chdir(self._cwd)
        for name in set(os.environ) - set(self._environment):
            del os.environ[name]
        os.environ.update(self._environment)
        for kept, values in self._lists:
            kept[:] = values
        for name in set(sys.modules) - self._modules:
            if name.split(".", 1)[0] not in ("_pytest", "pytest"):
                del sys.modules[name]
        for name, value in self._hooks.items():
            setattr(sys, name, value)
        for name in _LAST:
            if hasattr(sys, name):
                delattr(sys, name)
        threading.excepthook = self._thread_hook
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._on_profile)
        warnings.filters[:] = self._filters  # type: ignore[index]
        root, level, handlers = self._logging
        root.setLevel(level)
        root.handlers[:] = handlers
        shown, method = self._shown
        shown.repr_failure = method  # type: ignore[method-assign]
        for cache in (linecache.cache, sys.path_importer_cache):
            for name in [name for name in cache if name.startswith(folder)]:
                del cache[name]
