"""The morning report as JSON values: schema `localagent/batch-report/1`, see docs/batch.md.

Made anew from the answers whenever it is asked for. `digest` covers what the clock does not decide: an interrupted run
that was resumed has the digest of an undisturbed one. Not promised: that the text of a reason never changes.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from localagent.batch.fleet import Fleet, WorkKind
from localagent.batch.runs import RunRecord
from localagent.batch.task_result import SETTLED, RepositoryResult, RepositoryState, WorkStep
from localagent.domain.edit import digest_of
from localagent.fs.atomic_files import RecordDamaged
from localagent.report.confidence_text import likeliest_first, short
from localagent.text.strict_json import dump

SCHEMA = "localagent/batch-report/1"
_WORTH = {
    RepositoryState.FIXED: 10_000,
    RepositoryState.ACCEPTED: 9_000,
    RepositoryState.NEEDS_PERSON: 8_000,
    RepositoryState.LOW_CONFIDENCE: 7_000,
    RepositoryState.GAVE_UP: 6_000,
    RepositoryState.CANNOT_ENFORCE: 5_500,
    RepositoryState.FAULT: 5_000,
    RepositoryState.OUT_OF_BUDGET: 4_500,
    RepositoryState.REFUSED: 4_000,
    RepositoryState.IMPROVED: 2_000,
    RepositoryState.NOT_REACHED: 1_000,
    RepositoryState.CLEAN: 0,
}
_MOST_EXTRA = 999
_OTHERS = (WorkKind.SARIF, WorkKind.TYPE_ERRORS)  # what other tools find
_ASK = {
    RepositoryState.NEEDS_PERSON: "choose among the proposals",
    RepositoryState.LOW_CONFIDENCE: "read the proposals and take the right one, or none",
    RepositoryState.GAVE_UP: "repair it by hand: no patch was found",
    RepositoryState.CANNOT_ENFORCE: "make the boundary enforceable",
    RepositoryState.FAULT: "see why the work broke off",
    RepositoryState.OUT_OF_BUDGET: "see why it takes so long",
    RepositoryState.REFUSED: "give it what the work needs",
    RepositoryState.ACCEPTED: "read the patch, and what no test shows of it, and apply it",
    RepositoryState.FIXED: "read the patch and apply it",
    RepositoryState.IMPROVED: "read the patch and apply it",
}


def report_of(run: RunRecord, fleet: Fleet, *, why_ended: str = "") -> dict[str, Any]:
    """The report as things stand; repositories without an answer are not-reached."""
    answers = [_answer(run, fleet, number, why_ended) for number in range(len(fleet.members))]
    rows = [_row(answer, fleet) for answer in answers]
    rows.sort(key=_order)
    reached = all(answer.state is not RepositoryState.NOT_REACHED for answer in answers)
    return {
        "schema": SCHEMA,
        "run": run.id,
        "fleet": fleet.name,
        "began": run.plan.began,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "tool": run.plan.basis.tool,
        "complete": reached,
        "why_incomplete": "" if reached else why_ended or "the run was interrupted",
        "digest": digest_of(dump([answer.steady() for answer in answers])),
        "summary": _summary(answers),
        "needs_person": [
            {
                **{k: row[k] for k in ("name", "state", "confidence", "what_to_do")},
                "why": row["reason"],
            }
            for row in rows
            if RepositoryState(row["state"]) not in SETTLED and row["state"] != RepositoryState.NOT_REACHED
        ],
        "repositories": rows,
    }


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    """By state; within one by confidence, what is not known last; then by how much there is."""
    return -_WORTH[RepositoryState(row["state"])], likeliest_first(row["confidence"]), -row["value"], row["name"]


def exit_of(report: dict[str, Any]) -> int:
    """0 where everything was reached and nothing is left for a person but patches to read, else 1."""
    return 0 if report["complete"] and not report["needs_person"] else 1


def headline(report: dict[str, Any]) -> str:
    """One line."""
    s = report["summary"]
    parts = [f"{s['states'][state]} {state}" for state in RepositoryState if s["states"].get(state)]
    tail = "" if report["complete"] else f" ({report['why_incomplete']})"
    return f"{report['fleet']}: {s['repositories']} repositories: {', '.join(parts)}{tail}"


def _answer(run: RunRecord, fleet: Fleet, number: int, why: str) -> RepositoryResult:
    try:
        answer = run.answer(number)
    except RecordDamaged as damage:
        answer, why = None, str(damage)
    reason = why or "the run was interrupted before"
    name = fleet.members[number].name
    return answer or RepositoryResult(number=number, name=name, state=RepositoryState.NOT_REACHED, reason=reason)


def _row(answer: RepositoryResult, fleet: Fleet) -> dict[str, Any]:
    source = fleet.members[answer.number].source
    plain = answer.json()
    return {
        **{k: plain[k] for k in ("name", "state", "reason", "remedy", "tree", "commit", "same_as")},
        "source": str(source.folder),
        "revision": source.revision,
        "value": _value(answer),
        "confidence": _likeliest(answer),
        "what_to_do": _what_to_do(answer),
        "seconds": answer.seconds,
        "cpu_seconds": answer.cpu_seconds,
        "steps": plain["steps"],
        "warnings": plain["warnings"],
    }


def _value(answer: RepositoryResult) -> int:
    """What a look at it is worth: more tests turned or failing, more repairs, first within one state."""
    extra = sum(len(s.turned) * 10 + len(s.failing) + len(s.repaired) + _fixed(s) for s in answer.steps)
    return _WORTH[answer.state] + min(extra, _MOST_EXTRA)


def _likeliest(answer: RepositoryResult) -> dict[str, Any] | None:
    """The confidence of the likeliest patch or proposal."""
    known = [told for step in answer.steps for told in step.confidences if told is not None]
    return short(min(known, key=likeliest_first, default=None))


def _what_to_do(answer: RepositoryResult) -> str:
    ask = _ASK.get(answer.state, "")
    task = next((step.task for step in answer.steps if step.proposals), "")
    if task:
        return f"{ask}: localagent show {task}"
    if answer.remedy:
        return f"{ask}: {answer.remedy}" if ask else answer.remedy
    return ask


def _summary(answers: Sequence[RepositoryResult]) -> dict[str, Any]:
    steps = [step for answer in answers for step in answer.steps]
    tests = [step for step in steps if step.work is WorkKind.FAILING_TESTS]
    states = Counter(answer.state.value for answer in answers)
    return {
        "repositories": len(answers),
        "states": dict(sorted(states.items())),
        "failing": sum(len(step.failing) for step in tests),
        "turned": sum(len(step.turned) for step in tests if step.state is RepositoryState.FIXED),
        "patches": sum(bool(step.patch) for step in steps),
        "repairs": sum(_repairs(step) for step in steps),
        "findings": sum(int(step.evidence.get("findings", 0)) for step in steps if step.work in _OTHERS),
        "kept_from_before": sum(bool(answer.same_as) for answer in answers),
        "seconds": round(sum(answer.seconds for answer in answers), 3),
        "cpu_seconds": round(sum(answer.cpu_seconds for answer in answers), 3),
    }


def _repairs(step: WorkStep) -> int:
    return int(step.evidence.get("repairs", 0)) if step.work is not WorkKind.FAILING_TESTS else 0


def _fixed(step: WorkStep) -> int:
    return sum(one["state"] == "fixed" for one in step.findings)


def patches_of(row: dict[str, Any]) -> Iterable[tuple[dict[str, Any], bytes]]:
    """The steps of a row that have a patch, in order, with its bytes."""
    for step in row["steps"]:
        if step["patch"]:
            yield step, step["patch"].encode("utf-8", "surrogateescape")
