"""`localagent offline-proof` catches a dependency that calls out, and finds nothing where none does."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localagent.jail.trace.syscall_trace import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(shutil.which("strace", path=PROGRAMS) is None, reason="no strace")

# A package of the same name in front of the real one, which it brings in after its call.
PLANTED = """
import importlib.machinery, importlib.util, socket, sys
with socket.socket() as caller:
    caller.setblocking(False)
    caller.connect_ex(("127.0.0.1", 9))
from pathlib import Path as _Path
_Path.home().joinpath("loot").write_text("x")
here = __file__
paths = [p for p in sys.path if p and not here.startswith(p)]
spec = importlib.machinery.PathFinder.find_spec(__name__, paths)
module = importlib.util.module_from_spec(spec)
sys.modules[__name__] = module
spec.loader.exec_module(module)
"""


REMOVING = """
import contextlib as _contextlib, glob as _glob, os as _os
_beside = _os.path.dirname(_os.path.dirname(_os.environ["TMPDIR"]))
for _name in [*_glob.glob("../trace-*/*"), *_glob.glob(_os.path.join(_beside, "localagent-trace-*", "*"))]:
    with _contextlib.suppress(OSError):
        _os.unlink(_name)
        with open(_os.path.expanduser("~/removed"), "a") as _told:
            _told.write(_name)
"""


def proof(tmp_path: Path, *args: str, **environ: str) -> tuple[int, dict[str, Any]]:
    (tmp_path / "home").mkdir(exist_ok=True)
    argv = [sys.executable, "-m", "localagent", "offline-proof", "--json", "--out", str(tmp_path / "proof.json"), *args]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), **environ}
    ended = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1), ended.stderr
    value = json.loads(ended.stdout)
    assert json.loads((tmp_path / "proof.json").read_text()) == value
    assert isinstance(value, dict)
    return ended.returncode, value


@pytest.mark.long
def test_a_planted_dependency_is_caught(tmp_path: Path) -> None:
    package = tmp_path / "planted" / "pathspec"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PLANTED)
    code, value = proof(tmp_path, "--only", "session", PYTHONPATH=str(tmp_path / "planted"))
    (step,) = value["steps"]
    assert (code, value["offline"], step["exit"]) == (1, False, 0), step
    found = {(finding["kind"], finding["what"].split("(")[0]) for finding in step["findings"]}
    assert ("egress", "socket") in found
    assert ("egress", "connect") in found
    assert ("write", f"openat {tmp_path}/home/loot") in found


@pytest.mark.long
def test_who_removes_the_trace_of_a_call_is_caught_with_it(tmp_path: Path) -> None:
    package = tmp_path / "planted" / "pathspec"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PLANTED.replace("from pathlib", REMOVING + "from pathlib"))
    code, value = proof(tmp_path, "--only", "session", PYTHONPATH=str(tmp_path / "planted"))
    (step,) = value["steps"]
    assert (code, value["offline"]) == (1, False), step
    found = {(finding["kind"], finding["what"].split("(")[0]) for finding in step["findings"]}
    assert {("egress", "socket"), ("egress", "connect")} <= found
    assert (tmp_path / "home" / "removed").read_text() != ""  # it did reach what lay there
    assert "trace" in {kind for kind, _ in found}


@pytest.mark.long
def test_the_folder_that_it_was_started_in_is_nobodys_library(tmp_path: Path) -> None:
    """`python -m` puts it into `sys.path`, so that all of a project in the home might be read."""
    here = tmp_path / "home" / "project"
    (tmp_path / "home").mkdir()
    here.mkdir()
    (here / "diary").write_text("private")
    program = (
        "import sys; sys.path[:0] = [sys.argv[1]]\n"
        "from pathlib import Path\n"
        "from localagent.app import Settings\n"
        "from localagent.app.inventory.egress_proof import _ways\n"
        "settings = Settings.from_environ({'HOME': sys.argv[2]})\n"
        "print(*_ways(Path('/w'), settings, {'HOME': sys.argv[2], 'PYTHONPATH': sys.argv[3]}).readable)\n"
    )
    for given, readable in (("", False), (str(here), True)):
        argv = [sys.executable, "-c", program, str(ROOT), str(tmp_path / "home"), given]
        env = {"PATH": os.environ["PATH"], **({"PYTHONPATH": given} if given else {})}
        said = subprocess.run(argv, cwd=here, env=env, capture_output=True, text=True, check=True).stdout
        assert (str(here) in said.split()) is readable, said


@pytest.mark.long
def test_the_hook_alone_calls_nobody(tmp_path: Path) -> None:
    code, value = proof(tmp_path, "--only", "hook")
    assert (code, [step["findings"] for step in value["steps"]]) == (0, [[]]), value


@pytest.mark.slow
def test_a_daemon_serves_a_task_and_calls_nobody(tmp_path: Path) -> None:
    code, value = proof(tmp_path, "--only", "daemon")
    (step,) = value["steps"]
    assert (code, step["exit"], step["findings"]) == (0, 0, []), step
    rows = {(row["call"], row["family"]) for row in step["sockets"] if row["namespace"] == "the host's"}
    assert {("bind", "AF_UNIX"), ("connect", "AF_UNIX")} <= rows  # it did serve, and was asked


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["do", "chat"])
def test_a_model_at_a_unix_socket_is_all_that_is_asked(tmp_path: Path, verb: str) -> None:
    code, value = proof(tmp_path, "--only", verb)
    (step,) = value["steps"]
    assert (code, step["exit"], step["findings"]) == (0, 0, []), step
    rows = {(row["call"], row["family"]) for row in step["sockets"] if row["namespace"] == "the host's"}
    assert {("bind", "AF_UNIX"), ("connect", "AF_UNIX")} <= rows  # the model was asked
    assert {family for _, family in rows} == {"AF_UNIX"}


@pytest.mark.slow
def test_every_way_of_working_calls_nobody(tmp_path: Path) -> None:
    code, value = proof(tmp_path)
    assert [(step["name"], step["exit"], step["findings"]) for step in value["steps"]] == [
        ("demo", 0, []),
        ("hook", 0, []),
        ("session", 0, []),
        ("daemon", 0, []),
        ("do", 0, []),
        ("chat", 0, []),
    ]
    assert (code, value["offline"]) == (0, True)
    families = {row["family"] for step in value["steps"] for row in step["sockets"] if row["namespace"] == "the host's"}
    assert families == {"AF_UNIX"}
