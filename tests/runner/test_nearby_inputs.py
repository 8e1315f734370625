"""Neighbours of a call: what is said to keep the arguments' relations keeps them, and nothing given is touched."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.runner.nearby_inputs import neighbours
from localagent.runner.rng import Chance

numbers = st.lists(st.integers(1, 60), min_size=2, max_size=8)
seeds = st.integers(0, 2**16)


def kept(args: tuple[Any, ...], seed: int, count: int = 40) -> list[tuple[Any, ...]]:
    return [a for a, _, keeps in neighbours(args, {}, Chance(seed), count) if keeps]


def careless(args: tuple[Any, ...], seed: int, count: int = 40) -> list[tuple[Any, ...]]:
    return [a for a, _, keeps in neighbours(args, {}, Chance(seed), count) if not keeps]


@pytest.mark.long
@given(numbers, st.text("abc", min_size=1, max_size=6), seeds)
def test_what_was_given_is_not_touched_and_a_seed_repeats(items: list[int], text: str, seed: int) -> None:
    args = (items, [list(items), list(items)], {"k": items}, text)
    before = copy.deepcopy(args)
    first = neighbours(args, {"extra": 3}, Chance(seed), 20)
    assert args == before
    assert first == neighbours(args, {"extra": 3}, Chance(seed), 20)
    assert all(len(a) == 4 and set(named) == {"extra"} for a, named, _ in first)


@pytest.mark.long
@given(st.data(), seeds)
def test_lists_of_equal_length_stay_so(data: st.DataObject, seed: int) -> None:
    n = data.draw(st.integers(2, 6))
    a, b = (data.draw(st.lists(st.integers(0, 30), min_size=n, max_size=n)) for _ in range(2))
    assert all(len(x) == len(y) > 0 for x, y in kept((a, b), seed))


@pytest.mark.long
@given(numbers, seeds)
def test_a_sorted_list_stays_sorted_and_a_distinct_one_distinct(items: list[int], seed: int) -> None:
    ordered = sorted(set(items))
    if len(ordered) > 2:
        for (made,) in kept((ordered,), seed, 30):
            assert made == sorted(made)
            assert len(set(made)) == len(made)


@pytest.mark.long
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 50), seeds)
def test_positive_numbers_stay_positive(items: list[int], k: int, seed: int) -> None:
    for made, number in kept((items, k), seed):
        assert number >= 1
        assert all(v >= 1 for v in made)


@pytest.mark.long
@given(numbers, seeds)
def test_a_count_goes_on_equalling_its_length(items: list[int], seed: int) -> None:
    assert all(n == len(made) for made, n in kept((items, len(items)), seed))


@pytest.mark.long
@given(numbers, st.data(), seeds)
def test_a_position_stays_inside(items: list[int], data: st.DataObject, seed: int) -> None:
    k = data.draw(st.integers(1, len(items)))
    assert all(1 <= n <= len(made) for made, n in kept((items, k), seed))


@pytest.mark.long
@given(st.integers(2, 5), st.integers(2, 5), st.data(), seeds)
def test_rows_of_a_table_stay_equally_long(rows: int, columns: int, data: st.DataObject, seed: int) -> None:
    row = st.lists(st.integers(0, 9), min_size=columns, max_size=columns)
    table = data.draw(st.lists(row, min_size=rows, max_size=rows))
    for (made,) in kept((table,), seed):
        assert len({len(r) for r in made}) == 1
        if rows == columns > 2:
            assert len(made) == len(made[0])


def test_a_table_of_two_rows_keeps_both() -> None:
    assert {len(made) for (made,) in kept(([[2, 5, 4], [1, 5, 1]],), 0, 80)} == {2}


def test_a_list_of_positions_in_itself_stays_one() -> None:
    for (made,) in [*kept(([3, 3, 4, 2, 3],), 0, 80), *kept(([1, -1, 0],), 1, 80)]:
        assert all(-1 <= v < len(made) for v in made), made


@pytest.mark.long
@given(st.permutations([3, 5, 8, 9]), seeds)
def test_two_orders_of_the_same_values_stay_so(other: list[int], seed: int) -> None:
    assert all(sorted(a) == sorted(b) for a, b in kept(([3, 5, 8, 9], other), seed))


@pytest.mark.long
@given(seeds)
def test_a_value_named_by_another_argument_stays_where_it_stands(seed: int) -> None:
    for part, whole in kept(([4, 2], [1, 2, 3, 4, 5]), seed):
        assert set(part) <= set(whole), (part, whole)


@given(st.integers(0, 10_000))
def test_the_fields_of_records_keep_their_names(seed: int) -> None:
    rows = [{"title": "a", "rank": 1}, {"title": "b", "rank": 3}]
    for (made,) in kept((rows,), seed, 12):
        assert all(set(row) == {"title", "rank"} for row in made)


def test_letters_and_numbers_of_the_code_are_tried() -> None:
    def code(text: str) -> bool:
        return text[0] == "0" or len(text) == 777

    chance = Chance.of(1, [code.__code__])
    assert (chance.letters, 777 in chance.numbers) == (("0",), True)
    made = [a[0] for a, _, keeps in neighbours(("4711",), {}, chance, 200) if keeps]
    assert any("0" in text for text in made)
    assert not any("0" in text for (text,) in kept(("4711",), 1, 200))


def test_the_careless_ones_break_relations() -> None:
    assert any(len(a) != len(b) for a, b in careless(([1, 2, 3], [4, 5, 6]), 0))


class Node:
    def __init__(self, val: int, left: "Node | None" = None, right: "Node | None" = None) -> None:
        self.val, self.left, self.right = val, left, right


def size(node: Node | None) -> int:
    return 0 if node is None else 1 + size(node.left) + size(node.right)


def test_trees_lose_and_turn_branches_and_stay_trees() -> None:
    tree = Node(1, Node(2, Node(4)), Node(3))
    made = [a[0] for a in kept((tree,), 0, 60)]
    assert {size(t) for t in made} > {4}
    assert any(size(t.left) < size(t.right) for t in made if t is not None)
    assert size(tree) == 4
