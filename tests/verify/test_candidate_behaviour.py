"""What plausible candidates do near the tests' inputs, asked in real jails."""

from dataclasses import replace

import pytest
from support.house_builder import house

from localagent.domain.behaviour import Behaviours, DistinguishingCall, NamedFunction
from localagent.domain.paths import RepoPath
from localagent.verify.evidence.candidate_behaviour import _shown
from localagent.verify.worker.worker_messages import Malformed

TEST = "import m\ndef test_f():\n    assert m.f(3, 4) == 7\n"


@pytest.mark.long
def test_candidates_are_told_apart_by_what_they_do() -> None:
    files = {"m.py": "def f(a, b):\n    return a - b\n", "test_m.py": TEST}
    with house(files) as h:
        baseline = h.verifier.baseline()
        first = h.candidate("m.py", "a - b", "a + b")
        texts = {2: "b + a", 3: "7", 4: "a - -b"}
        others = [h.variant(n, "m.py", "a - b", text) for n, text in texts.items()]
        rows = h.verifier.behaviours([first, *others], baseline, seed=0).rows
    assert set(rows) == {0, 1, 2, 3, 4}
    assert rows[1] == rows[2] == rows[4]
    assert len({rows[0], rows[1], rows[3]}) == 3
    assert len({len(row) for row in rows.values()}) == 1


@pytest.mark.long
def test_a_call_on_which_they_differ_is_told_with_their_answers() -> None:
    files = {"m.py": "def f(a, b):\n    return a - b\n", "test_m.py": TEST}
    with house(files) as h:
        baseline = h.verifier.baseline()
        texts = {1: "a + b", 2: "b + a", 3: "7"}
        near = h.verifier.behaviours(
            [h.variant(n, "m.py", "a - b", text) for n, text in texts.items()], baseline, seed=0
        )
    found = near.distinguishing([1, 3])
    assert found is not None
    a, b = (int(x) for x in found.call.removeprefix("f(").removesuffix(")").split(", "))
    assert found.answers == {1: str(a + b), 3: "7"}
    assert a + b != 7
    assert found.function == NamedFunction(path=RepoPath("m.py"), module="m", qualname="f")
    assert found.exact == {1, 3}
    assert near.distinguishing([1, 2]) is None


@pytest.mark.long
def test_so_are_candidates_of_a_program_that_does_not_parse() -> None:
    files = {"m.py": "def f(a, b):\n    return a = b\n", "test_m.py": TEST}
    with house(files) as h:
        baseline = h.verifier.baseline()
        tokens = {1: "a + b", 2: "a - -b", 3: "a | b"}
        rows = h.verifier.behaviours(
            [h.variant(n, "m.py", "a = b", text) for n, text in tokens.items()], baseline, seed=0
        ).rows
    assert set(rows) == {1, 2, 3}
    assert rows[1] == rows[2] != rows[3]


@pytest.mark.long
def test_nothing_is_said_of_programs_that_differ_in_more_than_functions() -> None:
    files = {"m.py": "K = 1\n\n\ndef f(a, b):\n    return a + b + K\n", "test_m.py": TEST}
    with house(files) as h:
        baseline = h.verifier.baseline()
        candidates = [h.variant(n, "m.py", "K = 1", f"K = {n - n}{' ' * n}#") for n in (1, 2)]
        assert set(h.verifier.behaviours(candidates, baseline, seed=0).rows) == {1}  # nobody to compare it with


@pytest.mark.long
def test_a_seed_gives_the_same_rows_again() -> None:
    files = {"m.py": "def f(a, b):\n    return a - b\n", "test_m.py": TEST}
    with house(files) as h:
        baseline = h.verifier.baseline()
        candidates = [h.variant(n, "m.py", "a - b", text) for n, text in ((1, "a + b"), (2, "7"))]
        assert h.verifier.behaviours(candidates, baseline, seed=3) == h.verifier.behaviours(
            candidates, baseline, seed=3
        )


FIRST = "def first(items):\n    i = 0\n    while items[i] < {}:\n        i += 1\n    return items[i]\n"


@pytest.mark.long
def test_a_program_that_crashes_near_the_tests_is_told_with_the_call_and_the_place() -> None:
    files = {"m.py": FIRST.format(5), "test_m.py": "import m\ndef test_f():\n    assert m.first([1, 7, 9, 4]) == 9\n"}
    with house(files) as h:
        baseline = h.verifier.baseline()
        candidate = h.candidate("m.py", "< 5", "< 8")
        near = h.verifier.behaviours([candidate], baseline, seed=0)
        assert len(near.crashed(candidate.number)) > 2
        crash = near.crashes[candidate.number][0]
        assert crash.failure.exception == "IndexError"
        assert crash.call.startswith("first([")
        assert [(f.path, f.line) for f in crash.failure.frames] == [("m.py", 3)]


@pytest.mark.long
def test_a_test_that_hung_is_asked_of_a_candidate_that_does_not() -> None:
    files = {
        "m.py": "def f(n):\n    while n > 0:\n        n += 1\n    return n\n",
        "test_m.py": "import m\ndef test_f():\n    assert m.f(3) == 0\n",
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        texts = {1: "n -= 1", 2: "n = 0"}
        near = h.verifier.behaviours(
            [h.variant(k, "m.py", "n += 1", text) for k, text in texts.items()], baseline, seed=0
        )
    assert set(near.rows) == {1, 2}
    assert near.rows[1] == near.rows[2]


@pytest.mark.long
def test_arguments_that_refuse_to_be_copied_cost_the_evidence_and_nothing_else() -> None:
    files = {
        "m.py": "class Odd:\n    def __deepcopy__(self, memo):\n        raise RuntimeError\n\n\n"
        "def f(a, b):\n    return a - b\n",
        "test_m.py": "import m\ndef test_f():\n    m.f.odd = m.Odd()\n    assert m.f(3, 4) == 7\n"
        "    assert m.f.odd\n\n\ndef test_odd():\n"
        "    try:\n        m.f(m.Odd(), 1)\n    except TypeError:\n        pass\n",
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        candidates = [h.variant(n, "m.py", "a - b", text) for n, text in ((1, "a + b"), (2, "7"))]
        near = h.verifier.behaviours(candidates, baseline, seed=0)
    assert near.rows[1] != near.rows[2]


GOOD = {"i": 0, "call": "f(1)", "answers": ["1", "2"], "function": ["m.py", "m", "f"], "exact": [True, False]}


def test_where_a_called_function_is_comes_from_the_jail_and_is_bounded() -> None:
    read = _shown(GOOD, [4, 9], 1)
    assert read.function == NamedFunction(path=RepoPath("m.py"), module="m", qualname="f")
    assert read.exact == {4}
    for outside in ("../m.py", "/m.py", "", None):
        assert _shown({**GOOD, "function": [outside, "m", "f"]}, [4, 9], 1).function is None
    long = _shown({**GOOD, "function": ["m.py", "m" * 9_000, "f\x1b"], "exact": [1, "x"]}, [4, 9], 1)
    assert long.function is not None
    assert (len(long.function.module), long.function.qualname, long.exact) == (200, "f\ufffd", frozenset())
    for key, value in (
        ("function", []),
        ("function", ["m.py", "m"]),
        ("function", ["m.py", 1, "f"]),
        ("exact", [True]),
    ):
        with pytest.raises(Malformed):
            _shown({**GOOD, key: value}, [4, 9], 1)


def test_of_calls_that_tell_as_much_the_one_that_can_be_a_test_is_shown() -> None:
    place = NamedFunction(path=RepoPath("m.py"), module="m", qualname="f")
    first = DistinguishingCall(column=0, call="f(x)", answers={1: "1", 2: "2"}, function=place)
    second = replace(first, call="f(1)", exact=frozenset({1, 2, 3}))
    rows = {1: ("ok:1",), 2: ("ok:2",)}
    for shown in ((first, second), (second, first)):
        near = Behaviours(rows=rows, kept=(True,), seen=(False,), shown=shown)
        assert near.distinguishing([1, 2]) == replace(second, exact=frozenset({1, 2}))
