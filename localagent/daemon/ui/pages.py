"""The two pages: the queue, and one task with its timeline, candidates, patch and evidence.

Pure: takes values, gives bytes (`report/templates/ui_*.html`). A report is data that a jail had a hand in; whatever in
it has another shape than ours is told as missing, and never trusted to be a text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from localagent.daemon.store.task_store import TaskRow
from localagent.daemon.ui.diff_view import DiffView, side_by_side
from localagent.daemon.ui.page_headers import ROOT, Renewal, span
from localagent.daemon.ui.queries import MOST_TOLD, Story
from localagent.daemon.ui.timeline import candidates, happened, stages
from localagent.protocol.task_order import TaskOrder, TaskState, aim_of, pack_order
from localagent.report.confidence_text import confidence_figure, confidence_line, likeliest_first
from localagent.report.html import render
from localagent.text.visible_text import shortened

_SHOWN = 50
_MOODS = {
    TaskState.HELD: "calm",
    TaskState.QUEUED: "calm",
    TaskState.RUNNING: "busy",
    TaskState.FAILED: "bad",
    TaskState.CANCELLED: "calm",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _ShownPatch:
    title: str
    confidence: str
    reasons: Sequence[str]
    diff: DiffView


def queue_page(
    tasks: Sequence[TaskRow],
    counts: Mapping[str, int],
    *,
    who: str,
    uid: int,
    renewal: Renewal | None,
    older: str,
    everybody: bool,
) -> bytes:
    """The newest tasks, likeliest patch first. `older` is the link to the next page, "" where there is none."""
    return render(
        "ui_queue.html",
        title="Queue · localagent",
        root=ROOT,
        who=who,
        renewal=renewal,
        counts=[(counts[state.value], state.value) for state in TaskState],
        rows=sorted(tasks, key=lambda row: likeliest_first(row.confidence)),
        uid=uid,
        older=older,
        everybody=everybody,
        state_of=_state,
        ordered=ordered,
        clock=clock,
        took=_took,
        confidence=confidence_figure,
    )


def ordered(row: TaskRow) -> str:
    """What a task is to do, in a few words."""
    return aim_of(pack_order(row.order))


def _state(row: TaskRow) -> tuple[str, str]:
    """A word with its mood: good, bad, busy or calm."""
    if row.state is TaskState.DONE:
        word = {0: "done", 1: "done: no"}.get(row.exit or 0, f"done: exit {row.exit}")
        return word, "good" if not row.exit else "bad" if row.exit > 1 else "calm"
    word = "cancelling" if row.cancel and row.state is TaskState.RUNNING else row.state.value
    return word, _MOODS[row.state]


def clock(at: float | None) -> str:
    """A moment in UTC, to the second."""
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def _took(row: TaskRow) -> str:
    if row.started_at is None or row.finished_at is None:
        return ""
    return span(max(0.0, row.finished_at - row.started_at))


def task_page(row: TaskRow, story: Story, *, who: str, uid: int, renewal: Renewal | None) -> bytes:
    """Everything about one task."""
    report = story.report or {}
    denied = _mapping(report, "candidates_denied")
    differ = _mapping(report, "ambiguity")
    answers = [f"{number} returns {answer}" for number, answer in _mapping(differ, "answers").items()]
    return render(
        "ui_task.html",
        title=f"{shortened(ordered(row), 60)} · localagent",
        root=ROOT,
        who=who,
        renewal=renewal,
        row=row,
        ordered=ordered(row),
        state=_state(row),
        about=_facts(row, uid),
        report=story.report,
        figures=_figures(report),
        too_large=f"{story.report_bytes:,}" if story.report is None and story.report_bytes else "",
        patches=list(_patches(report)),
        differ=(f"Where they differ: {differ.get('call')}", answers) if differ else (),
        evidence=_evidence(report),
        turned=_list(report, "fail_to_pass"),
        failing=list(_failing(_list(report, "failing"))),
        origins=[_origin(x) for x in _list(report, "provenance")],
        injected=[_spoken(x) for x in _list(report, "findings")],
        warnings=_list(report, "warnings"),
        stages=list(stages(_mapping(report, "seconds"))),
        happened=list(happened(story)),
        more_happened=MOST_TOLD if len(story.told) == MOST_TOLD else 0,
        denied=", ".join(f"{rule} {count}" for rule, count in denied.items()),
        candidates=list(candidates(story)),
        checked_all=story.checked_all,
    )


def _facts(row: TaskRow, uid: int) -> Sequence[tuple[str, object]]:
    order = row.order
    return (
        ("ordered", clock(row.created_at) + (f" by user {row.uid}" if row.uid != uid else "")),
        ("started", clock(row.started_at)),
        ("finished", f"{clock(row.finished_at)} (after {_took(row)})" if _took(row) else clock(row.finished_at)),
        ("attempts", row.attempts if row.attempts > 1 else ""),
        ("asked", " ".join(order.tests) if order.instruction else order.text if order.tests else ""),
        ("checks", "; ".join(order.checks)),
        ("snapshot", order.snapshot),
        ("budget", f"{_most(order)}, {span(order.max_seconds)}; seed {order.seed}"),
        ("model", (order.model or "default") if order.use_model else "not asked for"),
    )


def _most(order: TaskOrder) -> str:
    if order.instruction:
        return f"{order.max_steps} replies of the model, {order.max_tokens} tokens"
    return f"{order.max_candidates} candidates"


def _figures(report: Mapping[str, Any]) -> Sequence[tuple[object, str]]:
    denied = sum(n for n in _mapping(report, "candidates_denied").values() if isinstance(n, int))
    return (
        (len(_list(report, "fail_to_pass")), "tests fixed"),
        (len(_list(report, "pass_to_pass")), "still passing"),
        (report.get("candidates_enumerated", 0), "enumerated"),
        (denied, "denied by gates"),
        (report.get("candidates_verified", 0), "run in the jail"),
        (report.get("plausible", 0), "plausible"),
    )


def _patches(report: Mapping[str, Any]) -> Iterator[_ShownPatch]:
    text = report.get("patch")
    if isinstance(text, str) and text:
        yield _shown_patch("Patch", report, text)
    for one in _list(report, "proposals")[:9]:
        if isinstance(one, dict):
            title = f"Proposal {one.get('number')}, for a person to choose"
            yield _shown_patch(title, one, str(one.get("patch") or ""))


def _shown_patch(title: str, found: Mapping[str, Any], text: str) -> _ShownPatch:
    """A patch, with how likely it is right and what speaks for and against it."""
    told = _mapping(found, "confidence")
    likely = ""
    if isinstance(told.get("probability"), int | float):
        likely = confidence_line({"probability": told["probability"], "calibrated": told.get("calibrated") is True})
    reasons = [f"{side}: {text}" for side in ("for", "against") for text in _list(told, side)]
    return _ShownPatch(title=title, confidence=likely, reasons=reasons[:_SHOWN], diff=side_by_side(text))


def _evidence(report: Mapping[str, Any]) -> Sequence[tuple[str, object]]:
    jail, model, signed = _mapping(report, "jail"), _mapping(report, "model"), _mapping(report, "attestation")
    agent = _mapping(report, "agent")
    return (
        ("outcome", report.get("outcome")),
        ("understood", agent.get("recipe") or ""),
        ("claim", f"{agent['claim']}, strength {agent.get('grade')} of A to E" if agent.get("claim") else ""),
        ("not shown", "; ".join(map(str, _list(agent, "not_shown")))),
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


def _failing(found: Sequence[object]) -> Iterator[tuple[object, str, str]]:
    for one in found[:_SHOWN]:
        if isinstance(one, dict):
            where = [x for x in _list(one, "where") if isinstance(x, dict)]
            place = f"{where[-1].get('path')}:{where[-1].get('line')}" if where else ""
            yield one.get("id"), f"{one.get('exception')}: {str(one.get('message')).partition(chr(10))[0]}", place


def _mapping(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _list(found: Mapping[str, Any], name: str) -> list[Any]:
    value = found.get(name)
    return value if isinstance(value, list) else []
