"""The decoder against children that misbehave: the model is dropped with the reason, and the answer is None."""

from pathlib import Path

import pytest
from support.model_replay import READY, Answer, ReplayJail

from localagent.llm.model.registry import ModelFile
from localagent.llm.process.protocol import Message
from localagent.llm.process.shared_prefix import Branch, LogitRow
from localagent.llm.scoring.decoder import ModelDecoder
from localagent.llm.scoring.scorer import ModelScorer

BRANCHES = [
    Branch(at=1, tokens=(5,), rows=(LogitRow(index=-1, asked=(5,)), LogitRow(index=0, top=2))),
    Branch(at=2, tokens=(), rows=(LogitRow(index=-1, top=1, asked=(7, 8)),)),
]


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    return ModelFile(name="m", path=path, bytes=4, sha256="0" * 64, licence="MIT")


def grown(*items: object, pieces: object = None) -> Message:
    return {
        "kind": "grown",
        "id": 1,
        "items": list(items),
        "pieces": {"5": "x", "6": "\xe9"} if pieces is None else pieces,
    }


DONE: Message = {"kind": "done", "id": 1, "tokens": 4}
FIRST, SECOND, THIRD = [0, 0, [], [-1.0]], [0, 1, [[5, -0.5], [6, -2]], []], [1, 0, [[6, 0.0]], [-3.5, -4.0]]


def ask(model: ModelFile, *answers: Answer) -> tuple[object, ModelDecoder, ModelScorer]:
    scorer = ModelScorer(model, ReplayJail(READY, *answers), threads=1)
    decoder = ModelDecoder(scorer)
    got = decoder.grow([1, 2], BRANCHES, timeout_seconds=5.0)
    scorer.close()
    return got, decoder, scorer


def test_readings_arrive_at_their_rows(model: ModelFile) -> None:
    got, decoder, scorer = ask(model, [grown(THIRD, FIRST), grown(SECOND), DONE])
    assert got == [[((), (-1.0,)), (((5, -0.5), (6, -2.0)), ())], [(((6, 0.0),), (-3.5, -4.0))]]
    assert (decoder.piece(5), decoder.piece(6), decoder.piece(7)) == (b"x", b"\xe9", b"")
    assert (decoder.tokens_used, scorer.tokens_used, scorer.warning) == (4, 4, "")


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([grown([0, 0, [], [0.1]]), DONE], "log-probability above 0"),
        ([grown([0, 0, [], ["-1"]]), DONE], "not a number"),
        ([grown([0, 0, [], [-1.0, -1.0]]), DONE], "malformed readings"),
        ([grown([0, 0, [[5, -1.0]], [-1.0]]), DONE], "malformed readings"),
        ([grown([0, 2, [], []]), DONE], "what was not asked"),
        ([grown([2, 0, [], []]), DONE], "what was not asked"),
        ([grown([-1, 0, [], []]), DONE], "not a token"),
        ([grown([True, 0, [], []]), DONE], "not a token"),
        ([grown([0, 1, [[-5, -1.0], [6, -1.0]], []]), DONE], "not a token"),
        ([grown([0, 1, [[5], [6]], []]), DONE], "malformed readings"),
        ([grown(7), DONE], "malformed readings"),
        ([grown(FIRST, pieces=[]), DONE], "malformed pieces"),
        ([grown(FIRST, pieces={"x": "y"}), DONE], "malformed pieces"),
        ([grown(FIRST, pieces={"5": "\u2028"}), DONE], "malformed pieces"),
        ([grown(FIRST, pieces={"5": "y" * 600}), DONE], "malformed pieces"),
        ([{"kind": "done", "id": 1, "tokens": "many"}], "not a number"),
        ([{"kind": "refused", "why": "no such thing"}], "no such thing"),
    ],
)  # fmt: skip
def test_a_lying_child_is_dropped(model: ModelFile, answers: list[Message], reason: str) -> None:
    got, decoder, scorer = ask(model, answers)
    assert got is None
    assert reason in scorer.warning
    assert not decoder.alive


@pytest.mark.parametrize(
    "answers", [[grown(FIRST), DONE], [DONE], [{"kind": "crowded", "id": 1, "why": "9 tokens do not fit"}]]
)
def test_a_missing_reading_makes_no_answer_and_drops_nothing(model: ModelFile, answers: list[Message]) -> None:
    got, decoder, scorer = ask(model, answers)
    assert got is None
    assert scorer.warning == ""
    assert decoder.alive


def test_tokens_are_checked(model: ModelFile) -> None:
    for told, reason in (([[1, 2]], "malformed tokens"), ([[1], ["2"]], "not a token"), (7, "malformed tokens")):
        answer: Message = {"kind": "tokens", "id": 1, "tokens": told, "pieces": {}}
        scorer = ModelScorer(model, ReplayJail(READY, answer), threads=1)
        assert ModelDecoder(scorer).tokenize([b"a", b"b"], timeout_seconds=5.0) is None
        assert reason in scorer.warning
        scorer.close()
