"""What is the same for all workers of a task's quick checks, and what is asked of one of them."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from localagent.domain.edit import Candidate
from localagent.domain.outcome import Baseline
from localagent.verify.checks.test_selection import CHECK_PREFIX, COLLECT_PREFIX, Targets
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_client import OpenRequest

MEMORY_BYTES = 768 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """One candidate's run."""

    candidate: Candidate
    passing: tuple[str, ...]
    cpu_seconds: float
    stop_early: bool


class QuickPlan:
    """What is the same for all slots of a task."""

    def __init__(self, jails: JailPool, baseline: Baseline, request: OpenRequest) -> None:
        self.jails = jails
        self.baseline = baseline
        self.request = replace(request, memory_bytes=MEMORY_BYTES)
        self.targets = Targets.of(baseline)
        self.by_id = {t.id: t for t in baseline.tests}
        self.commands = {f"{CHECK_PREFIX}{c.command}": c for c in baseline.checks}
        self.notes: list[str] = []
        self._lock = threading.Lock()
        self._cold = False
        self.inline = False  # a fork of the session would lack something: tests run in the session itself
        self.unsteady: set[str] = set()  # passing tests that depend on what runs before them: the full check's affair
        self.vouched: set[str] = set()  # passing tests that were seen to pass in a warm worker, unpatched

    @property
    def cold(self) -> bool:
        """True once a warm worker was seen to disagree with the baseline."""
        return self._cold

    def go_cold(self, why: str) -> None:
        """All candidates from now on get a jail and a writable copy of their own."""
        with self._lock:
            if not self._cold:
                self._cold = True
                self.notes.append(f"each candidate runs in a jail of its own: {why}")

    def narrowed(self, passing: Sequence[str], rootdir: str) -> OpenRequest:
        """Collect only the files that matter, where the request allows it."""
        args = self.request.args
        paths: dict[str, None] = {}
        for name in self.targets.files:
            path = name[len(COLLECT_PREFIX) :]
            if not path.rsplit("/", 1)[-1].startswith("test") and not path.endswith(("_test.py", "_tests.py")):
                return self.request  # a conftest or something larger
            paths[path] = None
        for test in (*self.targets.tests, *passing):
            path_of_test = self.by_id[test].path
            if path_of_test is None:
                return self.request
            paths[str(path_of_test)] = None
        if any(arg.startswith("-") or "::" in arg for arg in args) or not paths or not rootdir:
            return self.request
        return replace(self.request, args=tuple(paths), options=(*self.request.options, f"--rootdir={rootdir}"))
