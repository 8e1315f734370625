"""The behaviour table's own parts: what is captured, and how a call's end is told."""

import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localagent.runner import behaviour_probe
from localagent.runner.behaviour_probe import call_all, inputs
from localagent.runner.call_capture import Capture
from localagent.runner.json_frames import Reader, send
from localagent.runner.rng import Chance
from localagent.runner.structural_key import shape

CODE = """
def entry(items):
    return [inner(x) for x in items if x]

def inner(x):
    return 10 // x

def other(x):
    return x

def counted(n):
    for k in range(n):
        yield inner(k + 1)

def refuses(n):
    if n > 2:
        raise ValueError(n)
    return n

def asserts(n):
    assert n < 2
    return n

class Shelf:
    last = 0

    def add(self, n):
        self.last = n

def sorts(items):
    items.sort()

def spins(n):
    while True:
        n += 1

def holds(items, item):
    return any(one is item for one in items)
"""


def program(tmp_path: Path) -> Any:
    path = tmp_path / "m.py"
    path.write_text(CODE)
    module: Any = types.ModuleType("m")
    exec(compile(CODE, str(path), "exec"), module.__dict__)
    return module


def heard(module: Any, watched: str, run: Callable[[], object]) -> Capture:
    known = {f.__code__: f for f in vars(module).values() if isinstance(f, types.FunctionType)}
    function = getattr(module, watched)
    capture = Capture([function], {function.__code__.co_filename}, known.get)
    before = sys.getprofile()
    capture.start()
    try:
        run()
    finally:
        capture.stop()
        sys.setprofile(before)
    return capture


def test_what_the_test_asks_is_told_from_what_happens_inside(tmp_path: Path) -> None:
    m = program(tmp_path)
    capture = heard(m, "inner", lambda: (m.other(1), m.entry([2, 0, 5]), m.entry([0])))
    assert [(c.function.__name__, c.args) for c in capture.entries] == [("entry", ([2, 0, 5],))]
    assert [(c.function.__name__, c.args) for c in capture.inner] == [("inner", (2,)), ("inner", (5,))]


def test_a_generator_is_one_call_however_often_it_yields(tmp_path: Path) -> None:
    m = program(tmp_path)
    capture = heard(m, "counted", lambda: list(m.counted(3)))
    assert [c.args for c in capture.entries] == [(3,)]


def test_only_inputs_a_test_asks_for_are_kept_ones(tmp_path: Path) -> None:
    m = program(tmp_path)
    found = inputs(heard(m, "inner", lambda: m.entry([2, 3, 5])), Chance(0))
    assert {f.__name__ for f, _, _, kept in found if kept} == {"entry"}
    assert found[0][1:] == (([2, 3, 5],), {}, False)
    assert len({shape(one[1:3]) + one[0].__name__ for one in found}) == len(found)


def test_the_object_whose_method_is_called_stays_as_it_is(tmp_path: Path) -> None:
    m = program(tmp_path)
    shelf = m.Shelf()
    shelf.add(3)
    known = {m.Shelf.add.__code__: m.Shelf.add}
    capture = Capture([m.Shelf.add], {str(tmp_path / "m.py")}, known.get)
    capture.start()
    shelf.add(4)
    capture.stop()
    found = inputs(capture, Chance(0))
    assert {vars(args[0])["last"] for _, args, _, _ in found} == {3}
    assert len({args[1] for _, args, _, _ in found}) > 3


def test_what_is_one_object_in_two_arguments_is_one_in_copies_and_copies_of_these(tmp_path: Path) -> None:
    m = program(tmp_path)
    shelf = m.Shelf()
    capture = heard(m, "holds", lambda: m.holds([m.Shelf(), shelf], shelf))
    calls = [(c.function, c.args, c.kwargs, True) for c in capture.entries]
    assert calls[0][1][1] is not shelf
    _, _, texts, _ = in_child(lambda: call_all(str(tmp_path), calls))
    assert texts == ["True"]


def test_what_came_back_alone_is_told_where_anything_did(tmp_path: Path) -> None:
    m = program(tmp_path)
    calls: list[behaviour_probe.Input] = [(m.refuses, (n,), {}, True) for n in (1, 1, 2)]
    row, _, _, _ = in_child(lambda: call_all(str(tmp_path), [*calls, (m.sorts, ([2, 1],), {}, True)]))
    assert len({cell.split(":")[2] for cell in row[:3]}) == 2
    assert row[3].count(":") == 1


def test_how_a_call_ended_is_told_apart(tmp_path: Path) -> None:
    m = program(tmp_path)
    calls: list[behaviour_probe.Input] = [
        (m.entry, ([5],), {}, True),
        (m.inner, (0,), {}, True),
        (m.refuses, (3,), {}, True),
        (m.asserts, (3,), {}, True),
        (m.inner, (0,), {}, False),
    ]
    row, crashes, texts, exact = in_child(lambda: call_all(str(tmp_path), calls))
    assert [cell.split(":")[0] for cell in row] == ["ok", "raised", "refused", "refused", "raised"]
    assert [(c["i"], c["call"], c["failure"]["type"]) for c in crashes] == [(1, "inner(0)", "ZeroDivisionError")]
    assert crashes[0]["failure"]["frames"] == [["m.py", 6, "inner"]]
    raised = "raises ZeroDivisionError"
    assert texts == ["[2]", raised, "raises ValueError", "raises AssertionError", raised]
    assert exact == [True] * 5


def test_a_program_that_hangs_everywhere_is_not_waited_for_everywhere(tmp_path: Path) -> None:
    m = program(tmp_path)
    row, crashes, texts, exact = in_child(
        lambda: call_all(str(tmp_path), [(m.spins, (n,), {}, True) for n in range(60)])
    )
    assert [cell.split(":")[0] for cell in row] == ["late"] * 60
    assert crashes == []
    assert len({*row}) == 2  # the last ones were not called
    assert {*texts} == {"does not end in time", ""}
    assert exact == [False] * 60


def test_what_a_call_answers_is_told_in_words(tmp_path: Path) -> None:
    m = program(tmp_path)
    calls: list[behaviour_probe.Input] = [(m.counted, (2,), {}, True), (m.sorts, ([2, 1],), {}, True)]
    row, _, texts, exact = in_child(lambda: call_all(str(tmp_path), calls))
    assert [cell.split(":")[0] for cell in row] == ["ok", "ok"]
    assert texts == ["list(10,5)", "None, its arguments then: [1, 2]"]
    assert exact == [False, False]


def test_only_a_call_and_answers_that_are_whole_literals_are_exact(tmp_path: Path) -> None:
    m = program(tmp_path)
    long = list(range(90))
    calls: list[behaviour_probe.Input] = [
        (m.other, ([1, 2, 3, 4, 5, 6, 7, 8],), {}, True),
        (m.other, (m.Shelf(),), {}, True),
        (m.other, (long,), {}, True),
    ]
    answers: list[behaviour_probe.Told] = [
        ([f"ok:{n}"] * 3, [], ["[8]", "'x'", "7"], [n == 0, True, True]) for n in (0, 1)
    ]
    shown = {x["i"]: x for x in behaviour_probe._telling(str(tmp_path), calls, [*answers, ([], [], [], [])])}
    assert shown[0]["call"] == "other([1, 2, 3, 4, 5, 6, 7, 8])"
    assert {i: x["exact"] for i, x in shown.items()} == {
        0: [True, False, False],
        1: [False, False, False],  # the object is not told
        2: [False, False, False],  # cut
    }


def test_a_function_is_placed_only_where_its_name_leads_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    m = program(tmp_path)
    functions = [m.other, m.Shelf.add]
    assert [behaviour_probe.locate(str(tmp_path), f) for f in functions] == [None, None]  # m is no module of ours
    monkeypatch.setitem(sys.modules, "m", m)
    assert [behaviour_probe.locate(str(tmp_path), f) for f in functions] == [
        ["m.py", "m", "other"],
        ["m.py", "m", "Shelf.add"],
    ]
    first = m.other
    m.other = lambda x: first(x)
    assert behaviour_probe.locate(str(tmp_path), first) is None  # decorated
    assert behaviour_probe.locate(str(tmp_path / "elsewhere"), m.Shelf.add) is None


def in_child(work: Callable[[], Any]) -> Any:
    """`call_all` takes over signals and a timer: it belongs into a process of its own."""
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_fd)
        send(write_fd, {"told": work()})
        os._exit(0)
    os.close(write_fd)
    answer = Reader(read_fd).receive(None)
    os.close(read_fd)
    os.waitpid(pid, 0)
    return answer["told"]
