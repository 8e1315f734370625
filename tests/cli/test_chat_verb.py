"""`chat` in a pseudo-terminal: a scripted model server, a real repository, real jails."""

import io
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.chat_terminal import SECONDS, chat
from support.false_model_server import CHAT, FalseModelServer, completion, false_model_server, status
from support.git_builder import Repo

from localagent.cli.chat import BoundedText
from localagent.cli.main import main
from localagent.cli.render import Render
from localagent.domain.task import Event

SOURCE = 'def label(name):\n    """A label."""\n    return name.strip()\n'
TEST = "from shop.labels import label\n\n\ndef test_label():\n    assert label(' a ') == 'a'\n"
NEW = "from shop.extra import {0}\n\n\ndef test_{0}():\n    assert {0}('a') == {1!r}\n"
BODY = 'def {0}(text):\n    """Changed."""\n    return text{1}\n'
EVIL = "\x1b]0;owned\x07\x1b[31mred\x9b2J done"
FINISH = ("finish", {"summary": "done"})
Call = tuple[str, dict[str, Any]]


def _adds(name: str, body: str, gives: str) -> list[Call]:
    return [
        ("create", {"path": "shop/extra.py", "content": BODY.format(name, body)}),
        ("create", {"path": "tests/test_extra.py", "content": NEW.format(name, gives)}),
    ]


SHOUT = _adds("shout", ".upper()", "A")


def _script(calls: list[Call | float]) -> Callable[[Callable[[bytes], object]], None]:
    """One call after the other; a number: a reply that takes so many seconds."""
    left = iter(calls)

    def write(out: Callable[[bytes], object]) -> None:
        found = next(left)
        if isinstance(found, float):
            time.sleep(found)
            found = FINISH
        reply = completion(EVIL, (found[0], json.dumps(found[1])), finish="tool_calls", usage={"prompt_tokens": 9})
        status(200, reply)(out)

    return write


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Repo(tmp_path / "r")
    for name, data in (
        ("shop/__init__.py", ""),
        ("shop/labels.py", SOURCE),
        ("tests/test_labels.py", TEST),
        ("pyproject.toml", '[tool.pytest.ini_options]\npythonpath = ["."]\n'),
    ):
        made.stage(name, data)
    made.commit()
    return made


def _words(repo: Repo, server: FalseModelServer) -> list[str]:
    return ["--repo", str(repo.folder), "--model", f"unix:{server.socket}", "--trust", "auto"]


@pytest.mark.long
def test_an_instruction_is_shown_and_applied(repo: Repo, tmp_path: Path) -> None:
    plan = ("plan", {"steps": ["write shop/extra.py", "tests/test_extra.py"]})  # nobody is asked about it
    with false_model_server(_script([plan, *SHOUT, FINISH])) as server, chat(*_words(repo, server)) as terminal:
        terminal.until("> ")
        terminal.type("/nonsense", "/nonsense is no command")
        terminal.type("/diff", "nothing was asked yet")
        terminal.type("/help", "always for the model")
        terminal.type("/plan", "there is no plan yet")
        terminal.type("/model unix:none.sock", "no model server answers")
        terminal.type("/model", f"model: unix:{server.socket}")
        terminal.type("add shout \\", "... ")
        terminal.type("to shop/extra.py", "/apply writes it into your files")
        terminal.type("/plan", "2. tests/test_extra.py")
        assert "+def shout(text):" in terminal.type("/diff", "return text.upper()")
        terminal.type("/why", "for the claim 'adds'")
        assert not (repo.folder / "shop/extra.py").exists()
        (repo.folder / "shop/extra.py").write_text("# mine\n")
        terminal.type("/apply", "what to do")
        assert (repo.folder / "shop/extra.py").read_text() == "# mine\n"
        (repo.folder / "shop/extra.py").unlink()
        terminal.type("/apply", "begins a new patch")
        terminal.until("\n> ")  # before the prompt, the terminal's own driver takes ^D
        assert (repo.folder / "shop/extra.py").exists()
        os.write(terminal.ours, b"\x04")
        assert terminal.process.wait(SECONDS) == 0
    assert "add shout \nto shop/extra.py" in json.dumps(server.bodies[0]).encode().decode("unicode_escape")
    assert r"\x1b]0;owned\x07\x1b[31mred\x9b2J done" in terminal.seen
    assert not [bad for bad in ("\x1b]0;", "\x1b[31m", "\x9b") if bad in terminal.seen]
    history = tmp_path / "state/localagent/chat_history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert "to shop/extra.py" in history.read_text()


@pytest.mark.long
def test_a_step_is_interrupted_corrected_undone_killed_and_gone_on_with(repo: Repo) -> None:
    with false_model_server(_script([*SHOUT, 60.0])) as server:
        words = _words(repo, server)
        with chat(*words) as terminal:
            terminal.until("> ")
            terminal.type("add shout to shop/extra.py", "create: ")
            while len(server.bodies) < 3:
                time.sleep(0.05)
            terminal.interrupt()
            terminal.until("interrupted; the tree is as it was")
            terminal.type("/undo", "taken back in the copy: tests/test_extra.py")
            terminal.type("/test", "1 passed, 0 failed")
            terminal.process.kill()
        session = next(iter((Path(os.environ["XDG_STATE_HOME"]) / "localagent/tasks").iterdir())).name
        server.answers[CHAT] = _script([SHOUT[1], FINISH])
        with chat("--resume", session) as terminal:
            shown = terminal.until("\n> ")
            assert "you said last: add shout to shop/extra.py" in shown
            assert "the work on it was not ended" in shown
            assert "the change of 1 file in the copy (shop/extra.py) is not proven as it stands" in shown
            terminal.type("go on, with a test", "/apply writes it into your files")
            said = [m["content"] for m in server.bodies[-1]["messages"] if m["role"] == "user"]
            assert "The user says: go on, with a test" in said
            terminal.type("/undo all", "taken back in the copy: tests/test_extra.py")
            terminal.type("/apply", "nothing is changed yet")
            terminal.until("> ")
            time.sleep(1.0)  # Python's `input` misses a signal that comes between its prompt and its waiting
            terminal.interrupt()
            terminal.until("Ctrl-C once more")
            assert terminal.interrupt_until_end() in (130, -signal.SIGINT)  # a shell says 130 of both
    assert not repo.git("status", "--porcelain")


def test_a_reply_is_shown_up_to_a_bound_and_the_next_from_its_beginning() -> None:
    out, err = io.StringIO(), io.StringIO()
    text = BoundedText(render=Render(out=out, err=err))
    for _ in range(1000):
        text.part("la " * 1000)
    assert (out.getvalue().count("la "), err.getvalue().count("is not shown")) == (20_000 // 3, 1)
    text.emit(Event(kind="tool", at_seconds=0.0, data={}))
    text.part("on we go")
    assert out.getvalue().endswith("on we go")


def test_replies_that_follow_each_other_stand_on_lines_of_their_own() -> None:
    out = io.StringIO()
    text = BoundedText(render=Render(out=out, err=io.StringIO()))
    for pieces in (("It is ", "fine."), ("It is so.\n",), ("Yes.",)):
        for piece in pieces:
            text.part(piece)
        for _ in range(2):
            text.emit(Event(kind="agent-reply", at_seconds=0.0, data={}))
    assert out.getvalue() == "It is fine.\nIt is so.\nYes.\n"


def test_a_session_that_is_not_there_is_said_with_their_list(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["session", "show", "zz"]) == 2
    assert "no session 'zz'" in (told := capsys.readouterr().err)
    assert "`localagent session list` lists the sessions" in told


def test_without_a_terminal_it_is_said_what_to_use(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "--repo", str(repo.folder), "--model", "unix:x"]) == 2
    assert "localagent do INSTRUCTION" in capsys.readouterr().err
