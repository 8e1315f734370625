"""Span search over a small decoder that really decodes: one byte a token, chances counted from a text."""

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext

import pytest

from localagent.code.symbols import FactIndex
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.edit.external_edits import Page
from localagent.llm.process.shared_prefix import Branch
from localagent.llm.scoring.decoder import RowAnswer
from localagent.llm.writing.span_nodes import TOP
from localagent.llm.writing.span_search import SpanRegion
from localagent.llm.writing.span_writer import SpanWriter

M = RepoPath("m.py")
SOURCE = b"""import json


def text_of(rows, path):
    total = len(rows)
    return json.dumps(rows)
"""
KNOWN = b"return json.dumps(rows, cls=path)\n" * 3
ORDER = 4
EMPTY = Baseline(tests=(), failing=(), passing=())


class Bytes:
    """Tokens are bytes; the next one's chances are counted after the last ORDER bytes of what was learned."""

    def __init__(self, learned: bytes = KNOWN, *, answers: bool = True) -> None:
        self.after: dict[bytes, Counter[int]] = {}
        self.answers = answers
        self.longest = 0
        self.asked: list[bytes] = []
        self.mending: set[bool] = set()
        for at in range(len(learned)):
            for order in range(ORDER + 1):
                self.after.setdefault(learned[max(0, at - order) : at], Counter())[learned[at]] += 1

    def piece(self, token: int) -> bytes:
        return bytes([token])

    def tokenize(self, texts: Sequence[bytes], *, timeout_seconds: float) -> list[list[int]] | None:
        return [list(text) for text in texts] if self.answers else None

    def grow(
        self, trunk: Sequence[int], branches: Sequence[Branch], *, timeout_seconds: float, mending: bool = False
    ) -> list[list[RowAnswer]] | None:
        self.mending.add(mending)
        if not self.answers:
            return None
        out = []
        for branch in branches:
            path = bytes(trunk[: branch.at]) + bytes(branch.tokens)
            self.longest = max(self.longest, len(path))
            self.asked.append(path)
            rows: list[RowAnswer] = []
            for row in branch.rows:
                chances = self.chances(path[: branch.at + row.index + 1])
                top = sorted(chances, key=lambda b: (-chances[b], b))[: row.top]
                rows.append((tuple((b, chances[b]) for b in top), tuple(chances[b] for b in row.asked)))
            out.append(rows)
        return out

    def chances(self, before: bytes) -> dict[int, float]:
        """Interpolated over the orders, so that nothing is impossible."""
        mixed = dict.fromkeys(range(128), 1e-4)
        for order in range(ORDER + 1):
            found = self.after.get(before[len(before) - order :] if order else b"", Counter())
            for byte, count in found.items():
                mixed[byte] += 8.0**order * count / sum(found.values())
        total = sum(mixed.values())
        return {byte: min(0.0, math.log(value / total)) for byte, value in mixed.items()}


def region(page: Page, lines: Sequence[int], **kwargs: object) -> SpanRegion:
    settings = {"context": "# why\n", "lead": 0, "room_tokens": lambda: 2000, "malus": 2.5, **kwargs}
    return SpanRegion(page, [(place, 0.5 * k) for k, place in enumerate(page.code_lines(lines))], **settings)  # type: ignore[arg-type]


def searched(made: SpanRegion, decoder: Bytes, steps: int = 60) -> dict[str, float]:
    """Sources found and their scores, in the order they were found."""
    found: dict[str, float] = {}
    for _ in range(steps):
        for written in made.step(decoder, timeout_seconds=1.0) or ():
            after = written.edit.apply(SOURCE).decode()
            assert after not in found, "the same edit twice"
            found[after] = written.score
    return found


def page() -> Page:
    return Page(M, {M: SOURCE, RepoPath("test_m.py"): b"json.dumps(1, cls=2)\n"}, FactIndex())


@pytest.mark.long
def test_what_the_model_would_rather_have_written_is_found() -> None:
    found = searched(region(page(), [6, 5]), Bytes())
    wanted = SOURCE.decode().replace("dumps(rows)", "dumps(rows, cls=path)")
    assert wanted in found, list(found)
    assert found[wanted] > -8.0
    assert all(score <= 0.0 for score in found.values())


@pytest.mark.long
def test_what_no_name_allows_is_never_paid_for() -> None:
    """Only names that exist are gone on with: without one that is called so, no branch spells it out."""
    decoder = Bytes()
    made = region(Page(M, {M: SOURCE}, FactIndex()), [6])
    for words in (made.page.known.keywords, made.page.known.names):
        words._sorted = [word for word in words._sorted if not word.startswith("cl")]
        words._set = frozenset(words._sorted)
    searched(made, decoder)
    written = [path.rpartition(b"\n")[2] for path in decoder.asked]
    assert not any(b"rows, cl" in line for line in written)


@pytest.mark.long
def test_a_search_is_the_same_twice() -> None:
    assert list(searched(region(page(), [6, 5]), Bytes()).items()) == list(
        searched(region(page(), [6, 5]), Bytes()).items()
    )


@pytest.mark.parametrize("room", [420, 330])
def test_where_room_is_short_what_stands_in_front_goes_and_places_stay(room: int) -> None:
    """Lines in front of the window are left out, whole; no path is longer than the room, and the place is whole."""
    decoder = Bytes()
    made = region(page(), [6], context="# context\n" * 30, room_tokens=lambda: room)
    assert searched(made, decoder, 3)
    assert decoder.longest <= room
    assert made.skipped == 0
    assert all(b"    # before: return json.dumps(rows)\n    " in path for path in decoder.asked)


WRONG = b"# wrong:\n" + SOURCE[SOURCE.index(b"def") :] + b"# right:\n"


@pytest.mark.parametrize("room", [2000, 420, 400])
def test_a_model_that_mends_writes_in_the_second_copy(room: int) -> None:
    """In front stands what is wrong, whole, whatever room there is; the old line is no comment."""
    decoder = Bytes()
    begin = SOURCE.index(b"def")
    made = region(page(), [6, 5], context="# context\n" * 30, lead=begin, wrong=WRONG, room_tokens=lambda: room)
    assert searched(made, decoder, 3)
    assert decoder.mending == {True}
    assert decoder.longest <= room
    assert made.skipped == 0
    assert all(WRONG + b"def text_of(rows, path):\n    " in path for path in decoder.asked)
    assert not any(b"# before" in path for path in decoder.asked)


def test_its_certainty_that_nothing_is_wrong_comes_off_in_part() -> None:
    begin, unlikely = SOURCE.index(b"def"), math.log(0.02)
    mends = region(page(), [6], lead=begin, wrong=WRONG)
    sure, torn = mends._leaving(math.log(0.97), unlikely), mends._leaving(math.log(0.5), unlikely)
    assert 0.0 < sure < torn < -unlikely
    assert mends._leaving(0.0, unlikely) == 0.0  # as sure as can be, and yet likelier than all else together
    assert mends._leaving(math.log(0.1), math.log(0.9)) < 0.1
    plain = region(page(), [6])
    assert plain._leaving(math.log(0.97), unlikely) > plain._leaving(math.log(0.5), unlikely) > sure


def test_where_what_is_wrong_has_no_room_nothing_is_written() -> None:
    made = region(page(), [6, 5], lead=SOURCE.index(b"def"), wrong=WRONG, room_tokens=lambda: 300)
    assert searched(made, Bytes(), 3) == {}
    assert (made.skipped, made.next_cost) == (2, math.inf)


def test_a_place_without_room_is_counted_not_cut() -> None:
    made = region(page(), [6], room_tokens=lambda: 200)
    assert searched(made, Bytes(), 3) == {}
    assert (made.skipped, made.next_cost) == (1, math.inf)
    source = SOURCE.replace(b"json.dumps(rows)", b"json.dumps(rows" + b" + rows" * 60 + b")")
    long = region(Page(M, {M: source}, FactIndex()), [6])
    assert long.step(Bytes(), timeout_seconds=1.0) is not None
    assert long.skipped == 1


def test_a_model_that_does_not_answer_gives_none() -> None:
    assert region(page(), [6]).step(Bytes(answers=False), timeout_seconds=0.1) is None


def test_tokens_that_do_not_give_the_text_back_are_not_searched() -> None:
    class Lossy(Bytes):
        def piece(self, token: int) -> bytes:
            return b"?" if token == ord("(") else super().piece(token)

    made = region(page(), [6])
    assert searched(made, Lossy(), 2) == {}
    assert made.next_cost == math.inf


def test_the_writer_takes_the_likeliest_places_and_stops_when_the_model_is_gone() -> None:
    class Gone:
        warning = "model m dropped: its process ended"
        mends = False

    writer = SpanWriter(Gone(), lambda path, baseline: "", localization=2.0, malus=2.5)  # type: ignore[arg-type]
    writer.begin({M: SOURCE}, [Suspicion(path=M, line=6, end_line=6, score=1.0)], EMPTY)
    assert writer.next_cost == math.inf
    assert list(writer.more()) == []
    Gone.warning = ""
    assert writer.next_cost == 2.5
    assert TOP <= 64


class Mends:
    """A model that answers nothing in time."""

    warning, path_tokens = "", 2000
    guarded = nullcontext

    def __init__(self, *, mends: bool) -> None:
        self.mends = mends

    def exchange(self, *_: object, **__: object) -> tuple[object, ...]:
        return ()


@pytest.mark.parametrize("mends", [True, False])
def test_each_function_is_shown_once_to_a_model_that_mends(mends: bool) -> None:
    source = SOURCE + b"\n\n" + SOURCE.replace(b"text_of", b"other")[SOURCE.index(b"def") :]
    served = Mends(mends=mends)
    writer = SpanWriter(served, lambda path, _: "# first\n" * 60 + "# last\n", localization=2.0, malus=2.5)  # type: ignore[arg-type]
    places = [Suspicion(path=M, line=line, end_line=line, score=1.0) for line in (5, 6, 11, 12)]
    writer.begin({M: source}, places, EMPTY)
    shown = [(made._context, made._wrong) for made in writer._regions]
    if not mends:
        assert [wrong for _, wrong in shown] == [b""]
        return
    ((context, wrong),) = shown  # both are near enough to be one stretch
    assert wrong == b"# wrong:\n" + source[source.index(b"def") :] + b"# right:\n"
    assert context.endswith("# first\n# last\n# m.py\nimport json\n\n\n")
    assert len(context) < 600
    served.mends = False
    writer.more(timeout_seconds=0.1)
    assert [made._wrong for made in writer._regions] == [b""]
