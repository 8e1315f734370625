"""What sessions find imported already is what they would have imported, and the repository's own modules win."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.house_builder import house

from localagent.domain.outcome import Outcome
from localagent.runner.pytest_preload import PLUGINS
from localagent.verify.worker.worker_client import OpenRequest, RunRequest
from localagent.verify.worker.worker_messages import Collected
from localagent.verify.worker.worker_spec import WorkerUse

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
    with house(files) as h, h.verifier._jails.start({}, WorkerUse.QUICK) as worker:
        got = worker.client.open(OpenRequest(options=("--tb=no",)))
        assert isinstance(got, Collected), got
        ran = worker.client.run(RunRequest(items=got.items, cpu_seconds=5.0, wall_seconds=20.0))
    return [ran.results[i.index].outcome for i in got.items]


@pytest.mark.long
def test_a_project_that_makes_warnings_errors_is_not_told_of_modules_imported_before() -> None:
    config = "[pytest]\nfilterwarnings =\n    error\naddopts = -W error\n"
    assert outcomes({"pytest.ini": config, "test_m.py": PRELOADED}) == [Outcome.PASSED]


@pytest.mark.long
def test_modules_of_the_repository_win_over_those_that_a_plugin_brought() -> None:
    files = {
        "queue.py": "OURS = 1\nfrom _queue import SimpleQueue, Empty\nQueue = LifoQueue = SimpleQueue\n",
        "execnet/__init__.py": "OURS = 2\n",
        "test_m.py": OWN,
    }
    assert outcomes(files) == [Outcome.PASSED]


NEEDED = ("_pytest", "pytest", "py.py", "pluggy", "packaging", "pygments", "xdist")
ROOT = Path(__file__).resolve().parents[2]
TRIED = """
import sys
from pathlib import Path

sys.path.append(sys.argv[1])
from localagent.runner import pytest_preload

path = list(sys.path)
print(pytest_preload.preload(sys.argv[2]), bool(list(Path(sys.argv[2]).glob("mark-*"))), sys.path == path)
import pytest

__import__(sys.argv[3])
print(len(list(Path(sys.argv[2]).glob("mark-*"))))
"""


@pytest.mark.long
@pytest.mark.parametrize(("name", "told"), [("execnet", pytest.__version__), ("iniconfig", "of the repository")])
def test_what_an_editable_install_brings_is_not_imported_beside_the_channel(
    name: str, told: str, tmp_path: Path
) -> None:
    """A plugin, or pytest itself, needs a module that only the repository has; later it can be imported as ever."""
    library = Path(pytest.__file__).parent.parent
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    place = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    for part in {*NEEDED, "execnet", "iniconfig"} - {name}:
        (place / part).symlink_to(library / part)
    repo = tmp_path / "repo"
    shutil.copytree(library / name, repo / "src" / name)
    source = repo / "src" / name / "__init__.py"
    mark = f"open({str(repo / 'mark-')!r} + __name__, 'w').close()\n"
    future, _, rest = source.read_text().rpartition("from __future__ import annotations\n")
    source.write_text(f"{future}{'from __future__ import annotations' if future else ''}\n{mark}{rest}")
    (place / "editable.pth").write_text(f"{repo / 'src'}\n")
    ran = subprocess.run(
        [str(tmp_path / "env" / "bin" / "python"), "-c", TRIED, str(ROOT), str(repo), name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.splitlines() == [f"{told} False True", "1"], ran.stderr


def test_the_list_names_modules_once() -> None:
    assert sorted(set(PLUGINS)) == list(PLUGINS)
