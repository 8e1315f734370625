"""A default model that is absent, altered, killed or stopped costs a run a warning: it goes as it goes without one."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from fix_builder import ADDER, CHECKOUT, Home, Ran, home

from localagent.app import Settings
from localagent.llm.registry import Registry

# what a candidate costs makes the search wait for the model's order
SLOW = {
    **ADDER,
    "test_slow.py": (
        "import time\nfrom adder import add\n\n\ndef test_slow():\n    time.sleep(0.4)\n    assert add(1, 2) == 3\n"
    ),
}
CANDIDATES = 8


def bundled() -> Path:
    found = Registry(CHECKOUT / "models", Settings.from_environ().data_dir).verify("")
    assert found.path is not None
    return found.path


def place(h: Home) -> Path:
    """Where the default model's file belongs."""
    folder = h.root / "data" / "localagent" / "models"
    folder.mkdir(parents=True)
    return folder / bundled().name


def absent(h: Home) -> Ran:
    return h.fix(model=(), candidates=CANDIDATES)


def altered(h: Home) -> Ran:
    with place(h).open("wb") as stream:
        stream.truncate(bundled().stat().st_size)
    return h.fix(model=(), candidates=CANDIDATES)


def struck(how: signal.Signals) -> Callable[[Home], Ran]:
    """The child gets a signal as soon as it is seen."""

    def ran(h: Home) -> Ran:
        shutil.copy(bundled(), place(h))
        report = h.root / "report.json"
        with h.start(*h.arguments(candidates=CANDIDATES)) as process:
            child = _child(process.pid)
            os.kill(child, how)
            out, err = process.communicate(timeout=300)
        told = json.loads(report.read_bytes())
        return Ran(code=process.returncode, out=out.decode(), err=err.decode(), report=told)

    return ran


def _child(parent: int) -> int:
    """The process of the model itself, below a run."""
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        for process in psutil.Process(parent).children(recursive=True):
            try:
                line = process.cmdline()
            except psutil.Error:
                continue
            if "localagent.llm.child" in line and "python" in Path(line[0]).name:
                return process.pid
        time.sleep(0.005)
    raise AssertionError("no model was started")


@pytest.fixture(scope="module")
def without() -> Ran:
    """The run that was asked to go without one."""
    with home(SLOW) as h:
        return h.fix(candidates=CANDIDATES)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize(
    ("lose", "warning"),
    [
        (absent, "no model: the file of model"),
        (altered, "SHA-256 is not the registered one"),
        (struck(signal.SIGKILL), "its process ended"),
        (struck(signal.SIGSTOP), "did not answer in time"),
    ],
    ids=["absent", "altered", "killed", "stopped"],
)
def test_a_lost_model_changes_nothing_but_the_warning(lose: Callable[[Home], Ran], warning: str, without: Ran) -> None:
    with home(SLOW) as h:
        lost = lose(h)
    facts = ("verdict", "patch", "rank_of_first_plausible", "verified", "exit")
    assert {name: lost.report.get(name) for name in facts} == {name: without.report.get(name) for name in facts}
    assert without.report["exit"] == 0
    assert any(warning in said for said in lost.report["warnings"]), lost.report["warnings"]
    assert not any("model" in said for said in without.report["warnings"])
