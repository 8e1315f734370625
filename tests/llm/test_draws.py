"""Which token a draw takes: temperature, top-k, top-p and min-p over any row; seeds of their own in any company."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.tiny_model import QWEN, tiny_model

from localagent.errors import CannotEnforce
from localagent.jail.api import NamespaceJail
from localagent.llm.process.batched_sampling import Draw, Drawn, _candidates
from localagent.llm.process.logits import DAMAGED, log_total
from localagent.llm.scoring.scorer import ModelScorer
from localagent.llm.writing.sample_client import ModelSampler, text_prompt

Row = NDArray[np.float32]
_NOTHING = 25.0  # nats below the likeliest, from where a weight is lost in a sum
ROWS = st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=40).map(lambda row: np.array(row, dtype=np.float32))


def how(**more: float) -> Draw:
    wide = {"temperature": 1.0, "top_k": 256, "top_p": 1.0, "min_p": 0.0, **more}
    return Draw(
        seeds=(0,), most_tokens=1, temperature=wide["temperature"], top_k=int(wide["top_k"]), top_p=wide["top_p"],
        min_p=wide["min_p"],
    )  # fmt: skip


def chances(row: Row) -> list[float]:
    """Each token's probability, by the book."""
    most = max(map(float, row))
    weights = [math.exp(float(x) - most) for x in row]
    return [w / math.fsum(weights) for w in weights]


@given(ROWS)
def test_log_probabilities_are_the_row_s_whatever_the_temperature(row: Row) -> None:
    wanted = chances(row)
    for temperature in (0.0, 0.5, 1.0, 3.0):
        found = _candidates(row, how(temperature=temperature), None)
        for token, told in zip(found.tokens, found.likelihoods, strict=True):
            assert told == pytest.approx(math.log(wanted[token]), abs=1e-4)
        assert list(found.likelihoods) == sorted(found.likelihoods, reverse=True)
        assert found.sums[-1] == pytest.approx(1.0)


@given(ROWS, st.integers(1, 50))
def test_top_k_keeps_the_likeliest_and_a_temperature_of_zero_one(row: Row, k: int) -> None:
    kept = _candidates(row, how(top_k=k), None).tokens
    assert len(set(kept)) == len(kept) <= min(k, len(row))
    likely = sorted(row, reverse=True)[: min(k, len(row))]
    assert sorted(row[kept], reverse=True) == likely[: len(kept)]
    assert all(x < likely[0] - _NOTHING for x in likely[len(kept) :])  # what is left out weighs nothing
    (only,) = _candidates(row, how(temperature=0.0, top_k=k), None).tokens
    assert row[only] == max(row)


@given(ROWS, st.floats(0.0, 1.0), st.floats(0.1, 4.0))
def test_top_p_keeps_the_fewest_that_weigh_as_much(row: Row, p: float, temperature: float) -> None:
    weights = sorted(chances(row / np.float32(temperature)), reverse=True)
    found = _candidates(row, how(top_p=p, temperature=temperature), None)
    kept = len(found.tokens)
    assert 1 <= kept <= len(row)
    assert kept == 1 or math.fsum(weights[: kept - 1]) < p + 1e-5
    assert kept == len(row) or math.fsum(weights[:kept]) >= p - 1e-5


@given(ROWS, st.floats(0.0, 1.0))
def test_min_p_is_a_share_of_the_likeliest(row: Row, p: float) -> None:
    weights, found = chances(row), _candidates(row, how(min_p=p), None)
    least = p * max(weights)
    assert all(weights[token] >= least * (1 - 1e-4) for token in found.tokens)
    left = set(range(len(row))) - set(map(int, found.tokens))
    assert all(weights[token] <= max(least * (1 + 1e-4), math.exp(-_NOTHING)) for token in left)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@given(ROWS, st.data())
def test_a_row_with_what_is_no_number_is_refused(bad: float, row: Row, data: st.DataObject) -> None:
    row[data.draw(st.integers(0, len(row) - 1))] = bad
    with pytest.raises(CannotEnforce, match=DAMAGED):
        log_total(row)
    with pytest.raises(CannotEnforce, match=DAMAGED):
        _candidates(row, how(), None)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, jail: NamespaceJail) -> Iterator[ModelScorer]:
    folder: Path = tmp_path_factory.mktemp("model")
    made = ModelScorer(tiny_model(folder, QWEN), jail, threads=1)
    yield made
    assert made.warning == ""
    made.close()


def drawn(
    served: ModelScorer, *seeds: int, temperature: float = 1.0, top_k: int = 40, most_tokens: int = 24
) -> list[Drawn]:
    asked = Draw(seeds=seeds, most_tokens=most_tokens, temperature=temperature, top_k=top_k)
    return list(ModelSampler(served).draw(text_prompt("def f(x):\n    return"), asked, timeout_seconds=120).drawn)


def test_a_text_is_its_seed_s_and_in_other_company_no_more_than_rounding_apart(served: ModelScorer) -> None:
    """Kernels round by how many tokens they compute at once: a draw at the edge may tip over, a likelihood may not."""
    seeds = (11, 12, 13, 14, 15, 16, 17, 18)
    together = drawn(served, *seeds)
    assert len({one.text for one in together}) > 4
    assert drawn(served, *seeds) == together
    alone = [drawn(served, seed)[0] for seed in seeds]
    assert [drawn(served, seed)[0] for seed in seeds] == alone
    for others in (alone, drawn(served, *reversed(seeds))[::-1]):
        alike = [(one, other) for one, other in zip(together, others, strict=True) if one.text == other.text]
        assert len(alike) >= len(seeds) // 2
        assert all(abs(one.likelihood - other.likelihood) < 0.1 for one, other in alike)
    first = [one.text for one in drawn(served, *seeds, most_tokens=1)]
    assert [drawn(served, seed, most_tokens=1)[0].text for seed in seeds] == first  # of the prompt's own logits
    assert len({one.text for one in drawn(served, 11, 11, 11)}) == 1


def test_seeds_do_not_matter_where_one_token_is_left(served: ModelScorer) -> None:
    (coldest,) = drawn(served, 1, temperature=0.0)
    for others in (drawn(served, 1, 2, 3, temperature=0.0), drawn(served, 4, 5, top_k=1)):
        assert {one.text for one in others} == {coldest.text}
