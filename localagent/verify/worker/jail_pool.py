"""Workers with their workspaces, all known in one place so that `cancel` ends every one of them within a second."""

import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType, TracebackType

from localagent.domain.outcome import JailOutcome
from localagent.domain.paths import RepoPath
from localagent.errors import Interrupted
from localagent.jail.files.workspace import Workspace
from localagent.ports import JailProcess
from localagent.verify.worker.worker_client import WorkerClient, WorkerLost
from localagent.verify.worker.worker_spec import WorkerSpec, WorkerUse


class JailWorker:
    """A worker and the workspace it sees. Closing ends the jail first, then removes the workspace."""

    def __init__(self, jails: "JailPool", client: WorkerClient, workspace: Workspace) -> None:
        self._jails = jails
        self.client = client
        self.workspace = workspace

    def __enter__(self) -> "JailWorker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the jail, remove the workspace. Any number of times."""
        if self._jails.forget(self):
            self.client.close()
            self.workspace.remove()


class JailPool:
    """Starts workers and remembers those that are open.

    `until`: when every answer of a worker is due, on the monotonic clock; one that is late is lost. Threads may set it.
    """

    def __init__(self, place: WorkerSpec) -> None:
        self.place = place
        self.until = math.inf
        self._open: set[JailWorker] = set()
        self._starting: list[JailProcess] = []
        self._lock = threading.Lock()
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """True once `cancel` was called: whatever fails now fails because of that."""
        return self._cancelled

    @property
    def late(self) -> bool:
        """Whether no answer can come in time any more."""
        return time.monotonic() >= self.until

    @contextmanager
    def beside(self, seconds: float) -> Iterator[None]:
        """For so many seconds, which `until` does not count, whatever is left before and after."""
        until, begin = self.until, time.monotonic()
        self.until = max(until, begin) + seconds
        try:
            yield
        finally:
            self.until = until + time.monotonic() - begin

    @contextmanager
    def within(self, share: float) -> Iterator[None]:
        """In no more than this share of the time that is left."""
        until, begin = self.until, time.monotonic()
        self.until = begin + share * max(0.0, until - begin)
        try:
            yield
        finally:
            self.until = until

    def start(
        self, changes: Mapping[RepoPath, bytes], use: WorkerUse, variables: Mapping[str, str] = MappingProxyType({})
    ) -> JailWorker:
        """A fresh workspace and a worker on it, with some more variables in its environment.

        Interrupted when cancelled, WorkerLost when it is too late for one.
        """
        self.check()
        if self.late:
            raise WorkerLost("the time was used up before a worker could start", JailOutcome.WALL)
        workspace = self.place.workspace(changes, use)
        try:
            client = self._client(workspace, use, variables)
        except BaseException:
            workspace.remove()
            self.check()
            raise
        worker = JailWorker(self, client, workspace)
        with self._lock:
            self._open.add(worker)
        if self._cancelled:
            worker.close()
        self.check()
        return worker

    def _client(self, workspace: Workspace, use: WorkerUse, variables: Mapping[str, str]) -> WorkerClient:
        """A ready worker; `cancel` ends it while it is starting, too. WorkerLost when the interpreter did not start."""
        place = replace(self.place, variables={**self.place.variables, **variables}) if variables else self.place
        process = place.start(workspace, use)
        with self._lock:
            self._starting.append(process)
        try:
            if self._cancelled:
                process.kill()
            return WorkerClient(process, self.place.repo, self.place.bounds, until=lambda: self.until)
        finally:
            with self._lock:
                self._starting.remove(process)

    def check(self) -> None:
        """Interrupted when cancelled."""
        if self._cancelled:
            raise Interrupted("the task was cancelled")

    def forget(self, worker: JailWorker) -> bool:
        """True the first time."""
        with self._lock:
            known = worker in self._open
            self._open.discard(worker)
            return known

    def cancel(self) -> None:
        """End every jail. Workspaces go when their workers are closed."""
        self._cancelled = True
        with self._lock:
            kills = [*(worker.client.kill for worker in self._open), *(process.kill for process in self._starting)]
        threads = [threading.Thread(target=kill, daemon=True) for kill in kills]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def close(self) -> None:
        """End and remove everything."""
        with self._lock:
            jails = list(self._open)
        for worker in jails:
            worker.close()
