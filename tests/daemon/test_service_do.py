"""`do --daemon` against a real daemon: by a recipe, and by a scripted model server; killed, cancelled, refused."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.false_model_server import CHAT, FalseModelServer, calls_in_turn, false_model_server
from support.fix_builder import home
from support.service_builder import Served, ordered, served

FILES = {
    "shop.py": "def load(path):\n    return path.split(',')\n",
    "test_shop.py": "from shop import load\n\n\ndef test_load():\n    assert load('a,b') == ['a', 'b']\n",
}
NEW = "from extra import shout\n\n\ndef test_shout():\n    assert shout('a') == 'A!'\n"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": "load"}),
    ("create", {"path": "extra.py", "content": "def shout(text):\n    return text.upper() + '!'\n"}),
    ("create", {"path": "test_extra.py", "content": NEW}),
    ("finish", {"summary": "done"}),
]
RENAME = "rename load in shop.py to read_orders"


@contextmanager
def writing_daemon(**changes: Any) -> Iterator[tuple[Served, FalseModelServer]]:
    """A daemon whose operator named a model server that says the calls, one after the other."""
    with false_model_server(calls_in_turn(CALLS)) as server:
        model = f'[[chat_model]]\nname = "house"\nmodel = "unix:{server.socket}"\nmax_tokens = 90000\n'
        with served(more=model, **changes) as daemon:
            yield daemon, server


@pytest.mark.long
def test_a_recipe_comes_home_and_lands_when_it_is_applied() -> None:
    with served() as daemon, home(FILES) as place:
        words = ("do", RENAME, "--repo", str(place.repo), "--daemon", str(daemon.socket))
        refused = place.run(*words, "--trust", "plan", "--apply", "--backend", "nsjail")
        assert refused.code == 2
        assert all(option in refused.err for option in ("--trust:", "--apply:", "--backend:"))
        none = place.run(*words[:1], "make it faster", *words[2:])
        assert (none.code, "none of the instructions that need no model" in none.err) == (1, True), none
        report = place.root / "report.json"
        ran = place.run(*words, "--assume", "--report", str(report))
        assert ran.code == 0, (ran, daemon.log())
        assert "+def read_orders(path):" in ran.out
        told = json.loads(report.read_text())
        assert (told["outcome"], told["agent"]["replies"], told["agent"]["trust"]) == ("accepted", 0, "auto")
        assert str(daemon.root) not in report.read_text()
        assert (place.repo / "shop.py").read_text() == FILES["shop.py"]
        task = told["task"]
        assert RENAME in place.run("tasks", "list", "--daemon", str(daemon.socket)).out
        assert place.run("show", task).code == 0
        assert place.run("apply", task).code == 0
        assert "read_orders" in (place.repo / "test_shop.py").read_text()
        assert place.run("undo", task).code == 0
        assert (place.repo / "shop.py").read_text() == FILES["shop.py"]


@pytest.mark.long
def test_a_killed_daemon_goes_on_with_the_session() -> None:
    """Killed while the model is asked for its third reply: nothing that was done is done, or paid for, again."""
    with writing_daemon() as (daemon, server), home(FILES) as place:
        script, hold = server.answers[CHAT], [True]

        def slow(out: Callable[[bytes], object]) -> None:
            if len(server.bodies) == 3 and hold[0]:
                time.sleep(20)
                return
            script(out)

        server.answers[CHAT] = slow
        report = place.root / "report.json"
        words = ("do", "add shout to extra.py", "--repo", str(place.repo), "--daemon", str(daemon.socket))
        running = place.start(*words, "--report", str(report), "--assume")
        while len(server.bodies) < 3:
            assert running.poll() is None, running.communicate()
            time.sleep(0.05)
        daemon.kill()
        hold[0] = False
        daemon.start()
        out, err = running.communicate()
        assert running.returncode == 0, (out, err, daemon.log())
        told = json.loads(report.read_text())
        assert told["agent"]["tools"] == {"search": 1, "create": 2, "finish": 1}
        assert told["model"]["name"] == "bot"
        assert len(server.bodies) == 5  # four replies, and the one that was never heard
        assert str(server.socket) not in report.read_text()
        assert b"create:" in err
        assert sorted(p.name for p in place.repo.iterdir() if p.suffix == ".py") == sorted(FILES)
        transcript = place.run("session", "show", told["task"]).out
        assert transcript.count("### create (done)") == 2
        assert "**finished:**" in transcript
        assert not [name for name in (str(server.socket), str(daemon.root)) if name in transcript]
        again = place.run("session", "resume", told["task"])
        assert (again.code, "is finished" in again.err) == (0, True), again
        for more in (("resume", told["task"], "--say", "louder"), ("undo", told["task"])):
            refused = place.run("session", *more)
            assert (refused.code, "was a daemon's" in refused.err) == (1, True), refused
        while list((daemon.state / "sessions").iterdir()):  # the worker clears up once it has told the end
            time.sleep(0.05)


@pytest.mark.long
def test_cancel_ends_the_session_and_keeps_nothing_of_it() -> None:
    with writing_daemon() as (daemon, server):
        server.answers[CHAT] = lambda _out: time.sleep(20)
        task = ordered(daemon.client(), FILES, instruction="add shout to extra.py", use_model=True)["id"]
        while not server.bodies:
            time.sleep(0.05)
        daemon.client().post(f"/v1/tasks/{task}/cancel", {})
        assert daemon.until(task, "cancelled", "done", "failed")["state"] == "cancelled"
        while list((daemon.state / "sessions").iterdir()):
            time.sleep(0.05)


@pytest.mark.long
def test_a_model_server_that_is_gone_is_an_answer_that_names_no_place(tmp_path: Path) -> None:
    with served(more=f'[[chat_model]]\nname = "house"\nmodel = "unix:{tmp_path}/gone"\n') as daemon:
        task = ordered(daemon.client(), FILES, instruction="add shout to extra.py", use_model=True)["id"]
        ended = daemon.until(task, "done", "failed")
        assert (ended["state"], ended["exit"]) == ("done", 1), daemon.log()
        assert ended["reason"].startswith("no model server answers at the chat model")
        report = daemon.client().get(f"/v1/tasks/{task}/report").json()
        assert (report["task"], report["remedy"]) == (task, "see the daemon's log, and ask whoever keeps it")
        assert str(tmp_path) not in json.dumps(report)
