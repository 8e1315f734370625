"""Which question came back without an answer is told, and the same one can be left open again."""

from collections.abc import Sequence

import pytest

from localagent.llm.branches import Branch
from localagent.llm.cut import CutDecoder
from localagent.llm.decoder import RowAnswer


class Slow:
    """A model that does not answer its question number `silent` in time."""

    tokens_used, alive = 0, True

    def __init__(self, silent: int) -> None:
        self.silent, self.asked = silent, 0

    def tokenize(self, texts: Sequence[bytes], *, timeout_seconds: float) -> list[list[int]] | None:
        self.asked += 1
        return None if self.asked == self.silent else [[1] for _ in texts]

    def grow(
        self, trunk: Sequence[int], branches: Sequence[Branch], *, timeout_seconds: float
    ) -> list[list[RowAnswer]] | None:
        self.asked += 1
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
