"""The pytest plugin of a session: records collection, judges each test from the exceptions its phases really raised.

A conftest that rewrites reports cannot turn a raised exception into a pass: the outcome is taken from the outermost
wrapper around `pytest_runtest_makereport`, where the exception itself is in hand.
"""

from __future__ import annotations

import os
from time import perf_counter as _perf_counter
from typing import Any, Callable, Dict, Generator, List, Optional, Set, Tuple

import pytest

from .failures import bounded, describe, plain, relative_path, side

ID_LIMIT = 4000


class _Attempt:
    """Phases of one run of one test."""

    def __init__(self) -> None:
        self.phases: Dict[str, str] = {}
        self.failure: Optional[Dict[str, Any]] = None


class SessionPlugin:
    """`serve` is called with the collected session in place of pytest's own loop over the items."""

    def __init__(
        self, root: str, serve: Callable[["SessionPlugin", Any], None], begun: Callable[[Optional[str]], None]
    ) -> None:
        self._root = root
        self._serve = serve
        self._begun = begun
        self._attempt = _Attempt()
        self._sides: Tuple[str, str] = ("", "")
        self.session: Any = None  # once it has collected
        self.errors: List[Dict[str, Any]] = []
        self._met: Set[str] = set()  # node ids of the errors, as pytest has them
        self._rootdir = root  # pytest's, where its node ids begin
        self.stopped = False
        self.raised: Optional[BaseException] = None  # by the test that failed last
        self.internal = ""  # what broke pytest itself

    def pytest_internalerror(self, excinfo: Any) -> None:
        """What pytest would print as INTERNALERROR: its last line and where it comes from."""
        entry = excinfo.traceback[-1]
        self.internal = bounded("%s (%s:%s)" % (excinfo.exconly(tryshort=True), entry.path, entry.lineno + 1), 1000)

    # -- collection

    def pytest_sessionstart(self, session: Any) -> None:
        self._rootdir = str(getattr(session.config, "rootpath", None) or session.config.rootdir)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectstart(self, collector: Any) -> None:
        if isinstance(collector, pytest.Module):
            place = getattr(collector, "path", None) or getattr(collector, "fspath", None)
            self._begun(relative_path(self._root, str(place)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        if isinstance(node, pytest.Item) or len(self.errors) >= 500:
            return
        value = getattr(getattr(call, "excinfo", None), "value", None)
        failure = describe(self._root, value) if value is not None else plain("CollectError", "")
        self._add_error(node, report, failure)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: Any) -> None:
        if not report.failed or report.nodeid in self._met or len(self.errors) >= 500:
            return
        text = bounded(str(getattr(report, "longreprtext", "") or report.longrepr), 2000)
        self._add_error(None, report, plain("CollectError", text))

    def _add_error(self, node: Any, report: Any, failure: Dict[str, Any]) -> None:
        place = getattr(node, "path", None) or getattr(node, "fspath", None)
        path = relative_path(self._root, str(place)) if place is not None else None
        if path is None:
            path = relative_path(self._root, os.path.join(self._rootdir, str(report.nodeid).split("::", 1)[0]))
        self._met.add(report.nodeid)
        self.errors.append({"id": node_id(str(report.nodeid), path), "path": path, "failure": failure})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        self.session = session
        self._serve(self, session)
        return True

    # -- one test

    def run(self, item: Any, following: Any) -> Dict[str, Any]:
        """Run one item through pytest's own protocol."""
        self._attempt, self._sides = _Attempt(), ("", "")
        begin = _perf_counter()
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException as stop:  # pytest.exit(), KeyboardInterrupt: pytest would end here
            self.stopped = True
            return self._answer("error", begin, describe(self._root, stop))
        if self._attempt.failure is not None and self._attempt.failure["type"] == "MemoryError":
            self.stopped = True  # what filled the memory, such as recorded output, would meet the next test too
        return self._answer(self._outcome(), begin, self._attempt.failure)

    def _answer(self, outcome: str, begin: float, failure: Optional[Dict[str, Any]]) -> Dict[str, Any]:
        good = outcome in ("passed", "skipped")
        if not good and failure is None:
            failure = plain("Unreported", "pytest did not report every phase of this test")
        return {"outcome": outcome, "seconds": max(0.0, _perf_counter() - begin), "failure": None if good else failure}

    def _outcome(self) -> str:
        phases = self._attempt.phases
        if "failed" in (phases.get("setup"), phases.get("teardown")):
            return "error"
        if phases.get("call") == "failed":
            return "failed"
        if phases.get("teardown") != "passed":
            return "error"
        if phases.get("setup") == "skipped" or phases.get("call") == "skipped":
            return "skipped"
        return "passed" if phases.get("setup") == "passed" and phases.get("call") == "passed" else "error"

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        result = yield
        if call.when == "setup":
            self._attempt = _Attempt()
        try:
            report = result.get_result()
        except BaseException as fault:
            self._record(call.when, "failed", fault)
            return
        outcome = str(report.outcome)
        raised = call.excinfo.value if call.excinfo is not None else None
        expected = hasattr(report, "wasxfail")
        if raised is not None and outcome == "passed" and not expected:
            outcome = "failed"  # somebody changed the report's mind
        if outcome not in ("passed", "skipped"):
            outcome = "failed"
        self._record(call.when, outcome, raised, report)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        if str(report.outcome) == "failed" and self._attempt.phases.get(report.when) in ("passed", None):
            self._record(report.when, "failed", None, report)

    def _record(self, when: str, outcome: str, raised: Optional[BaseException], report: Any = None) -> None:
        if self._attempt.phases.get(when) != "failed":
            self._attempt.phases[when] = outcome
        if outcome != "failed" or self._attempt.failure is not None:
            return
        self.raised = raised
        if raised is not None:
            self._attempt.failure = describe(self._root, raised, self._sides)
        else:
            self._attempt.failure = plain("Failed", str(getattr(report, "longreprtext", "") or ""))

    @pytest.hookimpl(tryfirst=True)
    def pytest_assertrepr_compare(self, config: Any, op: str, left: Any, right: Any) -> None:
        self._sides = (side(left), side(right))


def node_id(name: str, path: Optional[str]) -> str:
    """The node id with its file relative to the tree, as arguments are: pytest has it relative to its rootdir.

    `path` is the file, relative to the tree; None where it is not known or lies outside, and the id stays as it is.
    """
    file, separator, rest = name.partition("::")
    if path is not None and file != path and path.endswith("/" + file):
        name = path + separator + rest
    return bounded(name, ID_LIMIT)


def describe_item(root: str, item: Any) -> List[Any]:
    """Id, file and line of a collected test."""
    try:
        place, line, _name = item.location
        line = int(line or 0) + 1
    except Exception:
        place, line = "", 0
    full = getattr(item, "path", None) or getattr(item, "fspath", None) or place
    path = relative_path(root, str(full))
    return [node_id(str(item.nodeid), path), path, line]
