"""Answers made in a forked child of a session: behaviour tables, calls of two programs, tests collected there alone."""

from __future__ import annotations

import os
from time import monotonic as _monotonic
from typing import Any, Callable, Dict, List

from . import child_limits, differential_probe
from .behaviour_probe import table
from .call_capture import Capture
from .failure_trace import FailureTrace
from .fork_runner import Forks, end_child
from .json_frames import Reader, WireClosed, WireFault, WireTimeout, send
from .pytest_plugin import describe_item
from .test_runner import CpuTimer, run_items

_exit = os._exit


def answer(forks: Forks, request: Dict[str, Any], fd: int) -> Dict[str, Any]:
    """The table of some programs; no rows when the child did not come to its end. `fd` is not the child's business."""
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            forks.enter([read_fd, fd], int(request["memory_bytes"]))
            if request["op"] == "trace":
                send(write_fd, _trace(forks, request))
            elif request["op"] == "collect-run":
                send(write_fd, _collect_run(forks, request))
            elif forks.index is not None:
                send(write_fd, (_differ if request["op"] == "differ" else _behave)(forks, request))
            _exit(0)
        finally:
            _exit(96)
    os.close(write_fd)
    try:
        told = Reader(read_fd).receive(_monotonic() + float(request["wall_seconds"]))
    except (WireTimeout, WireClosed, WireFault):
        told = {"rows": []}
    os.close(read_fd)
    end_child(pid)
    told["k"] = "behaved"
    return told


def _trace(forks: Forks, request: Dict[str, Any]) -> Dict[str, Any]:
    """One test's events, values and the locals where it failed."""
    tracer = FailureTrace(forks.root, request["writes"])
    watch = CpuTimer(forks.root, lambda message: None)
    watch.tracer = tracer
    order = [(int(request["item"]), float(request["cpu_seconds"]))]
    run_items(forks.plugin, forks.items, order, watch, stop_on_bad=False, grace_tests=0)
    return tracer.record(forks.plugin.raised)


def _collect_run(forks: Forks, request: Dict[str, Any]) -> Dict[str, Any]:
    """What the tests of one pytest argument say, in a session that has imported what they import."""
    child_limits.limit_cpu(float(request["cpu_seconds"]))
    plugin = forks.plugin
    del plugin.errors[:]
    items = list(plugin.session.perform_collect([str(request["spec"])]))[: int(request["most"])]
    results = []
    for position, item in enumerate(items):
        following = items[position + 1] if position + 1 < len(items) else None
        node, path, line = describe_item(forks.root, item)
        results.append({"id": node, "path": path, "line": line, **plugin.run(item, following)})
    return {"results": results, "errors": list(plugin.errors)}


def _differ(forks: Forks, request: Dict[str, Any]) -> Dict[str, Any]:
    """What the functions do, call by call."""
    assert forks.index is not None
    index = forks.index.with_modules(str(p) for p, _, _ in request["functions"])
    places = [(str(p), int(n), str(name)) for p, n, name in request["functions"]]
    watched = differential_probe.Watched(
        [index.live(*place) for place in places],
        [index.codes(*place) for place in places],
        {int(k): index.live(str(p), int(n), str(name)) for k, p, n, name in request["inverses"]},
        [int(number) for number in request["defaulted"]],
    )
    watch = CpuTimer(forks.root, lambda message: None)
    cpu_seconds = float(request["test_seconds"])

    def run_test(item: int) -> None:
        run_items(forks.plugin, forks.items, [(item, cpu_seconds)], watch, stop_on_bad=False, grace_tests=0)

    return {
        **differential_probe.table(watched, run_test, request),
        "live": [bool(codes) for codes in watched.codes],
    }


def _behave(forks: Forks, request: Dict[str, Any]) -> Dict[str, Any]:
    index = forks.index
    assert index is not None
    found = [index.live(str(p), int(n), str(name)) for p, n, name in request["functions"]]
    functions = [f for f in found if f is not None]
    cpu_seconds = float(request["cpu_seconds"])
    watch = CpuTimer(forks.root, lambda message: None)
    order = [(int(i), cpu_seconds) for i in request["items"]]

    def run_tests() -> None:
        run_items(forks.plugin, forks.items, order, watch, stop_on_bad=False, grace_tests=0)

    def program(swaps: List[Dict[str, Any]]) -> Callable[[], None]:
        def put() -> None:
            for swap in swaps:
                index.apply(swap)

        return put

    programs = [program(swaps) for swaps in request["programs"]]
    capture = Capture(functions, {f.__code__.co_filename for f in functions}, index.owner)
    return table(capture, forks.root, run_tests, programs, int(request["seed"]), cpu_seconds)
