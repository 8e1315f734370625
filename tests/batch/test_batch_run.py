"""A fleet worked off by real processes in real jails: answers, what is kept, forks, patches that git takes."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.batch_builder import EACH, MISTAKE, Batch, asking, states, workers
from support.fix_builder import ADDER, CHECKOUT, Ran, home, tree_of
from support.git_builder import ENVIRON, Repo

from localagent.batch.runs import RunStore
from localagent.jail.api import sweep

GREEN = {
    "one.py": "def one():\n    return 1\n",
    "test_one.py": "from one import one\n\n\ndef test_one():\n    assert one()\n",
}
BOTH = {**ADDER, "adder.py": ADDER["adder.py"] + MISTAKE}


@pytest.fixture(scope="module")
def night() -> Iterator[tuple[Batch, Ran, dict[str, Any], dict[str, Any]]]:
    """A fleet after one night: the batch, how it ended, its report, and the fleet's files before."""
    with home({}) as h:
        batch = Batch(h)
        batch.add("broken", BOTH)
        batch.add("fork", BOTH)
        batch.add("green", GREEN)
        batch.add("untested", {"lonely.py": "x = 1\n"})
        batch.add_mirror("mirrored", BOTH)
        before = tree_of(batch.folder)
        ran = batch.run(str(batch.write_all()), "--jobs", "2", "--patches", str(h.root / "patches"))
        yield batch, ran, batch.report(), before
        assert tree_of(batch.folder) == before
        assert list(h.scratch.iterdir()) == []


Night = tuple[Batch, Ran, dict[str, Any], dict[str, Any]]


@pytest.mark.long
def test_each_repository_has_its_answer(night: Night) -> None:
    _, ran, report, _ = night
    wanted = {"broken": "fixed", "fork": "fixed", "mirrored": "fixed", "green": "clean", "untested": "refused"}
    assert states(report) == wanted
    assert ran.code == 1
    assert report["complete"] is True
    assert [row["name"] for row in report["needs_person"]] == ["untested"]
    assert report["needs_person"][0]["why"] == "no tests found"
    assert [row["state"] for row in report["repositories"]] == ["fixed"] * 3 + ["refused", "clean"]  # by state
    assert [row["confidence"] is None for row in report["repositories"]] == [False] * 3 + [True] * 2
    assert "3 fixed" in ran.out


@pytest.mark.long
def test_what_is_not_likely_enough_to_be_right_is_kept_as_proposals() -> None:
    with home({}) as h:
        batch = Batch(h)
        batch.add("broken", ADDER)
        (h.root / "asks.toml").write_text(asking(1.0))
        fleet = batch.write_all(each=EACH.replace("takes.toml", "asks.toml"))
        ran = batch.run(str(fleet))
        report = batch.report()
        (row,) = report["repositories"]
        assert (ran.code, row["state"], report["summary"]["states"]) == (1, "low-confidence", {"low-confidence": 1})
        told = row["steps"][0]
        assert (told["patch"], len(told["confidences"])) == ("", len(told["proposals"]))
        assert "+    return a + b" in told["proposals"][0]
        assert row["confidence"]["probability"] == told["confidences"][0]["probability"]
        assert report["needs_person"][0]["what_to_do"].endswith(f"localagent show {told['task']}")
        assert batch.run(str(fleet)).code == 1
        assert batch.report()["repositories"][0]["same_as"] == f"{report['run']}/broken"


@pytest.mark.long
def test_a_tree_that_stands_thrice_is_worked_on_once(night: Night) -> None:
    """Two forks and the mirror of the same files: one task, and the others name it."""
    batch, _, report, _ = night
    rows = [row for row in report["repositories"] if row["state"] == "fixed"]
    assert len({row["tree"] for row in rows}) == 1
    firsts = [row for row in rows if not row["same_as"]]
    assert len(firsts) == 1
    assert {row["same_as"] for row in rows if row["same_as"]} == {f"{report['run']}/{firsts[0]['name']}"}
    tasks = [json.loads((task / "task.json").read_bytes())["repo"] for task in batch.home.tasks.iterdir()]
    names = sorted(Path(task).name for task in tasks)  # one a step that ran: its tests' repair, and its known mistakes'
    assert names == sorted(["green", "untested", firsts[0]["name"], firsts[0]["name"]])
    assert report["summary"]["kept_from_before"] == 2


@pytest.mark.long
def test_known_mistakes_are_repaired_under_the_tests(night: Night) -> None:
    """On top of the tests' repair, both in one full check; without tests the proof is the hook's alone."""
    _, _, report, _ = night
    steps = [
        step for row in report["repositories"] for step in row["steps"] if step["patch"] and step["work"] == "codemods"
    ]
    assert [step["evidence"]["tests"] for step in steps] == ["2 turned, 1 kept, 0 broken, 0 still failing"] * 3


@pytest.mark.long
def test_repairs_that_a_test_notices_are_not_offered() -> None:
    with home({}) as h:
        batch = Batch(h)
        test = "def test_text():\n    assert 'return not name in names' in open('work.py').read()\n"
        batch.add("noticed", {"work.py": MISTAKE, "test_work.py": test})
        batch.add("untested", {"work.py": MISTAKE})
        assert batch.run(str(batch.write_all())).code == 1
        rows = {row["name"]: row for row in batch.report()["repositories"]}
        tests, mods = rows["noticed"]["steps"]
        assert (tests["outcome"], mods["outcome"], mods["patch"], mods["left"]) == (
            "nothing-to-fix",
            "refused",
            "",
            {"not-in": 1},
        )
        assert mods["reason"] == (
            "1 repairs are not offered: breaks tests or checks that passed: test_work.py::test_text"
        )
        assert rows["untested"]["steps"][1]["evidence"]["tests"] == "none to run"
        assert rows["untested"]["steps"][1]["patch"]


@pytest.mark.long
def test_git_takes_the_series_and_the_tests_pass(night: Night, tmp_path: Path) -> None:
    batch, _, _, _ = night
    series = sorted((batch.home.root / "patches" / "mirrored").iterdir())
    assert [p.name for p in series] == ["0001-failing-tests.patch", "0002-codemods.patch"]
    subprocess.run(["git", "clone", "-q", batch.folder / "mirrored.git", tmp_path / "c"], env=ENVIRON, check=True)
    repo = Repo(tmp_path / "c", init=False)
    repo.git("am", "-q", *map(str, series))
    assert repo.read("adder.py").decode() == BOTH["adder.py"].replace("a - b", "a + b").replace(
        "not name in names", "name not in names"
    )
    log = repo.git("log", "-2", "--format=%s%n%(trailers:key=Assisted-by)").decode()
    assert log.count("Assisted-by: localagent") == 2
    assert "Repair what 2 failing tests showed" in log


@pytest.mark.long
def test_a_fixed_working_tree_takes_its_task(night: Night, tmp_path: Path) -> None:
    """What a user learned of `fix` holds: the report's task is shown by `show`."""
    batch, _, report, _ = night
    task = next(s["task"] for r in report["repositories"] for s in r["steps"] if s["patch"] and s["task"])
    shown = batch.home.run("show", task)
    assert shown.code == 0
    assert "accepted" in shown.out


@pytest.mark.long
def test_every_form_is_kept_beside_the_answers(night: Night) -> None:
    batch, _, report, _ = night
    folder = batch.runs / report["run"]
    assert {"report.html", "report.json", "report.sarif", "junit.xml"} <= {p.name for p in folder.iterdir()}
    assert json.loads((folder / "report.json").read_bytes())["digest"] == report["digest"]
    listed = json.loads(batch.home.run("batch", "list", "--json").out)
    assert [(row["run"], row["state"], row["answered"]) for row in listed] == [(report["run"], "finished", 5)]
    assert "5 of 5 repositories answered" in batch.home.run("batch", "status").out


QUICK = '[each]\nwork = ["codemods"]\n'


@pytest.mark.long
def test_the_second_night_keeps_what_did_not_change() -> None:
    with home({}) as h:
        batch = Batch(h)
        batch.add("one", BOTH)
        batch.add("two", GREEN)
        fleet = str(batch.write_all(each=QUICK))
        assert batch.run(fleet).code == 0
        first = batch.report()
        (batch.folder / "two" / "one.py").write_text("def one():\n    return 2 - 1\n")
        assert batch.run(fleet).code == 0
        second = batch.report()
        same = {row["name"]: row["same_as"] for row in second["repositories"]}
        assert same == {"one": f"{first['run']}/one", "two": ""}
        rows = [next(r for r in x["repositories"] if r["name"] == "one") for x in (first, second)]
        assert rows[0]["steps"] == rows[1]["steps"]  # with its evidence
        assert rows[0]["steps"][0]["repaired"][0]["rule"] == "not-in"
        policy = h.root / "policy.toml"
        policy.write_text((CHECKOUT / "policies" / "default.toml").read_text() + "# another\n")
        batch.run(str(batch.write_all(each=QUICK + 'policy = "policy.toml"\n')))
        assert {row["same_as"] for row in batch.report()["repositories"]} == {""}


@pytest.mark.long
def test_a_policy_that_changed_meanwhile_ends_the_run() -> None:
    with home({}) as h:
        batch = Batch(h)
        batch.add("one", BOTH)
        policy = h.root / "policy.toml"
        policy.write_bytes((CHECKOUT / "policies" / "default.toml").read_bytes())
        batch.run(str(batch.write_all(each=QUICK + 'policy = "policy.toml"\n')))
        policy.write_text(policy.read_text() + "# another\n")
        ran = batch.run("--resume")
        assert ran.code == 1
        assert "a policy is not what it was" in ran.err


@pytest.mark.long
def test_killed_at_many_moments_it_reports_the_same() -> None:
    with home({}) as h, home({}) as other:
        for batch in (Batch(h), Batch(other)):
            for n in range(5):
                batch.add(f"r{n}", {"work.py": f"x = {n % 4}\n{MISTAKE}"})
            batch.write_all(each=QUICK)
        assert Batch(other).run(str(other.root / "fleet.toml")).code == 0
        arguments = [str(h.root / "fleet.toml")]
        for tenths in (3, 6, 9, 12, 15):
            with h.start("batch", "run", *arguments) as process:
                time.sleep(tenths / 10)
                process.kill()
                process.communicate()
            if list(Batch(h).runs.glob("*/run.json")):
                arguments = ["--resume"]
        assert Batch(h).run(*arguments).code == 0
        assert Batch(h).report()["digest"] == Batch(other).report()["digest"]
        assert workers(h) == []


@pytest.mark.long
def test_no_worker_outlives_its_run() -> None:
    """The run is killed with SIGKILL while a repository hangs in the jail; another may take over at once."""
    with home({}) as h:
        batch = Batch(h)
        batch.add("hangs", {"test_x.py": "import time\n\n\ndef test_x():\n    time.sleep(5)\n"})
        with h.start("batch", "run", str(batch.write_all())) as process:
            while not list(h.tasks.parent.glob("tasks/*/task.json")):
                assert process.poll() is None, process.communicate()
                time.sleep(0.05)
            process.kill()
            process.communicate()
        until = time.monotonic() + 30
        while workers(h) and time.monotonic() < until:
            time.sleep(0.05)
        assert workers(h) == []
        assert not list(batch.runs.glob("*/answers/0.json"))  # which a worker that lived on would have written
        with RunStore(h.root / "state" / "localagent").open().alone("run", wait_seconds=30) as lock:
            assert lock is not None
        sweep(h.scratch)


@pytest.mark.long
def test_a_worker_that_is_killed_is_tried_again() -> None:
    with home({}) as h:
        batch = Batch(h)
        batch.add("one", BOTH)
        with h.start("batch", "run", str(batch.write_all(each=QUICK))) as process:
            while not (found := workers(h)):
                assert process.poll() is None, process.communicate()
                time.sleep(0.02)
            os.kill(found[0], signal.SIGKILL)
            _, err = process.communicate()
        assert process.returncode == 0, err
        assert b"its worker died (signal 9); tried again" in err
        assert states(batch.report()) == {"one": "improved"}


@pytest.mark.long
def test_a_hang_costs_only_its_own_budget() -> None:
    """The one that never ends is ended with everything it started; the others have their answers."""
    with home({}) as h:
        batch = Batch(h)
        batch.add("a-hangs", {"conftest.py": "import time\n\nwhile True:\n    time.sleep(1)\n", "test_x.py": ""})
        batch.add("b-green", GREEN)
        each = '[each]\nwork = ["failing-tests"]\nmodel = false\nmax_seconds = 4\n'
        entry = f'[[repository]]\npath = "{batch.folder}/b-green"\nmax_seconds = 120\n'
        fleet = batch.write(f'[[repository]]\npath = "{batch.folder}/a-hangs"\n{entry}', each=each)
        ran = batch.run(str(fleet))
        report = batch.report()
        assert ran.code == 1
        assert states(report) == {"a-hangs": "out-of-budget", "b-green": "clean"}
        why = report["needs_person"][0]["why"]
        assert why in (  # whoever looks at the clock first: the crew, or the repair itself
            "did not end within its 4 s: ended, with all its processes",
            "the budget of time was spent: the tests were not run",
        )
        assert workers(h) == []
        assert list(h.scratch.iterdir()) == []


@pytest.mark.long
def test_the_total_budget_leaves_the_rest_for_another_night() -> None:
    with home({}) as h:
        batch = Batch(h)
        for name in ("a", "b", "c"):
            batch.add(name, {**GREEN, "name.py": f"x = '{name}'\n"})
        fleet = batch.write_all(each="[each]\nmodel = false\n[total]\nmax_seconds = 0.5\n")
        ran = batch.run(str(fleet))
        report = batch.report()
        assert ran.code == 1
        assert report["complete"] is False
        assert "total budget of 0.5 s is spent" in ran.err
        assert set(states(report).values()) <= {"clean", "not-reached"}
        assert "not-reached" in states(report).values()


@pytest.mark.long
def test_outside_its_window_nothing_runs() -> None:
    with home({}) as h:
        batch = Batch(h)
        batch.add("green", GREEN)
        hour = (time.localtime().tm_hour + 12) % 24
        window = f'[window]\nfrom = "{hour:02}:00"\nuntil = "{(hour + 1) % 24:02}:00"\n'
        fleet = batch.write_all(each='[each]\nwork = ["codemods"]\n' + window)
        ran = batch.run(str(fleet))
        assert ran.code == 1
        assert "is shut: nothing was begun" in ran.err
        assert not batch.runs.exists()
        assert batch.run(str(fleet), "--anytime").code == 0
        assert states(batch.report()) == {"green": "clean"}


@pytest.mark.slow
def test_killed_and_resumed_with_jails_it_reports_the_same(night: Night) -> None:
    """The same fleet with nothing kept: the run and a worker are killed with SIGKILL, then it is resumed."""
    _, _, undisturbed, _ = night
    with home({}) as h:
        batch = Batch(h)
        for name, files in (("broken", BOTH), ("fork", BOTH), ("green", GREEN), ("untested", {"lonely.py": "x = 1\n"})):
            batch.add(name, files)
        batch.add_mirror("mirrored", BOTH)
        arguments = [str(batch.write_all())]
        for moment in (0.6, 1.5, 3.0):
            with h.start("batch", "run", *arguments) as process:
                time.sleep(moment)
                process.kill()
                process.communicate()
            if list(batch.runs.glob("*/run.json")):
                arguments = ["--resume"]
        assert batch.run(*arguments).code == 1
        report = batch.report()
        mirrored = {r["name"]: r["commit"] for r in report["repositories"]}["mirrored"]
        assert len(mirrored) == 40
        told = [
            {r["name"]: (r["state"], r["reason"], r["tree"]) for r in x["repositories"]} for x in (report, undisturbed)
        ]
        assert told[0] == told[1]
        assert len(list(batch.runs.iterdir())) <= 3
        assert workers(h) == []


@pytest.mark.long
def test_an_interrupted_run_says_how_to_go_on() -> None:
    with home({}) as h:
        batch = Batch(h)
        batch.add("broken", ADDER)
        with h.start("batch", "run", str(batch.write_all())) as process:
            while not list(h.tasks.parent.glob("tasks/*/task.json")):
                assert process.poll() is None, process.communicate()
                time.sleep(0.05)
            os.kill(process.pid, signal.SIGTERM)
            _, err = process.communicate()
        assert process.returncode == 130
        assert "to resume: localagent batch run --resume" in err.decode()
        assert workers(h) == []
        assert "ended early: 0 of 1" in h.run("batch", "status").out


@pytest.mark.long
def test_two_do_not_work_on_one_run() -> None:
    with home({}) as h:
        batch = Batch(h)
        batch.add("green", GREEN)
        assert batch.run(str(batch.write_all(each=QUICK))).code == 0
        with RunStore(h.root / "state" / "localagent").open().alone("run") as lock:
            assert lock is not None
            ran = batch.run("--resume")
            assert ran.code == 1
            assert "is being worked on" in ran.err


@pytest.mark.long
def test_usage_faults() -> None:
    with home({}) as h:
        batch = Batch(h)
        ran = batch.run("--jobs", "0")
        assert ran.code == 2
        assert "give either a FLEET.toml" in ran.err
        assert "--jobs: at least 1" in ran.err
        assert batch.run("--resume").code == 2
        assert batch.run(str(h.root / "none.toml")).code == 2
        inside = batch.add("green", GREEN)
        fleet = str(batch.write_all())
        ran = batch.run(fleet, "--patches", str(inside / "patches"))
        assert ran.code == 2
        assert "nothing is written there" in ran.err
        assert not (inside / "patches").exists()
        assert not batch.runs.exists()


@pytest.mark.long
def test_without_a_jail_nothing_begins() -> None:
    """The policy forbids the carried binaries, and the system's, where there are some, are covered."""
    with home({}) as h:
        batch = Batch(h)
        batch.add("broken", {**ADDER, "conftest.py": "raise SystemExit('ran')\n"})
        text = (CHECKOUT / "policies" / "default.toml").read_text()
        text = text.replace('third_party_binaries = "allow"', 'third_party_binaries = "deny"')
        (h.root / "policy.toml").write_text(text)
        fleet = batch.write_all(each='[each]\npolicy = "policy.toml"\n')
        found = [
            path for name in ("bwrap", "nsjail") if (path := shutil.which(name, path="/usr/local/bin:/usr/bin:/bin"))
        ]
        real = [str(Path(path).resolve()) for path in found]
        covers = [word for path in real for word in ("--ro-bind", "/dev/null", path)]
        with h.start(
            "batch", "run", str(fleet), within=(*real[:1], "--dev-bind", "/", "/", *covers) if real else ()
        ) as p:
            _, err = p.communicate()
        assert p.returncode == 4
        assert b"no sound jail on this machine" in err
        assert not batch.runs.exists()
        assert not h.tasks.exists()
