"""`model qualify` and `model compare` from end to end: scripted models of known quality at real tasks in real jails."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.challenge_bot import challenge_bot
from support.false_model_server import CHAT, calls_in_turn, false_model_server
from support.git_builder import Repo

from localagent.app.agent.challenges import Challenge, Skill, built_in
from localagent.cli.main import main

SEED = 7
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@contextmanager
def bot(fails: Callable[[Challenge], bool] = lambda _: False, talks: float = 0.0) -> Iterator[str]:
    """A server of a model that can do the tasks of the seed, but for those that it fails at."""
    with false_model_server() as server:
        server.answers[CHAT] = challenge_bot(lambda: server.bodies, built_in(SEED, 3), fails=fails, talks=talks)
        yield f"unix:{server.socket}"


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.slow
def test_models_are_told_apart_and_do_says_what_was_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repo = Repo(tmp_path / "r")
    repo.stage("a.py", "A = 1\n")
    repo.commit()
    with bot() as good, bot(talks=0.9) as talker:
        assert main(["model", "qualify", good, "--seed", str(SEED), "--each", "2", "--json", "--quiet"]) == 0
        shown = told(capsys)
        assert (shown["fitness"], shown["dialect"], shown["cut"]) == ("small-changes", "the model server's", []), shown
        assert {share["part"] for share in shown["skills"].values()} == {2}
        assert (shown["reviews"]["part"], shown["reviews"]["whole"]) == (6, 6)
        assert shown["shown_context"] > 1000
        assert main(["model", "qualify", talker, "--seed", str(SEED)]) == 1
        said = capsys.readouterr().out
        assert "not fit to change code: it called tools well in" in said
        assert "not measured: everything else" in said
        assert (
            main(["do", "x", "--repo", str(repo.folder), "--model", talker, "--max-steps", "1", "--trust", "auto"]) == 1
        )
        assert "was not fit as implementer: it called tools as asked in" in capsys.readouterr().err


@pytest.mark.long
def test_models_are_compared_on_own_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [task] = [c for c in built_in(SEED, 1) if c.skill is Skill.WRITE]
    path = tmp_path / "tasks.toml"
    lines = [
        'schema = "localagent/challenges/1"',
        "[[task]]",
        'name = "mine"',
        f"instruction = '''{task.instruction}'''",
    ]
    for key, files in (("file", task.files), ("hidden", task.hidden)):
        for name, text in files.items():
            lines += [f"[[task.{key}]]", f'path = "{name}"', *([f"text = '''\n{text}'''"] if text else [])]
    path.write_text("\n".join(lines))
    with bot() as good, bot(fails=lambda _: True) as bad:
        words = ["model", "compare", good, bad, "--tasks", str(path), "--seed", "1"]
        assert main([*words, "--json"]) == 0
        shown = told(capsys)["models"]
        assert [(one["model"], one["done"], one["tried"]) for one in shown] == [(good, 1, 1), (bad, 0, 1)]
        why = shown[1]["tasks"][0]["why"]
        assert why.startswith("hidden tests fail: collect:tests/test_hidden.py: ImportError: cannot import name"), why
        assert main([*words, "--max-seconds", "0.5"]) == 1
        assert "not asked" in capsys.readouterr().out


@pytest.mark.long
def test_the_documented_task_can_be_done_and_one_that_is_done_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (ROOT / "docs/chat-models.md").read_text()
    example = guide[guide.index('schema = "localagent/challenges/1"') :].partition("```")[0]
    path = tmp_path / "ours.toml"
    path.write_text(example)
    new = "import math\n\n\ndef total(items):\n    return math.ceil(100 * sum(items)) / 100"
    calls = [("edit", {"path": "invoice.py", "old": "def total(items):\n    return sum(items)", "new": new})]
    with false_model_server(calls_in_turn([*calls, ("finish", {"summary": "done"})])) as server:
        words = ["model", "compare", f"unix:{server.socket}", "--tasks", str(path)]
        assert main([*words, "--json"]) == 0
        assert told(capsys)["models"][0]["done"] == 1
        path.write_text(example.replace("total([0.101, 0.2]) == 0.31", "total([1]) == 1"))
        assert main(words) == 2
        assert "round-up: the hidden tests pass before anything is changed" in capsys.readouterr().err
        path.write_text(example.replace('tests = ["tests/test_invoice', 'tests = ["tests/test_other'))
        assert main(words) == 2
        assert "'tests/test_other.py' is in none of the task's files" in capsys.readouterr().err


def test_what_cannot_be_measured_is_told_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('schema = "x"\n[[task]]\nname = "a"\nhint = 1\n[[task.file]]\npath = "../a"\ntext = ""\n')
    both = tmp_path / "both.toml"
    both.write_text(
        'schema = "localagent/challenges/1"\n[[task]]\nname = "a"\ninstruction = "b"\n'
        '[[task.file]]\npath = "a"\n[[task.hidden]]\npath = "a/test_b.py"\ntext = "x = 1"\n'
    )
    with bot() as good:
        for words, code, says in (
            (["compare", good, "--tasks", str(both)], 2, "'a' is a file and a folder"),
            (["qualify", "unix:/none"], 1, "no model server answers"),
            (["qualify", "nothing"], 4, "no model of that name"),
            (["qualify", good, "--each", "0"], 2, "--each: from 1"),
            (["compare", good, "unix:/none"], 1, "no model server answers"),
            (["compare", good, good], 2, "more than once"),
            (["compare", good, "--tasks", str(tmp_path / "none")], 2, "none"),
            (["compare", good, "--tasks", str(bad)], 2, "task[0].hint: unknown key"),
            (["compare", good, "--tasks", str(bad)], 2, "not a path inside the repository"),
            (["compare", good, "--tasks", str(bad)], 2, "[[task.hidden]]"),
        ):
            assert main(["model", *words]) == code, words
            assert says in capsys.readouterr().err, words
