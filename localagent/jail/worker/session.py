"""A session: one process that collects the repository's tests once, then runs chosen ones in forked children.

The process belongs to the code under test from its first import on; the supervisor above believes only well-formed
records, and a record never turns an unfinished test into a pass.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import types
from time import monotonic as _monotonic
from typing import Any, Dict, List, Optional, Set, Tuple

from . import confine, differ
from .behave import Capture, table
from .failures import describe, know_loaded_files, plain
from .lines import LineTracer
from .plugin import SessionPlugin, describe_item
from .runner import EXIT_HUNG, Watch, run_items
from .swap import CannotSwap, SwapIndex
from .wire import Reader, WireClosed, WireFault, WireTimeout, send

_OVERRULED: Tuple[Tuple[str, Any], ...] = (
    ("numprocesses", None),
    ("dist", "no"),
    ("tx", []),
    ("maxfail", 0),
    ("usepdb", False),
    ("tbstyle", "no"),
)
_SLICE_SECONDS = 0.05
_TELL_SECONDS = 0.3
_STATUS_PATIENCE_SECONDS = 0.02
_WALL_AFTER_HANG_SECONDS = 2.0
EXIT_CHANGED = 99
_exit = os._exit
_getpid = os.getpid


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


def yield_names(root: str) -> None:
    """Let the repository have modules named like those that only this worker, and not pytest, has imported."""
    import importlib.machinery

    for name in ("resource", "ctypes"):
        spec = importlib.machinery.PathFinder.find_spec(name, [root] + sys.path)
        if spec is not None and (spec.origin or "").startswith(root.rstrip("/") + "/"):
            sys.modules.pop(name, None)


def quiet_plugins(options: List[str]) -> List[str]:
    """Options that still installed plugins which trace or shuffle; none when the host asked for no options."""
    import importlib.util

    found: List[str] = []
    if options and importlib.util.find_spec("pytest_cov") is not None:
        found.append("--no-cov")
    if options and importlib.util.find_spec("pytest_randomly") is not None:
        found += ["-p", "no:randomly"]
    return found


class Session:
    """One collected session; `main` never returns."""

    def __init__(self, root: str, fd: int, request: Dict[str, Any]) -> None:
        self._root = root
        self._fd = fd
        self._request = request
        self._reader = Reader(fd)
        self._tracer = LineTracer(root) if request["trace"] else None
        self._items: List[Any] = []
        self._index: Optional[SwapIndex] = None
        self._kept_children: Set[int] = set()
        self._kept_files: Dict[str, Set[str]] = {}
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
        confine.limit_address_space(int(request["memory_bytes"]))
        fresh_main()
        forget_stale_bytecode(self._root)
        os.chdir(self._root)
        for place in reversed(list(request["pythonpath"])):
            sys.path.insert(0, place)
        if request["pythonpath"]:
            os.environ["PYTHONPATH"] = os.pathsep.join(request["pythonpath"])
        sys.path.insert(0, self._root)
        yield_names(self._root)
        sys.argv[1:] = list(request["args"])
        watch = Watch(self._root, self._send)
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

        plugin = SessionPlugin(self._root, self._serve, self._begun)
        self._plugin = plugin
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
        self._refuse("usage" if int(code or 0) == 4 else "stopped", plain("Stopped", ""), "pytest ended with %s" % code)

    def _begun(self, path: Optional[str]) -> None:
        """Tell which file comes next: should it end the interpreter, its name is known."""
        if path is not None and not self._collected:
            self._send({"k": "at", "path": path})

    def _refuse(self, kind: str, failure: Dict[str, Any], text: str, path: str = "") -> None:
        sys.settrace(None)
        errors = getattr(self, "_plugin", None).errors if hasattr(self, "_plugin") else []  # type: ignore[union-attr]
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
        self._items = list(session.items)
        self._collected = True
        capture = getattr(session.config.pluginmanager.getplugin("capturemanager"), "_global_capturing", None)
        for stream in ("out", "err"):
            file = getattr(getattr(capture, stream, None), "tmpfile", None)
            try:
                self._capture_files.append(file.fileno())  # type: ignore[union-attr]
            except Exception:
                continue
        self._kept_children = confine.children()
        self._kept_files = confine.scratch_entries()
        if self._request["swap"]:
            self._index = SwapIndex(self._root)
            know_loaded_files(self._root)
            gc.collect()
            gc.freeze()  # many children will be forked from here
        confine.hide()
        self._state = confine.state(self._capture_files)
        self._send(
            {
                "k": "collected",
                "items": [describe_item(self._root, item) for item in self._items],
                "errors": plugin.errors,
                "import_lines": lines,
                "rootdir": str(getattr(session.config, "rootpath", None) or session.config.rootdir),
                "unforkable": confine.lost_in_a_fork(),
            }
        )
        while True:
            try:
                request = self._reader.receive()
            except (WireClosed, WireFault):
                _exit(0)
            if request["op"] == "end":
                _exit(0)
            if request["op"] in ("behave", "differ"):
                self._send(self._behave(plugin, request))
                self._clean()
            elif request["inline"]:
                self._run_inline(plugin, request)
            else:
                self._run_forked(plugin, request)
            if not request.get("inline") and confine.state(self._capture_files) != self._state:
                _exit(EXIT_CHANGED)  # a test changed what serves the next one
            self._send({"k": "end"})

    def _behave(self, plugin: SessionPlugin, request: Dict[str, Any]) -> Dict[str, Any]:
        """The behaviour table of some programs, made in a forked child; no rows when it did not come to its end."""
        read_fd, write_fd = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(read_fd)
                if request["op"] == "differ":
                    self._differ_child(plugin, request, write_fd)
                else:
                    self._behave_child(plugin, request, write_fd)
            finally:
                _exit(96)
        os.close(write_fd)
        answer: Dict[str, Any] = {"rows": []}
        try:
            answer = Reader(read_fd).receive(_monotonic() + float(request["wall_seconds"]))
        except (WireTimeout, WireClosed, WireFault):
            answer = {"rows": []}
        os.close(read_fd)
        _end_child(pid)
        answer["k"] = "behaved"
        return answer

    def _differ_child(self, plugin: SessionPlugin, request: Dict[str, Any], fd: int) -> None:
        """Answer what the functions do, call by call."""
        confine.guard_child()
        os.close(self._fd)
        os.setsid()
        confine.limit_address_space(int(request["memory_bytes"]))
        index = self._index
        if index is None:
            return
        functions = [index.live(str(p), int(n), str(name)) for p, n, name in request["functions"]]
        inverses = {int(k): index.live(str(p), int(n), str(name)) for k, p, n, name in request["inverses"]}
        watch = Watch(self._root, lambda message: None)
        cpu_seconds = float(request["test_seconds"])

        def run_test(item: int) -> None:
            run_items(plugin, self._items, [(item, cpu_seconds)], watch, stop_on_bad=False, grace_tests=0)

        send(fd, {**differ.table(functions, inverses, run_test, request), "live": [f is not None for f in functions]})
        _exit(0)

    def _behave_child(self, plugin: SessionPlugin, request: Dict[str, Any], fd: int) -> None:
        confine.guard_child()
        os.close(self._fd)
        os.setsid()
        confine.limit_address_space(int(request["memory_bytes"]))
        index = self._index
        if index is None:
            return
        found = [index.live(str(p), int(n), str(name)) for p, n, name in request["functions"]]
        functions = [f for f in found if f is not None]
        cpu_seconds = float(request["cpu_seconds"])
        watch = Watch(self._root, lambda message: None)
        order = [(int(i), cpu_seconds) for i in request["items"]]

        def run_tests() -> None:
            run_items(plugin, self._items, order, watch, stop_on_bad=False, grace_tests=0)

        def program(swaps: List[Dict[str, Any]]) -> Any:
            def put() -> None:
                for swap in swaps:
                    index.apply(swap)

            return put

        programs = [program(swaps) for swaps in request["programs"]]
        capture = Capture(functions, {f.__code__.co_filename for f in functions}, index.owner)
        send(fd, table(capture, self._root, run_tests, programs, int(request["seed"]), cpu_seconds))
        _exit(0)

    def _run_inline(self, plugin: SessionPlugin, request: Dict[str, Any]) -> None:
        confine.guard_child()
        watch = self._watch
        # the tracer of the collection also hears the threads that were started then
        watch.tracer = (self._tracer or LineTracer(self._root)) if request["trace"] else None
        order = [(int(i), float(request["cpu_seconds"])) for i in request["items"]]
        run_items(plugin, self._items, order, watch, stop_on_bad=False, grace_tests=0)
        watch.index = None

    def _run_forked(self, plugin: SessionPlugin, request: Dict[str, Any]) -> None:
        pending = [int(i) for i in request["items"]]
        hung: Dict[str, int] = {}
        for index in request["hung"]:
            hung[self._base(int(index))] = 1
        give_up_at = _monotonic() + float(request["budget_seconds"])
        while pending and _monotonic() < give_up_at:
            order = [(i, self._cpu_seconds(i, request, hung)) for i in pending]
            results, finished = self._one_child(plugin, request, order, give_up_at)
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
        if not confine.end_leftovers(self._kept_children):
            _exit(98)
        confine.clean_scratch(self._kept_files)
        for fd in self._capture_files + [1, 2]:
            try:
                os.ftruncate(fd, 0)
                os.lseek(fd, 0, os.SEEK_SET)
            except OSError:
                continue

    # -- one child

    def _one_child(
        self, plugin: SessionPlugin, request: Dict[str, Any], order: List[Tuple[int, float]], give_up_at: float
    ) -> Tuple[List[Dict[str, Any]], bool]:
        """Results of one forked child, and whether it came to its end. What ended the child has a result too."""
        token = os.urandom(8).hex()
        read_fd, write_fd = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(read_fd)
                self._child(plugin, request, order, write_fd, token)
            finally:
                _exit(96)
        os.close(write_fd)
        reader = Reader(read_fd)
        results: List[Dict[str, Any]] = []
        allowed = {index for index, _cpu in order}
        started: Optional[int] = None
        wall_seconds = float(request["wall_seconds"])
        after_hang = order[0][1] < float(request["cpu_seconds"])
        deadline = _monotonic() + wall_seconds
        why = ""
        finished = False
        while True:
            now = _monotonic()
            if now >= min(deadline, give_up_at):
                if why == "time" or now >= give_up_at:
                    why = "time"
                    break
                why, deadline = "time", now + _TELL_SECONDS
                _signal(pid, signal.SIGPROF)  # its handler tells where it stands
            try:
                record = reader.receive(min(deadline, give_up_at, now + _SLICE_SECONDS))
            except WireTimeout:
                if _gone(pid):
                    break
                continue
            except WireClosed:
                break
            except WireFault:
                why = "garbage"
                break
            if record.pop("t", None) != token:
                why = "garbage"
                break
            kind = record.get("k")
            if kind == "start" and started is None and record.get("i") in allowed:
                started = record["i"]
                deadline = _monotonic() + (min(wall_seconds, _WALL_AFTER_HANG_SECONDS) if after_hang else wall_seconds)
            elif kind == "done" and record.get("i") == started and started is not None:
                allowed.discard(started)
                started = None
                results.append(record)
                self._send(record)
            elif kind == "cannot-swap":
                self._send({"k": "cannot-swap", "why": str(record.get("why"))[:500]})
                finished = True
                break
            elif kind == "end" and started is None:
                finished = True
                break
            else:
                why = "garbage"
                break
        os.close(read_fd)
        status = _end_child(pid, patience_seconds=0.0 if finished else _STATUS_PATIENCE_SECONDS)
        if not finished and started is not None:
            record = _unfinished(started, why, status)
            results.append(record)
            self._send(record)
        return results, finished

    def _child(
        self,
        plugin: SessionPlugin,
        request: Dict[str, Any],
        order: List[Tuple[int, float]],
        fd: int,
        token: str,
    ) -> None:
        confine.guard_child()
        os.close(self._fd)
        os.setsid()
        confine.limit_address_space(int(request["memory_bytes"]))

        me = _getpid()

        def tell(message: Dict[str, Any]) -> None:
            if _getpid() != me:
                _exit(0)  # a fork of the test came back out of it
            message["t"] = token
            send(fd, message)

        try:
            for swap in request["swap"] or ():
                if self._index is None:
                    raise CannotSwap("the session was not opened for swaps")
                self._index.apply(swap)
        except CannotSwap as refusal:
            tell({"k": "cannot-swap", "why": str(refusal)})
            _exit(0)
        watch = Watch(self._root, tell)
        watch.tracer = LineTracer(self._root) if request["trace"] else None
        run_items(
            plugin,
            self._items,
            order,
            watch,
            stop_on_bad=bool(request["stop_on_bad"]),
            grace_tests=int(request["grace_tests"]),
        )
        tell({"k": "end"})
        _exit(0)


def _gone(pid: int) -> bool:
    """True when the child ended; it stays reapable."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _end_child(pid: int, patience_seconds: float = _STATUS_PATIENCE_SECONDS) -> int:
    """Kill (harmless when it ended) and reap; the wait status, or -1 when somebody else reaped it.

    A child that may be about to end by itself is given `patience_seconds`, so that the status tells how.
    """
    patience = _monotonic() + patience_seconds
    while not _gone(pid) and _monotonic() < patience:
        os.sched_yield()
    _signal(-pid, signal.SIGKILL)
    _signal(pid, signal.SIGKILL)
    try:
        return os.waitpid(pid, 0)[1]
    except OSError:
        return -1


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def _unfinished(index: int, why: str, status: int) -> Dict[str, Any]:
    """The result of a test that ended its child, by what the kernel says of the child."""
    outcome = "error"
    if why == "garbage":
        failure = plain("Garbage", "wrote into the descriptor that carries its results")
    elif why == "time":
        outcome, failure = "timed-out", plain("TimeLimit", "did not finish in its wall time")
    elif status >= 0 and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number in confine.exit_signals():
            outcome, failure = "timed-out", plain("TimeLimit", "did not finish in its CPU time")
        else:
            failure = plain("Crash", "ended the interpreter by signal %d" % number)
    else:
        code = os.WEXITSTATUS(status) if status >= 0 else -1
        failure = plain("InterpreterExit", "ended the interpreter with status %d" % code)
        if code == EXIT_HUNG:
            outcome, failure = "timed-out", plain("TimeLimit", "did not finish in its CPU time")
    return {"k": "done", "i": index, "outcome": outcome, "seconds": 0.0, "failure": failure, "lines": None}
