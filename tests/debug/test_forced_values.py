"""Which values are forced, from runs of real programs; what is said of an experiment; where two runs part."""

import ast
from pathlib import Path

import pytest
from support.traced_program import PATH, traced

from localagent.debug.departure import departure_of
from localagent.debug.forced_values import ObservedRun, forced_values, observed_run
from localagent.debug.value_outcomes import ValueExperiment, ValueOutcome, most_telling, with_experiments
from localagent.domain.outcome import Failure
from localagent.domain.task import Suspicion

SOURCE = """def half(n):
    rest = n - 1
    if rest > 5:
        rest = None
    self = type("Box", (), {})()
    self.size = rest
    self.size += 0
    return [x for x in [rest] if x]

def risky():
    return int("x")

try:
    risky()
except ValueError:
    pass
"""
TREE = ast.parse(SOURCE)


def run(folder: Path, call: str) -> ObservedRun:
    return observed_run(call, traced(folder, SOURCE + call + "\n"))


def forced(line: int, failing: ObservedRun, *passing: ObservedRun) -> list[str]:
    return [f"{f.text}: {f.what}, {f.origin}" for f in forced_values(PATH, TREE, line, failing, passing)]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            2,
            [
                "3: `rest` forced to 3, as in half(4), which passes",
                "8: `rest` forced to 8, next to 9, the last value there in the failing run",
                "10: `rest` forced to 10, next to 9, the last value there in the failing run",
            ],
        ),
        (3, ["False: the condition `rest > 5` forced to False, the failing run went into it"]),
        (
            7,
            [
                "self.size = 3: `self.size` forced to 3, as in half(4), which passes",
            ],
        ),
        (
            8,
            [
                "[3]: the result forced to [3], as in half(4), which passes",
                "True: the condition `x` forced to True, at each of its runs",
                "False: the condition `x` forced to False, at each of its runs",
            ],
        ),
        (11, []),
        (13, []),
    ],
)
def test_what_is_forced(tmp_path: Path, line: int, wanted: list[str]) -> None:
    failing, passing = run(tmp_path, "half(10)"), run(tmp_path, "half(4)")
    assert forced(line, failing, passing) == wanted


def test_a_statement_that_raised_left_and_returned_nothing(tmp_path: Path) -> None:
    assert (PATH, 11, "return") not in run(tmp_path, "pass").values


def test_where_runs_part(tmp_path: Path) -> None:
    failing, passing = traced(tmp_path, SOURCE + "half(10)\n"), traced(tmp_path, SOURCE + "half(4)\n")
    found = departure_of(failing, "half(4)", passing, ())
    assert found is not None
    assert (found.after, found.line, found.passing_line) == ((PATH, 3), (PATH, 4), (PATH, 5))
    assert departure_of(failing, "half(4)", passing, {PATH}) is None
    assert departure_of(failing, "half(10)", failing, ()) is None


def test_no_more_is_said_than_was_shown_and_what_passes_ranks_higher(tmp_path: Path) -> None:
    failing, passing = run(tmp_path, "half(10)"), run(tmp_path, "half(4)")
    one, two, _ = forced_values(PATH, TREE, 2, failing, (passing,))
    (branch,) = forced_values(PATH, TREE, 3, failing, (passing,))
    other = Failure(exception="KeyError", message="'a'\nmore")
    done = [
        ValueExperiment(forced=one, outcome=ValueOutcome.STAYS, failure=other),
        ValueExperiment(forced=two, outcome=ValueOutcome.MOVES, failure=other),
        ValueExperiment(forced=branch, outcome=ValueOutcome.PASSES, failure=None),
    ]
    assert [e.sentence for e in most_telling(done, 5)] == [
        "with the condition `rest > 5` forced to False at program.py:3 (the failing run went into it) the test passes",
        "with `rest` forced to 8 at program.py:2 (next to 9, the last value there in the failing run) the test fails "
        "in another way: KeyError: 'a'",
    ]
    also = ValueExperiment(forced=one, outcome=ValueOutcome.PASSES, failure=None)
    ranked = [Suspicion(path=PATH, line=n, end_line=n, score=0.9 - n / 10) for n in (2, 3, 4)]
    assert [s.line for s in with_experiments(ranked, [*done, also])] == [3, 2, 4]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [("(n >\n    5)", "True"), ("(n <\n    5)", "False"), ("n > 5: pass\nif n > 6", "")],
    ids=["over lines, past it", "over lines, into it", "a body on its own line"],
)
def test_the_way_a_condition_went_is_what_was_seen(tmp_path: Path, condition: str, wanted: str) -> None:
    source = f"n = 1\nif {condition}:\n    n = 2\nn = 3\n"
    failing = observed_run("it", traced(tmp_path, source))
    assert "".join(f.text for f in forced_values(PATH, ast.parse(source), 2, failing, ())) == wanted
