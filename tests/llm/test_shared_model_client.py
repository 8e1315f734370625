"""Several askers, one child, replayed frame by frame: who gets what, who is told which token, what a death costs."""

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.model_replay import READY, Answer, ReplayJail

from localagent.domain.edit import Edit, Splice
from localagent.domain.paths import RepoPath
from localagent.llm.model.adapter import AdapterFile
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.model_client import Served
from localagent.llm.process.protocol import FrameBuffer, Message, pack
from localagent.llm.process.shared_model_client import MOST_DEATHS, ClientConnection, Hosted, Shared
from localagent.llm.scoring.decoder import ModelDecoder
from localagent.llm.scoring.scorer import ModelScorer

SHA = "0" * 64


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    return ModelFile(name="m", path=path, bytes=4, sha256=SHA, licence="MIT")


class House:
    """A shared model whose children play scripts, one script for each start."""

    def __init__(self, model: ModelFile, *scripts: tuple[Answer, ...]) -> None:
        self.jails = [ReplayJail(*script) for script in scripts]
        self.clock = 0.0
        self._left = list(self.jails)
        self._model = model
        self.shared = Shared(self._made, clock=lambda: self.clock)
        self.ends: list[socket.socket] = []

    def _made(self, sha256: str) -> Served | None:
        return Served(self._model, self._left.pop(0), threads=3) if sha256 == SHA else None

    def line(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        threading.Thread(target=ClientConnection(theirs, self.shared).run, daemon=True).start()
        ours.settimeout(20)
        self.ends.append(ours)
        return ours

    def scorer(self) -> ModelScorer:
        return ModelScorer(self._model, Hosted(descriptor=self.line().fileno()), threads=1)


def edits() -> list[Edit]:
    cut = Splice(start=0, end=1, text=b"y")
    return [Edit(path=RepoPath("a.py"), splices=(cut,), operator="x", line=1, end_line=1, prior=0.0)]


def scored(score: float, number: int) -> list[Message]:
    done = {"kind": "done", "id": number, "tokens": 7, "outside": 0, "resident_bytes": 1}
    return [{"kind": "scores", "id": number, "items": [[0, score, -0.5]], "tokens": 7}, done]


def ask(scorer: ModelScorer, seconds: float = 20.0) -> list[float | None]:
    return list(scorer.score(b"x = 1\n", "", edits(), timeout_seconds=seconds))


def frames(line: socket.socket, count: int) -> list[Message]:
    buffer = FrameBuffer()
    found: list[Message] = []
    while len(found) < count and (data := line.recv(65536)):
        found += buffer.feed(data)
    return found


def test_one_child_answers_all_and_each_its_own(model: ModelFile) -> None:
    house = House(model, (READY, scored(-1.0, 1), scored(-2.0, 2), scored(-3.0, 3)))
    first, second = house.scorer(), house.scorer()
    assert ask(first) == [-1.0]
    assert ask(second) == [-2.0]
    assert ask(first) == [-3.0]
    assert (first.warning, second.warning) == ("", "")
    assert (first.tokens_used, second.tokens_used) == (14, 7)
    assert (first.threads, first.resident_bytes) == (1, 1000)  # the child's own word, not what was asked for
    assert len(house.jails[0].started) == 1
    first.close()
    assert not house.jails[0].started[0].killed.is_set()


def test_a_mender_is_part_of_what_is_asked_for(model: ModelFile, tmp_path: Path) -> None:
    """Whoever asks for a model with its mender gets no child without it, and may ask it to mend."""
    mender = AdapterFile(path=tmp_path / "m.gguf", bytes=4, sha256="1" * 64, about={})
    mended: list[Message] = [
        {"kind": "mended", "id": 2, "items": [[0, -0.5]], "tokens": 3},
        {"kind": "done", "id": 2, "tokens": 3, "outside": 0, "resident_bytes": 1},
    ]
    prepared: list[Message] = [{"kind": "done", "id": 1, "tokens": 5, "resident_bytes": 1}]
    both, asked = replace(model, mender=mender), list[str]()

    def made(loaded: str) -> Served:
        asked.append(loaded)
        return Served(both, ReplayJail(READY, prepared, mended), threads=1)

    shared = Shared(made)
    ours, theirs = socket.socketpair()
    threading.Thread(target=ClientConnection(theirs, shared).run, daemon=True).start()
    scorer = ModelScorer(both, Hosted(descriptor=ours.fileno()), threads=1)
    scorer.prepare("# a.py\n", timeout_seconds=20)
    assert list(scorer.mend(b"x = 1\n", "", edits(), timeout_seconds=20)) == [-0.5]
    assert (scorer.warning, scorer.tokens_used) == ("", 8)
    assert asked == [f"{SHA}+{'1' * 64}"]
    scorer.close()
    shared.close()
    ours.close()


def test_nothing_is_prepared_for_one_while_the_child_works_for_another(
    model: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(model, (READY, scored(-1.0, 1)))
    scorer, child = house.scorer(), house.shared.child(SHA)
    assert isinstance(child, Served)
    asked, plainly = list[str](), child.exchange

    def noting(request: Message, *more: Any, **how: Any) -> Iterator[Message]:
        asked.append(request["kind"])
        return plainly(request, *more, **how)

    monkeypatch.setattr(child, "exchange", noting)
    assert child._turn.acquire(timeout=20)
    scorer.prepare("# a.py\n", timeout_seconds=2)
    child._turn.release()
    assert ask(scorer) == [-1.0]
    assert (asked, scorer.warning, scorer.tokens_used) == (["score"], "", 7)
    scorer.close()


def test_each_is_told_the_bytes_of_the_tokens_named_to_it_and_of_no_others(model: ModelFile) -> None:
    def tokens(number: int, *found: int, pieces: dict[str, str]) -> Message:
        return {"kind": "tokens", "id": number, "tokens": [list(found)], "pieces": pieces}

    house = House(
        model,
        (
            READY,
            tokens(1, 5, 6, pieces={"5": "a", "6": "b"}),
            tokens(2, 6, 7, pieces={"7": "c"}),  # the child has told 6 before, to somebody else
            tokens(3, 5, 6, pieces={}),
        ),
    )
    first, second = house.scorer(), house.scorer()
    assert ModelDecoder(first).tokenize([b"ab"], timeout_seconds=20) == [[5, 6]]
    assert ModelDecoder(second).tokenize([b"bc"], timeout_seconds=20) == [[6, 7]]
    assert first.pieces == {5: b"a", 6: b"b"}
    assert second.pieces == {6: b"b", 7: b"c"}
    assert ModelDecoder(second).tokenize([b"ab"], timeout_seconds=20) == [[5, 6]]
    assert second.pieces == {5: b"a", 6: b"b", 7: b"c"}


def test_a_death_costs_one_task_its_model_and_the_next_gets_a_new_child(model: ModelFile) -> None:
    house = House(model, (READY, None), (READY, scored(-2.0, 1)))
    first, second = house.scorer(), house.scorer()
    assert second.ready(20)
    assert ask(first) == [None]
    assert "dropped" in first.warning
    assert ask(second) == [-2.0]
    assert second.warning == ""


def test_who_was_waiting_when_it_died_is_asked_of_the_new_child(model: ModelFile) -> None:
    house = House(model, (READY, b""), (READY, scored(-2.0, 1)))
    first, second = house.scorer(), house.scorer()
    assert first.ready(20)
    assert second.ready(20)
    answers: list[list[float | None]] = []
    waiting = [threading.Thread(target=lambda s=scorer: answers.append(ask(s))) for scorer in (first, second)]
    waiting[0].start()
    child = house.jails[0].started[0]
    while len(child.requests) < 2:  # its load, and the request that it never answers
        time.sleep(0.01)
    waiting[1].start()
    time.sleep(0.3)
    child._theirs.shutdown(socket.SHUT_RDWR)
    for thread in waiting:
        thread.join(20)
    assert sorted(answers, key=str) == [[-2.0], [None]]
    assert (bool(first.warning), second.warning) == (True, "")


def test_one_that_dies_again_and_again_is_left_alone_for_a_while(model: ModelFile) -> None:
    house = House(model, *[(READY, None)] * MOST_DEATHS, (READY, scored(-2.0, 1)))
    for _ in range(MOST_DEATHS):
        assert ask(house.scorer()) == [None]
    refused = house.scorer()
    assert ask(refused) == [None]
    assert "again and again" in refused.warning
    assert sum(len(jail.started) for jail in house.jails) == MOST_DEATHS
    house.clock = 61.0
    assert ask(house.scorer()) == [-2.0]


def test_a_request_given_up_is_cancelled_at_the_child_and_drops_nothing(model: ModelFile) -> None:
    house = House(model, (READY, b"", b"", scored(-2.0, 3)))
    impatient, patient = house.scorer(), house.scorer()
    assert impatient.ready(20)
    assert ask(impatient, 0.3) == [None]
    assert ask(impatient, 0.3) == [None]
    assert impatient.warning == ""  # it was heard: somebody is at work
    assert ask(patient) == [-2.0]
    kinds = [request["kind"] for request in house.jails[0].started[0].requests]
    assert kinds == ["load", "score", "cancel", "score", "cancel", "score"]


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        pack({"kind": "end"}),
        pack({"kind": "odd", "id": 1}),
        pack({"kind": "score"}),
        pack({"kind": "score", "id": -1}),
        pack({"kind": "load"}),
        pack({"kind": "cancel", "id": "x"}),
        pack({"kind": "score", "id": 1}) * 9,
    ],
)
def test_what_is_no_request_ends_that_line_alone(model: ModelFile, data: bytes) -> None:
    house = House(model, (READY, scored(-1.0, 1)))
    good, bad = house.scorer(), house.line()
    bad.sendall(data)
    while bad.recv(65536):
        pass
    assert ask(good) == [-1.0]


def test_weights_that_are_not_served_are_refused(model: ModelFile) -> None:
    house = House(model)
    line = house.line()
    request: dict[str, Any] = {"kind": "load", "sha256": "1" * 64, "bytes": 4, "threads": 1}
    line.sendall(pack(request))
    assert frames(line, 1) == [{"kind": "refused", "why": "no such model is served here"}]


def test_an_idle_child_is_let_go_and_comes_back(model: ModelFile) -> None:
    house = House(model, (READY, scored(-1.0, 1)), (READY, scored(-2.0, 1)))
    scorer = house.scorer()
    assert ask(scorer) == [-1.0]
    house.shared.tidy()
    assert not house.jails[0].started[0].killed.is_set()
    house.clock = 601.0
    until = time.monotonic() + 20
    while not house.jails[0].started[0].killed.is_set() and time.monotonic() < until:
        house.shared.tidy()  # its line may still be at the end of the request that was answered
        time.sleep(0.01)
    assert house.jails[0].started[0].killed.is_set()
    assert ask(scorer) == [-2.0]


def test_a_shared_child_draws_and_tells_what_it_knows(model: ModelFile) -> None:
    """A request to draw once ended the line, and its task lost the model."""
    drawn = [
        {"kind": "drawn", "id": 1, "number": 0, "text": "y = 1\n", "tokens": 3, "likelihood": -1.0, "end": "stop"},
        {"kind": "done", "id": 1, "tokens": 3},
    ]
    house = House(model, ({**READY, "chat": True}, drawn, scored(-1.0, 2)))
    line = house.line()
    line.sendall(pack({"kind": "load", "bytes": 4, "sha256": SHA, "threads": 1}))
    (ready,) = frames(line, 1)
    assert ready["chat"] is True
    line.sendall(pack({"kind": "sample", "id": 7, "prompt": {"form": "text", "text": "x"}, "seeds": [1]}))
    told = frames(line, 3)
    assert [(m["kind"], m["id"]) for m in told] == [("queued", 7), ("drawn", 7), ("done", 7)]
