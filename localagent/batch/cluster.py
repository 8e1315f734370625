"""Repositories worked on by a Dask cluster: the client's half. Needs the extra `cluster`.

A task is the name of a function of ours, a request in JSON and a tree in bytes, in one piece: what a worker does next
lies there before it has ended what it does. Dask carries them by pickle: whoever holds a key that the cluster's
authority signed may run anything on its machines. Not promised: that a task ends with the run that asked for it; it
ends with its budget.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from localagent.app.settings import Settings
from localagent.batch.certificates import AUTHORITY, Role, faults_of, pair_of
from localagent.batch.cluster_settings import CLIENT
from localagent.batch.cluster_task import received, request_of, unsent
from localagent.batch.fleet import Cluster, Fleet
from localagent.batch.keys import key_of
from localagent.batch.parcel import pack
from localagent.batch.pool import Ended
from localagent.batch.ports import HELD
from localagent.batch.runs import RunRecord, RunStore
from localagent.batch.trees import seen_tree
from localagent.domain.edit import digest_of
from localagent.errors import CannotEnforce, LocalagentError, UsageFault

_CONNECT_SECONDS = 30.0
STRAGGLE_SECONDS = 60.0  # over its budget and that of the one before: then its worker is taken for lost
_LOST = 1
Remote = Callable[[bytes, bytes], bytes]


@contextlib.contextmanager
def connected(cluster: Cluster) -> Iterator[Any]:
    """A client of the cluster, over TLS alone. UsageFault for wrong certificates, CannotEnforce without an answer."""
    try:
        import dask  # noqa: PLC0415 - an extra
        from distributed import Client, Security  # noqa: PLC0415
    except ImportError as error:
        raise CannotEnforce(
            "a cluster needs the extra `cluster`, which is not installed here", remedy="pip install localagent[cluster]"
        ) from error
    if faults := faults_of(cluster.certificates, Role.CLIENT):
        raise UsageFault(faults, remedy="`localagent batch certs` makes certificates")
    pair = pair_of(cluster.certificates, Role.CLIENT)
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
    """ports.Crew on a cluster: one task more is out than it has threads, so that no worker waits for us to pack."""

    def __init__(
        self, client: Any, remote: Remote, run: RunRecord, fleet: Fleet, settings: Settings, jobs: int
    ) -> None:
        self._client, self._remote = client, remote
        self._run, self._fleet, self._settings = run, fleet, settings
        self._jobs = jobs
        self._longest = max(member.max_seconds for member in fleet.members)  # of the task that one may wait behind
        self._sent: dict[int, _Sent] = {}
        self._ended: list[Ended] = []
        self._tries: dict[str, int] = {}

    @property
    def free(self) -> bool:
        """Whether one more may be sent. As workers come and go, so do places."""
        threads = sum(self._client.nthreads().values())
        return not self._ended and len(self._sent) < max(1, min(self._jobs or threads + 1, threads + 1))

    @property
    def busy(self) -> tuple[int, ...]:
        """The numbers that are out, or have ended and were not told."""
        return (*self._sent, *(ended.number for ended in self._ended))

    def running_seconds(self) -> float:
        """Seconds that the tasks which are out have taken, together."""
        return sum(time.monotonic() - sent.began for sent in self._sent.values())

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
                level = self._fleet.cluster.level if self._fleet.cluster else "L1"
                tool = self._run.plan.basis.tool
                data = request_of(member, snapshot.digest, seconds, level, tool, self._settings).json()
                tree = pack(snapshot)
        except LocalagentError as no:
            self._run.save_answer(unsent(member, number, no))
            self._end(number, 0, began)
            return
        again = self._tries[key] = self._tries.get(key, 0) + 1
        name = f"answer-{digest_of(data)}-{again}"
        future = self._client.submit(self._remote, data, tree, key=name, pure=False, retries=1)
        deadline = began + seconds + self._longest + STRAGGLE_SECONDS
        self._sent[number] = _Sent(future, key, snapshot.digest, commit, time.monotonic(), deadline)

    def wait(self, seconds: float) -> list[Ended]:
        """Those that ended within so many seconds; stragglers end without an answer, to be sent to another."""
        until = time.monotonic() + seconds
        while self._sent and not self._ended and time.monotonic() < until:
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
        for sent in self._sent.values():
            sent.future.cancel()
        self._sent.clear()

    def _settle(self, number: int, sent: _Sent) -> None:
        """Keep the answer of a task that is done; without one it is tried again."""
        code = _LOST
        if sent.future.status == "finished":
            with contextlib.suppress(ValueError, TypeError):  # not an answer of ours: as if there were none
                answer = received(sent.future.result(), self._fleet.members[number], number, sent.tree)
                answer = replace(answer, key=sent.key, commit=sent.commit)
                self._run.save_answer(answer)
                RunStore(self._settings.state_dir).kept.put(answer, self._run.id)
                code = 0
        self._end(number, code, sent.began)

    def _end(self, number: int, code: int, began: float) -> None:
        """A task that is lost cost the repository nothing: its budget is whole for the next try."""
        seconds = 0.0 if code == _LOST else time.monotonic() - began
        self._ended.append(Ended(number=number, code=code, late=False, seconds=seconds))
