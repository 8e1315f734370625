"""The mending pass: what a child may answer, and what the bundled model with its mender makes of faults."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.model_replay import READY, Answer, ReplayJail

from localagent.domain.edit import Edit, Scope, Splice
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.jail.api import NamespaceJail
from localagent.llm.model.adapter import AdapterFile
from localagent.llm.model.quantized_store import spare_of
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.child_jail import child_spec, needs_of_model
from localagent.llm.process.protocol import MENDER, Message
from localagent.llm.process.shared_prefix import Branch, LogitRow
from localagent.llm.scoring.decoder import ModelDecoder
from localagent.llm.scoring.repair_prompt import BODY_BYTES
from localagent.llm.scoring.scorer import ModelScorer
from localagent.llm.writing.span_writer import SpanWriter

SOURCE = b'''\
def average(values):
    """The mean of some numbers."""
    total = 0
    for value in values:
        total -= value
    return total / len(values)


def largest(values):
    best = values[0]
    for value in values:
        if value > best:
            best = value
    return best
'''


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    path, mender = tmp_path / "m.gguf", tmp_path / "m.mender"
    path.write_bytes(b"GGUF")
    mender.write_bytes(b"GGUF-mender")
    file = AdapterFile(path=mender, bytes=11, sha256="1" * 64, about={})
    return ModelFile(name="m", path=path, bytes=4, sha256="0" * 64, licence="MIT", mender=file)


def edit(old: bytes, new: bytes, source: bytes = SOURCE) -> Edit:
    at = source.index(old)
    scope = Scope(
        name="f", qualname="f", class_name=None, first_line=1, last_line=6, start=0, body_start=21,
        end=max(at + len(old), source.index(b"\n\n\n") + 1),
    )  # fmt: skip
    return Edit(
        path=RepoPath("stats.py"),
        splices=(Splice(start=at, end=at + len(old), text=new),),
        operator="x",
        line=source[:at].count(b"\n") + 1,
        end_line=source[:at].count(b"\n") + 1,
        prior=0.0,
        scope=scope,
    )


EDITS = [edit(b"-= value", b"+= value"), edit(b"/ len", b"* len"), edit(b"total = 0", b"total = 1")]


def mend(scorer: ModelScorer, edits: list[Edit] = EDITS, source: bytes = SOURCE) -> list[float | None]:
    return list(scorer.mend(source, "# stats.py\n", edits, timeout_seconds=120.0))


def told(*items: list[object], number: int = 1) -> Message:
    return {"kind": "mended", "id": number, "items": list(items), "tokens": 5}


def done(number: int = 1) -> Message:
    return {"kind": "done", "id": number, "tokens": 9, "outside": 0, "resident_bytes": 2000}


def test_what_is_mended_arrives_at_its_edits(model: ModelFile) -> None:
    jail = ReplayJail(READY, [told([2, -1.5]), told([0, -0.25]), done()], [told([1, -2], number=2), done(2)])
    scorer = ModelScorer(model, jail, threads=1)
    assert mend(scorer) == [-0.25, None, -1.5]
    assert mend(scorer) == [None, -2.0, None]
    load, first, _ = jail.started[0].requests
    assert load["mender"] == {"bytes": 11, "sha256": "1" * 64}
    assert first["kind"] == "mend"
    assert scorer.tokens_used == 18
    scorer.close()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (told([0, 0.5]), "a score that cannot be"),
        (told([3, -1.0]), "a score that cannot be"),
        (told([-1, -1.0]), "a score that cannot be"),
        (told([True, -1.0]), "malformed scores"),
        (told([0, -1.0, -1.0]), "malformed scores"),
        (told([0, "x"]), "number"),
        ({**told(), "items": {}}, "malformed scores"),
    ],
)
def test_an_answer_that_cannot_be_drops_the_model(model: ModelFile, answer: Answer, why: str) -> None:
    scorer = ModelScorer(model, ReplayJail(READY, answer), threads=1)
    assert mend(scorer) == [None, None, None]
    assert why in scorer.warning
    assert not scorer.mends
    scorer.close()


def test_without_a_mender_nothing_is_asked(model: ModelFile) -> None:
    jail = ReplayJail(READY)
    scorer = ModelScorer(replace(model, mender=None), jail, threads=1)
    assert scorer.ready(20)
    assert not scorer.mends
    assert mend(scorer) == [None, None, None]
    assert [request["kind"] for request in jail.started[0].requests] == ["load"]
    scorer.close()


def test_its_process_is_shown_the_mender_and_has_room_for_it(model: ModelFile) -> None:
    assert MENDER in {bind.target for bind in child_spec(model).binds}
    bare = replace(model, mender=None)
    assert MENDER not in {bind.target for bind in child_spec(bare).binds}
    assert needs_of_model(model).weights_bytes > needs_of_model(bare).weights_bytes
    assert model.loaded == f"{'0' * 64}+{'1' * 64}"
    assert spare_of(model, model) == bare
    assert spare_of(bare, bare) is None


def test_what_is_prepared_is_counted_and_a_wrong_answer_to_it_drops_the_model(model: ModelFile) -> None:
    jail = ReplayJail(READY, [done()], [{"kind": "done", "id": 2, "tokens": "many"}])
    scorer = ModelScorer(model, jail, threads=1)
    scorer.prepare("assert f(1)\n# stats.py\n", timeout_seconds=20.0)
    assert scorer.tokens_used == 9
    assert jail.started[0].requests[-1] == {"kind": "prepare", "id": 1, "context": "assert f(1)\n# stats.py\n"}
    scorer.prepare("", timeout_seconds=20.0)
    assert "number" in scorer.warning
    scorer.prepare("", timeout_seconds=20.0)
    scorer.close()


def test_that_the_registered_file_serves_is_said_once_it_does(model: ModelFile) -> None:
    refused: Message = {"kind": "refused", "why": "weights that are none"}
    bare = replace(model, mender=None)
    neither = ModelScorer(model, ReplayJail(refused, refused), threads=1, spare=bare)
    assert not neither.ready(20)
    assert neither.remark == ""
    assert "weights that are none" in neither.warning
    neither.close()
    one = ModelScorer(model, ReplayJail(refused, READY), threads=1, spare=bare)
    assert one.ready(20)
    assert "do not serve (weights that are none); the registered file does" in one.remark
    one.close()


@pytest.fixture(scope="module")
def scorer(bundled_model: ModelFile, jail: NamespaceJail) -> Iterator[ModelScorer]:
    made = ModelScorer(bundled_model, jail, threads=1)
    yield made
    made.close()


@pytest.mark.long
def test_a_fault_that_only_what_follows_betrays_is_mended(scorer: ModelScorer) -> None:
    nats = mend(scorer)
    assert scorer.warning == ""
    right, times, one = (value for value in nats if value is not None)
    assert right > -1.0
    assert right > times + 2.0
    assert right > one + 2.0
    kept = SOURCE.replace(b"-= value", b"+= value")
    wrong = kept.replace(b"best = values[0]", b"best = values")  # what follows compares it with one of them
    mended, other = mend(scorer, [edit(b"best = values\n", b"best = values[0]\n", wrong), EDITS[1]], wrong)
    assert mended is not None
    assert other is not None
    assert mended > other + 2.0


@pytest.mark.long
def test_what_is_scored_is_the_same_before_and_after(scorer: ModelScorer) -> None:
    """The mender is put away again, and nothing that was decoded with it is kept."""
    before = scorer.score(SOURCE, "# stats.py\n", EDITS, timeout_seconds=120.0)
    nats = mend(scorer)
    assert scorer.score(SOURCE, "# stats.py\n", EDITS, timeout_seconds=120.0) == before
    assert mend(scorer) == nats
    assert nats != before


@pytest.mark.long
def test_long_functions_are_read_in_stretches(scorer: ModelScorer) -> None:
    # long lines of few tokens: what is read, not what is written, takes the time
    line = b"    total += weight(values, %d)  # the weights of all of the values are added to the total\n"
    source = b"def f(values):\n    total = 0\n" + b"".join(line % k for k in range(60)) + b"    return total\n\n\n"
    assert len(source) > 3 * BODY_BYTES
    edits = [edit(b"values, %d)" % k, b"values, 7)", source) for k in (3, 55)]
    assert all(value is not None for value in mend(scorer, edits, source))


@pytest.mark.long
def test_an_altered_mender_costs_a_remark(bundled_model: ModelFile, jail: NamespaceJail, tmp_path: Path) -> None:
    assert bundled_model.mender is not None
    raw = bytearray(bundled_model.mender.path.read_bytes())
    raw[-1] ^= 1
    path = tmp_path / "altered.mender"
    path.write_bytes(raw)
    altered = replace(bundled_model, mender=replace(bundled_model.mender, path=path))
    made = ModelScorer(altered, jail, threads=1, spare=spare_of(altered, bundled_model))
    assert mend(made) == [None, None, None]
    assert made.ready(120)
    assert "the mender file's SHA-256 is not the registered one" in made.remark
    assert not made.mends
    assert made.warning == ""
    assert made.score(SOURCE, "", EDITS, timeout_seconds=120.0)[0] is not None
    made.close()


@pytest.mark.long
def test_what_is_written_is_what_a_model_that_mends_would_rather_write(scorer: ModelScorer) -> None:
    path = RepoPath("stats.py")
    writer = SpanWriter(scorer, lambda *_: "", localization=2.0, malus=2.5)
    writer.begin(
        {path: SOURCE},
        [Suspicion(path=path, line=5, end_line=5, score=1.0)],
        Baseline(tests=(), failing=(), passing=()),
    )
    texts = [written.edit.apply(SOURCE) for _ in range(4) for written in writer.more()]
    assert SOURCE.replace(b"-= value", b"+= value") in texts[:3]


@pytest.mark.long
def test_what_grows_is_the_same_before_and_after_with_the_mender_and_without(scorer: ModelScorer) -> None:
    decoder = ModelDecoder(scorer)
    told = decoder.tokenize([SOURCE], timeout_seconds=120.0)
    assert told is not None
    trunk = told[0]
    branches = [Branch(at=len(trunk) - 20, tokens=tuple(trunk[-20:]), rows=(LogitRow(index=5, top=5),))]

    def grown(*, mending: bool) -> object:
        return decoder.grow(trunk, branches, timeout_seconds=120.0, mending=mending)

    before, mended = grown(mending=False), grown(mending=True)
    assert mended != before
    assert grown(mending=True) is not None  # the same again is built upon
    assert [grown(mending=False), grown(mending=True)] == [before, mended]


def test_no_growing_with_a_mender_that_was_left_behind(model: ModelFile) -> None:
    jail = ReplayJail(READY)
    scorer = ModelScorer(replace(model, mender=None), jail, threads=1)
    assert scorer.ready(20)
    assert ModelDecoder(scorer).grow([1], [], timeout_seconds=1.0, mending=True) is None
    assert [request["kind"] for request in jail.started[0].requests] == ["load"]
    scorer.close()
