"""A session that will fork often runs tests of its own first: the repository finds no trace of that."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from house_builder import house

from localagent.domain.outcome import Outcome
from localagent.jail.worker import session
from localagent.verify.answers import Collected, Refused
from localagent.verify.client import OpenRequest, RunRequest
from localagent.verify.place import Use

ROOT = Path(session.__file__).resolve().parents[3]
LOOK = """
import json, logging, os, signal, sys, threading, warnings

def look():
    return {
        "cwd": os.getcwd(), "environment": dict(os.environ), "path": sys.path[:],
        "meta": [repr(m) for m in sys.meta_path],
        "modules": sorted(m for m in sys.modules if not m.startswith(("_pytest", "pytest"))),
        "filters": [repr(f) for f in warnings.filters], "hooks": [id(sys.excepthook), id(sys.unraisablehook)],
        "thread": id(threading.excepthook), "breakpoint": id(sys.breakpointhook),
        "streams": [id(sys.stdin), id(sys.stdout), id(sys.stderr)],
        "logging": [logging.getLogger().level, len(logging.getLogger().handlers)],
        "signals": [str(signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGPROF)],
        "timer": signal.getitimer(signal.ITIMER_PROF), "last": [n for n in vars(sys) if n.startswith("last_")],
        "open": sorted(os.listdir("/proc/self/fd"))[:-1], "tmp": os.listdir(os.environ["TMPDIR"]),
    }
"""
PROGRAM = """
from localagent.jail.worker import rehearsal
ran = []
run_items = rehearsal.run_items
def counted(plugin, items, order, watch, **more):
    if {how!r} == "breaks" and len(ran) == 3:
        raise RuntimeError("broken")
    said = []
    watch.send = said.append
    ran.append([[m.get("outcome") for m in said] for _ in [run_items(plugin, items, order, watch, **more)]])
    return True
rehearsal.run_items = counted
from _pytest.python import Function
shown = Function.repr_failure
before = look()
rehearsal.rehearse()
after = look()
assert Function.repr_failure is shown
print("|" + json.dumps([before, after, ran]))
"""


@pytest.mark.parametrize("how", ["ends", "breaks"])
def test_all_is_as_before_when_it_ends_and_when_it_breaks(tmp_path: Path, how: str) -> None:
    program = LOOK + PROGRAM.format(how=how)
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    before, after, ran = json.loads(done.stdout[done.stdout.index("|") + 1 :])
    assert after == before
    assert len(ran) == (24 if how == "ends" else 3)
    assert {tuple(map(tuple, r)) for r in ran} == {((None, "failed", None, "passed"),)}


TESTS = """
import os, sys, tempfile

def test_no_trace():
    assert [m for m in sys.modules if "rehearsal" in m and not m.startswith("_la_worker")] == []
    assert [n for n in os.listdir(tempfile.gettempdir()) if "rehearsal" in n] == []
    assert not hasattr(sys, "last_value")
    assert "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ
"""


def test_a_test_of_a_warm_session_finds_no_trace() -> None:
    with house({"test_m.py": TESTS}) as h, h.verifier._rooms.start({}, Use.QUICK) as room:
        got = room.client.open(OpenRequest(swap=True))
        assert isinstance(got, Collected)
        ran = room.client.run(RunRequest(items=got.items, cpu_seconds=2.0, wall_seconds=10.0))
    assert [(r.outcome, r.failure) for r in ran.results.values()] == [(Outcome.PASSED, None)]


def test_what_it_printed_is_not_taken_for_the_repositorys() -> None:
    files = {"test_m.py": "import os\nprint('words of the repository')\nos._exit(3)\n"}
    with house(files) as h, h.verifier._rooms.start({}, Use.QUICK) as room:
        got = room.client.open(OpenRequest(swap=True, options=("-s",)))
    assert isinstance(got, Refused)
    assert "rehears" not in got.text
    assert "no tests ran" not in got.text
