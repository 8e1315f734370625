"""Many texts drawn from one prompt at once: each in a sequence of its own, with a seed, stops and a grammar of its own.

Sequences share the prompt's cells of the `Grove`'s cache and step together, one token each per `llama_decode`; where
one ends the next takes its place. Runs in the confined child only. One build, thread count and request give one set of
texts; not promised: the same text for the same seed in other company.
"""

import ctypes
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localagent.llm.process.logits import log_total
from localagent.llm.process.shared_prefix import SEQUENCES, ContextFull, Grove

MAX_AT_ONCE = min(64, SEQUENCES - 1)
MAX_TOP = 256
_NEVER = -1.0e9  # a logit that nothing but a grammar's refusal has


class SampleEnd(Enum):
    """Why a text ended."""

    END = "end"  # the model ended it, or spoke a control token
    STOP = "stop"  # a stop text came; it is not part of the text
    LENGTH = "length"
    SECONDS = "seconds"
    STUCK = "stuck"  # the grammar allows nothing that the model knows


class GrammarFault(Exception):  # noqa: N818
    """The grammar is none that llama.cpp understands."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Draw:
    """How texts are drawn. `temperature` 0 takes the likeliest token; `grammar` is GBNF with a `root`, or ""."""

    seeds: tuple[int, ...]
    most_tokens: int
    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.0
    stops: tuple[bytes, ...] = ()
    grammar: str = ""
    fed: tuple[int, ...] = ()  # what the grammar has read already, at the end of the prompt
    seconds: float = math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """One text. `likelihood` is the sum of its tokens' log-probabilities before temperature and grammar; nats."""

    number: int
    text: bytes
    tokens: int
    likelihood: float
    end: SampleEnd


@dataclass(slots=True)
class _Voice:
    number: int
    sequence: int
    dice: random.Random
    grammar: "Grammar | None"
    tokens: list[int] = field(default_factory=list)
    text: bytearray = field(default_factory=bytearray)
    likelihood: float = 0.0


class Grammar:
    """One GBNF grammar at work. `close` it."""

    def __init__(self, llama: Any, vocab: Any, text: str) -> None:
        self._llama = llama
        self._sampler = llama.llama_sampler_init_grammar(vocab, text.encode("utf-8"), b"root")
        if not self._sampler:
            raise GrammarFault("not a GBNF grammar with a root")

    def allows(self, tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some tokens may come next."""
        table = np.zeros(len(tokens), dtype=[("id", "<i4"), ("logit", "<f4"), ("p", "<f4")])
        table["id"] = tokens
        data = ctypes.cast(table.ctypes.data, self._llama.llama_token_data_p)
        found = self._llama.llama_token_data_array(data=data, size=len(tokens), selected=-1, sorted=False)
        self._llama.llama_sampler_apply(self._sampler, ctypes.byref(found))
        allowed: NDArray[np.bool_] = table["logit"] > _NEVER
        return allowed

    def accept(self, token: int) -> None:
        """Go on by a token that is allowed."""
        self._llama.llama_sampler_accept(self._sampler, token)

    def close(self) -> None:
        """Give the memory back."""
        if self._sampler:
            self._llama.llama_sampler_free(self._sampler)
            self._sampler = None


class BatchedSampling:
    """Draws texts over one grove. `ends` says which tokens end a text, `piece` gives a token's bytes."""

    def __init__(
        self, llama: Any, vocab: Any, grove: Grove, *, piece: Callable[[int], bytes], ends: Callable[[int], bool]
    ) -> None:
        self._llama, self._vocab, self._grove = llama, vocab, grove
        self._piece, self._ends = piece, ends

    def draw(self, prompt: Sequence[int], how: Draw) -> Iterator[Drawn]:
        """Each text as it ends; those cut off by time too. Fewer when cancelled. NoRoom, GrammarFault before any."""
        path, cells = self._grove.path_tokens, self._grove.branch_cells
        if len(prompt) + how.most_tokens > path:
            raise ContextFull(f"{len(prompt)} tokens and an answer of {how.most_tokens} do not fit into {path}")
        if how.most_tokens + 1 > cells:
            raise ContextFull(f"an answer of {how.most_tokens} tokens does not fit into {cells - 1}")
        until = time.monotonic() + how.seconds
        if how.grammar:
            self._grammar(how).close()
        first = self._grove.seat(prompt)
        if first is None:
            return
        width = max(1, min(MAX_AT_ONCE, cells // (how.most_tokens + 1)))
        singing: list[_Voice] = []
        try:
            yield from self._sing(how, first, len(prompt), width, singing, until)
        finally:
            for voice in singing:
                self._end(voice)

    def _sing(
        self, how: Draw, first: NDArray[np.float32], at: int, width: int, singing: list[_Voice], until: float
    ) -> Iterator[Drawn]:
        waiting = list(enumerate(how.seeds))
        begun: _Candidates | None = None
        free = list(range(width, 0, -1))
        while waiting or singing:
            late = time.monotonic() > until
            while waiting and free and not late:
                voice = self._voice(*waiting.pop(0), free.pop(), at, how)
                singing.append(voice)
                begun = begun or _candidates(first, how, voice.grammar)
                yield from self._step(voice, begun, singing, free, how)
            if late:
                yield from (_drawn(voice, SampleEnd.SECONDS) for voice in singing)
                return
            if not singing:
                continue
            alike: dict[tuple[int, ...], list[_Voice]] = {}  # what several have said alike is decoded once
            for voice in singing:
                alike.setdefault(tuple(voice.tokens), []).append(voice)
            rows = [(said[-1], at + len(said) - 1, [v.sequence for v in of], True) for said, of in alike.items()]
            if not self._grove.decode(rows):
                return
            told = {
                said: _candidates(self._grove.logits(slot), how, alike[said][0].grammar)
                for slot, said in enumerate(alike)
            }
            for voice in list(singing):
                yield from self._step(voice, told[tuple(voice.tokens)], singing, free, how)

    def _voice(self, number: int, seed: int, sequence: int, at: int, how: Draw) -> _Voice:
        self._grove.share(sequence, at)
        grammar = self._grammar(how) if how.grammar else None
        return _Voice(number, sequence, random.Random(seed), grammar)  # noqa: S311

    def _grammar(self, how: Draw) -> Grammar:
        grammar = Grammar(self._llama, self._vocab, how.grammar)
        for token in how.fed:
            if not grammar.allows(np.array([token]))[0]:  # to accept it all the same would end this process
                grammar.close()
                raise GrammarFault("the grammar does not take how the answer begins")
            grammar.accept(token)
        return grammar

    def _step(
        self, voice: _Voice, next_ones: "_Candidates", singing: list[_Voice], free: list[int], how: Draw
    ) -> Iterator[Drawn]:
        """One more token; where that ends the text it is told and its sequence is free again."""
        end = self._advance(voice, next_ones, how)
        if end is not None:
            singing.remove(voice)
            self._end(voice)
            free.append(voice.sequence)
            yield _drawn(voice, end)

    def _advance(self, voice: _Voice, next_ones: "_Candidates", how: Draw) -> SampleEnd | None:
        if not len(next_ones.tokens):
            return SampleEnd.STUCK
        place = int(np.searchsorted(next_ones.sums, voice.dice.random() * next_ones.sums[-1], side="right"))
        place = min(place, len(next_ones.tokens) - 1)
        token = int(next_ones.tokens[place])
        voice.likelihood += float(next_ones.likelihoods[place])
        voice.tokens.append(token)
        if self._ends(token):
            return SampleEnd.END
        if voice.grammar is not None:
            voice.grammar.accept(token)
        piece = self._piece(token)
        voice.text += piece
        for stop in how.stops:
            found = voice.text.find(stop, max(0, len(voice.text) - len(piece) - len(stop)))
            if found >= 0:
                del voice.text[found:]
                return SampleEnd.STOP
        return SampleEnd.LENGTH if len(voice.tokens) >= how.most_tokens else None

    def _end(self, voice: _Voice) -> None:
        self._grove.free(voice.sequence)
        if voice.grammar is not None:
            voice.grammar.close()


def _drawn(voice: _Voice, end: SampleEnd) -> Drawn:
    return Drawn(
        number=voice.number,
        text=bytes(voice.text),
        tokens=len(voice.tokens),
        likelihood=voice.likelihood,
        end=end,
    )


class _Candidates(NamedTuple):
    """What may come next, the likeliest first, its log-probability, and the running sum of its weight in the draw."""

    tokens: NDArray[np.int64]
    likelihoods: NDArray[np.float64]
    sums: NDArray[np.float64]


def _candidates(logits: NDArray[np.float32], how: Draw, grammar: Grammar | None) -> _Candidates:
    """Of the `top_k` likeliest those that the grammar allows; of all where it allows none of those."""
    total = log_total(logits)
    count = min(max(1, how.top_k), len(logits))
    ids = np.argpartition(logits, -count)[-count:] if count < len(logits) else np.arange(len(logits))
    if grammar is not None:
        kept = ids[grammar.allows(ids)]
        if not len(kept):
            everything = np.arange(len(logits))
            kept = everything[grammar.allows(everything)]
        ids = kept
    if not len(ids):
        return _Candidates(ids, np.empty(0), np.empty(0))
    ids = ids[np.lexsort((ids, -logits[ids]))][: 1 if how.temperature <= 0.0 else count]
    likelihoods = np.minimum(0.0, logits[ids].astype(np.float64) - total)
    weights = np.exp((likelihoods - likelihoods[0]) / max(how.temperature, 1e-6))
    weights /= weights.sum()
    keep = (np.cumsum(weights) - weights < how.top_p) & (weights >= how.min_p * weights[0])
    keep[0] = True
    return _Candidates(ids[keep], likelihoods[keep], np.cumsum(weights[keep]))
