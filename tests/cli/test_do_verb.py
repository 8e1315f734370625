"""`do` from end to end: a scripted model server at a Unix socket, a real repository, real jails."""

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
from support.false_model_server import CHAT, calls_in_turn, completion, false_model_server, status
from support.git_builder import Repo

from localagent.cli.main import main

SOURCE = 'def label(name):\n    """A label."""\n    return name.strip()\n'
TEST = "from shop.labels import label\n\n\ndef test_label():\n    assert label(' a ') == 'a'\n"
NEW = "from shop.extra import shout\n\n\ndef test_shout():\n    assert shout('a') == 'A!'\n"
WORDS = "add a function shout to shop/extra.py and drop shop/old.py"
Calls = list[tuple[str, dict[str, Any]]]
DONE: Calls = [("finish", {"summary": "done"})]
ADD: Calls = [
    ("search", {"query": "label"}),
    ("read", {"path": "shop/labels.py"}),
    ("plan", {"steps": ["add shop/extra.py, drop shop/old.py", "tests/test_extra.py"]}),
    (
        "create",
        {"path": "shop/extra.py", "content": 'def shout(text):\n    """Loud."""\n    return text.upper() + "!"\n'},
    ),
    ("create", {"path": "tests/test_extra.py", "content": NEW}),
    ("delete", {"path": "shop/old.py"}),
    ("run_tests", {}),
    ("run", {"code": "from shop.extra import shout\nprint(shout('b'))"}),
    *DONE,
]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Repo(tmp_path / "r")
    for name, data in (
        ("shop/__init__.py", ""),
        ("shop/labels.py", SOURCE),
        ("shop/old.py", "X = 1\n"),
        ("tests/test_labels.py", TEST),
        ("pyproject.toml", '[tool.pytest.ini_options]\npythonpath = ["."]\n'),
    ):
        made.stage(name, data)
    made.commit()
    return made


def _do(repo: Repo, socket: Path, tmp_path: Path, *more: str, words: str = WORDS) -> tuple[int, dict[str, Any], bytes]:
    out, report = tmp_path / "out.patch", tmp_path / "report.json"
    for path in (out, report):
        path.unlink(missing_ok=True)
    code = main(
        [
            "do", words, "--repo", str(repo.folder),
            "--model", f"unix:{socket}", "--out", str(out), "--report", str(report), "--quiet", *more,
        ]
    )  # fmt: skip
    told = json.loads(report.read_text()) if report.exists() else {}
    return code, told, out.read_bytes() if out.exists() else b""


@pytest.mark.long
def test_a_feature_is_written_proven_shown_applied_and_undone(
    repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = repo.git("status", "--porcelain")
    with false_model_server(calls_in_turn(ADD)) as server:
        code, told, diff = _do(repo, server.socket, tmp_path, "--trust", "auto", "--assume")
    assert (code, told["outcome"]) == (0, "accepted"), told
    assert (told["agent"]["claim"], told["agent"]["changed"]) == (
        "adds",
        ["shop/extra.py", "tests/test_extra.py", "shop/old.py"],
    )
    assert told["fail_to_pass"]
    assert repo.git("status", "--porcelain") == before
    tools = [m for m in server.bodies[-1]["messages"] if m["role"] == "tool"]
    assert "2 passed, 0 failed" in tools[6]["content"]
    assert "B!" in tools[7]["content"]
    assert server.bodies[0]["metadata"] == {"role": "implementer"}
    repo.git("apply", "--check", "-", stdin=diff)
    assert main(["show", told["task"]]) == 0
    assert main(["apply", told["task"]]) == 0
    assert (repo.folder / "shop/extra.py").exists()
    assert not (repo.folder / "shop/old.py").exists()
    assert main(["undo", told["task"]]) == 0
    assert not (repo.folder / "shop/extra.py").exists()
    assert repo.git("status", "--porcelain") == before
    for action in (["list"], ["show", told["task"]], ["export", told["task"], "--format", "atif"]):
        assert main(["session", *action]) == 0
    assert "shout" in capsys.readouterr().out


@pytest.mark.long
def test_who_lies_gets_no_patch(repo: Repo, tmp_path: Path) -> None:
    wrong = [("edit", {"path": "shop/labels.py", "old": "name.strip()", "new": "name.upper()"}), *DONE]
    for script in (DONE, wrong):
        with false_model_server(calls_in_turn(script)) as server:
            code, told, diff = _do(repo, server.socket, tmp_path, "--trust", "auto", "--assume")
        assert (code, told["outcome"], diff) == (1, "gave-up", b"")
    assert "test_label" in told["reason"]
    assert main(["apply", told["task"]]) == 1
    assert (repo.folder / "shop/labels.py").read_text() == SOURCE


@pytest.mark.long
def test_without_anybody_to_ask_the_patch_waits(repo: Repo, tmp_path: Path) -> None:
    with false_model_server(calls_in_turn([*ADD[3:6], *DONE])) as server:
        code, told, diff = _do(repo, server.socket, tmp_path)
    assert (code, told["outcome"], diff) == (1, "needs-person", b"")
    assert main(["session", "resume", "--report", str(tmp_path / "again.json")]) == 1  # nothing is said: it still waits
    assert json.loads((tmp_path / "again.json").read_text()) == told
    assert main(["apply", told["task"], "--choose", "1"]) == 0
    assert (repo.folder / "shop/extra.py").exists()


def test_what_is_wrong_is_told_before_anything_is_spent(
    repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for more, code, says in (
        ([], 1, "no model that writes was given"),
        (["--model", f"unix:{tmp_path}/none"], 1, "no model server answers"),
        (["--trust", "auto", "--apply", "--model", "unix:x"], 2, "--trust auto and --apply"),
        (["--roles", "king", "--model", "unix:x"], 2, "--roles: 'king'"),
        (["--max-steps", "0", "--model", "unix:x"], 2, "--max-steps"),
    ):
        assert main(["do", "x", "--repo", str(repo.folder), *more]) == code
        assert says in capsys.readouterr().err
    assert not (tmp_path / "state/localagent/tasks").exists()


@pytest.mark.long
def test_a_killed_session_is_resumed_and_its_tree_untouched(
    repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed while the model is asked for its sixth reply; what was done then is not done again.

    Killed once more between its end and its report: the patch is proven again, and the model not asked. Then it is
    finished: it says what it came to, with the exit code of that.
    """
    script = calls_in_turn(ADD)
    stop = [True]

    def slow(out: Callable[[bytes], object]) -> None:
        if len(server.bodies) == 6 and stop[0]:
            time.sleep(60)
        script(out)

    with false_model_server() as server:
        server.answers[CHAT] = slow
        words = ["do", "add shout to shop/extra.py", "--repo", str(repo.folder), "--model", f"unix:{server.socket}"]
        command = [sys.executable, "-m", "localagent", *words, "--trust", "auto", "--assume", "--quiet"]
        with subprocess.Popen(command, env=dict(os.environ)) as process:
            while len(server.bodies) < 6 and process.poll() is None:
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
        stop[0] = False
        assert repo.git("status", "--porcelain") == b""
        report = tmp_path / "resumed.json"
        assert main(["session", "resume", "--quiet", "--report", str(report)]) == 0
        told, asked = json.loads(report.read_text()), len(server.bodies)
        kept = tmp_path / "state/localagent/tasks" / told["task"]
        for name in ("patch.json", "report.json"):
            (kept / name).unlink()
        assert main(["session", "resume", "--quiet", "--report", str(report)]) == 0
        again = json.loads(report.read_text())
        assert (again["outcome"], again["patch"], len(server.bodies)) == ("accepted", told["patch"], asked)
        kept_files = {path: path.read_bytes() for path in kept.iterdir() if path.is_file()}
        out = tmp_path / "finished.patch"
        assert main(["session", "resume", "--out", str(out)]) == 0
        assert "nothing to resume" in capsys.readouterr().err
        assert (out.read_text(), len(server.bodies)) == (told["patch"], asked)
        assert {path: path.read_bytes() for path in kept.iterdir() if path.is_file()} == kept_files
    assert told["agent"]["tools"] == {
        "search": 1,
        "read": 1,
        "plan": 1,
        "create": 2,
        "delete": 1,
        "run_tests": 1,
        "run": 1,
        "finish": 1,
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("option", "budget", "says"),
    [
        ("--max-steps", "2", "2 replies of the model"),
        ("--max-tokens", "18", "18 tokens"),
        ("--max-seconds", "2", "2 seconds"),
    ],
)
def test_a_budget_ends_it_and_is_named(repo: Repo, tmp_path: Path, option: str, budget: str, says: str) -> None:
    replies = calls_in_turn([("read", {"path": "shop/labels.py", "start": n}) for n in range(1, 4)])
    over = threading.Event()

    def slow(out: Callable[[bytes], object]) -> None:
        if option == "--max-seconds":
            over.wait()
        replies(out)

    with false_model_server(slow) as server:
        code, told, diff = _do(repo, server.socket, tmp_path, "--trust", "auto", "--assume", option, budget)
        over.set()
    assert (code, told["outcome"], diff) == (1, "gave-up", b"")
    assert f"the budget of {says}" in told["reason"]
    assert "session resume" in told["remedy"]
    assert len(server.bodies) <= 2


PRICE: Calls = [("edit", {"path": "shop/prices.py", "old": "return sum(items)", "new": "return sum(items) + 1"})]
SHOWN = "from shop.prices import price\n\n\ndef test_price():\n    assert price([1]) == 2\n"


@pytest.mark.long
def test_code_that_no_test_runs_is_not_accepted_by_itself(repo: Repo, tmp_path: Path) -> None:
    """A model that edits where no test looks is told so; a test of it, or a person, lets the patch be."""
    repo.stage("shop/prices.py", "def price(items):\n    return sum(items)\n")
    repo.commit()
    with false_model_server(calls_in_turn([*PRICE, *DONE])) as server:
        code, told, diff = _do(repo, server.socket, tmp_path, "--trust", "auto", "--assume", words="round prices up")
    assert (code, told["outcome"], diff) == (1, "needs-person", b"")
    assert "no test runs shop/prices.py: price" in told["reason"]
    tools = [m["content"] for m in server.bodies[-1]["messages"] if m["role"] == "tool"]
    assert "add a test that runs and checks it" in tools[-1]
    script: Calls = [*PRICE, *DONE, ("create", {"path": "tests/test_prices.py", "content": SHOWN}), *DONE]
    with false_model_server(calls_in_turn(script)) as server:
        code, told, diff = _do(repo, server.socket, tmp_path, "--trust", "auto", "--assume", words="round prices up")
    assert (code, told["outcome"]) == (0, "accepted"), told["reason"]
    assert told["fail_to_pass"]


@pytest.mark.long
def test_what_nobody_asked_for_goes_back_to_the_model(repo: Repo, tmp_path: Path) -> None:
    """A number that no test sees, in a place of which the instruction says nothing; and a test that shows nothing."""
    more = [("edit", {"path": "shop/labels.py", "old": "name.strip()", "new": "name.strip()[:40]"})]
    back = [("edit", {"path": "shop/labels.py", "old": "name.strip()[:40]", "new": "name.strip()"})]
    plain = "import shop.extra\n\n\ndef test_there():\n    assert shop.extra.shout\n"
    weak = [("create", {"path": "tests/test_there.py", "content": plain})]
    gone = [("delete", {"path": "tests/test_there.py"})]
    feature = [*ADD[3:6], *more, *weak]
    with false_model_server(calls_in_turn([*feature, *DONE, *back, *gone, *DONE])) as server:
        code, told, _ = _do(repo, server.socket, tmp_path, "--trust", "auto", "--assume")
    said = [m["content"] for m in server.bodies[-1]["messages"] if m["role"] == "tool"]
    assert "shop/labels.py:1: label is altered, and nothing in the instruction speaks of it" in said[5]
    assert "a new test shows nothing: tests/test_there.py line 4" in said[5]
    assert (code, told["outcome"]) == (0, "accepted"), told["reason"]


@pytest.mark.long
def test_what_nobody_asked_for_and_stays_is_left_to_a_person(repo: Repo, tmp_path: Path) -> None:
    more = [("edit", {"path": "shop/labels.py", "old": "name.strip()", "new": "name.strip()[:40]"})]
    with false_model_server(calls_in_turn([*ADD[3:6], *more, *DONE, *DONE])) as server:
        code, told, diff = _do(repo, server.socket, tmp_path, "--trust", "auto", "--assume")
    assert (code, told["outcome"], diff) == (1, "needs-person", b""), told["reason"]
    assert "shop/labels.py:1: label is altered, and nothing in the instruction speaks of it" in told["reason"]


@pytest.mark.long
def test_a_part_that_is_left_out_goes_back_to_the_model_and_then_to_a_person(repo: Repo, tmp_path: Path) -> None:
    script: Calls = [*ADD[3:5], *DONE]
    words = "add a function shout to shop/extra.py; an empty text is a ValueError"
    raises = "    if not text:\n        raise ValueError(text)\n    return text.upper"
    more: Calls = [("edit", {"path": "shop/extra.py", "old": "    return text.upper", "new": raises})]
    lacks = "the instruction asks for ValueError, which nothing new raises, and nothing in the change answers that"
    with false_model_server(calls_in_turn([*script, *more, *DONE])) as server:
        code, told, _ = _do(repo, server.socket, tmp_path, "--trust", "auto", "--assume", words=words)
    said = [m["content"] for m in server.bodies[-1]["messages"] if m["role"] == "tool"]
    assert lacks in said[2]
    assert (code, told["outcome"]) == (0, "accepted"), told["reason"]
    for options, ends in (((), (1, "needs-person")), (("--assume",), (0, "accepted"))):
        with false_model_server(calls_in_turn([*script, *DONE])) as server:
            code, told, _ = _do(repo, server.socket, tmp_path, "--trust", "auto", *options, words=words)
        assert (code, told["outcome"]) == ends, told["reason"]
        assert lacks in told["reason"]


def test_arguments_that_another_parser_refuses_end_nothing(repo: Repo, tmp_path: Path) -> None:
    """A key that stands twice was read by one parser and refused by another: a bug report, and no session."""
    edit = '{"path": "x", "path": "shop/labels.py", "old": "A label.", "new": "One label."}'
    replies = iter([edit, '{"path": "shop/labels.py", "old": "One label.", "new": "A label."}'])

    def write(out: Callable[[bytes], object]) -> None:
        given = next(replies, None)
        name, arguments = ("edit", given) if given else ("ask", '{"question": "Why?"}')
        status(200, completion(None, (name, arguments), finish="tool_calls"))(out)

    with false_model_server(write) as server:
        code, told, _ = _do(repo, server.socket, tmp_path, "--trust", "auto")
    assert (code, told["agent"]["tools"]) == (1, {"edit": 2, "ask": 1})


@pytest.mark.long
def test_a_planned_file_whose_change_was_refused_is_not_passed_over(repo: Repo, tmp_path: Path) -> None:
    """A model that says that it is done with the half that was let through is told; then a person decides."""
    bad = ("edit", {"path": "shop/prices.py", "old": "return sum(items)", "new": "return eval(items[0])"})
    script: Calls = [("plan", {"steps": ["change shop/prices.py", "tell of it in README.md"]}), bad]
    script += [("create", {"path": "README.md", "content": "# Shop\n\nPrices are sums.\n"}), *DONE, *DONE]
    repo.stage("shop/prices.py", "def price(items):\n    return sum(items)\n")
    repo.commit()
    with false_model_server(calls_in_turn(script)) as server:
        code, told, diff = _do(repo, server.socket, tmp_path, "--trust", "auto", "--assume")
    assert (code, told["outcome"], diff) == (1, "needs-person", b""), told["reason"]
    assert "shop/prices.py was to be changed, that was refused, and it is as it was" in told["reason"]


@pytest.mark.long
def test_what_nothing_uses_and_nobody_asked_for_is_not_accepted(repo: Repo, tmp_path: Path) -> None:
    planted = ("edit", {"path": "shop/extra.py", "old": "def shout", "new": "PROBE = 1\n\n\ndef shout"})
    with false_model_server(calls_in_turn([*ADD[:-1], planted, *DONE, *DONE])) as server:
        code, told, diff = _do(repo, server.socket, tmp_path, "--trust", "auto", "--assume")
    assert (code, told["outcome"], diff) == (1, "needs-person", b""), told["reason"]
    assert "PROBE, and the instruction does not name it" in told["reason"]


LOUD: Calls = [
    ("edit", {"path": "shop/labels.py", "old": "name.strip()", "new": "name.strip().upper()"}),
    ("edit", {"path": "tests/test_labels.py", "old": "== 'a'", "new": "== 'A'"}),
    *DONE * 3,
]


STANDS_ON = """
import pytest

from shop.labels import label

WANTED = 'a'


@pytest.fixture
def wanted():
    return WANTED


def test_label(wanted):
    assert label(' a ') == wanted
"""


@pytest.mark.long
@pytest.mark.parametrize("breaks_another", [False, True])
def test_refused_changes_of_tests_come_as_a_proposal_where_nothing_else_fails(
    repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, breaks_another: bool
) -> None:
    if breaks_another:
        repo.stage("tests/test_more.py", TEST.replace("test_label", "test_more"))
        repo.commit()
    words = "label gives capitals, adapt the tests"
    with false_model_server(calls_in_turn(LOUD)) as server:
        code, told, _ = _do(repo, server.socket, tmp_path, "--trust", "auto", words=words)
    assert (code, told["outcome"]) == (1, "gave-up" if breaks_another else "needs-person"), told["reason"]
    assert "a person has to allow it: tests/test_labels.py:5 test_label: 'a' became 'A'" in told["agent"]["refused"][0]
    assert "what was refused in tests/test_labels.py" in told["agent"]["refused"][1]
    if not breaks_another:
        assert "test_label: 'a' became 'A' [test-changed]); without them no other test fails" in told["reason"]
        patch = told["proposals"][0]["patch"]
        assert "+    assert label(' a ') == 'A'" in patch
        assert "+    return name.strip().upper()" in patch
        assert main(["apply", told["task"], "--choose", "1"]) == 1
        assert "localagent approve" in capsys.readouterr().err


@pytest.mark.long
def test_a_test_that_the_change_contradicts_is_told_where_nobody_wants_to_be_asked(repo: Repo, tmp_path: Path) -> None:
    """As long as no other test fails, and it fails as it stood: a test that holds anyway is not overruled."""
    words = "label gives capitals"
    with false_model_server(calls_in_turn(LOUD)) as server:
        code, told, diff = _do(repo, server.socket, tmp_path, "--trust", "auto", "--assume", words=words)
    assert (code, told["outcome"]) == (0, "accepted"), told["reason"]
    assert not told["agent"]["refused"]
    assert "assumed without a question: tests/test_labels.py:5 test_label: 'a' became 'A' [test-ch" in told["reason"]
    assert b"+    assert label(' a ') == 'A'" in diff
    assert main(["apply", told["task"]]) == 0
    assert "== 'A'" in (repo.folder / "tests/test_labels.py").read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    "why", ["another test fails", "it holds as it stood", "it asks less", "of something else", "by what it stands on"]
)
def test_a_test_is_not_overruled_by_anything_less(repo: Repo, tmp_path: Path, why: str) -> None:
    """The model is told; then the rest is taken alone where it holds, and waits for a person where it does not."""
    script = LOUD
    if why == "another test fails":
        repo.stage("tests/test_more.py", TEST.replace("test_label", "test_more"))
        repo.commit()
    elif why == "it holds as it stood":
        other = ("edit", {"path": "tests/test_labels.py", "old": "(' a ') == 'a'", "new": "(' b ') == 'b'"})
        script = [("edit", {"path": "shop/labels.py", "old": "A label.", "new": "One label."}), other, *DONE * 3]
    elif why == "it asks less":
        weak = ("edit", {"path": "tests/test_labels.py", "old": "== 'a'", "new": "is not None"})
        script = [LOUD[0], weak, *DONE * 3]
    words = "label gives capitals, and its documentation says one label"
    if why == "by what it stands on":
        repo.stage("tests/test_labels.py", STANDS_ON)
        repo.commit()
        shared = ("edit", {"path": "tests/test_labels.py", "old": "WANTED = 'a'", "new": "WANTED = 'A'"})
        script = [LOUD[0], shared, *DONE * 3]
    if why in ("of something else", "by what it stands on"):
        words = "let the readme tell who keeps the shop"
    with false_model_server(calls_in_turn(script)) as server:
        _, told, diff = _do(repo, server.socket, tmp_path, "--trust", "auto", "--assume", words=words)
    assert b"test_labels.py" not in diff
    assert (told["outcome"] == "accepted") == (why == "it holds as it stood"), told["reason"]
    if why == "it holds as it stood":
        assert "tests of tests/test_labels.py expect something else" in told["agent"]["refused"][0]
        assert "changes of tests/test_labels.py are left out" in told["reason"]


@pytest.mark.long
def test_every_reply_is_an_event_whether_or_not_it_calls_a_tool(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    with false_model_server(status(200, completion("It is fine as it is."))) as server:
        words = ["do", WORDS, "--repo", str(repo.folder), "--model", f"unix:{server.socket}", "--trust", "auto"]
        assert main([*words, "--json"]) == 1
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["calls"] for event in events if event["event"] == "reply"] == [0] * len(server.bodies)
    assert len(server.bodies) > 1
