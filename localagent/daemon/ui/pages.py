"""The two pages as HTML: the queue, and one task with its timeline, candidates, patch and evidence.

Pure: takes values, gives bytes. A report is data that a jail had a hand in; whatever in it has another shape than ours
is told as missing, and never trusted to be a text.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from localagent.daemon.store.task_store import TaskRow
from localagent.daemon.ui.diff_view import side_by_side
from localagent.daemon.ui.html import ROOT, badge, facts, said, shell, span, tiles
from localagent.daemon.ui.queries import Story
from localagent.daemon.ui.timeline import candidates, timeline
from localagent.protocol.task_order import TaskState
from localagent.report.confidence_text import confidence_figure, confidence_line

_SHOWN = 50
_MOODS = {
    TaskState.HELD: "calm",
    TaskState.QUEUED: "calm",
    TaskState.RUNNING: "busy",
    TaskState.FAILED: "bad",
    TaskState.CANCELLED: "calm",
}


def queue_page(
    tasks: Sequence[TaskRow], counts: Mapping[str, int], *, who: str, uid: int, renew: str, older: str, everybody: bool
) -> bytes:
    """The newest tasks. `older` is the link to the next page, "" where there is none."""
    body = [
        "<h1>Queue</h1>",
        tiles((counts[state.value], state.value) for state in TaskState),
        '<div class="card"><table><tr><th>task</th><th>state</th><th>request</th><th>when (UTC)</th>'
        '<th class="n">time</th><th class="n">confidence</th><th>answer</th></tr>',
        *(_line(row, uid) for row in tasks),
        "</table></div>" if tasks else "</table></div><p class='soft'>No tasks yet.</p>",
    ]
    if older:
        body.append(f'<p><a href="{older}">older tasks</a></p>')
    if everybody:
        body.append('<p class="soft">Tasks of all users are shown.</p>')
    return shell("Queue · localagent", body, who=who, renew=renew)


def _line(row: TaskRow, uid: int) -> str:
    whose = f' <span class="soft">user {row.uid}</span>' if row.uid != uid else ""
    return (
        f'<tr><td class="id mono"><a href="{ROOT}tasks/{said(row.id)}">{said(row.id)}</a>{whose}</td>'
        f"<td>{_state(row)}</td><td>{said(ordered(row), 120)}</td><td>{clock(row.created_at)}</td>"
        f'<td class="n">{_took(row)}</td><td class="n">{confidence_figure(row.confidence)}</td>'
        f"<td>{said(row.reason, 200)}</td></tr>"
    )


def ordered(row: TaskRow) -> str:
    """What a task is to do, in a few words."""
    return " ".join(row.order.tests) or row.order.text or "all tests"


def _state(row: TaskRow) -> str:
    if row.state is TaskState.DONE:
        word = {0: "done", 1: "done: no"}.get(row.exit or 0, f"done: exit {row.exit}")
        return badge(word, "good" if not row.exit else "bad" if row.exit > 1 else "calm")
    word = "cancelling" if row.cancel and row.state is TaskState.RUNNING else row.state.value
    return badge(word, _MOODS[row.state])


def clock(at: float | None) -> str:
    """A moment in UTC, to the second."""
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def _took(row: TaskRow) -> str:
    if row.started_at is None or row.finished_at is None:
        return ""
    return span(max(0.0, row.finished_at - row.started_at))


def task_page(row: TaskRow, story: Story, *, who: str, uid: int, renew: str) -> bytes:
    """Everything about one task."""
    report = story.report
    body = [
        f'<p class="soft"><a href="{ROOT}">Queue</a> / <span class="mono">{said(row.id)}</span></p>',
        f"<h1>{said(ordered(row), 200)}</h1>",
        f"<p>{_state(row)} {said(row.reason)}</p>",
        _facts(row, uid),
        *(_figures(report) if report is not None else ()),
        *_patch(story),
        *(_evidence(report) if report is not None else ()),
        "<h2>Timeline</h2>",
        *timeline(story, _mapping(report or {}, "seconds")),
        "<h2>Candidates</h2>",
        *candidates(story, _mapping(report or {}, "candidates_denied")),
    ]
    return shell(f"{ordered(row)[:60]} · localagent", body, who=who, renew=renew)


def _facts(row: TaskRow, uid: int) -> str:
    order = row.order
    return facts(
        (
            ("ordered", clock(row.created_at) + (f" by user {row.uid}" if row.uid != uid else "")),
            ("started", clock(row.started_at)),
            ("finished", f"{clock(row.finished_at)} (after {_took(row)})" if _took(row) else clock(row.finished_at)),
            ("attempts", row.attempts if row.attempts > 1 else ""),
            ("asked", order.text if order.tests else ""),
            ("checks", "; ".join(order.checks)),
            ("snapshot", order.snapshot),
            ("budget", f"{order.max_candidates} candidates, {span(order.max_seconds)}; seed {order.seed}"),
            ("model", (order.model or "default") if order.use_model else "not asked for"),
        )
    )


def _figures(report: Mapping[str, Any]) -> Iterator[str]:
    denied = sum(n for n in _mapping(report, "candidates_denied").values() if isinstance(n, int))
    yield tiles(
        (
            (len(_list(report, "fail_to_pass")), "tests fixed"),
            (len(_list(report, "pass_to_pass")), "still passing"),
            (report.get("candidates_enumerated", 0), "enumerated"),
            (denied, "denied by gates"),
            (report.get("candidates_verified", 0), "run in the jail"),
            (report.get("plausible", 0), "plausible"),
        )
    )


def _patch(story: Story) -> Iterator[str]:
    if story.report is None:
        if story.report_bytes:
            yield f'<p class="soft">The report has {story.report_bytes:,} bytes, too many for a page.</p>'
        return
    text = story.report.get("patch")
    if isinstance(text, str) and text:
        yield "<h2>Patch</h2>"
        yield from _confidence(story.report)
        yield from side_by_side(text)
    for one in _list(story.report, "proposals")[:9]:
        if isinstance(one, dict):
            yield f"<h2>Proposal {said(one.get('number'))} to choose from</h2>"
            yield from _confidence(one)
            yield from side_by_side(str(one.get("patch") or ""))
    differ = _mapping(story.report, "ambiguity")
    if differ:
        yield from _named(
            f"Where they differ: {differ.get('call')}",
            [f"proposal {number}: {answer}" for number, answer in _mapping(differ, "answers").items()],
        )


def _confidence(found: Mapping[str, Any]) -> Iterator[str]:
    """How likely a patch is right, with what speaks for and against it."""
    told = _mapping(found, "confidence")
    if not isinstance(told.get("probability"), int | float):
        return
    likely = {"probability": told["probability"], "calibrated": told.get("calibrated") is True}
    yield f"<p>{said(confidence_line(likely))}</p>"
    reasons = [f"{side}: {text}" for side in ("for", "against") for text in _list(told, side)]
    yield "<ul>" + "".join(f"<li>{said(reason)}</li>" for reason in reasons[:_SHOWN]) + "</ul>"


def _evidence(report: Mapping[str, Any]) -> Iterator[str]:
    jail, model, signed = _mapping(report, "jail"), _mapping(report, "model"), _mapping(report, "attestation")
    yield "<h2>Evidence</h2>"
    yield facts(
        (
            ("outcome", report.get("outcome")),
            *((name, value) for name, value in _mapping(report, "checks").items()),
            ("jail", f"{jail.get('backend')}, level {jail.get('level')}" if jail.get("level") else ""),
            ("patch", report.get("patch_digest")),
            ("interpreter", f"Python {report.get('python')}, pytest {report.get('pytest')}"),
            (
                "model",
                f"{model.get('name')} {model.get('digest')}, {report.get('model_tokens')} tokens" if model else "",
            ),
            ("limits hit", ", ".join(f"{k} {v}" for k, v in _mapping(report, "limits_hit").items())),
            ("attested", f"{signed.get('file')}, key {signed.get('key')}" if signed else ""),
        )
    )
    yield from _named("Tests fixed", _list(report, "fail_to_pass"))
    yield from _failing(_list(report, "failing"))
    yield from _named("Origin of the edits", [_origin(x) for x in _list(report, "provenance")])
    yield from _named("Text that addresses a language model", [_spoken(x) for x in _list(report, "findings")])
    yield from _named("Warnings", _list(report, "warnings"))


def _spoken(found: object) -> str:
    if not isinstance(found, dict):
        return str(found)
    test = found.get("test")
    where = f"{found.get('path')}:{found.get('line')}" if test is None else f"the message of {test}"
    return f"{where}: {found.get('text')} ({found.get('rule')})"


def _origin(found: object) -> str:
    if not isinstance(found, dict):
        return str(found)
    by = f"written by the model {found.get('model')}" if found.get("origin") == "model" else "from the edit space"
    return f"{found.get('edit')}: {by}"


def _named(title: str, items: Sequence[object]) -> Iterator[str]:
    if items:
        yield f"<h2>{said(title)}</h2><ul>" + "".join(f"<li>{said(x)}</li>" for x in items[:_SHOWN]) + "</ul>"
        if len(items) > _SHOWN:
            yield f'<p class="soft">and {len(items) - _SHOWN} more</p>'


def _failing(found: Sequence[object]) -> Iterator[str]:
    rows = [x for x in found[:_SHOWN] if isinstance(x, dict)]
    if not rows:
        return
    yield '<h2>What failed</h2><div class="card"><table><tr><th>test</th><th>with</th><th>where</th></tr>'
    for one in rows:
        where = [x for x in _list(one, "where") if isinstance(x, dict)]
        place = f"{where[-1].get('path')}:{where[-1].get('line')}" if where else ""
        symptom = f"{one.get('exception')}: {str(one.get('message')).partition(chr(10))[0]}"
        yield f"<tr><td>{said(one.get('id'))}</td><td>{said(symptom)}</td><td>{said(place)}</td></tr>"
    yield "</table></div>"


def _mapping(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _list(found: Mapping[str, Any], name: str) -> list[Any]:
    value = found.get(name)
    return value if isinstance(value, list) else []
