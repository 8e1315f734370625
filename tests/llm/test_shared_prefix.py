"""Batched decoding by the real model in the real jail: the same numbers as one by one, and never cut."""

import socket
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.tiny_model import QWEN, tiny_model

from localagent.jail.api import NamespaceJail
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.child_decode import Growing, RequestFault
from localagent.llm.process.protocol import CONTEXT_TOKENS, Message
from localagent.llm.process.shared_prefix import BATCH_TOKENS, BRANCH_CELLS, SEQUENCES, Branch, LogitRow, _even, _groups
from localagent.llm.scoring.decoder import ModelDecoder
from localagent.llm.scoring.scorer import ModelScorer

pytestmark = pytest.mark.model

PREFIX = b"def parse(line):\n    name, value = line.split('=')\n    return"
TEXTS = [b" name.strip()", b" name", b" name.lower()", b" value", b" value + 1", b" int(value)", b" (name, value)"]


@pytest.fixture(scope="module")
def scorer(bundled_model: ModelFile, jail: NamespaceJail) -> Iterator[ModelScorer]:
    made = ModelScorer(bundled_model, jail, threads=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, jail: NamespaceJail) -> Iterator[ModelScorer]:
    """A model of random weights: its room for branches is as large as any other's, and it fills it in no time."""
    made = ModelScorer(tiny_model(tmp_path_factory.mktemp("model"), QWEN), jail, threads=1)
    yield made
    made.close()


@pytest.fixture
def decoder(scorer: ModelScorer) -> ModelDecoder:
    return ModelDecoder(scorer)


def branch(prefix: list[int], tokens: list[int]) -> Branch:
    rows = [LogitRow(index=k - 1, asked=(token,)) for k, token in enumerate(tokens)]
    return Branch(at=len(prefix), tokens=tuple(tokens), rows=(*rows, LogitRow(index=len(tokens) - 1, top=5)))


def grown(decoder: ModelDecoder, trunk: list[int], branches: list[Branch]) -> list[tuple[float, list[int]]]:
    got = decoder.grow(trunk, branches, timeout_seconds=120)
    assert got is not None
    return [(sum(asked[0] for _, asked in rows[:-1]), [t for t, _ in rows[-1][0]]) for rows in got]


def tokenized(decoder: ModelDecoder, *texts: bytes) -> list[list[int]]:
    got = decoder.tokenize(texts, timeout_seconds=120)
    assert got is not None
    return got


@pytest.mark.long
def test_together_or_alone_the_answers_agree(decoder: ModelDecoder) -> None:
    prefix, *texts = tokenized(decoder, PREFIX, *TEXTS)
    assert b"".join(decoder.piece(t) for t in prefix) == PREFIX
    branches = [branch(prefix, tokens) for tokens in texts]
    together = grown(decoder, prefix, branches)
    again = grown(decoder, prefix, branches)
    alone = [grown(decoder, [*prefix, 0], [one])[0] for one in branches]  # another trunk: nothing is left of before
    for (a, top), (b, _), (c, other) in zip(together, again, alone, strict=True):
        assert abs(a - b) < 1.0
        assert abs(a - c) < 1.0
        assert len(set(top) & set(other)) >= 3
    assert max(a for a, _ in together) > -6.0 > min(a for a, _ in together)


def test_branches_may_leave_the_trunk_anywhere_and_build_on_each_other(decoder: ModelDecoder) -> None:
    prefix, tail = tokenized(decoder, PREFIX, b" name.strip()")
    whole = [*prefix, *tail]
    deep = grown(decoder, prefix, [branch(prefix, tail)])[0][0]
    middle = Branch(at=len(whole) - 1, tokens=(), rows=(LogitRow(index=-1, asked=(whole[-1],)),))
    steps = [
        Branch(at=len(prefix), tokens=tuple(tail[:k]), rows=(LogitRow(index=k - 1, asked=(tail[k],)),))
        for k in range(len(tail))
    ]
    one_by_one = []
    for step in steps:  # each is the one before and one token more
        got = decoder.grow(prefix, [step], timeout_seconds=120)
        assert got is not None
        one_by_one.append(got[0][0][1][0])
    assert abs(sum(one_by_one) - deep) < 1.0
    got = decoder.grow(whole, [middle], timeout_seconds=120)
    assert got is not None
    assert abs(got[0][0][1][0] - one_by_one[-1]) < 0.5


def test_what_branches_share_is_decoded_once(decoder: ModelDecoder) -> None:
    prefix, *texts = tokenized(decoder, PREFIX, *[b" name.strip()[%d]" % k for k in range(10)])
    grown(decoder, prefix, [branch(prefix, texts[0])])
    before = decoder.tokens_used
    grown(decoder, prefix, [branch(prefix, tokens) for tokens in texts])
    assert decoder.tokens_used - before < sum(map(len, texts)) / 2


def test_branches_that_share_a_path_may_be_asked_from_different_places(decoder: ModelDecoder) -> None:
    trunk, rest = tokenized(decoder, PREFIX, b" name.strip(), value.strip()\n")
    at, path = len(trunk), tuple(rest)
    last = len(path) - 1
    grown(decoder, trunk, [branch(trunk, rest)])  # resident: what follows begins with it
    late = Branch(at=at, tokens=path, rows=(LogitRow(index=last, top=2),))
    early = Branch(at=at, tokens=path, rows=(LogitRow(index=1, top=2), LogitRow(index=last, top=2)))
    told = decoder.grow(trunk, [late, early], timeout_seconds=120)
    assert told is not None
    (only,), (_, same) = told
    assert [token for token, _ in only[0]] == [token for token, _ in same[0]]


@pytest.mark.long
def test_the_same_requests_give_the_same_answers(bundled_model: ModelFile, jail: NamespaceJail) -> None:
    runs = []
    for _ in range(2):
        scorer = ModelScorer(bundled_model, jail, threads=1)
        decoder = ModelDecoder(scorer)
        prefix, *texts = tokenized(decoder, PREFIX, *TEXTS)
        runs.append([grown(decoder, prefix, [branch(prefix, tokens) for tokens in texts]) for _ in range(2)])
        scorer.close()
    assert runs[0] == runs[1]


def test_what_does_not_fit_is_refused_and_nothing_is_cut(decoder: ModelDecoder, scorer: ModelScorer) -> None:
    one = Branch(at=1, tokens=(5,), rows=(LogitRow(index=0, top=1),))
    for trunk, branches in (
        ([5] * (CONTEXT_TOKENS + 1), [one]),
        ([5], [Branch(at=1, tokens=(5,) * BRANCH_CELLS, rows=(LogitRow(index=0, top=1),))]),
        ([5] * CONTEXT_TOKENS, [Branch(at=CONTEXT_TOKENS, tokens=(5,), rows=(LogitRow(index=0, top=1),))]),
    ):
        before = scorer.tokens_used
        assert decoder.grow(trunk, branches, timeout_seconds=60) is None
        assert scorer.tokens_used == before
    assert decoder.grow([5, 6], [one], timeout_seconds=60) is not None
    assert scorer.warning == ""


def test_many_branches_go_in_groups(small: ModelScorer) -> None:
    branches = [Branch(at=2, tokens=(k, k + 1), rows=(LogitRow(index=1, top=1),)) for k in range(10, 210)]
    got = ModelDecoder(small).grow([5, 6], branches, timeout_seconds=120)
    assert got is not None
    assert len(got) == 200


def test_branches_that_go_on_as_the_trunk_does_take_their_room(small: ModelScorer) -> None:
    """Asked for what the trunk itself says, they are decoded anew, beside it, and what comes next must still fit."""
    trunk = [10 + k % 200 for k in range(CONTEXT_TOKENS - 20)]
    same = [
        Branch(at=at, tokens=tuple(trunk[at : at + 400]), rows=(LogitRow(index=-1, asked=(trunk[at],)),))
        for at in (100, 600)
    ]
    others = [Branch(at=500, tokens=(220 + k,) * 25, rows=(LogitRow(index=24, top=1),)) for k in range(30)]
    assert ModelDecoder(small).grow(trunk, same, timeout_seconds=240) is not None
    assert ModelDecoder(small).grow(trunk, others, timeout_seconds=240) is not None
    assert small.warning == ""


@given(st.integers(1, 5000))
def test_law_batches_are_as_few_as_can_be_and_even(tokens: int) -> None:
    size = _even(tokens)
    batches = [min(size, tokens - first) for first in range(0, tokens, size)]
    assert max(batches) <= BATCH_TOKENS
    assert len(batches) == -(-tokens // BATCH_TOKENS)
    assert sum(batches) == tokens
    assert size - tokens / len(batches) < 1


@given(st.lists(st.integers(0, BRANCH_CELLS - 1), max_size=30))
@example([1] * 300)
def test_law_groups_hold_every_branch_once_in_order_and_fit(lengths: list[int]) -> None:
    branches = [Branch(at=1, tokens=(7,) * length, rows=()) for length in lengths]
    groups = list(_groups(branches))
    assert [number for group in groups for number, _ in group] == list(range(len(branches)))
    for group in groups:
        assert len(group) <= SEQUENCES - 2  # one for the trunk, one for what another is built upon
        assert sum(len(branch.tokens) + 1 for _, branch in group) <= BRANCH_CELLS


def test_a_request_given_up_on_ends_soon_and_leaves_the_child_well(decoder: ModelDecoder, scorer: ModelScorer) -> None:
    trunk = list(range(1000, 1000 + 1400))
    one = [Branch(at=1400, tokens=(), rows=(LogitRow(index=-1, top=1),))]
    assert (
        decoder.grow([5, 6], [Branch(at=2, tokens=(), rows=(LogitRow(index=-1, top=1),))], timeout_seconds=60)
        is not None
    )
    assert decoder.grow(trunk, one, timeout_seconds=0.3) is None
    asked = scorer.tokens_used
    assert (
        decoder.grow([5, 6], [Branch(at=2, tokens=(), rows=(LogitRow(index=-1, top=1),))], timeout_seconds=60)
        is not None
    )
    assert scorer.tokens_used - asked <= 4  # the long trunk was not read to its end first
    assert scorer.warning == ""


@pytest.mark.parametrize(
    "request_",
    [
        {"kind": "grow", "trunk": [], "branches": []},
        {"kind": "grow", "trunk": [-1], "branches": []},
        {"kind": "grow", "trunk": [1 << 30], "branches": []},
        {"kind": "grow", "trunk": [1], "branches": [[2, [], []]]},
        {"kind": "grow", "trunk": [1], "branches": [[0, [], []]]},
        {"kind": "grow", "trunk": [1], "branches": [[1, [1], [[1, 0, []]]]]},
        {"kind": "grow", "trunk": [1], "branches": [[1, [1], [[0, 65, []]]]]},
        {"kind": "grow", "trunk": [1], "branches": [[1, [1], [[0, 1, []], [0, 1, []]]]]},
        {"kind": "grow", "trunk": [1]},
        {"kind": "grow", "trunk": [1], "branches": [], "mending": True},
        {"kind": "tokenize", "texts": [7]},
    ],
)
def test_what_is_no_request_is_refused_with_a_reason(request_: dict[str, object]) -> None:
    """By the child's own handlers, which check before llama.cpp sees a token."""

    class Vocabulary:
        vocabulary = 49152
        mends = False

    ours, theirs = socket.socketpair()
    with ours, theirs:
        growing = Growing(ours, Vocabulary())  # type: ignore[arg-type]
        message: Message = {**request_, "id": 1}
        with pytest.raises(RequestFault):
            (growing.grow if message["kind"] == "grow" else growing.tokenize)(message)


@pytest.mark.long
def test_what_begins_anew_is_answered_the_same_whatever_was_asked_before(decoder: ModelDecoder) -> None:
    def asked(trunk: list[int], first: int, count: int) -> list[Branch]:
        tokens = [tuple(range(first + 50 * n, first + 50 * n + 20)) for n in range(count)]
        return [
            Branch(at=len(trunk) - n % 9, tokens=t, rows=(LogitRow(index=19, top=3),)) for n, t in enumerate(tokens)
        ]

    trunk = list(range(2000, 2140))
    question = asked(trunk, 3000, 5)
    told = decoder.grow(trunk, question, timeout_seconds=120, fresh=True)
    assert told is not None
    built_upon = decoder.grow(trunk, question, timeout_seconds=120)
    assert built_upon != told  # what is there already is not decoded in the same company
    decoder.grow(trunk, asked(trunk, 9000, 60), timeout_seconds=0.3)  # given up somewhere
    assert decoder.grow(trunk, question, timeout_seconds=120, fresh=True) == told
    decoder.grow(trunk[:100], asked(trunk[:100], 5000, 3), timeout_seconds=120)
    assert decoder.grow(trunk, question, timeout_seconds=120, fresh=True) == told
