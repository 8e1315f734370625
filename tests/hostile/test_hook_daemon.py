"""A daemon that lies to the hook: no patch of its own choosing, no flood and no silence gets further than a remark."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.false_daemon import (
    REPAIRED,
    STAGED,
    TASK,
    dripping,
    events,
    false_daemon,
    patch_of,
    refusal,
    repaired,
    tree_at,
)
from support.fix_builder import home
from support.git_builder import Repo
from support.warm_start import parent

from localagent.app import Settings
from localagent.app.cancellation import Stop
from localagent.app.review.patch_tests import Tree
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.domain.suggestion import Finder, SuggestRequest
from localagent.domain.task import Event
from localagent.precommit.daemon_suggest import MOST_ANSWER_BYTES, NoRepair
from localagent.precommit.suggest_fixes import LocalSuggester
from localagent.text.strict_json import dump

TEST = "test_adder.py"
JUDGE = b"from adder import add\n"


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Tree, Policy]]:
    with tree_at(monkeypatch) as made:
        yield made


def elsewhere(path: str) -> dict[str, Any]:
    """A patch of another file than any of the snapshot, whatever its name."""
    found = json.loads(json.dumps(patch_of()))
    found["changes"][0]["path"] = path
    return dict(found)


@pytest.mark.long
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (patch_of(TEST, JUDGE), "is a test"),
        (patch_of("conftest.py", b""), "is denied by the policy"),
        (patch_of("setup.py", b""), "is denied by the policy"),
        (patch_of("new.py", b""), "did not stand so in the snapshot"),
        (patch_of("data.toml", b""), "is not a Python source"),
        (patch_of(".git/hooks/pre-commit", b""), "is not a Python source"),
        (elsewhere("../adder.py"), "its patch is damaged"),
        (elsewhere("/etc/passwd"), "its patch is damaged"),
        (patch_of(after=STAGED), "changes nothing"),
        (patch_of(after=b"import os\nos.system('x')\n" + REPAIRED), "is refused"),
        (patch_of(after=REPAIRED.replace(b"add", b"\xe2\x80\xaeadd")), "is refused"),
        (patch_of(after=REPAIRED + b"y = 1\n" * 100_000), "is refused"),
        (None, "refuses"),
        ([], "its patch is damaged"),
        (b"{" * 100_000, "is not JSON"),
        (b"[" * 1_000_000, "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
    ],
)
def test_no_such_patch_is_taken(ground: tuple[Tree, Policy], value: Any, why: str) -> None:
    with false_daemon() as daemon:
        daemon.patch(value)
        with pytest.raises(NoRepair) as caught:
            repaired(daemon, ground)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_the_very_patch_that_fits_is_taken(ground: tuple[Tree, Policy]) -> None:
    """The control: what is refused above is not refused for being false."""
    with false_daemon() as daemon:
        daemon.patch(patch_of())
        assert repaired(daemon, ground).changes[0].after == REPAIRED


def endless(out: Callable[[bytes], object]) -> None:
    out(b"HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\n[")
    for _ in itertools.count():
        out(b" " * (1 << 16))


def flood(out: Callable[[bytes], object]) -> None:
    """Events without number, and then one that has no end."""
    out(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
    for _ in range(10_000):
        out(b"event: event\ndata: {}\n\n")
    while True:
        out(b"data: " + b"x" * 60_000 + b"\n")


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked", "answer", "why"),
    [
        (f"GET /v1/tasks/{TASK}/patch", endless, "larger than anything it should say"),
        ("GET /version", endless, "larger than anything it should say"),
        (f"GET /v1/tasks/{TASK}/events", flood, "an event larger than any"),
        ("POST /v1/blobs/missing", {"missing": [1, 2]}, "does not say which contents it lacks"),
        ("POST /v1/blobs/missing", [], "does not say which contents it lacks"),
        ("POST /v1/tasks", {"id": "../../etc/passwd"}, "is not a task"),
        ("POST /v1/tasks", ["id"], "is not a task"),
        (f"GET /v1/tasks/{TASK}/events", events(("end", ["done"])), "is not as agreed"),
        (
            f"GET /v1/tasks/{TASK}/events",
            events(("end", {"state": "\x1b[2J" * 10_000, "exit": 0, "reason": "why"})),
            "its task ",
        ),
        ("POST /v1/tasks", refusal(429, "\x1b]0;x\x07", "a\nb\x1b[2J" * 5000), "refuses: a"),
    ],
)
def test_no_such_answer_gets_further(ground: tuple[Tree, Policy], asked: str, answer: Any, why: str) -> None:
    with false_daemon() as daemon:
        daemon.patch(patch_of())
        daemon.answers[asked] = answer
        with pytest.raises(NoRepair) as caught:
            repaired(daemon, ground)
    told = str(caught.value)
    assert why in told
    assert (told.isprintable(), len(told) < 3000) == (True, True)


@pytest.mark.long
@pytest.mark.parametrize("asked", ["GET /version", "POST /v1/tasks", f"GET /v1/tasks/{TASK}/events"])
def test_a_byte_now_and_then_is_not_waited_for(ground: tuple[Tree, Policy], asked: str) -> None:
    with false_daemon() as daemon:
        daemon.answers[asked] = dripping
        with pytest.raises(NoRepair):
            repaired(daemon, ground, 1.0)


def test_as_large_as_it_may_be_is_read_and_refused_by_its_size(ground: tuple[Tree, Policy]) -> None:
    data = dump(patch_of(after=REPAIRED + b"#" * (MOST_ANSWER_BYTES // 2)))
    assert len(data) < MOST_ANSWER_BYTES
    with false_daemon() as daemon:
        daemon.patch(data)
        with pytest.raises(NoRepair, match="is refused"):
            repaired(daemon, ground)


@pytest.mark.long
@pytest.mark.parametrize("lie", ["dies", pytest.param("other file", marks=pytest.mark.slow)])  # a reason that is above
def test_the_repair_is_found_here_all_the_same(lie: str) -> None:
    """The whole verb: one line of what the daemon did, and the suggestion of this process."""
    with home() as place, false_daemon() as daemon:
        Repo(place.repo).git("add", "-A")
        if lie == "dies":
            daemon.answers[f"GET /v1/tasks/{TASK}/events"] = lambda _out: None
        daemon.patch(patch_of(TEST, JUDGE))
        arguments = ["hook", "suggest", "--deadline", "600s", "--json", "--daemon", str(daemon.socket)]
        done = parent().run(arguments, place.environment(), place.repo)
        assert done is not None
        assert done.returncode == 0, done
        told = json.loads(done.stdout)
        (found,) = told["suggestions"]
        assert (found["origin"], found["found_by"]) == ("failing-tests", "here")
        (remark,) = [text for text in told["remarks"] if str(daemon.socket) in text]
        assert ("is a test" in remark) == (lie == "other file")


class Remarks:
    """What a suggester says beside suggestions."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def emit(self, event: Event) -> None:
        if event.kind == "warning":
            self.said.append(str(event.data["text"]))


@pytest.mark.long
def test_silence_costs_the_daemon_s_share_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localagent.precommit.suggest_fixes.SHARE", 0.001)
    with home() as place, false_daemon() as daemon:
        for name, value in place.environment().items():
            monkeypatch.setenv(name, value)
        daemon.answers[f"GET /v1/tasks/{TASK}/events"] = lambda _out: time.sleep(300)
        remarks = Remarks()
        suggester = LocalSuggester(Settings.from_environ(), None, remarks, Stop(), daemon.socket)
        request = SuggestRequest(repo=place.repo, changed={RepoPath("adder.py"): STAGED})
        (found,) = suggester.suggest(request, lambda: 600.0)
        assert (found.finder, found.patch.after(RepoPath("adder.py"))) == (Finder.HERE, REPAIRED)
        (remark,) = remarks.said
        assert "did not answer in the time" in remark
        assert list(place.scratch.iterdir()) == []
