"""What sessions find imported already is what they would have imported, and the repository's own modules win."""

from house_builder import house

from localagent.domain.outcome import Outcome
from localagent.jail.worker.preloading import PLUGINS
from localagent.verify.answers import Collected
from localagent.verify.client import OpenRequest, RunRequest
from localagent.verify.place import Use

PRELOADED = """
import sys


def test_known_plugins_are_there_before_anything_is_imported():
    import _hypothesis_pytestplugin
    assert type(_hypothesis_pytestplugin.__loader__).__name__ == "SourceFileLoader"
"""
OWN = """
import queue
import execnet


def test_own():
    assert (queue.OURS, execnet.OURS) == (1, 2)
"""


def outcomes(files: dict[str, str]) -> list[Outcome]:
    with house(files) as h, h.verifier._rooms.start({}, Use.QUICK) as room:
        got = room.client.open(OpenRequest(options=("--tb=no",)))
        assert isinstance(got, Collected), got
        ran = room.client.run(RunRequest(items=got.items, cpu_seconds=5.0, wall_seconds=20.0))
    return [ran.results[i.index].outcome for i in got.items]


def test_a_project_that_makes_warnings_errors_is_not_told_of_modules_imported_before() -> None:
    config = "[pytest]\nfilterwarnings =\n    error\naddopts = -W error\n"
    assert outcomes({"pytest.ini": config, "test_m.py": PRELOADED}) == [Outcome.PASSED]


def test_modules_of_the_repository_win_over_those_that_a_plugin_brought() -> None:
    files = {
        "queue.py": "OURS = 1\nfrom _queue import SimpleQueue, Empty\nQueue = LifoQueue = SimpleQueue\n",
        "execnet/__init__.py": "OURS = 2\n",
        "test_m.py": OWN,
    }
    assert outcomes(files) == [Outcome.PASSED]


def test_the_list_names_modules_once() -> None:
    assert sorted(set(PLUGINS)) == list(PLUGINS)
