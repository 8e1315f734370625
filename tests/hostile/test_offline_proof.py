"""`localagent offline-proof` catches a dependency that calls out, and finds nothing where none does."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localagent.jail.syscall_trace import PROGRAMS

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
def test_every_way_of_working_calls_nobody(tmp_path: Path) -> None:
    code, value = proof(tmp_path)
    assert [(step["name"], step["exit"], step["findings"]) for step in value["steps"]] == [
        ("demo", 0, []),
        ("hook", 0, []),
        ("session", 0, []),
        ("daemon", 0, []),
    ]
    assert (code, value["offline"]) == (0, True)
    families = {row["family"] for step in value["steps"] for row in step["sockets"] if row["namespace"] == "the host's"}
    assert families == {"AF_UNIX"}
