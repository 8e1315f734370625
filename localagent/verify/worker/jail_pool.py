"""Workers with their workspaces, all known in one place so that `cancel` ends every one of them within a second."""

import threading
from collections.abc import Mapping
from types import TracebackType

from localagent.domain.paths import RepoPath
from localagent.errors import Interrupted
from localagent.jail.files.workspace import Workspace
from localagent.ports import JailProcess
from localagent.verify.worker.worker_client import WorkerClient
from localagent.verify.worker.worker_spec import WorkerSpec, WorkerUse


class JailWorker:
    """A worker and the workspace it sees. Closing ends the jail first, then removes the workspace."""

    def __init__(self, rooms: "JailPool", client: WorkerClient, workspace: Workspace) -> None:
        self._rooms = rooms
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
        if self._rooms.forget(self):
            self.client.close()
            self.workspace.remove()


class JailPool:
    """Starts rooms and remembers those that are open."""

    def __init__(self, place: WorkerSpec) -> None:
        self.place = place
        self._open: set[JailWorker] = set()
        self._starting: list[JailProcess] = []
        self._lock = threading.Lock()
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """True once `cancel` was called: whatever fails now fails because of that."""
        return self._cancelled

    def start(self, changes: Mapping[RepoPath, bytes], use: WorkerUse) -> JailWorker:
        """A fresh workspace and a worker on it. Interrupted when cancelled; see Place for the rest."""
        self.check()
        workspace = self.place.workspace(changes, use)
        try:
            client = self._client(workspace, use)
        except BaseException:
            workspace.remove()
            self.check()
            raise
        room = JailWorker(self, client, workspace)
        with self._lock:
            self._open.add(room)
        if self._cancelled:
            room.close()
        self.check()
        return room

    def _client(self, workspace: Workspace, use: WorkerUse) -> WorkerClient:
        """A ready worker; `cancel` ends it while it is starting, too. WorkerLost when the interpreter did not start."""
        process = self.place.start(workspace, use)
        with self._lock:
            self._starting.append(process)
        try:
            if self._cancelled:
                process.kill()
            return WorkerClient(process, self.place.repo, self.place.bounds)
        finally:
            with self._lock:
                self._starting.remove(process)

    def check(self) -> None:
        """Interrupted when cancelled."""
        if self._cancelled:
            raise Interrupted("the task was cancelled")

    def forget(self, room: JailWorker) -> bool:
        """True the first time."""
        with self._lock:
            known = room in self._open
            self._open.discard(room)
            return known

    def cancel(self) -> None:
        """End every jail. Workspaces go when their rooms are closed."""
        self._cancelled = True
        with self._lock:
            kills = [*(room.client.kill for room in self._open), *(process.kill for process in self._starting)]
        threads = [threading.Thread(target=kill, daemon=True) for kill in kills]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def close(self) -> None:
        """End and remove everything."""
        with self._lock:
            rooms = list(self._open)
        for room in rooms:
            room.close()
