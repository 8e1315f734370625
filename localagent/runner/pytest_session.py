"""A session: one process that collects the repository's tests once, then runs chosen ones in forked children.

The process belongs to the code under test from its first import on; the supervisor above believes only well-formed
records, and a record never turns an unfinished test into a pass.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import sys
from time import monotonic as _monotonic
from typing import Any, Dict, List, Optional, Set, Tuple

from . import child_limits, probe_requests
from .code_swap import SwapIndex
from .failures import describe, know_loaded_files, plain
from .fork_runner import Forks
from .hypothesis_seed import settle
from .json_frames import Reader, WireClosed, WireFault, send
from .line_trace import LineTracer
from .pytest_plugin import SessionPlugin, describe_item
from .pytest_preload import allow_preloaded, yield_names
from .pytest_setup import forget_stale_bytecode, fresh_main, quiet_plugins
from .quiet_reporter import put_off
from .test_runner import CpuTimer, run_items

_OVERRULED: Tuple[Tuple[str, Any], ...] = (
    ("numprocesses", None),
    ("dist", "no"),
    ("tx", []),
    ("maxfail", 0),
    ("usepdb", False),
    ("tbstyle", "no"),
)
EXIT_CHANGED = 99
_exit = os._exit
_getpid = os.getpid


class CollectedSession:
    """One collected session; `main` never returns."""

    def __init__(self, root: str, fd: int, request: Dict[str, Any]) -> None:
        self._root = root
        self._fd = fd
        self._request = request
        self._reader = Reader(fd)
        self._plugin: Optional[SessionPlugin] = None
        self._tracer = LineTracer(root) if request["trace"] else None
        self._items: List[Any] = []
        self._kept_children: Set[int] = set()
        self._kept_files: List[Any] = []
        self._capture_files: List[int] = []
        self._collected = False
        self._pid = _getpid()

    def _send(self, message: Dict[str, Any]) -> None:
        if _getpid() != self._pid:
            _exit(0)  # a fork of the code under test came back out of it
        send(self._fd, message)

    def main(self) -> None:
        """Collect and serve."""
        request = self._request
        child_limits.limit_data(int(request["memory_bytes"]))
        fresh_main()
        forget_stale_bytecode(self._root)
        os.chdir(self._root)
        for place in reversed(list(request["pythonpath"])):
            sys.path.insert(0, place)
        if request["pythonpath"]:
            os.environ["PYTHONPATH"] = os.pathsep.join(request["pythonpath"])
        sys.path.insert(0, self._root)
        yield_names(self._root, sys.path)
        sys.argv[1:] = list(request["args"])
        watch = CpuTimer(self._root, self._send)
        watch.arm(float(request["cpu_seconds"]))
        self._watch = watch
        if self._tracer is not None:
            self._tracer.start()
        try:
            self._pytest(list(request["options"]) + quiet_plugins(request["options"]) + list(request["args"]))
        except BaseException as stop:
            if not self._collected:
                self._refuse("stopped", describe(self._root, stop), str(stop))
        _exit(0)

    def _pytest(self, args: List[str]) -> None:
        import _pytest.config as pytest_config

        allow_preloaded()
        plugin = self._plugin = SessionPlugin(self._root, self._serve, self._begun)
        try:
            config = pytest_config._prepareconfig(args, [plugin])
        except pytest_config.ConftestImportFailure as fault:
            cause = getattr(fault, "cause", None) or fault.excinfo[1]  # type: ignore[attr-defined]
            self._refuse("conftest", describe(self._root, cause), str(fault), str(fault.path))
            return
        except pytest_config.UsageError as fault:
            self._refuse("usage", plain("UsageError", ""), "\n".join(str(a) for a in fault.args))
            return
        # tbstyle: pytest's long rendering of a failure looks at every loaded module; nobody reads it here
        for name, value in _OVERRULED:
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        try:
            code = config.hook.pytest_cmdline_main(config=config)
        except pytest_config.UsageError as fault:
            self._refuse("usage", plain("UsageError", ""), "\n".join(str(a) for a in fault.args))
            return
        self._refuse(
            "usage" if int(code or 0) == 4 else "stopped",
            plain("Stopped", ""),
            "pytest ended with %s%s" % (code, plugin.internal and ": " + plugin.internal),
        )

    def _begun(self, path: Optional[str]) -> None:
        """Tell which file comes next: should it end the interpreter, its name is known."""
        if path is not None and not self._collected:
            self._send({"k": "at", "path": path})

    def _refuse(self, kind: str, failure: Dict[str, Any], text: str, path: str = "") -> None:
        sys.settrace(None)
        errors = self._plugin.errors if self._plugin is not None else []
        lines = self._tracer.take() if self._tracer is not None else None
        self._send(
            {
                "k": "refused",
                "kind": kind,
                "text": text[-4000:],
                "path": path,
                "failure": failure,
                "errors": errors,
                "import_lines": lines,
            }
        )
        _exit(0)

    # -- serving

    def _serve(self, plugin: SessionPlugin, session: Any) -> None:
        lines = None
        if self._tracer is not None:
            self._tracer.stop()
            lines = self._tracer.take()
        self._watch.disarm()
        faulthandler.cancel_dump_traceback_later()  # its thread is not in a fork, where cancelling would wait for ever
        self._items = list(session.items)
        self._collected = True
        settle(int(self._request["seed"]))
        capture = getattr(session.config.pluginmanager.getplugin("capturemanager"), "_global_capturing", None)
        for stream in ("out", "err"):
            file = getattr(getattr(capture, stream, None), "tmpfile", None)
            try:
                self._capture_files.append(file.fileno())  # type: ignore[union-attr]
            except Exception:
                continue
        self._kept_children = child_limits.children()
        self._kept_files = child_limits.scratch_entries()
        index = None
        if self._request["swap"]:
            index = SwapIndex(self._root)
            know_loaded_files(self._root)
            put_off(session.config)
            gc.collect()
            gc.freeze()  # many children will be forked from here
        self._forks = Forks(self._root, self._items, plugin, index, child_limits.data_bytes())
        child_limits.hide()
        self._state = child_limits.state(self._capture_files)
        self._send(
            {
                "k": "collected",
                "items": [describe_item(self._root, item) for item in self._items],
                "errors": plugin.errors,
                "import_lines": lines,
                "rootdir": str(getattr(session.config, "rootpath", None) or session.config.rootdir),
                "unforkable": child_limits.lost_in_a_fork(),
            }
        )
        while True:
            try:
                request = self._reader.receive()
            except (WireClosed, WireFault):
                _exit(0)
            if request["op"] == "end":
                _exit(0)
            if request["op"] in ("behave", "differ", "trace", "collect-run"):
                self._send(probe_requests.answer(self._forks, request, self._fd))
                self._clean()
            elif request["inline"]:
                self._run_inline(plugin, request)
            else:
                self._run_forked(request)
            if not request.get("inline") and child_limits.state(self._capture_files) != self._state:
                _exit(EXIT_CHANGED)  # a test changed what serves the next one
            self._send({"k": "end"})

    def _run_inline(self, plugin: SessionPlugin, request: Dict[str, Any]) -> None:
        child_limits.guard_child()
        watch = self._watch
        # the tracer of the collection also hears the threads that were started then
        watch.tracer = (self._tracer or LineTracer(self._root)) if request["trace"] else None
        order = [(int(i), float(request["cpu_seconds"])) for i in request["items"]]
        until = _monotonic() + float(request["budget_seconds"])
        run_items(plugin, self._items, order, watch, stop_on_bad=False, grace_tests=0, until=until)
        watch.index = None

    def _run_forked(self, request: Dict[str, Any]) -> None:
        pending = [int(i) for i in request["items"]]
        hung: Dict[str, int] = {}
        for index in request["hung"]:
            hung[self._base(int(index))] = 1
        give_up_at = _monotonic() + float(request["budget_seconds"])
        while pending and _monotonic() < give_up_at:
            order = [(i, self._cpu_seconds(i, request, hung)) for i in pending]
            results, finished = self._forks.run(request, order, give_up_at, self._send, self._fd)
            self._clean()
            bad = False
            for result in results:
                pending.remove(result["i"])
                bad = bad or result["outcome"] not in ("passed", "skipped")
                if result["outcome"] == "timed-out":
                    base = self._base(result["i"])
                    hung[base] = hung.get(base, 0) + 1
            if finished or not results or (bad and request["stop_on_bad"]):
                return

    def _base(self, index: int) -> str:
        return str(self._items[index].nodeid).split("[", 1)[0]

    def _cpu_seconds(self, index: int, request: Dict[str, Any], hung: Dict[str, int]) -> float:
        full = float(request["cpu_seconds"])
        siblings = hung.get(self._base(index), 0)
        if siblings or sum(hung.values()) >= 5:
            return min(full, float(request["cpu_after_hang_seconds"]))
        return full

    def _clean(self) -> None:
        if not child_limits.end_leftovers(self._kept_children) or not child_limits.clean_scratch(self._kept_files):
            _exit(98)
        for fd in self._capture_files + [1, 2]:
            try:
                os.ftruncate(fd, 0)
                os.lseek(fd, 0, os.SEEK_SET)
            except OSError:
                continue
