"""Stage 2 of the hook: what is suggested, where it goes, and that it blocks nothing."""

import argparse
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fix_builder import ADDED, ADDER, Home, home, tree_of
from support.git_builder import Repo
from support.warm_start import parent

from localagent.app import Settings
from localagent.cli import hook_suggest_child
from localagent.cli.hook_suggest import show, suggestions
from localagent.cli.render import Render
from localagent.cli.timeboxed_child import Say

SAFE = "--deadline=100s"
FOUND = {
    "adder.py": "def add(a, b):\n    return a + b\n\n\ndef grown(x, y=[]):\n    y.append(x)\n    return y\n",
    "test_adder.py": "from adder import add, grown\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
    "def test_grown():\n    assert grown(1) == [1]\n",
}


@pytest.fixture
def place() -> Iterator[Home]:
    with home() as made:
        yield made


def staged(place: Home) -> Repo:
    repo = Repo(place.repo)
    repo.git("add", "-A")
    return repo


def hook(place: Home, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    done = parent().run(["hook", *arguments], place.environment(), place.repo)
    assert done is not None
    return done


def suggest(place: Home, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = hook(place, *arguments, "--json")
    assert done.returncode == code, done
    found: dict[str, Any] = json.loads(done.stdout)
    if not any("was up" in remark for remark in found["remarks"]):  # else what clears up may have been killed
        assert not list(place.scratch.iterdir())
    return found


@pytest.mark.long
def test_a_failing_test_gets_a_patch_for_what_is_staged(place: Home) -> None:
    repo = staged(place)
    repo.write("adder.py", ADDER["adder.py"] + "\n\nx = 1  # not staged\n")
    before = tree_of(place.repo)
    (found,) = suggest(place, "suggest", SAFE)["suggestions"]
    assert {k: v for k, v in tree_of(place.repo).items() if ".git" not in k} == {
        k: v for k, v in before.items() if ".git" not in k
    }
    assert (found["origin"], found["tests"]) == ("failing-tests", ["test_adder.py"])
    assert 0 < found["confidence"]["probability"] < 1
    kept = Path(found["kept_at"])
    assert kept.is_relative_to(place.root / "state")
    assert kept.read_text() == found["patch"]
    repo.git("apply", "--cached", str(kept))
    assert ADDED in repo.staged("adder.py")
    assert b"not staged" not in repo.staged("adder.py")
    assert suggest(place, "suggest", SAFE)["suggestions"] == []
    assert not kept.exists(), "a suggestion for something else stays"


def test_the_likeliest_is_shown_first(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def search(_args: object, _settings: object, _box: object, say: Say) -> None:
        for name, probability in (("a", None), ("b", 0.5), ("c", 0.75)):
            told = {"probability": probability, "calibrated": name == "c", "model": "t"}
            one = {"origin": "failing-tests", "titles": [name], "tests": ["t"], "found_by": "here", "patch": ""}
            say({"suggestion": {**one, "kept_at": "/x", "confidence": None if probability is None else told}})

    monkeypatch.setattr(hook_suggest_child, "search", search)  # the child's half
    arguments = argparse.Namespace(deadline="100000s", json=False)
    ended_by = signal.getsignal(signal.SIGTERM)
    try:
        made, remarks = suggestions(arguments, Settings.from_environ())
    finally:
        signal.signal(signal.SIGTERM, ended_by)
    assert ([one["titles"] for one in made], remarks) == ([["c"], ["b"], ["a"]], [])
    show(made, remarks, Render())
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("suggestion")]
    assert [line.partition(" (t)")[2] for line in lines] == [
        ", confidence 0.75",
        ", confidence 0.50, not calibrated for this search",
        "",
    ]


@pytest.mark.long
def test_findings_that_tests_vouch_for(place: Home) -> None:
    place.write(FOUND)
    staged(place)
    told = suggest(place, "check", "--suggest", SAFE)
    (found,) = told["suggested"]
    assert (found["origin"], found["confidence"], len(told["files"])) == ("findings", None, 1)
    assert "y=None" in found["patch"]


@pytest.mark.long
def test_what_only_ruff_and_bandit_were_told_to_find(place: Home) -> None:
    """A rule of ours that is off unless asked for: the project's ruff asks, and does not repair it itself."""
    place.write(
        {
            "ruff.toml": 'lint.select = ["B905"]\n',
            "adder.py": "def pairs(a, b):\n    return list(zip(a, b))\n",
            "test_adder.py": "from adder import pairs\n\n\ndef test_it():\n    assert pairs([1], [2]) == [(1, 2)]\n",
        }
    )
    staged(place)
    (found,) = suggest(place, "suggest", SAFE)["suggestions"]
    assert (found["origin"], found["tests"]) == ("findings", ["test_adder.py"])
    assert "strict=" in found["patch"]


@pytest.mark.long
def test_no_test_is_related(place: Home) -> None:
    place.write({"other.py": "def f(x, y=[]):\n    return x\n"})
    Repo(place.repo).git("add", "other.py")
    assert suggest(place, "suggest", SAFE) == {"suggestions": [], "remarks": ["no test is related to it"]}


def test_nothing_staged(place: Home) -> None:
    Repo(place.repo)
    assert suggest(place, "suggest", SAFE) == {"suggestions": [], "remarks": ["no Python file is staged"]}


@pytest.mark.long
def test_a_test_that_sleeps_is_not_waited_for(place: Home) -> None:
    place.write({"test_adder.py": "import time\nfrom adder import add\n\n\ndef test_add():\n    time.sleep(1000)\n"})
    staged(place)
    told = suggest(place, "check", "--suggest", "--deadline", "2s")
    assert told["remarks"] == ["the time (2s) ran out; raise it with --deadline"]


@pytest.mark.long
def test_what_cannot_be_suggested_blocks_nothing(place: Home) -> None:
    place.write({"test_adder.py": "import nowhere_at_all, adder\n"})
    staged(place)
    told = suggest(place, "check", "--suggest", SAFE)
    assert "the environment is not complete" in told["remarks"][0]
    assert "nowhere_at_all" in told["remarks"][0]


def test_named_files_are_not_for_suggestions(place: Home) -> None:
    staged(place)
    done = hook(place, "check", "--suggest", "adder.py")
    assert (done.returncode, b"staged files only" in done.stderr) == (2, True)
