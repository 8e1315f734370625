"""What becomes of a worker whose rules hang, crash or lie: other programs in the worker's place, real processes."""

import sys
import textwrap

import pytest
from support.batch_builder import MISTAKE, Batch
from support.fix_builder import ADDER, CHECKOUT, Home, home

from localagent.app import Settings
from localagent.batch.batch_ports import HELD, WorkerCommands
from localagent.batch.run import TRIES, BatchRun, Begun, begin
from localagent.batch.task_result import RepositoryResult, RepositoryState

CRASHES = """
    class Codemods:
        def repair(self, path, data, rules, policy):
            os.abort()
"""
WORKER = """
    import sys
    sys.path.insert(0, {checkout!r})
    import os, time
    from pathlib import Path
    from localagent.app import Settings
    from localagent.batch.run import fleet_of
    from localagent.batch.batch_ports import HELD, WorkerCommands
    from localagent.batch.runs import RunStore
    from localagent.batch.work import Assignment, carry_out
    {body}
    settings = Settings.from_environ()
    run = RunStore(settings.state_dir).load(Path(sys.argv[1]).name)
    fleet = fleet_of(run, WorkerCommands(worker=()))
    number = int(sys.argv[2])
    sys.exit(carry_out(Assignment(run=run, fleet=fleet, number=number, settings=settings, codemods=Codemods())))
"""


def program(body: str) -> WorkerCommands:
    """Workers that run this in place of ours."""
    text = textwrap.dedent(WORKER).replace("{checkout!r}", repr(str(CHECKOUT)))
    return WorkerCommands(worker=(sys.executable, "-c", text.replace("{body}", textwrap.dedent(body).strip())))


def night(
    h: Home, monkeypatch: pytest.MonkeyPatch, ways: WorkerCommands, each: str
) -> tuple[list[RepositoryResult | None], list[str]]:
    """The answers of a fleet's repositories, and what was told."""
    for name, value in h.environment().items():
        monkeypatch.setenv(name, value)
    settings = Settings.from_environ()
    told: list[str] = []
    begun: Begun = begin(Batch(h).write_all(each=each), settings, ways)
    assert BatchRun(begun, settings, ways, jobs=1, told=told.append).work() == ""
    return [begun.run.answer(n) for n in range(len(begun.fleet.members))], told


@pytest.mark.long
def test_what_was_found_before_the_end_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' patch is in the answer of a repository whose second step took the worker along."""
    with home({}) as h:
        monkeypatch.setattr("localagent.batch.run.TRIES", 1)
        Batch(h).add("one", ADDER)
        each = '[each]\nwork = ["failing-tests", "codemods"]\nmodel = false\nmax_candidates = 12\nmax_seconds = 100\n'
        (answer,), _ = night(h, monkeypatch, program(CRASHES), each)
        assert answer is not None
        assert answer.state is RepositoryState.FAULT
        assert [step.state for step in answer.steps] == [RepositoryState.FIXED]
        assert "+    return a + b" in answer.steps[0].patch


@pytest.mark.long
def test_a_worker_that_always_dies_is_not_tried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    with home({}) as h:
        Batch(h).add("one", {"work.py": MISTAKE})
        (answer,), told = night(h, monkeypatch, program("os.abort()"), '[each]\nwork = ["codemods"]\n')
        assert answer is not None
        assert (answer.state, answer.reason) == (
            RepositoryState.FAULT,
            "its worker died 3 times, the last time by signal 6",
        )
        assert sum("tried again" in line for line in told) == TRIES - 1


@pytest.mark.long
def test_a_worker_that_says_nothing_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ending with status 0 and no answer is dying, too."""
    with home({}) as h:
        Batch(h).add("one", {"work.py": MISTAKE})
        (answer,), _ = night(h, monkeypatch, program("os._exit(0)"), '[each]\nwork = ["codemods"]\n')
        assert answer is not None
        assert answer.reason == "its worker died 3 times, the last time by exit status 0"


@pytest.mark.long
def test_a_twin_waits_for_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first worker of a tree says that its twin is at work; it is asked again once somebody else has ended."""
    body = f"""
    mark = Path(sys.argv[1]) / ("asked-" + sys.argv[2])
    if sys.argv[2] == "0" and not mark.exists():
        mark.touch()
        os._exit({HELD})
    class Codemods:
        def repair(self, path, data, rules, policy):
            from localagent.batch.batch_ports import RepairedFile
            return RepairedFile(after=None)
    """
    with home({}) as h:
        for name in ("one", "two"):
            Batch(h).add(name, {"work.py": MISTAKE})
        answers, told = night(h, monkeypatch, program(textwrap.dedent(body)), '[each]\nwork = ["codemods"]\n')
        assert [answer.state for answer in answers if answer] == [RepositoryState.CLEAN, RepositoryState.CLEAN]
        assert [line.split(":")[0] for line in told] == ["two", "one"]
        assert answers[0] is not None
        assert answers[0].same_as.endswith("/two")
