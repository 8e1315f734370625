"""Learning an adapter: from which texts, judged by whom, and (where the extra `train` is installed) in its jail."""

import hashlib
import importlib.util
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tiny_model import QWEN, tiny_model

from localagent.domain.edit import Edit, Splice
from localagent.domain.paths import RepoPath
from localagent.errors import CannotEnforce, UsageFault
from localagent.jail.api import open_jail
from localagent.llm.model import adapter
from localagent.llm.model.gguf import read_adapter, read_header
from localagent.llm.model.registry import ModelFile
from localagent.llm.scoring.decoder import ModelDecoder
from localagent.llm.scoring.scorer import ModelScorer
from localagent.training import adapter_run
from localagent.training.adapter_examples import MOST_TOKENS, TokenExample, _example, digest, pair_of
from localagent.training.adapter_learning import AdapterSettings, Learning
from localagent.training.adapter_run import forget_adapters, judging_fixes, require
from localagent.training.ranker_history import small_fix

BEFORE = (
    "import os\n\n\ndef total(items):\n    count = 0\n    for item in items:\n        count += 1\n    return count\n"
)
AFTER = BEFORE.replace("count += 1", "count += item")
equipped = pytest.mark.skipif(bool(adapter_run.missing()), reason="the extra `train` is not installed")


def test_a_fix_becomes_two_texts_alike_up_to_the_change() -> None:
    fix = small_fix("x@1", "shop.py", BEFORE.encode(), AFTER.encode())
    assert fix is not None
    pair = pair_of(fix)
    assert pair is not None
    assert pair.before.endswith(b"        count += 1\n    return count\n")
    assert pair.after.endswith(b"        count += item\n    return count\n")
    assert pair.context.endswith("# shop.py\n")


def test_no_secret_and_no_odd_path_is_learned_from() -> None:
    secret = 'TOKEN = "ghp_' + "a1B2" * 9 + '"\n'
    for path, front in (("shop.py", secret), ("../shop.py", "")):
        fix = small_fix("x@1", path, (front + BEFORE).encode(), (front + AFTER).encode())
        assert fix is not None
        assert pair_of(fix) is None


def test_an_example_asks_for_the_new_tokens_and_where_the_old_text_goes_on() -> None:
    found = _example([1, 2], [10, 11, 12, 13], [10, 11, 20, 21, 13])
    assert found == TokenExample(tokens=(1, 2, 10, 11, 20, 21, 13), first=4, end=7, old=12)
    assert _example([1], [10, 11], [10, 11]) is None
    assert _example([1], [10, 11], [10, 11, 12]) is None  # nothing stood where the new text begins
    long = _example([], list(range(1000)), [*range(990), 7, *range(991, 1000)])
    assert long is not None
    assert len(long.tokens) == MOST_TOKENS
    assert (long.tokens[long.first], long.old) == (7, 990)


def test_the_digest_is_of_every_number() -> None:
    one = TokenExample(tokens=(1, 2, 3), first=1, end=3, old=5)
    others = [
        TokenExample(tokens=(1, 2, 4), first=1, end=3, old=5),
        TokenExample(tokens=(1, 2, 3), first=2, end=3, old=5),
        TokenExample(tokens=(1, 2, 3), first=1, end=2, old=5),
        TokenExample(tokens=(1, 2, 3), first=1, end=3, old=6),
    ]
    assert len({digest([e]) for e in (one, *others)}) == 5
    assert digest([one]) == digest([TokenExample(tokens=(1, 2, 3), first=1, end=3, old=5)])


@given(st.lists(st.tuples(st.sampled_from("abcdefg"), st.integers(0, 99).map(str)), min_size=1))
def test_what_judges_never_teaches(samples: list[tuple[str, str]]) -> None:
    judges = judging_fixes(samples)
    groups = {group for group, _ in samples}
    back = {group for group, origin in samples if judges(group, origin)}
    if len(groups) < adapter_run.LEAST_GROUPS:  # by commit: one that is named twice stands on one side
        for _, origin in samples:
            assert len({judges(group, origin) for group in groups}) == 1
        return
    taught = {group for group, origin in samples if not judges(group, origin)}
    assert back.isdisjoint(taught)
    assert back
    assert taught
    held = sum(group in back for group, _ in samples)
    assert held * adapter_run.HELD_BACK >= len(samples) or len(taught) == 1


def test_what_cannot_be_learned_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(UsageFault, match="torch and gguf not installed") as caught:
        require("cpu")
    assert "--preset ranker" in caught.value.remedy
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: object())
    require("cpu")
    monkeypatch.setattr(adapter_run, "cuda_devices", lambda: ())
    with pytest.raises(CannotEnforce, match="no device of one can be opened here"):
        require("cuda")
    monkeypatch.setattr(adapter_run, "cuda_devices", lambda: ("/dev/nvidia0",))
    require("cuda")


def test_everything_learned_is_forgotten(tmp_path: Path) -> None:
    place = adapter.folder(tmp_path)
    (place / ".learning-x").mkdir(parents=True)
    for name in ("a.gguf", "a.json", "checkpoint-k-d.npz"):
        (place / name).write_bytes(b"x")
    assert {path.name for path in forget_adapters(tmp_path)} == {"a.gguf", "a.json", "checkpoint-k-d.npz"}
    assert list(place.iterdir()) == []


def learned(folder: Path, model: ModelFile, examples: Sequence[TokenExample], *, epochs: int) -> tuple[Path, int]:
    """An adapter learned in its jail, and how many steps it took this time and before."""
    place = folder / "kept"
    place.mkdir(exist_ok=True)
    scratch = folder / f"scratch-{epochs}"
    scratch.mkdir()
    settings = AdapterSettings(rank=4, alpha=8.0, rate=0.02, batch=2, epochs=epochs)
    learning = Learning(model, place, open_jail(), lambda _text: None, scratch, settings, "cpu")
    made = scratch / "adapter.gguf"
    told = learning.run(examples, digest(examples), made, ends=time.monotonic() + 600.0)
    return made, int(told["steps"])


@equipped
def test_the_arithmetic_is_llama_cpps(tmp_path: Path) -> None:
    """Log-ratios of the model in torch and in llama.cpp, which both read the same weights."""
    import torch

    from localagent.training.adapter_child import Adapted

    model = tiny_model(tmp_path, QWEN)
    assert model.path is not None
    source = b"x = a + b\n"
    edit = Edit(
        path=RepoPath("a.py"), splices=(Splice(start=6, end=7, text=b"-"),), operator="o", line=1, end_line=1,
        prior=0.0, scope=None,
    )  # fmt: skip
    scorer = ModelScorer(model, open_jail(), threads=1)
    try:
        (reading,) = scorer.read(source, "", [edit], timeout_seconds=60.0)
        told = ModelDecoder(scorer).tokenize([source, b"x = a - b\n"], timeout_seconds=60.0)
    finally:
        scorer.close()
    assert reading is not None
    assert told is not None
    ours = Adapted(str(model.path), rank=2, device="cpu", seed=1)
    at = next(k for k in range(len(told[0])) if told[0][k] != told[1][k])
    with torch.no_grad():
        chances = torch.log_softmax(ours.logits([ours.front, *told[0]][: at + 1], [at], 1.0)[0], dim=-1)
    assert float(chances[told[0][at]]) == pytest.approx(reading.stood, abs=0.02)
    assert float(chances[told[1][at]] - chances[told[0][at]]) == pytest.approx(reading.ratio, abs=0.02)


@equipped
def test_what_is_learned_in_the_jail_is_what_serves(tmp_path: Path) -> None:
    model = tiny_model(tmp_path, QWEN)
    source = b"x = a + b\n"
    edit = Edit(
        path=RepoPath("a.py"), splices=(Splice(start=6, end=7, text=b"-"),), operator="o", line=1, end_line=1,
        prior=0.0, scope=None,
    )  # fmt: skip

    def ratio(one: ModelFile, tell: bool = False) -> tuple[float, list[list[int]]]:
        scorer = ModelScorer(one, open_jail(), threads=1)
        try:
            (reading,) = scorer.read(source, "", [edit], timeout_seconds=60.0)
            told = ModelDecoder(scorer).tokenize([source, b"x = a - b\n"], timeout_seconds=60.0) if tell else []
        finally:
            scorer.close()
        assert reading is not None, scorer.warning
        assert told is not None
        return reading.ratio, told

    before, (old, new) = ratio(model, tell=True)
    example = _example([], old, new)
    assert example is not None
    made, steps = learned(tmp_path, model, [example] * 4, epochs=6)
    assert steps == 12
    assert model.path is not None
    with model.path.open("rb") as base, made.open("rb") as stream:
        header = read_adapter(stream, read_header(base))
    assert len(header.tensors) == 14
    kept = adapter.keep(made, _digest(made), {}, tmp_path, model.sha256)
    after, _ = ratio(replace(model, adapter=kept))
    assert after > before + 0.5


@equipped
def test_it_goes_on_from_a_checkpoint_and_from_none_that_is_damaged(tmp_path: Path) -> None:
    model = tiny_model(tmp_path, QWEN)
    examples = [TokenExample(tokens=(9, 8, 7, 6), first=2, end=4, old=5)] * 4
    place = tmp_path / "kept"
    assert learned(tmp_path, model, examples, epochs=3)[1] == 6
    (checkpoint,) = place.glob("checkpoint-*.npz")
    said: list[str] = []
    scratch = tmp_path / "again"
    scratch.mkdir()
    settings = AdapterSettings(rank=4, alpha=8.0, rate=0.02, batch=2, epochs=3)
    again = Learning(model, place, open_jail(), said.append, scratch, settings, "cpu")
    assert again.run(examples, digest(examples), scratch / "a.gguf", ends=time.monotonic() + 600.0)["steps"] == 6
    assert any("going on from before" in text for text in said)
    (checkpoint,) = place.glob("checkpoint-*.npz")
    raw = bytearray(checkpoint.read_bytes())
    raw[len(raw) // 2] ^= 1
    checkpoint.write_bytes(raw)
    said.clear()
    anew = tmp_path / "anew"
    anew.mkdir()
    fresh = Learning(model, place, open_jail(), said.append, anew, settings, "cpu")
    fresh.run(examples, digest(examples), anew / "a.gguf", ends=time.monotonic() + 600.0)
    assert not any("going on from before" in text for text in said)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
