"""Pages as text: whatever a task says, the page has our tags and nothing else; both sides of a diff are whole."""

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ui_builder import DIFF, EVIL, events, report

from localagent.daemon.store.task_store import TaskRow
from localagent.daemon.ui.diff_view import MOST_BYTES, pairs
from localagent.daemon.ui.pages import queue_page, task_page
from localagent.daemon.ui.queries import Story, TimelineEvent
from localagent.domain.diff import Hunk
from localagent.errors import AnswerIsNo
from localagent.protocol.task_order import TaskOrder, TaskState
from localagent.repo.diff.parse_diff import parse_diff
from localagent.report.html import render

_TAGS = (
    "html head meta title link body header main footer a span h1 h2 h3 p div dl dt dd table tr th td ul li b svg rect"
)
TAGS = frozenset(f"{_TAGS} rect colgroup col code ins del".split())
_ATTRIBUTES = "lang charset name content rel href class colspan viewbox preserveaspectratio aria-hidden width height"
ATTRIBUTES = frozenset(_ATTRIBUTES.split())
TEXTS = st.text(max_size=60) | st.sampled_from([EVIL, '"><script>', "<!--", "]]>", "&lt;", "\ud800", "\u2066"])
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


class Seen(HTMLParser):
    """Everything that a page is made of; raises for a tag, an attribute or a link that is none of ours."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []
        self.feed(page.decode("utf-8"))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        for name, value in attrs:
            assert name in ATTRIBUTES, name
            assert name != "href" or str(value).startswith("/ui/"), value
        if tag not in ("meta", "link", "col", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag == "rect"
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        assert all(x.isprintable() or x == "\n" for x in data), data
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        assert decl == "DOCTYPE html"

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


def row(text: str, state: TaskState = TaskState.DONE, answer: int | None = 0) -> TaskRow:
    order = TaskOrder(snapshot="sha256:" + "a" * 64, tests=(text,), checks=(text,), text=text, model=text)
    return TaskRow(
        seq=1,
        id="20260101-000000-000000-aaaaaa",
        uid=7,
        state=state,
        order=order,
        created_at=1e9,
        started_at=1e9,
        finished_at=2e9,
        attempts=2,
        interruptions=0,
        cancel=True,
        exit=answer,
        reason=text,
    )


def story(found: Any, told: list[tuple[str, dict[str, Any]]]) -> Story:
    made = tuple(TimelineEvent(seq=n, at=float(n), kind=kind, data=data) for n, (kind, data) in enumerate(told))
    return Story(told=made, checked=made, checked_all=9, report=found, report_bytes=9)


@pytest.mark.long
@given(TEXTS)
def test_a_text_stays_a_text(text: str) -> None:
    fault = AnswerIsNo(text, remedy=text)
    seen = Seen(render("ui_refusal.html", title=text, root="/ui/", who=text, renewal=None, fault=fault))
    assert "read-only" in seen.text.lower()


@pytest.mark.long
@settings(max_examples=40)
@given(TEXTS, st.dictionaries(st.sampled_from(sorted(report())), VALUES, max_size=6), st.lists(VALUES, max_size=3))
def test_any_report_and_any_event_make_a_page_of_our_tags(text: str, changes: dict[str, Any], odd: list[Any]) -> None:
    told = [(event.kind, dict(event.data)) for event in events(text)]
    told += [(kind, {str(n): value for n, value in enumerate(odd)}) for kind, _ in told]
    told += [(kind, dict.fromkeys(data, odd)) for kind, data in told[:9]]
    made = story({**report(text), **changes}, told)
    Seen(task_page(row(text), made, who=text, uid=0, renewal=None))
    Seen(task_page(row(text, TaskState.RUNNING, None), story(None, told), who=text, uid=7, renewal=None))
    counts = dict.fromkeys((state.value for state in TaskState), 1)
    Seen(queue_page([row(text)], counts, who=text, uid=0, renewal=None, older="", everybody=True))


def test_what_happened_is_said() -> None:
    told = [(event.kind, dict(event.data)) for event in events("test_more")]
    text = Seen(task_page(row("adder.py"), story(report("test_more"), told), who="", uid=7, renewal=None)).text
    for word in ("return a - b", "return a + b", "tests fixed", "plausible", "denied by test_more", "level L4"):
        assert word in text, word
    assert "confidence 0.62, not calibrated for this search" in text
    assert "against: test_more" in text


def test_proposals_and_the_queue_tell_the_confidence() -> None:
    told = {"probability": 0.4321, "calibrated": True, "model": "t", "for": ["it is near"], "against": []}
    found = {**report("x"), "confidence": None, "patch": None, "proposals": [{"number": 1, "confidence": told}]}
    text = Seen(task_page(row("adder.py"), story(found, []), who="", uid=7, renewal=None)).text
    assert "confidence 0.43" in text
    assert "for: it is near" in text
    counts = dict.fromkeys((state.value for state in TaskState), 1)
    rows = [replace(row("x"), confidence=told), replace(row("x"), confidence={**told, "calibrated": False}), row("x")]
    text = Seen(queue_page(rows, counts, who="", uid=7, renewal=None, older="", everybody=False)).text
    assert text.count("0.43") == 2
    assert text.count("(0.43)") == 1
    known = [None, {**told, "probability": 0.21}, None, {**told, "probability": 0.87}]
    rows = [replace(row("x"), id=f"task-{n}", confidence=one) for n, one in enumerate(known)]
    text = Seen(queue_page(rows, counts, who="", uid=7, renewal=None, older="", everybody=False)).text
    assert sorted(range(4), key=lambda n: text.index(f"task-{n}")) == [
        3,
        1,
        0,
        2,
    ]  # unknown: the newest first, as before


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"  c\n", b"\n"]), max_size=12)


@given(LINES, LINES, LINES, LINES)
def test_both_sides_stand_whole_and_in_order(
    head: list[bytes], old: list[bytes], new: list[bytes], tail: list[bytes]
) -> None:
    hunk = Hunk(
        line=1,
        old_start=1,
        new_start=1,
        old=(*head, *old, *tail),
        new=(*head, *new, *tail),
        head=len(head),
        tail=len(tail),
    )
    made = list(pairs(hunk))
    assert [a for a, _ in made if a is not None] == list(range(len(hunk.old)))
    assert [b for _, b in made if b is not None] == list(range(len(hunk.new)))
    assert (None, None) not in made


def page_with(patch: str) -> str:
    return task_page(row("x"), story({"patch": patch}, []), who="", uid=7, renewal=None).decode()


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_diff_of_any_two_lines(old: str, new: str) -> None:
    a, b = (x.replace("\n", "").replace("\r", "").encode("utf-8", "replace").decode() for x in (old, new))
    text = f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{a}\n+{b}\n"
    shown = page_with(text)
    Seen(shown.encode())
    assert ('<td class="cut">' in shown) == (a != b and bool(parse_diff(text.encode()).files))


def test_a_diff_that_is_none_or_too_long_is_told() -> None:
    assert "cannot be shown" in page_with("<script>")
    assert "too many for a page" in page_with("x" * (MOST_BYTES + 1))
    long = f"{DIFF}--- a/f\n+++ b/f\n@@ -1,4000 +1,4000 @@\n" + "-a\n" * 4000 + "+b\n" * 4000
    assert "Cut here" in page_with(long)
