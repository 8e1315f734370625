"""A repair asked of the daemon: what is ordered, what is taken, and that nothing is waited for past the time."""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.false_daemon import (
    REPAIRED,
    SECONDS,
    STAGED,
    TASK,
    events,
    false_daemon,
    patch_of,
    refusal,
    repaired,
    tree_at,
)

from localagent.app.review.patch_tests import Tree
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.precommit.daemon_suggest import AtDaemon, NoRepair

FOLLOWED = f"GET /v1/tasks/{TASK}/events"


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Tree, Policy]]:
    with tree_at(monkeypatch) as made:
        yield made


def test_what_is_staged_is_uploaded_and_its_repair_taken(ground: tuple[Tree, Policy]) -> None:
    sent: list[bytes] = []
    with false_daemon() as daemon:
        digest = ground[0].snapshot.entries[RepoPath("adder.py")].digest
        daemon.answers["POST /v1/blobs/missing"] = {"missing": [digest, digest, "sha256:" + "0" * 64]}
        daemon.answers[f"PUT /v1/blobs/{digest}"] = {}
        daemon.patch(patch_of())
        patch = repaired(daemon, ground)
        sent = [asked.encode() for asked in daemon.asked if asked.startswith("PUT")]
    assert patch.after(RepoPath("adder.py")) == REPAIRED
    assert len(sent) == 1, "each content once, and nothing that is not ours"
    (order,) = daemon.orders
    assert (order["tests"], order["max_seconds"]) == (["test_adder.py"], SECONDS)
    assert f"POST /v1/tasks/{TASK}/cancel" not in daemon.asked


def test_how_likely_it_is_right_is_the_daemons_word(ground: tuple[Tree, Policy]) -> None:
    end = {"state": "done", "exit": 0, "reason": "why"}
    told = {"probability": 0.75, "calibrated": True, "model": "right-1"}
    with false_daemon() as daemon:
        daemon.patch(patch_of())
        for value, known in ((told, (0.75, True, "right-1")), (None, None)):
            daemon.answers[FOLLOWED] = events(("end", {**end, "confidence": value}))
            asked = AtDaemon(daemon.socket, ground[0], SECONDS)
            asked.repair(Baseline(tests=()), ground[1])
            found = asked.confidence
            assert (found and (found.probability, found.calibrated, found.model)) == known
        for wrong in ({**told, "probability": 7}, {"probability": 0.5}, [0.5], "0.5"):
            daemon.answers[FOLLOWED] = events(("end", {**end, "confidence": wrong}))
            with pytest.raises(NoRepair, match="its end of a task is not as agreed"):
                AtDaemon(daemon.socket, ground[0], SECONDS).repair(Baseline(tests=()), ground[1])


def test_a_proposal_is_taken_where_a_person_has_to_choose(ground: tuple[Tree, Policy]) -> None:
    with false_daemon() as daemon:
        daemon.answers[f"GET /v1/tasks/{TASK}/events"] = events(("end", {"state": "done", "exit": 1, "reason": "why"}))
        daemon.answers[f"GET /v1/tasks/{TASK}/proposals"] = [{"number": 1, "patch": patch_of()}]
        assert repaired(daemon, ground).after(RepoPath("adder.py")) == REPAIRED
        daemon.answers[f"GET /v1/tasks/{TASK}/proposals"] = []
        with pytest.raises(NoRepair, match="found no repair: why"):
            repaired(daemon, ground)


@pytest.mark.parametrize(
    ("asked", "answer", "why", "cancelled"),
    [
        ("GET /version", {"version": "0.0.1"}, "is of version 0.0.1, and this is", False),
        ("GET /version", ["1"], "is of version None", False),
        ("POST /v1/blobs/missing", refusal(507, "full", "no room"), "refuses: no room", False),
        ("POST /v1/tasks", refusal(429, "quota", "too many tasks"), "refuses: too many tasks", False),
        ("POST /v1/tasks", {"id": TASK, "state": "held"}, "holds the task until somebody approves it", True),
        (FOLLOWED, events(("end", {"state": "failed", "exit": None, "reason": "why"})), "its task failed: why", False),
        (FOLLOWED, events(("event", {"kind": "stage"})), "ended its events without an end", True),
        (FOLLOWED, lambda _out: None, "broke off", True),
    ],
)
def test_why_there_is_none_is_one_line(
    ground: tuple[Tree, Policy], asked: str, answer: object, why: str, cancelled: bool
) -> None:
    with false_daemon() as daemon:
        daemon.answers[asked] = answer
        daemon.patch(patch_of())
        with pytest.raises(NoRepair) as caught:
            repaired(daemon, ground)
        assert why in str(caught.value)
        assert str(caught.value).startswith(f"the daemon at {daemon.socket}: ")
        assert "\n" not in str(caught.value)
        assert (f"POST /v1/tasks/{TASK}/cancel" in daemon.asked) == cancelled


def test_nobody_there_is_said(ground: tuple[Tree, Policy], tmp_path: Path) -> None:
    with pytest.raises(NoRepair, match="there is no daemon at"):
        AtDaemon(tmp_path / "none", ground[0], SECONDS).repair(Baseline(tests=()), ground[1])


def test_what_comes_too_late_is_not_waited_for_and_is_cancelled(ground: tuple[Tree, Policy]) -> None:
    def later(out: object) -> None:
        time.sleep(300)

    with false_daemon() as daemon:
        daemon.answers[f"GET /v1/tasks/{TASK}/events"] = later
        with pytest.raises(NoRepair, match=r"did not answer in the time|timed out"):
            repaired(daemon, ground, 0.5)
        while f"POST /v1/tasks/{TASK}/cancel" not in daemon.asked:
            time.sleep(0.01)


def test_an_order_that_is_dropped_is_cancelled(ground: tuple[Tree, Policy]) -> None:
    def later(out: object) -> None:
        time.sleep(300)

    with false_daemon() as daemon:
        daemon.answers[f"GET /v1/tasks/{TASK}/events"] = later
        asked = AtDaemon(daemon.socket, ground[0], SECONDS)
        while f"GET /v1/tasks/{TASK}/events" not in daemon.asked:
            time.sleep(0.01)
        asked.drop()
        while f"POST /v1/tasks/{TASK}/cancel" not in daemon.asked:
            time.sleep(0.01)


def test_only_what_is_staged_fits(ground: tuple[Tree, Policy]) -> None:
    """The working file's bytes, or any others, are not what would be committed."""
    for before in (STAGED + b"x = 1\n", STAGED[:-1], b""):
        with false_daemon() as daemon:
            daemon.patch(patch_of(before=before))
            with pytest.raises(NoRepair, match="did not stand so in the snapshot"):
                repaired(daemon, ground)


def test_a_digest_that_does_not_match_is_no_patch(ground: tuple[Tree, Policy]) -> None:
    found = json.loads(json.dumps(patch_of()))
    found["changes"][0]["after"] = base64.b64encode(b"import os\n").decode()
    with false_daemon() as daemon:
        daemon.patch(found)
        with pytest.raises(NoRepair, match="its patch is damaged"):
            repaired(daemon, ground)
