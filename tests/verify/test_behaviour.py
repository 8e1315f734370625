"""What plausible candidates do near the tests' inputs, asked in real jails."""

import pytest
from house_builder import house

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
