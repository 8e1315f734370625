"""The auditor's report: what the entries say, as JSON and as a page in which nothing of them is markup."""

import html.parser
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.record.audit.entry import AuditKind
from localagent.record.audit.html_page import page
from localagent.record.audit.log import AuditLog
from localagent.record.audit.report import audit_report
from localagent.record.audit.segments import segments
from localagent.record.audit.verify_chain import check_audit

LONG_AGO = date(2020, 1, 1)
EVIL = "</title><script>alert(1)</script><img src=x onerror=y>\"'&\x1b[2J\udcff"


def ended(task: str, **more: Any) -> dict[str, Any]:
    return {
        "task": task,
        "outcome": "accepted",
        "exit": 0,
        "jail": {"backend": "bubblewrap", "level": "L4"},
        "patch": "sha256:" + "1" * 64,
        "verified": 7,
        "denied": {"bandit": 2},
        "limits_hit": {"cpu": 1},
        **more,
    }


def written(tmp_path: Path, repo: str = "/srv/r") -> Path:
    log = AuditLog(tmp_path)
    log.append(AuditKind.KEY_MADE, {"key": "k", "encrypted": False})
    for task in ("a", "b"):
        log.append(AuditKind.TASK_STARTED, {"task": task, "repo": repo, "by": 0})
        log.append(AuditKind.TASK_ENDED, ended(task))
    log.append(AuditKind.TASK_STARTED, {"task": "c", "repo": repo, "by": 0})
    log.append(AuditKind.ATTESTED, {"task": "a", "key": "k"})
    log.append(AuditKind.APPLIED, {"task": "a", "repo": repo, "patch": "p", "by": 0})
    log.append(AuditKind.REFUSED, {"task": "b", "repo": repo, "patch": "p", "why": EVIL, "by": 0})
    log.append(AuditKind.APPROVED, {"name": "attrs", "version": "", "line": "x", "by": 0})
    return log.folder


def test_what_the_entries_say(tmp_path: Path) -> None:
    report = audit_report(check_audit(written(tmp_path)), (), (), since=LONG_AGO)
    totals = report["totals"]
    assert report["chain"]["standing"] == "whole"
    assert totals["outcomes"] == {"accepted": 2, "unfinished": 1}
    assert totals["refused_candidates"] == {"bandit": 4}
    assert totals["limits_hit"] == {"cpu": 2}
    assert totals["levels"] == {"L4": 2}
    counted = {name: totals[name] for name in ("applied", "undone", "refused_landings", "attested", "approved")}
    assert counted == {"applied": 1, "undone": 0, "refused_landings": 1, "attested": 1, "approved": 1}
    assert [(t["task"], t["attested"], bool(t["applied"])) for t in report["tasks"]] == [
        ("a", True, True),
        ("b", False, False),
        ("c", False, False),
    ]
    assert [n["kind"] for n in report["notable"]] == ["key-made"]


def test_a_word_that_names_the_ordered_task_is_no_second_task(tmp_path: Path) -> None:
    """At a daemon the attempt has a name of its own, and an approval names what was ordered."""
    log = AuditLog(tmp_path)
    log.append(AuditKind.TASK_STARTED, {"task": "attempt", "ordered_task": "ordered", "repo": "/srv/r", "by": 0})
    log.append(AuditKind.TASK_ENDED, ended("attempt", outcome="needs-person", ordered_task="ordered"))
    log.append(AuditKind.APPROVED, {"what": "patch", "task": "ordered", "by": 1})
    log.append(AuditKind.WITHDRAWN, {"what": "patch", "task": "ordered", "by": 1})
    report = audit_report(check_audit(log.folder), (), (), since=LONG_AGO)
    assert [t["task"] for t in report["tasks"]] == ["attempt"]
    assert report["totals"]["outcomes"] == {"needs-person": 1}
    assert (report["totals"]["approved"], report["totals"]["withdrawn"]) == (1, 1)


def test_what_came_before_is_left_out_but_still_checked(tmp_path: Path) -> None:
    report = audit_report(check_audit(written(tmp_path)), (), (), since=date(2999, 1, 1))
    assert (report["entries"], report["tasks"]) == (0, [])
    assert report["chain"]["entries"] == 10


def test_over_an_altered_journal_it_says_so(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (path,) = segments(folder)
    path.write_bytes(path.read_bytes().replace(b'"verified":7', b'"verified":8', 1))
    report = audit_report(check_audit(folder), (), (), since=LONG_AGO)
    assert report["chain"]["standing"] == "altered"
    assert report["chain"]["place"] == f"{path.name}:3 (entry 2)"
    assert b"The journal is <b>altered</b>" in page(report)


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes.update(name for name, _ in attrs)


def tags_of(data: bytes) -> Tags:
    found = Tags()
    found.feed(data.decode("utf-8"))
    return found


def test_nothing_of_an_entry_becomes_markup(tmp_path: Path) -> None:
    data = page(audit_report(check_audit(written(tmp_path, EVIL)), (), (), since=LONG_AGO))
    found = tags_of(data)
    assert not found.seen & {"script", "img", "a", "link", "iframe", "object"}
    assert not {name for name in found.attributes if name.startswith("on")} | found.attributes & {"src", "href"}
    assert b"\x1b" not in data
    assert b"default-src 'none'" in data
    assert "svg" in found.seen


@pytest.mark.long
@given(st.dictionaries(st.text(max_size=40), st.integers(0, 10**9), min_size=1, max_size=20))
def test_a_chart_is_only_bars_and_text(counts: dict[str, int]) -> None:
    totals = {"outcomes": counts, "by_day": {}, "refused_candidates": {}, "limits_hit": {}, "levels": {}}
    chain = dict.fromkeys(("place", "reason", "newest_signed", "clock_set_back"))
    chain |= {"standing": "whole", "entries": 1, "head": {"digest": "d"}}
    others = dict.fromkeys(("tasks", "landings", "approvals", "refusals", "replays", "notable", "keys"), ())
    data = page({"chain": chain, "totals": totals, "since": "2026-01-01", **others})
    drawn = data[data.index(b"<svg") : data.index(b"</svg>") + 6]
    assert tags_of(drawn).seen == {"svg", "text", "rect"}
    assert tags_of(data).seen.isdisjoint({"script", "img", "a", "link"})


def test_entries_of_another_shape_are_no_fault_of_ours(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.append(AuditKind.TASK_ENDED, ended("a", denied=[1], jail="none", patch={"x": 1}, verified="many"))
    log.append(AuditKind.TASK_ENDED, {"task": ["no", "name"]})
    report = audit_report(check_audit(log.folder), (), (), since=LONG_AGO)
    assert [(t["denied"], t["jail"], t["patch"], t["verified"]) for t in report["tasks"]] == [({}, {}, None, 0)]
    assert b"<svg" in page(report)
