"""The scorer against children that misbehave, replayed frame by frame: it warns, answers None, and never raises."""

import math
import threading
import time
from pathlib import Path

import pytest
from support.model_replay import READY, Answer, ReplayedChild, ReplayJail

from localagent.domain.edit import Edit, Splice
from localagent.domain.jailspec import JailSpec
from localagent.domain.paths import RepoPath
from localagent.errors import CannotEnforce
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.child_jail import child_spec
from localagent.llm.process.protocol import WEIGHTS, Message, pack
from localagent.llm.scoring.scorer import ModelScorer


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    return ModelFile(name="m", path=path, bytes=4, sha256="0" * 64, licence="MIT")


def edit(start: int, end: int, text: bytes) -> Edit:
    return Edit(
        path=RepoPath("a.py"),
        splices=(Splice(start=start, end=end, text=text),),
        operator="x",
        line=1,
        end_line=1,
        prior=0.0,
    )


EDITS = [edit(0, 1, b"y"), edit(4, 5, b"2"), edit(4, 5, b"3")]


def ask(scorer: ModelScorer, seconds: float = 20.0) -> list[float | None]:
    return list(scorer.score(b"x = 1\n", "context", EDITS, timeout_seconds=seconds))


def scores(*items: list[object], number: int = 1) -> Message:
    return {"kind": "scores", "id": number, "items": list(items), "tokens": 5}


def done(number: int = 1) -> Message:
    return {"kind": "done", "id": number, "tokens": 9, "outside": 1, "resident_bytes": 2000}


def test_scores_arrive_at_their_edits(model: ModelFile) -> None:
    jail = ReplayJail(
        READY, [scores([2, -1.5, -3]), scores([0, 0.5, -1.0]), done()], [scores([1, -2, -1], number=2), done(2)]
    )
    scorer = ModelScorer(model, jail, threads=1)
    assert ask(scorer) == [0.0, None, -1.5]
    assert ask(scorer) == [None, -2.0, None]
    assert (scorer.warning, scorer.tokens_used, scorer.unscored_outside, scorer.resident_bytes) == ("", 18, 2, 2000)
    load, first, _second = jail.started[0].requests
    assert (load["kind"], load["bytes"], load["sha256"], load["threads"]) == ("load", 4, "0" * 64, 1)
    assert first["edits"][1] == [[[4, 5, "2"]], -1, -1]
    scorer.close()
    assert jail.started[0].killed.is_set()
    assert ask(scorer) == [None, None, None]


def frame(body: str) -> bytes:
    return len(body).to_bytes(4, "big") + body.encode()


MISBEHAVIOUR: dict[str, tuple[list[Answer], str]] = {
    "hangs up at once": ([None], "its process ended"),
    "refuses": ([{"kind": "refused", "why": "bad \x1b[31m digest"}], "digest"),
    "answers something else": ([{"kind": "scores"}], "refused to load"),
    "sends noise": ([b"\xff" * 100], "larger than"),
    "load time is no number": ([{**READY, "load_seconds": "soon"}], "not a number"),
    "hangs up in a request": ([READY, None], "its process ended"),
    "sends half a frame and ends": ([READY, pack(done())[:9], None], ""),
    "probability above 1": ([READY, scores([0, -1.0, 0.5])], "cannot be"),
    "score is infinite": ([READY, frame('{"kind":"scores","id":1,"items":[[0,-Infinity,-1]]}')], "not a number"),
    "score is NaN": ([READY, frame('{"kind":"scores","id":1,"items":[[0,-1,NaN]]}')], "not a number"),
    "score is text": ([READY, scores([0, "-1", -1])], "not a number"),
    "score is true": ([READY, scores([0, True, -1])], "not a number"),
    "edit unknown": ([READY, scores([3, -1.0, -1.0])], "cannot be"),
    "edit negative": ([READY, scores([-1, -1.0, -1.0])], "cannot be"),
    "edit is text": ([READY, scores(["0", -1.0, -1.0])], "malformed"),
    "item of two": ([READY, scores([0, -1.0])], "malformed"),
    "items no list": ([READY, {"kind": "scores", "id": 1, "items": 7}], "malformed"),
    "item no list": ([READY, {"kind": "scores", "id": 1, "items": [7]}], "malformed"),
    "tokens are text": ([READY, {**done(), "tokens": "9"}], "not a number"),
    "refuses a request": ([READY, {"kind": "refused", "why": "no decoding"}], "no decoding"),
}


@pytest.mark.long
@pytest.mark.parametrize(("answers", "reason"), MISBEHAVIOUR.values(), ids=MISBEHAVIOUR)
def test_a_misbehaving_child_is_dropped_with_the_reason(model: ModelFile, answers: list[Answer], reason: str) -> None:
    jail = ReplayJail(*answers)
    scorer = ModelScorer(model, jail, threads=1)
    got = ask(scorer, 1.0 if not reason else 20.0)
    assert got == [None, None, None]
    if reason:
        assert scorer.warning.startswith("model m dropped: ")
        assert reason in scorer.warning
        assert jail.started[0].killed.wait(60)
        asked = len(jail.started[0].requests)
        assert ask(scorer) == [None, None, None]
        assert (len(jail.started), len(jail.started[0].requests)) == (1, asked)
    scorer.close()


def test_time_running_out_keeps_what_came_and_drops_nothing(model: ModelFile) -> None:
    jail = ReplayJail(
        READY, scores([0, -1.0, -1]), [scores([2, -9.0, -1]), done(), scores([1, -3.0, -1], number=2), done(2)]
    )
    scorer = ModelScorer(model, jail, threads=1)
    assert ask(scorer, 0.5) == [-1.0, None, None]
    assert scorer.warning == ""
    assert ask(scorer) == [None, -3.0, None]
    assert [r["kind"] for r in jail.started[0].requests] == ["load", "score", "cancel", "score"]
    scorer.close()


def test_a_child_still_loading_costs_only_the_time_given(model: ModelFile) -> None:
    scorer = ModelScorer(model, ReplayJail(), threads=1)
    assert ask(scorer, 0.3) == [None, None, None]
    assert scorer.warning == ""
    scorer.close()


def test_no_jail_means_no_model_never_an_unconfined_one(model: ModelFile) -> None:
    class NoJail(ReplayJail):
        def start(self, spec: JailSpec) -> ReplayedChild:
            raise CannotEnforce("no sound jail")

    jail = NoJail()
    scorer = ModelScorer(model, jail, threads=1)
    assert ask(scorer) == [None, None, None]
    assert scorer.warning.startswith("model m dropped: no sound jail; ")
    assert jail.started == []


def test_a_model_file_that_vanished_is_a_warning(model: ModelFile) -> None:
    assert model.path is not None
    model.path.unlink()
    scorer = ModelScorer(model, ReplayJail(READY), threads=1)
    assert ask(scorer) == [None, None, None]
    assert "No such file" in scorer.warning


def test_a_child_that_never_answers_is_asked_twice_at_most(model: ModelFile) -> None:
    jail = ReplayJail(READY)
    scorer = ModelScorer(model, jail, threads=1)
    assert ask(scorer, 0.5) == [None, None, None]
    assert scorer.warning == ""
    assert ask(scorer, 0.2) == [None, None, None]
    assert "does not answer" in scorer.warning
    assert jail.started[0].killed.is_set()


def test_what_there_is_no_time_for_is_not_asked_and_says_nothing_of_the_child(model: ModelFile) -> None:
    scorer = ModelScorer(model, ReplayJail(READY), threads=1)
    assert scorer.ready(5.0)
    for _ in range(4):
        assert ask(scorer, 0.0) == [None, None, None]
    assert ask(scorer, 0.2) == [None, None, None]  # the first that it did not answer
    assert scorer.warning == ""


def test_closing_while_a_request_waits_ends_it_soon(model: ModelFile) -> None:
    scorer = ModelScorer(model, ReplayJail(READY), threads=1)
    got: list[list[float | None]] = []
    asking = threading.Thread(target=lambda: got.append(ask(scorer, 60.0)))
    asking.start()
    time.sleep(0.3)
    scorer.close()
    asking.join(timeout=30)
    assert got == [[None, None, None]]
    assert scorer.warning == ""


def test_requests_from_several_threads_do_not_mix(model: ModelFile) -> None:
    answers = [[scores([0, -float(n), -1], number=n), done(n)] for n in range(1, 9)]
    scorer = ModelScorer(model, ReplayJail(READY, *answers), threads=1)
    got: list[float | None] = []
    threads = [threading.Thread(target=lambda: got.append(ask(scorer)[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(value for value in got if value is not None) == [-float(n) for n in range(8, 0, -1)]
    scorer.close()


def test_odd_sources_and_edits_do_not_reach_the_child_or_come_back_as_none(model: ModelFile) -> None:
    nothing = Edit(path=RepoPath("a.py"), splices=(), operator="x", line=1, end_line=1, prior=0.0)
    jail = ReplayJail(READY, done(), done(2))
    scorer = ModelScorer(model, jail, threads=1)
    assert scorer.score(b"x", "", [], timeout_seconds=1) == []
    assert scorer.score(b"x", "", [nothing], timeout_seconds=20) == [None]
    assert scorer.score(b"x" * (3 << 20), "", EDITS, timeout_seconds=20) == [None, None, None]
    assert scorer.score(b"\xff\xfe = 1\n", "\udcff", EDITS, timeout_seconds=20) == [None, None, None]
    assert scorer.warning == ""
    assert jail.started[0].requests[-1]["source"] == "\udcff\udcfe = 1\n"
    scorer.close()


def test_the_child_sees_interpreter_and_package_read_only_and_has_no_network(model: ModelFile) -> None:
    spec = child_spec(model)
    assert all(bind.access.value == "ro" for bind in spec.binds)
    package = str(Path(__file__).resolve().parents[2] / "localagent")
    assert any(package == bind.target or package.startswith(bind.target + "/") for bind in spec.binds)
    assert [bind.target for bind in spec.binds if bind.source == str(model.path)] == [WEIGHTS]
    assert not spec.loopback
    assert spec.limits.resident_bytes < 450 << 20
    assert not math.isinf(spec.limits.wall_seconds)
    assert {name for name, _ in spec.env} == {"PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "OMP_WAIT_POLICY"}
