"""`hook suggest` with a real daemon: used where it is there and answers, left aside where it is not or refuses."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fix_builder import ADDED, ADDER, Home, home
from support.git_builder import Repo
from support.service_builder import Served, ordered, served
from support.warm_start import parent

SLEEPER = {"test_a.py": "import time\n\n\ndef test_a():\n    time.sleep(300)\n    assert False\n"}


@pytest.fixture
def place() -> Iterator[Home]:
    with home() as made:
        yield made


def suggest(place: Home, daemon: Served, *arguments: str) -> dict[str, Any]:
    asked = ["hook", "suggest", "--deadline", "600s", "--json", "--daemon", str(daemon.socket), *arguments]
    done = parent().run(asked, place.environment(), place.repo)
    assert done is not None
    assert done.returncode == 0, (done, daemon.log())
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def tasks_of(daemon: Served) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.client().get("/v1/tasks").json()["tasks"]
    return found


@pytest.mark.slow
def test_the_daemon_repairs_what_is_staged(place: Home) -> None:
    """And what goes with it: nothing unstaged, a task of the daemon's, nothing applied; then all tests pass."""
    repo = Repo(place.repo)
    repo.git("add", "-A")
    repo.write("adder.py", ADDER["adder.py"] + "\n\nx = 1  # not staged\n")
    with served() as daemon:
        (found,) = suggest(place, daemon)["suggestions"]
        assert (found["origin"], found["found_by"], found["tests"]) == ("failing-tests", "daemon", ["test_adder.py"])
        assert "not staged" not in found["patch"]
        assert ADDED not in (place.repo / "adder.py").read_bytes()
        assert [task["state"] for task in tasks_of(daemon)] == ["done"]
        assert tasks_of(daemon)[0]["order"]["tests"] == ["test_adder.py"]
        repo.git("apply", "--cached", str(Path(found["kept_at"])))
        assert ADDED in repo.staged("adder.py")
        assert suggest(place, daemon) == {"suggestions": [], "remarks": []}


@pytest.mark.slow
def test_a_daemon_that_refuses_or_is_gone_is_said_and_left_aside(place: Home) -> None:
    Repo(place.repo).git("add", "-A")
    with served(open_tasks=1) as daemon:
        ordered(daemon.client(), SLEEPER, max_seconds=300)
        told = suggest(place, daemon)
        (found,) = told["suggestions"]
        assert found["found_by"] == "here"
        (remark,) = told["remarks"]
        assert "the daemon refuses" in remark
        daemon.kill()
        told = suggest(place, daemon)
        assert [one["found_by"] for one in told["suggestions"]] == ["here"]
        (remark,) = told["remarks"]
        assert "nobody listens" in remark
        told = suggest(place, daemon, "--python", sys.executable)
        assert ([one["found_by"] for one in told["suggestions"]], told["remarks"]) == (["here"], [])
