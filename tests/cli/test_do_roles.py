"""`do --roles planner,tester,implementer`: a plan that binds, tests before the work, one session that can be killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.false_model_server import CHAT, calls_by_role, false_model_server
from support.git_builder import Repo

from localagent.app import Settings
from localagent.app.agent.challenges import Skill
from localagent.app.agent.model_profile import ModelProfile, keep_profile
from localagent.cli.main import main
from localagent.domain.strength import Share
from localagent.llm.chat.server_model import ServerModel

SOURCE = "def total(items):\n    return sum(items)\n"
TEST = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
ACCEPTANCE = (
    "import pytest\n\nfrom shop import mean\n\n\ndef test_mean():\n    assert mean([1, 3]) == 2\n\n\n"
    "def test_nothing():\n    with pytest.raises(ValueError):\n        mean([])\n"
)
RIGHT = "\n\ndef mean(items):\n    if not items:\n        raise ValueError\n    return sum(items) / len(items)\n"
Calls = list[tuple[str, dict[str, Any]]]
FINISH = ("finish", {"summary": "done"})
PLAN: Calls = [
    ("search", {"query": "total"}),
    ("plan", {"steps": ["add mean to shop.py"], "files": ["shop.py"], "tests": ["tests/test_mean.py"]}),
]
TESTS: Calls = [
    ("read", {"path": "shop.py"}),
    ("create", {"path": "tests/test_mean.py", "content": ACCEPTANCE}),
    FINISH,
]
WORK: Calls = [("edit", {"path": "shop.py", "old": SOURCE, "new": SOURCE + RIGHT}), FINISH]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Repo(tmp_path / "r")
    for name, data in (
        ("shop.py", SOURCE),
        ("README.md", "# Shop\n"),
        ("tests/test_total.py", TEST),
        ("pyproject.toml", '[tool.pytest.ini_options]\npythonpath = ["."]\n'),
    ):
        made.stage(name, data)
    made.commit()
    return made


def _do(
    repo: Repo,
    tmp_path: Path,
    *more: str,
    roles: str = "planner,tester,implementer",
    asked: str = "add a function mean to shop.py; ValueError for no items",
    **scripts: Calls,
) -> tuple[int, dict[str, Any], list[Any]]:
    report = tmp_path / "report.json"
    with false_model_server() as server:
        server.answers[CHAT] = calls_by_role(lambda: server.bodies, **scripts)
        words = ["do", asked, "--repo", str(repo.folder)]
        words += ["--model", f"unix:{server.socket}", "--report", str(report), "--trust", "auto", "--assume"]
        code = main([*words, "--roles", roles, *more])
        return code, json.loads(report.read_text()), list(server.bodies)


@pytest.mark.long
def test_plan_and_tests_come_first_and_bind_the_work(
    repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside: Calls = [
        ("edit", {"path": "README.md", "old": "# Shop", "new": "# Mean"}),
        ("plan", {"steps": ["README.md, too"], "files": ["README.md"]}),
        ("edit", {"path": "tests/test_mean.py", "old": "== 2", "new": "> 0"}),
        ("delete", {"path": "tests/test_mean.py"}),
    ]
    code, told, bodies = _do(repo, tmp_path, planner=PLAN, tester=TESTS, implementer=[*outside, *WORK])
    assert (code, told["outcome"]) == (0, "accepted"), told["reason"]
    assert [b["metadata"]["role"] for b in bodies] == ["planner"] * 2 + ["tester"] * 3 + ["implementer"] * 6
    agent = told["agent"]
    assert agent["agreed_plan"] == {
        "steps": ["add mean to shop.py"],
        "files": ["shop.py", "tests/test_mean.py"],
        "by": "assumed",
        "widened": [],
    }
    assert agent["acceptance"]["tests"] == ["tests/test_mean.py::test_mean", "tests/test_mean.py::test_nothing"]
    assert agent["acceptance"]["by"] == "assumed"
    assert "tests written by the model and assumed" in told["reason"]
    assert any("tests written by the model and assumed" in text for text in agent["not_shown"])
    tools = [m["content"] for m in bodies[-1]["messages"] if m["role"] == "tool"]
    for result, says in zip(
        tools,
        (
            "README.md is outside the plan",
            "nobody is there who could widen the plan by README.md",
            *["held against"] * 2,
        ),
        strict=False,
    ):
        assert says in result
    first = bodies[5]["messages"][1]["content"]
    assert "These tests must pass in the end: tests/test_mean.py" in first
    assert "You may change these files, and no others: shop.py, tests/test_mean.py" in first
    assert "def total" not in bodies[5]["messages"][0]["content"]
    assert len(bodies[2]["messages"]) == 2  # the tester sees neither plan nor planner
    assert "acceptance tests, written by a model, assumed (--assume): 2 tests" in capsys.readouterr().err
    assert main(["apply", told["task"]]) == 0
    assert (repo.folder / "tests/test_mean.py").read_text() == ACCEPTANCE


@pytest.mark.long
def test_tests_that_show_nothing_go_back_with_the_reason_and_others_take_their_place(
    repo: Repo, tmp_path: Path
) -> None:
    def tests(body: str, head: str = "from shop import mean, total") -> Calls:
        text = f"{head}\n\n\ndef test_mean():\n{body}"
        return [("create", {"path": "tests/test_mean.py", "content": text}), FINISH, again]

    again = ("delete", {"path": "tests/test_mean.py"})
    writing: Calls = [("edit", {"path": "shop.py", "old": SOURCE, "new": SOURCE + RIGHT})]
    weak = [
        *tests("    assert total([1]) == 1\n", "from shop import total"),
        *tests("    mean([1])\n    assert total([1]) == 1\n"),
    ]
    code, told, bodies = _do(
        repo, tmp_path, roles="tester,implementer", tester=[*writing, *weak, *TESTS[1:]], implementer=WORK
    )
    assert (code, told["agent"]["acceptance"]["files"]) == (0, ["tests/test_mean.py"]), told["reason"]
    told_to_tester = [b for b in bodies if b["metadata"]["role"] == "tester"][-1]["messages"]
    answers = [m["content"] for m in told_to_tester if m["role"] == "tool"]
    assert "shop.py is not to be changed now" in answers[0]
    assert "test_mean passes already, so that it does not show" in answers[2]
    assert "test_mean passes already, once its names are there with empty bodies" in answers[5]


@pytest.mark.long
def test_a_change_of_text_needs_no_test_and_a_budget_is_for_all_roles(repo: Repo, tmp_path: Path) -> None:
    page: Calls = [("edit", {"path": "README.md", "old": "# Shop", "new": "# Shop and mean"}), FINISH]
    tester: Calls = [("no_test", {"reason": "only the page changes"})]
    roles, asked = "tester,implementer", "let the page speak of mean"
    code, told, _ = _do(repo, tmp_path, roles=roles, asked=asked, tester=tester, implementer=page)
    assert (code, told["agent"]["acceptance"]["no_test"]) == (0, "only the page changes"), told["reason"]
    looking: Calls = [("read", {"path": "shop.py", "start": n}) for n in range(1, 9)]
    code, told, bodies = _do(repo, tmp_path, "--max-steps", "3", planner=PLAN, tester=looking, implementer=WORK)
    assert (code, told["outcome"], len(bodies)) == (1, "gave-up", 3)
    assert "the budget of 3 replies" in told["reason"]


@pytest.mark.long
def test_a_session_killed_in_every_role_goes_on_there(repo: Repo, tmp_path: Path) -> None:
    """Killed while the model is asked as planner, then as tester, then as implementer; no call is repeated."""
    work: Calls = [("read", {"path": "shop.py"}), *WORK]
    waits, over = {2, 6, 9}, threading.Event()
    with false_model_server() as server:
        answer = calls_by_role(lambda: server.bodies, planner=PLAN, tester=TESTS, implementer=work)

        def slow(out: Callable[[bytes], object]) -> None:
            if len(server.bodies) in waits:
                over.wait()  # to whoever asked this nobody listens any more
            else:
                answer(out)

        server.answers[CHAT] = slow
        words = ["do", "add a function mean to shop.py", "--repo", str(repo.folder), "--model", f"unix:{server.socket}"]
        words += ["--roles", "planner,tester,implementer", "--trust", "auto", "--assume", "--quiet"]
        for killed_at in sorted(waits):
            with subprocess.Popen([sys.executable, "-m", "localagent", *words], env=dict(os.environ)) as process:
                while len(server.bodies) < killed_at and process.poll() is None:
                    time.sleep(0.05)
                process.send_signal(signal.SIGKILL)
            words = ["session", "resume", "--quiet"]
        report = tmp_path / "resumed.json"
        assert main([*words, "--report", str(report)]) == 0
        over.set()
        roles = [b["metadata"]["role"] for b in server.bodies]
    told = json.loads(report.read_text())
    assert [roles[at - 1] for at in sorted(waits)] == ["planner", "tester", "implementer"]
    assert roles == ["planner"] * 3 + ["tester"] * 4 + ["implementer"] * 4  # each cut reply asked for once more
    assert told["agent"]["tools"] == {"search": 1, "plan": 1, "read": 2, "create": 1, "finish": 2, "edit": 1}
    assert told["agent"]["acceptance"]["by"] == "assumed"


def test_a_model_is_not_asked_for_a_role_that_it_was_shown_to_be_unfit_for(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is spent: no reply is asked for, nothing is kept. What the environment names counts alike."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    few, all_ = Share(part=1, whole=4), Share(part=4, whole=4)
    with false_model_server() as server:
        profile = ModelProfile(
            name="bot", digest=ServerModel(server.socket).digest, seed=1, dialect="d", dialects={}, calls=all_,
            stops=all_, skills={Skill.WRITE.value: few}, reviews=few,
        )  # fmt: skip
        keep_profile(profile, Settings.from_environ())
        name, words = f"unix:{server.socket}", ["do", "add mean", "--repo", str(repo.folder)]
        monkeypatch.setenv("LOCALAGENT_CHAT_MODEL", name)
        assert main([*words, "--roles", "planner,tester,implementer"]) == 1
        said = capsys.readouterr().err
        assert "was not fit as tester: it writes functions in 1 of 4 tasks" in said
        assert "--roles planner,implementer" in said
        assert main([*words, "--model", "unix:/none", "--review-model", name]) == 1
        assert "was not fit as reviewer: it judged 1 of 4 changes rightly" in capsys.readouterr().err
        monkeypatch.setenv("LOCALAGENT_ROLES", "implementer,reviewer")
        assert main(words) == 1
        assert "not fit as reviewer" in capsys.readouterr().err
        monkeypatch.setenv("LOCALAGENT_TRUST", "never")
        assert main(words) == 2
        assert "LOCALAGENT_TRUST: 'never'" in capsys.readouterr().err
        assert server.bodies == []
    assert not (tmp_path / "state/localagent/tasks").exists()
