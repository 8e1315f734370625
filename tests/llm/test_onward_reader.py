"""Edits read on by the real model in the real jail: as whole texts are read, in order, and never raising."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.model_replay import READY, ReplayJail

from localagent.domain.edit import Edit, Scope, Splice
from localagent.domain.paths import RepoPath
from localagent.jail.launcher.runner import NamespaceJail
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.model_client import Served
from localagent.llm.process.shared_prefix import Branch
from localagent.llm.scoring.continuation_score import ModelOnward
from localagent.llm.scoring.decoder import ModelDecoder, RowAnswer
from localagent.llm.scoring.scorer import ModelScorer
from localagent.llm.scoring.text_likelihood import ModelReader

SOURCE = b"def total(prices):\n    result = 0\n    for price in prices:\n        result = price\n    return result\n"
SCOPE = Scope(
    name="total", qualname="total", class_name=None, first_line=1, last_line=5, start=0, body_start=23, end=len(SOURCE)
)


def put(old: bytes, new: bytes) -> Edit:
    at = SOURCE.index(old)
    cut = Splice(start=at, end=at + len(old), text=new)
    return Edit(path=RepoPath("m.py"), splices=(cut,), operator="o", line=4, end_line=4, prior=0.0, scope=SCOPE)


RIGHT, ODD, NONE = (
    put(b"result = price", b"result += price"),
    put(b"return result", b"return 0"),
    put(b"result = p", b"result = p"),
)


@pytest.fixture(scope="module")
def plain(bundled_model: ModelFile, jail: NamespaceJail) -> Iterator[ModelScorer]:
    made = ModelScorer(replace(bundled_model, mender=None), jail, threads=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def mending(bundled_model: ModelFile, jail: NamespaceJail) -> Iterator[ModelScorer]:
    made = ModelScorer(bundled_model, jail, threads=1)
    yield made
    assert made.mends, made.remark
    made.close()


@pytest.fixture(params=["plain", "mending"])
def scorer(request: pytest.FixtureRequest) -> ModelScorer:
    found: ModelScorer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def onward(scorer: ModelScorer) -> ModelOnward:
    return ModelOnward(ModelDecoder(scorer), scorer)


def read(onward: ModelOnward, *edits: Edit, seconds: float = 120.0) -> list[float | None]:
    return onward.read_on(SOURCE, edits, timeout_seconds=seconds)


@pytest.mark.long
@pytest.mark.model
def test_an_edit_is_read_as_its_whole_text_is(plain: ModelScorer) -> None:
    right, odd = read(ModelOnward(ModelDecoder(plain), plain), RIGHT, ODD)
    assert right is not None
    assert odd is not None
    assert right > odd + 3.0
    texts = [SOURCE, RIGHT.apply(SOURCE), ODD.apply(SOURCE)]
    whole = ModelReader(ModelDecoder(plain)).likelihoods(texts, timeout_seconds=120.0)
    assert whole is not None
    assert right == pytest.approx(whole[1] - whole[0], abs=1.0)  # the whole text lies within what is read on
    assert odd == pytest.approx(whole[2] - whole[0], abs=1.0)


@pytest.mark.long
@pytest.mark.model
def test_who_mends_would_rather_write_what_mends_than_what_stood_there(mending: ModelScorer) -> None:
    right, odd = read(ModelOnward(ModelDecoder(mending), mending), RIGHT, ODD)
    assert right is not None
    assert odd is not None
    assert right > 0.0 > odd


class Recorder(ModelDecoder):
    """A decoder that keeps what it is asked to grow."""

    def __init__(self, served: Served) -> None:
        super().__init__(served)
        self.trunks: list[tuple[tuple[int, ...], bool]] = []

    def grow(
        self,
        trunk: Sequence[int],
        branches: Sequence[Branch],
        *,
        timeout_seconds: float,
        fresh: bool = False,
        mending: bool = False,
    ) -> list[list[RowAnswer]] | None:
        self.trunks.append((tuple(trunk), mending))
        return super().grow(trunk, branches, timeout_seconds=timeout_seconds, fresh=fresh, mending=mending)


@pytest.mark.long
@pytest.mark.model
def test_who_mends_is_shown_the_stretch_as_wrong_in_front_of_it(scorer: ModelScorer) -> None:
    recorder = Recorder(scorer)
    read(ModelOnward(recorder, scorer), RIGHT)
    told = recorder.tokenize([SOURCE], timeout_seconds=120.0)
    assert told is not None
    stood = tuple(told[0])
    for trunk, mending in recorder.trunks:
        assert mending == scorer.mends
        assert trunk[-len(stood) :] == stood
        before = trunk[: -len(stood)]
        within = any(before[at : at + len(stood)] == stood for at in range(len(before)))
        assert within == scorer.mends
    assert recorder.trunks


@pytest.mark.long
@pytest.mark.model
def test_an_edit_of_the_first_token_is_read_by_who_mends(mending: ModelScorer) -> None:
    onward = ModelOnward(ModelDecoder(mending), mending)
    wrong = SOURCE.replace(b"def", b"dev", 1)
    cut = Splice(start=0, end=3, text=b"def")
    first = Edit(path=RepoPath("m.py"), splices=(cut,), operator="o", line=1, end_line=1, prior=0.0)
    assert onward.read_on(wrong, [first], timeout_seconds=120.0) != [None]


def edit_of_all(start: int, end: int, text: bytes) -> Edit:
    cut = Splice(start=start, end=end, text=text)
    return Edit(path=RepoPath("m.py"), splices=(cut,), operator="o", line=1, end_line=1, prior=0.0)


@pytest.mark.long
@pytest.mark.model
@pytest.mark.parametrize("source", [b"x = compute(2)\n", b"x\n", b"x"])
def test_what_is_put_in_front_of_all_is_read_too(onward: ModelOnward, source: bytes) -> None:
    defined = edit_of_all(0, 0, b"compute = 0\n")
    renamed = edit_of_all(0, 1, b"y")
    gone = edit_of_all(0, len(source), b"")
    first, *others = onward.read_on(source, [defined, renamed, gone], timeout_seconds=120.0)
    assert first is not None
    assert len(others) == 2


@pytest.mark.long
@pytest.mark.model
def test_of_a_file_without_text_nothing_is_read_and_the_model_stays(scorer: ModelScorer, onward: ModelOnward) -> None:
    assert onward.read_on(b"", [edit_of_all(0, 0, b"x = 1\n")], timeout_seconds=120.0) == [None]
    assert read(onward, RIGHT)[0] is not None
    assert scorer.warning == ""


@pytest.mark.long
@pytest.mark.model
def test_when_time_is_up_in_the_middle_the_model_stays(scorer: ModelScorer, onward: ModelOnward) -> None:
    many = b"\n\n".join(SOURCE.replace(b"total", b"total%d" % k) * 8 for k in range(6))
    places = [at for at in range(len(many)) if many.startswith(b"price\n    return", at)]
    edits = [edit_of_all(at, at + 5, b"result") for at in places]
    assert len(edits) > 40
    assert scorer.ready(120.0)
    for seconds in (0.0, 0.0, 0.3, 0.0):
        assert None in onward.read_on(many, edits, timeout_seconds=seconds)
    assert read(onward, RIGHT)[0] is not None
    assert scorer.warning == ""


@pytest.mark.long
@pytest.mark.model
def test_answers_do_not_depend_on_what_was_read_before(onward: ModelOnward) -> None:
    once = read(onward, RIGHT, ODD)
    read(onward, ODD)
    assert read(onward, RIGHT, ODD) == once


@pytest.mark.long
@pytest.mark.model
def test_what_changes_nothing_and_what_there_is_no_time_for_are_not_read(onward: ModelOnward) -> None:
    assert read(onward, NONE) == [None]
    assert read(onward) == []
    assert read(onward, RIGHT, seconds=0.0) == [None]
    assert onward.read_on(b"#" * (3 << 20), [RIGHT], timeout_seconds=5.0) == [None]
    assert read(onward, RIGHT, NONE)[0] is not None


@pytest.mark.long
@pytest.mark.model
def test_what_it_takes_is_known_once_something_was_read(bundled_model: ModelFile, jail: NamespaceJail) -> None:
    fresh = ModelScorer(bundled_model, jail, threads=1)
    onward = ModelOnward(ModelDecoder(fresh), fresh)
    assert math.isinf(onward.seconds(SOURCE, [RIGHT]))
    fresh.read(SOURCE, "", [RIGHT, ODD], timeout_seconds=120.0)
    elsewhere = replace(RIGHT, scope=None)
    long = b"x = 0\n" * 2_000 + SOURCE
    far = replace(elsewhere, splices=(Splice(start=len(long) - 9, end=len(long) - 8, text=b"1"),))
    assert 0.0 < onward.seconds(SOURCE, [RIGHT]) < onward.seconds(SOURCE, [RIGHT] * 100) < math.inf
    assert onward.seconds(long, [elsewhere]) < onward.seconds(long, [elsewhere, far])  # two places to be read
    fresh.close()


def test_a_model_that_ends_reads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    model = ModelFile(name="m", path=path, bytes=4, sha256="0" * 64, licence="MIT")
    dead = ModelScorer(model, ReplayJail(READY, None), threads=1)
    onward = ModelOnward(ModelDecoder(dead), dead)
    assert read(onward, RIGHT, ODD, seconds=5.0) == [None, None]
    assert "dropped" in dead.warning
    assert math.isinf(onward.seconds(SOURCE, [RIGHT]))
    dead.close()
