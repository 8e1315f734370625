"""Past tasks at a glance: one row each, and sums over all of them. Says only what the reports say."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from localagent.fs.atomic_files import RecordDamaged
from localagent.record.store import TaskRecord

UNFINISHED = "unfinished"
DAMAGED = "damaged"


class PatchFate(StrEnum):
    """What persons did with an accepted patch, or with the first of the proposals."""

    OPEN = "open"
    KEPT = "kept"
    TAKEN_BACK = "taken-back"
    REJECTED = "rejected"


@dataclass(frozen=True, kw_only=True, slots=True)
class PastTask:
    """One past task. `outcome` is a verdict's value, or unfinished (running or killed), or damaged.

    `confidence` is that of its accepted patch, None where none was accepted or nothing is known.
    """

    id: str
    repo: str
    outcome: str
    exit: int | None
    candidates_enumerated: int
    candidates_denied: int
    candidates_verified: int
    model_tokens: int
    seconds: float
    rank_of_first_plausible: int | None
    confidence: float | None = None
    fate: PatchFate = PatchFate.OPEN

    def json(self) -> dict[str, Any]:
        """The row as JSON values."""
        return asdict(self)


def row_of(record: TaskRecord, fate: PatchFate = PatchFate.OPEN) -> PastTask:
    """The row of one task, whatever state its report is in; `fate` is what persons did with what it found."""
    try:
        report = record.result_json()
        outcome, report = (UNFINISHED, {}) if report is None else (str(report.get("outcome")), report)
    except RecordDamaged:
        outcome, report = DAMAGED, {}
    exit_code, rank = report.get("exit"), report.get("rank_of_first_plausible")
    return PastTask(
        id=record.id,
        repo=record.task.repo,
        outcome=outcome,
        exit=exit_code if isinstance(exit_code, int) else None,
        candidates_enumerated=_count(report.get("candidates_enumerated")),
        candidates_denied=_total(report.get("candidates_denied"), int),
        candidates_verified=_count(report.get("candidates_verified")),
        model_tokens=_count(report.get("model_tokens")),
        seconds=round(_total(report.get("seconds"), float), 3),
        rank_of_first_plausible=rank if isinstance(rank, int) else None,
        confidence=_confidence(report),
        fate=fate,
    )


def _confidence(report: dict[str, Any]) -> float | None:
    told = report.get("confidence")
    found = told.get("probability") if isinstance(told, dict) else None
    return float(found) if isinstance(found, int | float) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _total(value: object, kind: type) -> Any:
    numbers = value.values() if isinstance(value, dict) else ()
    return sum((n for n in numbers if isinstance(n, int | float)), start=kind(0))


_JUDGED = frozenset(
    {"accepted", "progress", "gave-up", "all-denied", "untrusted-tests", "ambiguous", "low-confidence", "needs-person"}
)


def stats_of(rows: Iterable[PastTask]) -> dict[str, Any]:
    """Sums over tasks. `success` is accepted tasks over those judged: interruptions and faults are left out."""
    every = list(rows)
    judged = [r for r in every if r.outcome in _JUDGED]
    accepted = sum(r.outcome == "accepted" for r in judged)
    outcomes = sorted({r.outcome for r in every})
    return {
        "tasks": len(every),
        "outcomes": {outcome: sum(r.outcome == outcome for r in every) for outcome in outcomes},
        "accepted": accepted,
        "judged": len(judged),
        "success": round(accepted / len(judged), 4) if judged else None,
        "confidence": _predicted([r for r in every if r.confidence is not None and r.fate is not PatchFate.OPEN]),
        "candidates_enumerated": sum(r.candidates_enumerated for r in every),
        "candidates_denied": sum(r.candidates_denied for r in every),
        "candidates_verified": sum(r.candidates_verified for r in every),
        "model_tokens": sum(r.model_tokens for r in every),
        "seconds": round(sum(r.seconds for r in every), 3),
    }


def _predicted(settled: Sequence[PastTask]) -> dict[str, Any] | None:
    """Accepted patches that persons kept, took back or rejected: how many were kept, beside how many were predicted."""
    if not settled:
        return None
    return {
        "settled": len(settled),
        "predicted": round(sum(r.confidence or 0.0 for r in settled), 2),
        "kept": sum(r.fate is PatchFate.KEPT for r in settled),
    }
