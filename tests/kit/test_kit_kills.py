"""kill -9 at moments of an installation: the old version or the new one, working, with its units whole.

A few moments here; bench/kit.py counts a hundred and more, random ones and kills by time as well.
"""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.kit_builder import Home, make_kit
from support.kit_kills import STEPS, UNITS, Appliance, Killer, killed
from support.kit_machine import possible

NEAR_THE_END = 25  # calls: where the switch and what follows it are


@pytest.fixture
def appliance(tmp_path: Path) -> Iterator[Appliance]:
    if not possible():
        pytest.skip("needs root, and a kernel that lets overlays be mounted")
    made = Appliance(tmp_path / "appliance")
    try:
        yield made
    finally:
        made.end()


@pytest.mark.slow
def test_for_the_machine(appliance: Appliance) -> None:
    dice = random.Random(11)
    moments = {step: appliance.finished(step) for step in STEPS}
    assert min(moments.values()) > NEAR_THE_END // 2
    for near in (False, True):
        for step in STEPS:
            moment = dice.randrange(max(0, moments[step] - NEAR_THE_END) if near else 0, moments[step])
            stood, wrong = appliance.struck(step, moment)
            assert wrong == [], (step.name, moment, stood)
            assert stood.startswith("killed"), (step.name, moment)


@pytest.mark.slow
def test_what_runs_is_restarted_though_the_kill_came_between_the_switch_and_that(appliance: Appliance) -> None:
    """The new version is in use and the old daemon runs on: the next command of the kit tells systemd, even so."""
    appliance.finished(STEPS[0])
    appliance.ready()
    machine = appliance.machine
    machine.path("/run/systemctl").write_text("#!/bin/sh\nkill -KILL 0\n", encoding="utf-8")
    assert killed(appliance.argv(STEPS[1]))
    assert machine.version() == "localagent 2"
    machine.path("/run/systemctl").write_text('#!/bin/sh\necho "$*" >>/run/asked\n', encoding="utf-8")
    ended = subprocess.run(appliance.argv(STEPS[1]), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    told = [line for line in machine.asked() if line.startswith("try-restart ")]
    assert [set(line.split()[1:]) for line in told] == [set(UNITS["2"])]
    assert subprocess.run(appliance.argv(STEPS[1]), capture_output=True, check=False).returncode == 0
    assert machine.asked() == []  # and once is enough


@pytest.mark.slow
def test_for_a_user(tmp_path: Path) -> None:
    killer = Killer(tmp_path / "killer")
    kits = {version: make_kit(tmp_path / version, version) for version in ("1", "2")}
    (tmp_path / "home").mkdir()
    home, dice = Home(tmp_path / "home", killer.python), random.Random(5)
    environ = {"HOME": str(home.path), "PATH": "/usr/bin:/bin", "PYTHON": killer.python}
    answers = {"": "", "1": "localagent 1", "2": "localagent 2"}
    moments: dict[str, int] = {}
    for near in (None, False, True):
        for step in STEPS:
            kit = kits[step.new or step.old]
            if near is not None:
                count = moments[step.name]
                killer.before(dice.randrange(max(0, count - NEAR_THE_END) if near else 0, count))
                assert killed(["sh", str(kit / step.script), *step.words], environ), step.name
                killer.before(None)
                assert home.version() in (answers[step.old], answers[step.new]), step.name
            ended = home.kit(kit, step.script, *step.words)
            assert (ended.returncode, home.version()) == (0, answers[step.new]), (step.name, ended.stderr)
            if near is None:
                moments[step.name] = killer.moments()
            if step.name == "rollback":
                assert not [path for path in home.left() if path.endswith(".new")]
        assert home.left() == []


def test_the_killer_kills_where_it_is_told_to(tmp_path: Path) -> None:
    killer = Killer(tmp_path / "killer")
    program = tmp_path / "program.py"
    program.write_text(
        "import pathlib, sys\nfor name in 'abc':\n    (pathlib.Path(sys.argv[1]) / name).write_text('x')\n", "utf-8"
    )
    argv = [killer.python, "-I", "-B", str(program), str(tmp_path)]
    assert not killed(argv)
    assert killer.moments() == 3
    for name in "abc":
        (tmp_path / name).unlink()
    killer.before(2)
    assert killed(argv)
    assert [name for name in "abc" if (tmp_path / name).exists()] == ["a", "b"]
