"""Laws of delta debugging: 1-minimal, deterministic, the minimum where failing is monotone, few questions."""

import math
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from localagent.code.delta_debugging import minimise

SIZES = st.integers(0, 40)


class Asked:
    """A predicate that remembers its questions."""

    def __init__(self, fails: Callable[[tuple[int, ...]], bool]) -> None:
        self._fails = fails
        self.questions: list[tuple[int, ...]] = []

    def __call__(self, part: tuple[int, ...]) -> bool:
        self.questions.append(part)
        return self._fails(part)


@given(st.data(), SIZES)
def test_a_monotone_failure_is_reduced_to_its_minimum_in_few_questions(data: st.DataObject, size: int) -> None:
    needed = data.draw(st.sets(st.integers(0, size - 1)) if size else st.just(set[int]()))
    fails = Asked(lambda part: needed <= set(part))
    assert minimise(range(size), fails) == tuple(sorted(needed))
    k = len(needed)
    assert len(fails.questions) <= 2 * size + (k + 1) * math.log2(max(1, size)) + 2 * k + 1


@given(st.integers(0, 9), st.randoms(use_true_random=False))
def test_whatever_fails_the_result_fails_and_no_item_of_it_can_be_left_out(size: int, random: object) -> None:
    verdicts: dict[tuple[int, ...], bool] = {tuple(range(size)): True}

    def arbitrary(part: tuple[int, ...]) -> bool:
        return verdicts.setdefault(part, random.random() < 0.4)  # type: ignore[attr-defined]

    fails = Asked(arbitrary)
    result = minimise(range(size), fails)
    assert verdicts[result]
    for index in range(len(result)):
        assert not verdicts[result[:index] + result[index + 1 :]]  # asked, and passed
    assert len(fails.questions) == len(set(fails.questions))
    again = Asked(lambda part: verdicts[part])
    assert minimise(range(size), again) == result
    assert again.questions == fails.questions


@given(SIZES, st.integers(0, 60))
def test_a_used_up_budget_ends_the_search_with_something_that_fails(size: int, allowed: int) -> None:
    fails = Asked(lambda part: sum(part) % 3 == sum(range(size)) % 3)
    result = minimise(range(size), fails, lambda: len(fails.questions) < allowed)
    assert len(fails.questions) <= allowed
    assert sum(result) % 3 == sum(range(size)) % 3


def test_items_may_be_alike_and_keep_their_order() -> None:
    assert minimise("abcabc", lambda part: "".join(part).count("a") >= 2 and "c" in part) == ("a", "c", "a")
