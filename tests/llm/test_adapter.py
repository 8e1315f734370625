"""Adapters that were learned here: kept whole or not at all, loaded with the model, dropped where they do not serve."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.adapter_builder import PAIRS, TinyAdapter
from support.tiny_model import QWEN, WIDTH, tiny_model

from localagent.domain.edit import Edit, Splice
from localagent.domain.paths import RepoPath
from localagent.jail.api import open_jail
from localagent.llm.model import adapter
from localagent.llm.model.adapter import AdapterFile
from localagent.llm.model.quantized_store import serving
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.shared_prefix import Branch, LogitRow
from localagent.llm.scoring.decoder import ModelDecoder
from localagent.llm.scoring.scorer import ModelScorer

SOURCE = b"def total(items):\n    return items + 1\n"
EDIT = Edit(
    path=RepoPath("shop.py"),
    splices=(Splice(start=SOURCE.index(b"+"), end=SOURCE.index(b"+") + 1, text=b"-"),),
    operator="arithmetic",
    line=2,
    end_line=2,
    prior=0.0,
    scope=None,
)
BASE = "b" * 64


def kept(folder: Path, *, base: str = BASE, about: dict[str, object] | None = None) -> AdapterFile:
    made = TinyAdapter().file(folder, "made.gguf")
    return adapter.keep(made.path, made.sha256, about or {"repositories": ["shop-1"]}, folder, base)


def test_what_is_kept_is_found_again_and_dropped(tmp_path: Path) -> None:
    assert adapter.load(tmp_path, BASE) is None
    found = kept(tmp_path)
    assert adapter.load(tmp_path, BASE) == found
    assert found.repositories == {"shop-1"}
    assert adapter.load(tmp_path, "c" * 64) is None
    assert hashlib.sha256(found.path.read_bytes()).hexdigest() == found.sha256
    assert len(adapter.drop(tmp_path, BASE)) == 2
    assert adapter.load(tmp_path, BASE) is None
    assert adapter.drop(tmp_path, BASE) == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.update(schema=2),
        lambda r: r.update(bytes=r["bytes"] + 1),
        lambda r: r.update(bytes=True),
        lambda r: r.update(sha256="x" * 64),
        lambda r: r.update(about=[]),
        lambda r: r.update(more=1),
        lambda r: r.pop("about"),
    ],
)
def test_a_record_that_is_none_serves_nobody(change: object, tmp_path: Path) -> None:
    kept(tmp_path)
    record = adapter.record_path(tmp_path, BASE)
    table = json.loads(record.read_text())
    change(table)  # type: ignore[operator]
    record.write_text(json.dumps(table))
    assert adapter.load(tmp_path, BASE) is None


def test_a_file_without_a_record_serves_nobody(tmp_path: Path) -> None:
    found = kept(tmp_path)
    adapter.record_path(tmp_path, BASE).unlink()
    assert found.path.is_file()
    assert adapter.load(tmp_path, BASE) is None


def test_a_model_is_served_with_its_adapter(tmp_path: Path) -> None:
    model = tiny_model(tmp_path, QWEN)
    assert serving(model, tmp_path) is model
    found = kept(tmp_path, base=model.sha256)
    served = serving(model, tmp_path)
    assert served.adapter == found
    assert served.registered_sha256 == model.sha256
    assert served.loaded == f"{model.sha256}+{found.sha256}" != model.loaded == model.sha256
    assert served.quantization.endswith("with an adapter")


def scored(model: ModelFile, spare: ModelFile | None = None) -> tuple[float | None, ModelScorer]:
    scorer = ModelScorer(model, open_jail(), threads=1, spare=spare)
    try:
        (score,) = scorer.score(SOURCE, "# shop.py\n", [EDIT], timeout_seconds=60.0)
        return score, scorer
    finally:
        scorer.close()


@pytest.mark.long
def test_an_adapter_changes_what_the_model_reads_and_one_of_nothing_does_not(tmp_path: Path) -> None:
    model = tiny_model(tmp_path, QWEN)
    plain, _ = scored(model)
    assert plain is not None
    none, _ = scored(replace(model, adapter=TinyAdapter(size=0.0).file(tmp_path, "none.gguf")))
    assert none == pytest.approx(plain, abs=1e-3)
    strong = TinyAdapter(pairs={**PAIRS, "blk.0.ffn_down.weight": (2 * WIDTH, WIDTH)}, size=3.0)
    other, scorer = scored(replace(model, adapter=strong.file(tmp_path, "strong.gguf")))
    assert scorer.warning == ""
    assert other is not None
    assert abs(other - plain) > 0.01
    both = hashlib.sha256(f"{model.sha256}+{scorer._model.loaded.partition('+')[2]}".encode()).hexdigest()
    assert scorer.weights == f"sha256:{both}"


def test_the_search_for_spans_reads_with_it_too(tmp_path: Path) -> None:
    model = tiny_model(tmp_path, QWEN)
    strong = TinyAdapter(pairs={**PAIRS, "blk.0.ffn_down.weight": (2 * WIDTH, WIDTH)}, size=3.0)
    told = []
    for one in (model, replace(model, adapter=strong.file(tmp_path, "strong.gguf"))):
        scorer = ModelScorer(one, open_jail(), threads=1)
        try:
            rows = (LogitRow(index=0, asked=(20,)),)
            told.append(
                ModelDecoder(scorer).grow([9, 8, 7], [Branch(at=3, tokens=(6,), rows=rows)], timeout_seconds=60.0)
            )
        finally:
            scorer.close()
    assert told[0] is not None
    assert told[1] is not None
    assert abs(told[0][0][0][1][0] - told[1][0][0][1][0]) > 0.01


@pytest.mark.long
@pytest.mark.parametrize("how", ["altered", "a lie", "gone"])
def test_one_that_does_not_serve_leaves_the_registered_model(how: str, tmp_path: Path) -> None:
    model = tiny_model(tmp_path, QWEN)
    plain, _ = scored(model)
    learned = TinyAdapter().file(tmp_path, "learned.gguf")
    if how == "altered":
        raw = bytearray(learned.path.read_bytes())
        raw[-1] ^= 1
        learned.path.write_bytes(raw)
    elif how == "a lie":
        learned = TinyAdapter(pairs={"blk.0.attn_q.weight": (WIDTH, 2 * WIDTH)}).file(tmp_path, "lie.gguf")
    else:
        learned.path.unlink()
    found, scorer = scored(replace(model, adapter=learned), spare=model)
    assert scorer.warning == ""
    assert found == plain
    assert "adapter or mender of qwen do not serve" in scorer.remark
    assert {"altered": "SHA-256", "a lie": "does not fit", "gone": "No such file"}[how] in scorer.remark
