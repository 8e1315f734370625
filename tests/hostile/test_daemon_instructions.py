"""Instructions of hostile clients at the daemon: other sockets, other places, what a person has to look at."""

import json
from typing import Any

import pytest
from support.false_model_server import CHAT, calls_in_turn, false_model_server
from support.service_builder import Served, ordered, served, uploaded

from localagent.errors import UsageFault
from localagent.protocol.http_client import DaemonRefuses

FILES = {
    "login.py": "def load(path):\n    return path.split(',')\n",
    "test_login.py": "from login import load\n\n\ndef test_load():\n    assert load('a,b') == ['a', 'b']\n",
}
RENAME = "rename load in login.py to read_orders"
SECRET = "the operator's own words"
PLACES = ("../../../../daemon.toml", "../state/session.json", "/proc/self/environ", "/etc/passwd", "..", "a/../../x.py")


def ended(daemon: Served, task: str) -> dict[str, object]:
    client = daemon.client()
    for event in client.stream(f"/v1/tasks/{task}/events", after=0):
        if event.kind == "end":
            break
    found: dict[str, object] = client.get(f"/v1/tasks/{task}").json()
    return found


@pytest.mark.long
def test_what_a_person_has_to_look_at_is_nobody_s_to_waive() -> None:
    """`choosing: assume` waives what tests do not show, no question of the gates; and who asked cannot answer one."""
    with served() as daemon:
        client = daemon.client()
        task = ordered(client, FILES, instruction=RENAME, choosing="assume", use_model=True)["id"]
        assert ended(daemon, task)["exit"] == 1, daemon.log()
        report = client.get(f"/v1/tasks/{task}/report").json()
        assert (report["outcome"], report["patch"], len(report["proposals"])) == ("needs-person", None, 1)
        (judged,) = client.get(f"/v1/tasks/{task}/approvals").json()["patches"]
        assert (judged["verdict"], judged["asked"]) == ("needs-person", ["critical-file 'login.py'"])
        word = {"patch": judged["patch"], "change": judged["change"], "reason": "mine"}
        with pytest.raises(DaemonRefuses, match="nobody approves a patch that they asked for"):
            client.post(f"/v1/tasks/{task}/approvals", word)


@pytest.mark.long
def test_a_client_names_no_socket_and_a_model_reaches_no_place_of_the_daemon() -> None:
    """Of two model servers the operator named one; what that says is as hostile as the client."""
    calls: list[tuple[str, dict[str, Any]]] = [("read", {"path": place}) for place in PLACES]
    calls += [("create", {"path": place, "content": "x = 1\n"}) for place in PLACES]
    calls += [("run_tests", {"tests": ["--rootdir=/", "../../x.py"]}), ("ask", {"question": "What next?"})]
    with false_model_server(calls_in_turn(calls)) as house, false_model_server() as other:
        model = f'# {SECRET}\n[[chat_model]]\nname = "house"\nmodel = "unix:{house.socket}"\n'
        with served(more=model) as daemon:
            client = daemon.client()
            snapshot = uploaded(client, FILES)
            for name, reason in (
                (f"unix:{other.socket}", "a name that the daemon knows, not a path"),
                (str(other.socket), "a name that the daemon knows, not a path"),
                ("smollm2-135m-instruct", "no chat model 'smollm2-135m-instruct' here"),
            ):
                with pytest.raises(UsageFault, match=reason):
                    client.post("/v1/tasks", {"snapshot": snapshot, "instruction": "shout", "model": name})
            shown = client.get("/v1/models").json()["chat_models"]
            assert shown == [{"name": "house", "max_tokens": 2_000_000}]
            task = ordered(client, FILES, instruction="shout at ../../daemon.toml", use_model=True)["id"]
            told = ended(daemon, task)
            assert (told["state"], told["exit"]) == ("done", 1), daemon.log()
            report = client.get(f"/v1/tasks/{task}/report").json()
            assert report["remedy"] == "say what is asked in the instruction, and order it again"
            assert (report["outcome"], report["agent"]["changed"]) == ("needs-person", [])
            results = [m["content"] for m in house.bodies[-1]["messages"] if m["role"] == "tool"]
            assert len(results) == len(calls) - 1
            assert all(text.startswith(("error", "refused")) for text in results[: 2 * len(PLACES)]), results
            everything = json.dumps([report, house.bodies, told])
            assert SECRET not in everything
            assert str(daemon.root) not in everything
            assert other.asked == []
            assert f"POST {CHAT.split()[1]}" in house.asked
