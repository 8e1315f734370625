"""What the client of a cluster has out, for how long it waits, and what it counts; the scheduler's half is played."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.batch_builder import MISTAKE, Batch
from support.fix_builder import home

from localagent.app import Settings
from localagent.batch import cluster as cluster_module
from localagent.batch.cluster import AHEAD, ClusterCrew
from localagent.batch.run import BatchRun, Begun, begin
from localagent.batch.task_result import RepositoryResult, RepositoryState
from localagent.cli.batch_worker import ways
from localagent.errors import CannotEnforce
from localagent.text.strict_json import dump, load

EACH = '[each]\nwork = ["codemods"]\nmodel = false\nmax_seconds = 100\n'


@dataclass
class Played:
    """A future. `answers` are what its task says, one after the other, whoever asks."""

    value: bytes = b""
    status: str = "pending"
    cancelled: bool = False
    gone: bool = False

    def done(self) -> bool:
        return self.status != "pending"

    def result(self, timeout: float) -> bytes:
        assert timeout > 0
        if self.gone:
            raise TimeoutError
        return self.value

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class Scheduler:
    """What a client of Dask does for the crew."""

    threads: int = 2
    asked: int = 0
    status: str = "running"
    sent: list[tuple[Played, dict[str, Any]]] = field(default_factory=list)

    def nthreads(self) -> dict[str, int]:
        self.asked += 1
        return {f"tls://w:{n}": 1 for n in range(self.threads)}

    def submit(self, remote: object, data: bytes, tree: bytes, **more: object) -> Played:
        self.sent.append((Played(), load(data)))
        return self.sent[-1][0]

    def end(self, at: int, *, name: str = "", state: RepositoryState = RepositoryState.CLEAN) -> None:
        future, request = self.sent[at]
        answer = RepositoryResult(number=0, name=name or request["name"], state=state, reason=f"told by {at}")
        future.value, future.status = dump(answer.json()), "finished"


@dataclass
class Scene:
    """Eight repositories, all different, and their crew."""

    scheduler: Scheduler
    begun: Begun
    crew: ClusterCrew
    settings: Settings


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with home({}) as h:
        for name, value in h.environment().items():
            monkeypatch.setenv(name, value)
        batch = Batch(h)
        for n in range(8):
            batch.add(f"r{n}", {"work.py": MISTAKE + f"x = {n}\n"})
        settings = Settings.from_environ()
        begun = begin(batch.write_all(each=EACH), settings, ways(), anytime=True)
        scheduler = Scheduler()
        crew = ClusterCrew(scheduler, lambda _data, _tree: b"", begun.run, begun.fleet, settings, 0)
        yield Scene(scheduler, begun, crew, settings)


def fill(scene: Scene, first: int = 0) -> int:
    """Start as many as go; how many are out."""
    number = first
    while scene.crew.free:
        scene.crew.start(number, 100.0)
        number += 1
    return len(scene.crew.busy)


def test_every_thread_has_its_next_one(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "_COUNTED_SECONDS", 600.0)
    assert fill(scene) == AHEAD * 2
    assert scene.scheduler.asked == 1, "each count of threads is a question to the scheduler"
    scene.scheduler.end(0)
    (ended,) = scene.crew.wait(5.0)
    assert (ended.number, ended.code) == (0, 0)
    assert scene.crew.free


def test_workers_that_come_bring_places(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "_COUNTED_SECONDS", 0.0)
    assert fill(scene) == 4
    scene.scheduler.threads = 3
    assert fill(scene, 4) == 6
    scene.scheduler.threads = 0
    assert not scene.crew.free


def test_what_waits_is_not_counted_as_work(scene: Scene) -> None:
    """The total budget is of seconds worked: four are out, two of them can be at work."""
    fill(scene)
    for sent in scene.crew._sent.values():
        sent.began = time.monotonic() - 10.0
    assert 20.0 <= scene.crew.running_seconds() < 40.0


def test_a_task_has_the_time_of_those_before_it(scene: Scene) -> None:
    """At most two are before one of the second row on its worker; one of the first row has nobody to wait for."""
    fill(scene)
    now = time.monotonic()
    allowed = [
        round((sent.deadline - now - cluster_module.STRAGGLE_SECONDS) / 100.0) for sent in scene.crew._sent.values()
    ]
    assert allowed == [1, 2, 2, 3]


@pytest.mark.parametrize("again", ["the same", "another's", "no answer at all", "gone with its worker"])
def test_one_that_was_given_up_and_answers_all_the_same(scene: Scene, again: str) -> None:
    """The first answer that is taken stands; what a straggler says afterwards is nobody's."""
    scene.crew.start(0, 100.0)
    scene.crew._sent[0].deadline = 0.0
    (lost,) = scene.crew.wait(5.0)
    assert (lost.code, lost.seconds, scene.scheduler.sent[0][0].cancelled) == (1, 0.0, True)
    scene.crew.start(0, 100.0)
    scene.scheduler.end(0, state=RepositoryState.FAULT)
    assert scene.crew.wait(0.05) == []
    if again == "the same":
        scene.scheduler.end(1)
    elif again == "another's":
        scene.scheduler.end(1, name="r1")
    else:
        future = scene.scheduler.sent[1][0]
        future.value, future.status, future.gone = b"[]", "finished", again == "gone with its worker"
    (ended,) = scene.crew.wait(5.0)
    answer = scene.begun.run.answer(0)
    assert (ended.code, answer is not None) == ((0, True) if again == "the same" else (1, False))
    assert answer is None or (answer.state, answer.reason) == (RepositoryState.CLEAN, "told by 1")


def test_a_task_is_lost_three_times_and_no_more(scene: Scene) -> None:
    """Each time under another name: what an earlier worker says is not taken for the later one's."""

    class Losing(Scheduler):
        def submit(self, remote: object, data: bytes, tree: bytes, **more: object) -> Played:
            future = super().submit(remote, data, tree)
            names.append(str(more["key"]))
            future.status = "lost" if load(data)["name"] == "r0" else "pending"
            if future.status == "pending":
                self.end(len(self.sent) - 1)
            return future

    names: list[str] = []
    crew = ClusterCrew(Losing(), lambda _data, _tree: b"", scene.begun.run, scene.begun.fleet, scene.settings, 0)
    notes: list[str] = []
    assert BatchRun(scene.begun, scene.settings, ways(), jobs=1, told=notes.append, crew=crew).work(anytime=True) == ""
    answer = scene.begun.run.answer(0)
    assert answer is not None
    assert (answer.state, "its worker died 3 times" in answer.reason) == (RepositoryState.FAULT, True)
    assert len(names) == len(set(names)) == 3 + 7


def test_a_scheduler_that_is_gone_ends_the_run_and_blames_no_repository(scene: Scene) -> None:
    """Dask cancels then all that was out: that is not a worker's death, and no try."""
    fill(scene)
    scene.scheduler.status = "connecting"
    for future, _ in scene.scheduler.sent:
        future.status = "cancelled"
    for asks in (lambda: scene.crew.wait(5.0), lambda: scene.crew.start(5, 100.0)):
        with pytest.raises(CannotEnforce, match="scheduler is gone: the connection broke") as caught:
            asks()
        assert f"--resume {scene.begun.run.id}" in caught.value.remedy
    scene.crew.end()
    assert scene.crew.busy == ()
    assert not any(future.cancelled for future, _ in scene.scheduler.sent)
    assert [scene.begun.run.answer(n) for n in range(8)] == [None] * 8
