"""`do --file --results` from end to end: a scripted model server, real jails; stdlib only, as our interpreter is."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.false_model_server import Write, calls_in_turn, false_model_server

from localagent.app import Settings
from localagent.app.agent.recipe_run import NoModel
from localagent.app.agent.run import resume_do
from localagent.app.agent.session_run import Frontend, Work
from localagent.app.agent.session_store import open_session
from localagent.cli.main import main
from localagent.cli.progress import JsonSink
from localagent.cli.render import Render
from localagent.record.store import TaskStore

SALES = "region,amount\nnorth,10\nsouth,20\nnorth,5\neast,7\n"
READ = "import csv\nrows = list(csv.DictReader(open('sales.csv')))\nprint(len(rows), 'rows')"
SUM = (
    "totals = {}\n"
    "for row in rows:\n"
    "    totals[row['region']] = totals.get(row['region'], 0) + int(row['amount'])\n"
    "print(max(totals, key=totals.get))"
)
TABLE = (
    "with open('by_region.csv', 'w', newline='') as out:\n"
    "    csv.writer(out).writerows([('region', 'total'), *sorted(totals.items())])"
)
FINISH = ("finish", {"summary": "the south sells most"})
Calls = list[tuple[str, dict[str, Any]]]


def run(code: str, **more: int) -> tuple[str, dict[str, Any]]:
    return "run", {"code": code, **more}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data that is no repository, and is where the command is given."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "sales.csv").write_text(SALES)
    monkeypatch.chdir(folder)
    return folder


def analyse(
    calls: Calls, *more: str, verb: tuple[str, ...] = (), before_last: Callable[[], None] = lambda: None
) -> tuple[int, dict[str, Any], list[str]]:
    """Exit code, the task's report, and what the model read of each call. `before_last` is done before its last."""
    report = Path("../report.json")
    report.unlink(missing_ok=True)
    in_turn = calls_in_turn(calls)

    def reply(out: Write) -> None:
        if len(server.bodies) == len(calls):
            before_last()
        in_turn(out)

    with false_model_server(reply) as server:
        words = verb or ("do", "which region sells most?", "--file", "sales.csv", "--results", "results")
        code = main([*words, "--model", f"unix:{server.socket}", "--report", str(report), "--quiet", *more])
    told = [m["content"] for m in server.bodies[-1]["messages"] if m["role"] == "tool"] if server.bodies else []
    return code, json.loads(report.read_text()) if report.exists() else {}, told


@pytest.mark.long
def test_steps_become_a_script_that_runs_again_and_its_results(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [run(READ), run("print(nobody)"), run("print(rows[0])"), run(SUM, replaces=2), run(TABLE), FINISH]
    code, report, told = analyse(steps)
    assert (code, report["outcome"]) == (0, "accepted"), report["reason"]
    assert told[0].startswith("step 1: kept")
    assert "NameError" in told[1]  # and is not in the script: the next step is the second again
    assert told[4].endswith("files: by_region.csv (42 bytes)\n(it printed nothing)")
    results = place / "results"
    assert sorted(p.name for p in results.iterdir()) == [
        "analysis.json",
        "analysis.py",
        "analysis.txt",
        "by_region.csv",
    ]
    assert (results / "analysis.txt").read_text() == "4 rows\nsouth\n"
    told_of = json.loads((results / "analysis.json").read_text())
    for kind, file in ((told_of["inputs"][0], place / "sales.csv"), (told_of["outputs"][0], results / "by_region.csv")):
        assert kind["digest"] == f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    assert told_of["not_checked"] == {"summary": "the south sells most"}
    assert (place / "sales.csv").read_text() == SALES
    again = place / "again"
    again.mkdir()
    for name in ("sales.csv", "results/analysis.py"):
        shutil.copy(place / name, again)
    assert subprocess.check_output([sys.executable, "analysis.py"], cwd=again, text=True) == "4 rows\nsouth\n"
    assert (again / "by_region.csv").read_bytes() == (results / "by_region.csv").read_bytes()
    assert main(["show", report["task"]]) == 0
    shown = capsys.readouterr().out
    assert "the script of the analysis, run again from nothing, came to the same" in shown
    assert main(["do", "x", "--file", "sales.csv", "--results", "results", "--model", "unix:x"]) == 2
    assert "is not empty" in capsys.readouterr().err


@pytest.mark.long
def test_a_script_that_comes_to_something_else_is_no_result(place: Path) -> None:
    code, report, told = analyse([run("import random\nprint(random.random())"), FINISH])
    assert (code, report["outcome"]) == (1, "gave-up")
    assert "came to something else (random numbers: seed them (random.seed(0)))" in report["reason"]
    assert "results was not written" in report["reason"]
    assert "it prints in line 1" in told[-1]
    assert sorted(p.name for p in place.iterdir()) == ["sales.csv"]


@pytest.mark.long
def test_a_session_goes_on_with_its_state_and_only_on_the_same_data(place: Path) -> None:
    code, report, _ = analyse([run(READ), ("ask", {"question": "by amount?"})])
    assert (code, report["outcome"]) == (1, "needs-person")
    settings = Settings.from_environ()
    kept = open_session(TaskStore(settings.state_dir).open(report["task"]))
    front = Frontend(sink=JsonSink(Render()), model=NoModel())
    assert "makes no patch" in resume_do(kept, settings, front, Work.PROOF).reason
    resume = ("session", "resume", report["task"], "--say", "yes")
    (place / "sales.csv").write_text(SALES.replace("20", "21"))
    code, report, _ = analyse([FINISH], verb=resume)
    assert (code, "the data files changed" in report["reason"]) == (1, True)
    (place / "sales.csv").write_text(SALES)
    taken = place / "results/mine"

    def take() -> None:
        taken.parent.mkdir()
        taken.write_text("mine")

    code, report, told = analyse([run(SUM), FINISH], verb=resume, before_last=take)
    assert (code, "results is not empty" in report["reason"]) == (1, True)
    assert told[-1].endswith("\nsouth")
    assert [p.name for p in taken.parent.iterdir()] == ["mine"]
    taken.unlink()
    code, report, _ = analyse([FINISH], verb=resume)
    assert (code, report["outcome"]) == (0, "accepted"), report["reason"]
    assert (place / "results/analysis.txt").read_text() == "4 rows\nsouth\n"
    kept_report = settings.state_dir / "tasks" / report["task"] / "report.json"
    before = json.loads(kept_report.read_text())
    kept_report.unlink()  # as if killed before it was written
    code, report, _ = analyse([FINISH], verb=resume[:3])
    assert (code, report["outcome"]) == (0, "accepted"), report["reason"]
    assert before["agent"]["analysis"]["printed"] == report["agent"]["analysis"]["printed"]
    assert main(["session", "resume", report["task"]]) == 0  # it is finished, and was accepted


def test_what_is_wrong_is_told_before_anything_is_spent(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "link").symlink_to("sales.csv")
    (place / "a\x1b[31m.csv").write_text(SALES)
    (place / "analysis.py").write_text("")
    file, results = ("--file", "sales.csv"), ("--results", "out")
    for more, says in (
        (file, "needs both"),
        (results, "needs both"),
        ((*file, *results, "--apply"), "--apply and --file: an analysis makes no patch"),
        ((*file, *results, "--test", "tests"), "--test and --file"),
        ((*file, *results, "--from-tests", "tests"), "--from-tests and --file"),
        (
            (*file, *results, "--review-model", "unix:y"),
            "--review-model and --file: an analysis has no plan, tests or review",
        ),
        ((*file, *results, "--roles", "implementer,reviewer"), "--roles and --file"),
        ((*file, *results, "--daemon"), "--file: the daemon makes patches"),
        ((*file, "--results", "none/out"), "the directory of none/out does not exist"),
        (("--file", "none.csv", *results), "No such file"),
        (("--file", "link", *results), "--file link: is a link"),
        (("--file", "/dev/null", *results), "neither a regular file nor a folder"),
        (("--file", "a\x1b[31m.csv", *results), "control characters"),
        (("--file", "analysis.py", *results), "the name of a file of an analysis"),
        ((*file, "--file", "../work/sales.csv", *results), "two files have this name"),
    ):
        assert main(["do", "x", "--model", "unix:x", *more]) == 2, more
        said = capsys.readouterr().err
        assert says in said
        assert "\x1b" not in said
    assert main(["do", "rename a in b to c", *file, *results]) == 1
    assert "no analysis of data is made without one" in capsys.readouterr().err  # and no recipe is offered
    assert not (tmp_path / "state/localagent/tasks").exists()
