"""Texts of values are equal where the values' structure is, and nowhere else."""

import datetime
import io
from decimal import Decimal
from pathlib import Path
from unittest.mock import MagicMock

from localagent.runner.structural_key import NODES_LIMIT, shape, whole_shape


def test_shapes_are_equal_where_a_test_could_not_tell_values_apart() -> None:
    assert shape([True, 1.0, {0: False}]) == shape([1, 1, {0: 0}])
    assert len({shape(v) for v in (1, 1.5, "1", None, [1], (1,), float("inf"), float("nan"))}) == 8


def test_a_mock_is_told_by_what_it_holds_and_not_by_what_it_says_to_be() -> None:
    def called(*given: object) -> MagicMock:
        mock = MagicMock(spec="logging.Logger", log=MagicMock())
        mock.log(*given)
        return mock

    for told in (shape, lambda value: whole_shape(value)[0]):
        assert told(called(1)) == told(called(1)) != told(called(2))


def test_values_without_attributes_are_told_apart() -> None:
    class Slotted:
        __slots__ = ("n",)

        def __init__(self, n: int) -> None:
            self.n = n

    day = datetime.date(2024, 3, 1)
    assert shape(day) != shape(day + datetime.timedelta(days=1))
    assert shape(Decimal("1.5")) != shape(Decimal("2.5"))
    assert shape(Slotted(1)) != shape(Slotted(2))
    assert shape(Slotted(1)) == shape(Slotted(1))


def test_looking_at_a_stream_or_an_iterator_takes_nothing_from_it() -> None:
    class Reader:
        def __init__(self, text: str) -> None:
            self.rest = list(text)

        def __iter__(self) -> "Reader":
            return self

        def __next__(self) -> str:
            if not self.rest:
                raise StopIteration
            return self.rest.pop()

    for one, other in [
        (io.StringIO("a\nb"), io.StringIO("a\nc")),
        (io.BytesIO(b"a"), io.BytesIO(b"b")),
        (iter([1, 2]), iter([1, 3])),
        (Reader("ab"), Reader("b")),
    ]:
        assert shape(one) == shape(one) != shape(other)
        assert len(list(one)) == 2 or isinstance(one, io.BytesIO)  # type: ignore[call-overload]
    read = io.StringIO("ab")
    read.read(1)
    assert shape(read) != shape(io.StringIO("ab"))
    assert shape(x for x in (1, 2)) == shape(iter([1, 2]))  # what cannot be copied is told by its values


def test_objects_that_know_one_another_have_an_end() -> None:
    class Node:
        def __init__(self, n: int) -> None:
            self.n, self.others = n, list[Node]()

    def ring(*numbers: int) -> Node:
        nodes = [Node(n) for n in numbers]
        for node in nodes:
            node.others = list(nodes)
        return nodes[0]

    assert shape(ring(*range(8))) == shape(ring(*range(8))) != shape(ring(0, 1, 2, 3, 4, 5, 6, 9))
    large, parts = whole_shape(ring(*range(12)))  # told object by object: there are too many ways to each
    assert parts > NODES_LIMIT
    assert "" != large == whole_shape(ring(*range(12)))[0] != whole_shape(ring(*range(11), 12))[0]
    assert whole_shape([ring(*range(12)), list(range(NODES_LIMIT))])[0] == ""
    lines = (line for line in "ab")
    assert whole_shape({"lines": lines})[0] == whole_shape({"lines": iter("cd")})[0]  # nothing of them is taken
    assert list(lines) == ["a", "b"]


def test_code_of_an_object_is_not_asked_what_it_holds() -> None:
    class Request:
        __slots__ = ("environ",)
        environ: dict[str, int]

        def __getattr__(self, name: str) -> int:
            return self.environ[name]  # recurs without end until there is one

    request = Request()
    unset = shape(request)
    request.environ = {"n": 1}
    assert unset != shape(request)


def test_folders_that_pytest_makes_for_each_run_are_equal() -> None:
    first, second = (Path(f"/tmp/pytest-of-me/pytest-{n}/test_case{n}/in.txt") for n in (0, 7))
    assert shape([first, str(first)]) == shape([second, str(second)])
    assert shape(first) != shape(first.with_name("out.txt"))


def test_names_made_of_addresses_are_equal_and_other_numbers_are_not() -> None:
    assert shape("memory:0x7fc392267e50") == shape("memory:0x7fa1878356d0")
    for text in ("0x7fc39", "0x" + "7fc392267e50" * 3):
        assert shape(text) != shape(text.replace("7", "8"))


def test_large_values_in_use_are_told_as_a_whole() -> None:
    for one, other in [(list(range(999)), [*range(998), 0]), ("a" * 9999, "a" * 9998 + "b")]:
        assert whole_shape(one)[0] != whole_shape(other)[0] != ""
    assert whole_shape(list(range(9 * NODES_LIMIT)))[0] == ""
