"""Which question came back without an answer is told, and the same one can be left open again."""

from collections.abc import Sequence

import pytest

from localagent.llm.process.shared_prefix import Branch
from localagent.llm.scoring.decoder import RowAnswer
from localagent.llm.writing.replay_decoder import CutDecoder


class Slow:
    """A model that does not answer its question number `silent` in time."""

    tokens_used, alive = 0, True

    def __init__(self, silent: int) -> None:
        self.silent, self.asked = silent, 0
        self.fresh, self.fresh_asked = False, list[bool]()

    def tokenize(self, texts: Sequence[bytes], *, timeout_seconds: float) -> list[list[int]] | None:
        self.asked += 1
        return None if self.asked == self.silent else [[1] for _ in texts]

    def grow(
        self,
        trunk: Sequence[int],
        branches: Sequence[Branch],
        *,
        timeout_seconds: float,
        fresh: bool = False,
        mending: bool = False,
    ) -> list[list[RowAnswer]] | None:
        self.asked += 1
        self.fresh_asked.append(fresh)
        return None if self.asked == self.silent else []


def heard(decoder: CutDecoder) -> list[bool]:
    return [
        decoder.tokenize([b"a"], timeout_seconds=1) is not None,
        decoder.grow([1], [], timeout_seconds=1) is not None,
        decoder.tokenize([b"b"], timeout_seconds=1) is not None,
    ]


@pytest.mark.parametrize("silent", [0, 1, 2, 3])
def test_a_question_that_was_late_is_left_open_when_it_is_done_again(silent: int) -> None:
    then = CutDecoder(Slow(silent))  # type: ignore[arg-type]
    then.begin(0)
    answers = heard(then)
    assert then.late == silent
    again = CutDecoder(Slow(0))  # type: ignore[arg-type]
    again.begin(then.late)
    assert heard(again) == answers
    assert again.late == silent
    again.begin(0)
    assert heard(again) == [True, True, True]
    assert again.late == 0


@pytest.mark.parametrize("silent", [0, 1, 2, 3, 5])
def test_after_a_question_that_was_left_open_the_next_begins_anew_then_and_when_it_is_done_again(silent: int) -> None:
    slow = Slow(silent)
    then = CutDecoder(slow)  # type: ignore[arg-type]
    told: list[tuple[int, list[int]]] = []
    for _ in range(3):
        then.begin(0)
        heard(then)
        told.append((then.late, list(then.fresh)))
    quick = Slow(0)
    again = CutDecoder(quick)  # type: ignore[arg-type]
    for late, fresh in told:
        again.begin(late, fresh)
        heard(again)
        assert (again.late, list(again.fresh)) == (late, fresh)
    put = [fresh for n, fresh in enumerate(slow.fresh_asked) if 3 * n + 2 != silent]  # the open one is not put again
    assert quick.fresh_asked == put
    assert sum(slow.fresh_asked) == bool(silent)


def test_a_question_that_began_anew_because_others_had_asked_begins_so_again() -> None:
    slow = Slow(0)
    slow.fresh = True
    then = CutDecoder(slow)  # type: ignore[arg-type]
    then.begin(0)
    heard(then)
    assert then.fresh == [2]
    quick = Slow(0)
    again = CutDecoder(quick)  # type: ignore[arg-type]
    again.begin(0, then.fresh)
    heard(again)
    assert quick.fresh_asked == [True]
    assert again.fresh == [2]
