"""Repositories worked on by a Dask cluster: the client's half. Needs the extra `cluster`.

A task is the name of a function of ours, a request in JSON and a tree in bytes, in one piece: what a worker does next
lies there before it has ended what it does. Dask carries them by pickle: whoever holds a key that the cluster's
authority signed may run anything on its machines. Not promised: that a task ends with the run that asked for it; it
ends with its budget.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from localagent.app.settings import Settings
from localagent.batch.batch_ports import HELD
from localagent.batch.cache_key import key_of
from localagent.batch.certificates import AUTHORITY, CertificateRole, faults_of, pair_of
from localagent.batch.cluster_settings import CLIENT
from localagent.batch.cluster_task import received, request_of, unsent
from localagent.batch.fleet import Cluster, Fleet
from localagent.batch.pool import WorkerEnded
from localagent.batch.runs import RunRecord, RunStore
from localagent.batch.snapshot_archive import pack
from localagent.batch.trees import seen_tree
from localagent.domain.edit import digest_of
from localagent.errors import CannotEnforce, LocalagentError, UsageFault

_CONNECT_SECONDS = 30.0
STRAGGLE_SECONDS = 60.0  # over its budget and that of those before: then its worker is taken for lost
AHEAD = 2  # out for each thread: the one that runs, and the one that lies there when it has ended
_COUNTED_SECONDS = 1.0  # threads are counted so often: each count is a question to the scheduler
_FETCH_SECONDS = 120.0  # for an answer that is there: its worker may die just then
_LOST = 1
_TALKING = "running"  # Dask's word for a client whose connection stands
Remote = Callable[[bytes, bytes], bytes]


@contextlib.contextmanager
def connected(cluster: Cluster) -> Iterator[Any]:
    """A client of the cluster, over TLS alone. UsageFault without extra or certificates, CannotEnforce if silent."""
    try:
        import dask  # noqa: PLC0415 - an extra
        from distributed import Client, Security  # noqa: PLC0415
    except ImportError as error:
        raise UsageFault(
            "a cluster needs the extra `cluster`, which is not installed here", remedy="pip install localagent[cluster]"
        ) from error
    if faults := faults_of(cluster.certificates, CertificateRole.CLIENT):
        raise UsageFault(faults, remedy="`localagent batch certs` makes certificates")
    pair = pair_of(cluster.certificates, CertificateRole.CLIENT)
    with dask.config.set(CLIENT):
        security = Security(
            require_encryption=True,
            tls_ca_file=str(cluster.certificates / f"{AUTHORITY}.pem"),
            tls_client_cert=str(pair.certificate),
            tls_client_key=str(pair.key),
        )
        try:
            client = Client(cluster.scheduler, security=security, timeout=_CONNECT_SECONDS, set_as_default=False)
        except OSError as error:
            raise CannotEnforce(
                f"no scheduler answers at {cluster.scheduler}: {error}",
                remedy="start it with a certificate of the same authority; docs/batch.md shows how",
            ) from error
        try:
            yield client
        finally:
            with contextlib.suppress(OSError):  # nobody is there to take leave of
                client.close(timeout=5)


@dataclass(slots=True)
class _Sent:
    """A task that is out. `key` is the repository's, under which its answer is kept."""

    future: Any
    key: str
    tree: str
    commit: str
    began: float
    deadline: float


class ClusterCrew:
    """ports.Crew on a cluster: two tasks are out for each of its threads, so that no worker waits for us to pack."""

    def __init__(
        self, client: Any, remote: Remote, run: RunRecord, fleet: Fleet, settings: Settings, jobs: int
    ) -> None:
        self._client, self._remote = client, remote
        self._run, self._fleet, self._settings = run, fleet, settings
        self._jobs = jobs
        self._longest = max(member.max_seconds for member in fleet.members)  # of the task that one may wait behind
        self._sent: dict[int, _Sent] = {}
        self._ended: list[WorkerEnded] = []
        self._tries: dict[str, int] = {}
        self._threads = 0
        self._counted = -math.inf

    @property
    def free(self) -> bool:
        """Whether one more may be sent. As workers come and go, so do places."""
        if self._ended:
            return False
        if time.monotonic() - self._counted > _COUNTED_SECONDS:
            with self._reached():
                self._threads, self._counted = sum(self._client.nthreads().values()), time.monotonic()
        places = AHEAD * self._threads
        return len(self._sent) < max(1, min(self._jobs or places, places))

    @property
    def busy(self) -> tuple[int, ...]:
        """The numbers that are out, or have ended and were not told."""
        return (*self._sent, *(ended.number for ended in self._ended))

    def running_seconds(self) -> float:
        """Seconds that the tasks at work have taken, together: as many of those that are out as there are threads."""
        oldest = sorted(sent.began for sent in self._sent.values())[: max(1, self._threads)]
        return sum(time.monotonic() - began for began in oldest)

    def start(self, number: int, seconds: float) -> None:
        """Send a repository, or answer at once: a kept answer, a twin that is out, a tree that cannot be sent."""
        member, began = self._fleet.members[number], time.monotonic()
        try:
            with seen_tree(self._run, member, number, self._settings) as (snapshot, commit):
                key = key_of(member, snapshot.digest, self._run.plan.basis, self._settings)
                if any(sent.key == key for sent in self._sent.values()):
                    self._end(number, HELD, began)
                    return
                kept = RunStore(self._settings.state_dir).kept.get(key)
                if kept is not None:
                    self._run.save_answer(replace(kept, number=number, name=member.name, commit=commit))
                    self._end(number, 0, began)
                    return
                tool = self._run.plan.basis.tool
                data = request_of(self._fleet, number, snapshot.digest, seconds, tool, self._settings).json()
                tree = pack(snapshot)
        except LocalagentError as no:
            self._run.save_answer(unsent(member, number, no))
            self._end(number, 0, began)
            return
        again = self._tries[key] = self._tries.get(key, 0) + 1
        name = f"answer-{digest_of(data)}-{again}"
        with self._reached():
            future = self._client.submit(self._remote, data, tree, key=name, pure=False, retries=1)
        before = -(-len(self._sent) // max(1, self._threads))  # on its worker, at the most
        deadline = began + seconds + before * self._longest + STRAGGLE_SECONDS
        self._sent[number] = _Sent(future, key, snapshot.digest, commit, time.monotonic(), deadline)

    def wait(self, seconds: float) -> list[WorkerEnded]:
        """Those that ended within so many seconds; stragglers end without an answer, to be sent to another.

        CannotEnforce where the scheduler is gone: what was out is lost with it, and no repository's fault.
        """
        until = time.monotonic() + seconds
        while self._sent and not self._ended and time.monotonic() < until:
            with self._reached():
                pass
            for number, sent in list(self._sent.items()):
                if sent.future.done():
                    self._settle(number, self._sent.pop(number))
                elif time.monotonic() >= sent.deadline:
                    del self._sent[number]
                    sent.future.cancel()
                    self._end(number, _LOST, sent.began)
            if not self._ended:
                time.sleep(0.02)
        ended, self._ended = self._ended, []
        return ended

    def end(self) -> None:
        """Forget what is out."""
        with contextlib.suppress(OSError):  # it is gone, and what it had with it
            for sent in self._sent.values() if self._client.status == _TALKING else ():
                sent.future.cancel()
        self._sent.clear()

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        """CannotEnforce where there is no scheduler to speak to."""
        try:
            if self._client.status != _TALKING:
                raise ConnectionError("the connection broke")
            yield
        except OSError as gone:
            raise CannotEnforce(
                f"the cluster's scheduler is gone: {gone}",
                remedy=f"when it is back: localagent batch run --resume {self._run.id}",
            ) from gone

    def _settle(self, number: int, sent: _Sent) -> None:
        """Keep the answer of a task that is done; without one it is tried again."""
        code = _LOST
        if sent.future.status == "finished":
            with contextlib.suppress(ValueError, TypeError, OSError):  # none of ours, or gone with its worker
                answer = received(sent.future.result(_FETCH_SECONDS), self._fleet.members[number], number, sent.tree)
                answer = replace(answer, key=sent.key, commit=sent.commit)
                self._run.save_answer(answer)
                RunStore(self._settings.state_dir).kept.put(answer, self._run.id)
                code = 0
        self._end(number, code, sent.began)

    def _end(self, number: int, code: int, began: float) -> None:
        """A task that is lost cost the repository nothing: its budget is whole for the next try."""
        seconds = 0.0 if code == _LOST else time.monotonic() - began
        self._ended.append(WorkerEnded(number=number, code=code, late=False, seconds=seconds))
