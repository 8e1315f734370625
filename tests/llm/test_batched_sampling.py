"""Texts drawn by real models in the real jail: repeatable, stopped, constrained, bounded; and cancelled at once."""

import re
import threading
from collections.abc import Iterator

import pytest

from localagent.jail.api import NamespaceJail
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.batched_sampling import Draw, SampleEnd
from localagent.llm.scoring.scorer import ModelScorer
from localagent.llm.writing.sample_client import ModelSampler, Prompt, Samples, chat_prompt, text_prompt

pytestmark = pytest.mark.model

ADD = text_prompt("def add(a, b):\n    ")


@pytest.fixture(scope="module")
def served(bundled_model: ModelFile, jail: NamespaceJail) -> Iterator[ModelScorer]:
    made = ModelScorer(bundled_model, jail, threads=1)
    yield made
    assert made.warning == ""
    made.close()


def drawn(served: ModelScorer, prompt: Prompt, how: Draw) -> Samples:
    return ModelSampler(served).draw(prompt, how, timeout_seconds=120)


@pytest.mark.long
def test_a_seed_gives_a_text_and_seeds_give_several(served: ModelScorer) -> None:
    how = Draw(seeds=(1, 2, 3, 4, 1), most_tokens=12, stops=(b"\n",))
    first, second = drawn(served, ADD, how), drawn(served, ADD, how)
    assert first == second
    texts = [d.text for d in first.drawn]
    assert texts[0] == texts[4]  # of one seed, decoded together
    assert len(set(texts)) > 1
    assert any(d.text == b" return a + b" and d.end is SampleEnd.STOP for d in first.drawn)
    assert all(b"\n" not in text for text in texts)


def test_more_seeds_than_fit_at_once_all_get_a_text(served: ModelScorer) -> None:
    how = Draw(seeds=tuple(range(9)), most_tokens=255, stops=(b" ", b"\n", b"("))  # four at once
    found = drawn(served, text_prompt("x ="), how)
    assert [d.number for d in found.drawn] == list(range(9))


def test_at_temperature_zero_the_seed_does_not_matter(served: ModelScorer) -> None:
    found = drawn(served, ADD, Draw(seeds=(1, 2, 3), most_tokens=6, temperature=0.0))
    assert len({d.text for d in found.drawn}) == 1
    assert all(d.end is SampleEnd.LENGTH and d.tokens == 6 and d.likelihood < 0 for d in found.drawn)


@pytest.mark.long
def test_a_grammar_holds_whatever_the_model_wants(served: ModelScorer) -> None:
    how = Draw(
        seeds=tuple(range(8)), most_tokens=24, temperature=2.0, grammar='root ::= "LINE " [1-3] "\\n" [é-ü]+ "!"'
    )
    found = drawn(served, chat_prompt([("user", "Which line?")]), how)
    assert len(found.drawn) == 8
    for text in (d.text.decode() for d in found.drawn if d.end is SampleEnd.END):
        assert re.fullmatch("LINE [1-3]\n[é-ü]+!", text)
    assert any(d.end is SampleEnd.END for d in found.drawn)


def test_what_cannot_be_asked_is_refused_and_the_model_goes_on(served: ModelScorer) -> None:
    how = Draw(seeds=(1,), most_tokens=4)
    assert "not a GBNF grammar" in drawn(served, ADD, Draw(seeds=(1,), most_tokens=4, grammar="no")).refused
    assert "do not fit" in drawn(served, text_prompt("word " * 4000), how).refused
    assert len(drawn(served, ADD, how).drawn) == 1


def test_time_that_runs_out_ends_texts_where_they_are(served: ModelScorer) -> None:
    how = Draw(seeds=(1, 2), most_tokens=400, seconds=0.0)
    found = drawn(served, text_prompt("import os\n"), how)
    assert all(d.end in (SampleEnd.SECONDS, SampleEnd.END) and d.tokens < 400 for d in found.drawn)


def test_a_cancelled_request_stops_in_the_middle(served: ModelScorer) -> None:
    """Whoever stops waiting cancels; what comes next is answered, and little was decoded meanwhile."""
    served.forms(60)
    request = {
        "kind": "sample", "prompt": {"form": "text", "text": "def main():\n"}, "seeds": list(range(8)),
        "most_tokens": 120, "temperature": 1.5, "top_k": 40, "top_p": 1.0, "min_p": 0.0, "stops": [], "grammar": "",
        "seconds": 100.0,
    }  # fmt: skip
    before = served.tokens_used
    with served.guarded():
        came = list(served.exchange(request, frozenset({"done"}), timeout_seconds=0.1))
    assert [item["kind"] for item in came if item["kind"] != "drawn"] == []
    after = drawn(served, ADD, Draw(seeds=(5,), most_tokens=4))
    assert len(after.drawn) == 1
    assert served.tokens_used - before < 8 * 120


def test_requests_of_several_threads_queue(served: ModelScorer) -> None:
    found: list[Samples] = []

    def ask(seed: int) -> None:
        found.append(drawn(served, ADD, Draw(seeds=(seed,), most_tokens=4)))

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(answer.drawn) for answer in found] == [1, 1, 1]
