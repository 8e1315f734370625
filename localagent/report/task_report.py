"""The report of one task: schema `localagent/report/2`, described in docs/report.md and docs/report.schema.json.

Pure but for `write_report`. Promises that every field is always there; not that two runs report the same seconds.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from localagent.domain.confidence import Confidence
from localagent.domain.edit import Candidate, EditEffect
from localagent.domain.outcome import Baseline, Failure, FullResult
from localagent.domain.task import Ambiguity, Diagnosis, NearMiss, Suspicion, Task, TaskResult, TextFinding
from localagent.fs.atomic_files import write_through
from localagent.report.guard_text import guard_json
from localagent.report.strength_text import assessment_json
from localagent.report.text import render_text
from localagent.text.strict_json import dump

__all__ = ["READABLE", "SCHEMA", "render_text", "report_json", "write_report"]

SCHEMA = "localagent/report/2"
READABLE = frozenset({"localagent/report/1", SCHEMA})  # reports of earlier versions are read as they are
_TOP = 10
_FAILING_SHOWN = 50
_TEXT_CHARACTERS = 500


def report_json(
    task: Task, result: TaskResult, diff: bytes | None = None, proposed: Sequence[bytes] = ()
) -> dict[str, Any]:
    """The report as JSON values.

    `diff` is the accepted patch as a unified diff, None if there is none; `proposed` are those of the proposals.
    """
    baseline = result.baseline
    full = result.full
    return {
        "schema": SCHEMA,
        "task": task.id,
        "repo": task.repo,
        "text": task.text,
        "outcome": result.verdict.value,
        "reason": result.reason,
        "remedy": result.remedy,
        "exit": result.exit,
        "seed": task.seed,
        "patch": None if diff is None else diff.decode("utf-8", "surrogateescape"),
        "patch_digest": None if result.patch is None else result.patch.digest,
        "provenance": _provenance(result),
        "confidence": confidence_json(result.confidence),
        "proposals": _proposals(result, proposed),
        "ambiguity": _ambiguity(result.ambiguity),
        "failing": _failing(baseline),
        **compared_json(full),
        "flaky": list(baseline.flaky) if baseline else [],
        "localization": [_suspicion(s) for s in result.localization[:_TOP]],
        "diagnosis": _diagnosis(result.diagnosis),
        "candidates_enumerated": result.enumerated,
        "candidates_written": result.written,
        "candidates_denied": dict(sorted(result.denied.items())),
        "candidates_verified": result.verified,
        "rank_of_first_plausible": result.rank_of_first_plausible,
        "plausible": result.plausible,
        "rounds": result.rounds,
        "near_misses": [_near_miss(m) for m in result.near_misses],
        "model": model_json(result),
        "model_tokens": result.model_tokens,
        "seconds": {stage: round(spent, 3) for stage, spent in result.seconds.items()},
        "jail": {"backend": result.jail_backend, "level": result.jail_level},
        "limits_hit": dict(sorted(result.limits_hit.items())),
        "checks": dict(result.checks) or (dict(full.checks) if full else {}),
        "budget": {
            "max_candidates": task.budget.max_candidates,
            "max_seconds": task.budget.max_seconds,
            "jobs": task.budget.jobs,
        },
        "threads": result.threads,
        "python": baseline.python if baseline else "",
        "pytest": baseline.pytest if baseline else "",
        "findings": [_finding(f) for f in result.findings],
        "warnings": list(result.warnings),
        "assessment": assessment_json(result.assessment),
        "agent": None,
        "attestation": None if result.attestation is None else dict(result.attestation),
    }


def compared_json(full: FullResult | None) -> dict[str, Any]:
    """What the full check saw of the tests before and after; empty where none was made."""
    return {
        "fail_to_pass": list(full.fail_to_pass) if full else [],
        "pass_to_pass": list(full.pass_to_pass) if full else [],
        "still_failing": list(full.still_failing) if full else [],
        "guard": guard_json(full.guard if full else None),
    }


def model_json(result: TaskResult) -> dict[str, Any] | None:
    """The model that ordered the edits, null where none did."""
    if result.model_name is None:
        return None
    return {"name": result.model_name, "digest": result.model_digest, "weights": result.model_weights}


def write_report(path: Path, report: Mapping[str, Any]) -> None:
    """Write a report where the user asked for it; see `files.write_through` for links, devices and modes."""
    write_through(path, dump(report, indent=2))


def _provenance(result: TaskResult) -> list[dict[str, Any]]:
    """Where each edit of the patch comes from."""
    if result.chosen is None:
        return []
    return [
        {
            "edit": e.summary,
            "operator": e.operator,
            "origin": "model" if EditEffect.WRITTEN_BY_MODEL in e.effects else "edit-space",
            "model": result.model_name if EditEffect.WRITTEN_BY_MODEL in e.effects else None,
        }
        for e in result.chosen.edits
    ]


def _proposals(result: TaskResult, proposed: Sequence[bytes]) -> list[dict[str, Any]]:
    told = itertools.chain(result.confidences, itertools.repeat(None))
    checked: itertools.chain[FullResult | None] = itertools.chain(result.proposed, itertools.repeat(None))
    parts = zip(itertools.count(1), result.proposals, proposed, told, checked, strict=False)
    return [_proposal(*p) for p in parts]


def _proposal(
    number: int, candidate: Candidate, diff: bytes, confidence: Confidence | None, full: FullResult | None
) -> dict[str, Any]:
    return {
        "number": number,
        "edits": [e.summary for e in candidate.edits],
        "patch": diff.decode("utf-8", "surrogateescape"),
        "patch_digest": candidate.patch.digest,
        "confidence": confidence_json(confidence),
        "guard": guard_json(full.guard if full else None),
        "fail_to_pass": list(full.fail_to_pass) if full else [],
        "still_failing": list(full.still_failing) if full else [],
    }


def confidence_json(confidence: Confidence | None) -> dict[str, Any] | None:
    """For reports and events; null where it is not known."""
    if confidence is None:
        return None
    return {
        "probability": round(confidence.probability, 4),
        "calibrated": confidence.calibrated,
        "model": confidence.model,
        "for": list(confidence.supporting),
        "against": list(confidence.opposing),
        "signals": dict(confidence.signals),
    }


def _ambiguity(ambiguity: Ambiguity | None) -> dict[str, Any] | None:
    if ambiguity is None:
        return None
    answers = {str(number): answer for number, answer in sorted(ambiguity.answers.items())}
    function = None if ambiguity.function is None else asdict(ambiguity.function)
    return {"call": ambiguity.call, "answers": answers, "function": function, "exact": sorted(ambiguity.exact)}


def _finding(finding: TextFinding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "path": finding.path,
        "line": finding.line,
        "test": finding.test,
        "text": finding.text,
    }


def _failing(baseline: Baseline | None) -> list[dict[str, Any]]:
    if baseline is None:
        return []
    failures: dict[str, Failure | None] = {t.id: t.failure for t in baseline.tests}
    failures.update({f"check:{c.command}": c.failure for c in baseline.checks})
    failures.update(dict(baseline.collect_failures))
    failures.update({f"collect:{path}": failure for path, failure in baseline.collect_failures.items()})
    return [_failure(name, failures.get(name)) for name in baseline.failing[:_FAILING_SHOWN]]


def _failure(name: str, failure: Failure | None) -> dict[str, Any]:
    inside = [f for f in failure.frames if f.path is not None] if failure else []
    return {
        "id": name,
        "exception": failure.exception if failure else "",
        "message": failure.message[:_TEXT_CHARACTERS] if failure else "",
        "where": [{"path": f.path, "line": f.line, "function": f.function} for f in inside[-5:]],
    }


def _suspicion(place: Suspicion) -> dict[str, Any]:
    return {
        "path": place.path,
        "line": place.line,
        "end_line": place.end_line,
        "score": round(place.score, 6),
        "why": place.why,
    }


def _diagnosis(diagnosis: Diagnosis | None) -> dict[str, Any] | None:
    if diagnosis is None:
        return None
    return {
        "kind": diagnosis.kind,
        "symptom": diagnosis.symptom,
        "cause": diagnosis.cause,
        "lines": list(diagnosis.lines),
        "fix": diagnosis.fix,
        "may_affect": list(diagnosis.may_affect),
    }


def _near_miss(miss: NearMiss) -> dict[str, Any]:
    return {
        "number": miss.number,
        "edits": list(miss.edits),
        "turned": list(miss.turned),
        "broken": list(miss.broken),
    }
