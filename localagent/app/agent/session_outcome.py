"""What came of a session: the outcome as a task's result, kept, shown, and landed where that was asked."""

from dataclasses import replace
from typing import Any

from localagent.agent.events import (
    Ended,
    EndKind,
    NoReply,
    Replied,
    writes_of,
)
from localagent.app.agent.patch_judge import VerifyJudge
from localagent.app.agent.recipe_run import NoModel
from localagent.app.agent.request import DoOutcome
from localagent.app.agent.session_report import agent_json, explanation, left_to_person
from localagent.app.agent.session_run import SessionRun
from localagent.app.agent.session_store import Session
from localagent.app.evidence.task_evidence import land_recorded
from localagent.domain.edit import Candidate
from localagent.domain.task import TaskResult, Verdict
from localagent.errors import AnswerIsNo
from localagent.fs.atomic_files import CannotRecord, RecordDamaged, write_through
from localagent.record.journal import Journal
from localagent.record.store import TaskRecord
from localagent.repo.apply_patch import landing_state
from localagent.repo.apply_record import LandState
from localagent.repo.diff.write_diff import unified_diff
from localagent.report.task_report import write_report


def result_of(session: SessionRun, ended: Ended, judge: VerifyJudge) -> TaskResult:
    """The outcome as a task's result."""
    proof = judge.proof
    found = proof.verification if proof is not None else None
    other = ", or give --model M" if isinstance(session.model, NoModel) else ""
    if any(isinstance(event, Replied | NoReply) for event in session.log.events):
        other = ", or take a larger model"
    if left_to_person(session.log.events):
        other = f"; what was left to a person you can do by hand, or allow on a terminal with --trust plan{other}"
    base = TaskResult(
        verdict=Verdict.GAVE_UP,
        reason=explanation(ended, session.log.events),
        exit=AnswerIsNo.exit_code,
        remedy=ended.remedy or f"see the report's section `agent`; say more in the instruction{other}",
        baseline=found.baseline if found is not None else None,
        full=found.full if found is not None else None,
    )
    if ended.kind is EndKind.FINISHED and proof is not None:
        return replace(base, verdict=Verdict.ACCEPTED, reason=proof.reason, exit=0, remedy="", patch=proof.patch)
    if ended.kind is EndKind.NEEDS_PERSON and proof is not None:
        number = Candidate(number=1, patch=proof.patch, edits=(), cost=0.0)
        take = f"read it, then `localagent apply {session.record.id} --choose 1`"
        proposed = () if found is None or found.full is None else (found.full,)
        return replace(
            base, verdict=Verdict.NEEDS_PERSON, reason=proof.reason, remedy=take, proposals=(number,), proposed=proposed
        )
    if ended.kind is EndKind.NEEDS_PERSON:
        answer = f"{ended.remedy}; " if ended.remedy else ""
        answer += "say it in the instruction"
        if not isinstance(session.model, NoModel):  # who alone understands an answer
            answer += f", or `localagent session resume {session.record.id} --say TEXT`"
        return replace(base, verdict=Verdict.NEEDS_PERSON, reason=ended.reason, remedy=answer)
    if ended.kind is EndKind.LIMITS_EXCEEDED:
        return replace(
            base, remedy=f"`localagent session resume {session.record.id}` goes on, with the same budget again"
        )
    if session.request.from_tests and isinstance(session.model, NoModel) and writes_of(session.log.events):
        name = session.record.id
        by_model = f"`localagent session resume {name} --model M` has a model write the rest"
        by_hand = f"`localagent session export {name} --format patch --out FILE` gives what there is, to be completed"
        return replace(base, remedy=f"{by_model}; {by_hand}")
    return base


def record_outcome(session: SessionRun, result: TaskResult, journal: Journal) -> DoOutcome:
    """Keeps patch, evidence and report, writes what the request names, lands the patch when asked."""
    record, request, evidence, known = session.record, session.request, session.evidence, session.known
    judge = known.get("judge")
    replies = [e for e in session.log.events if isinstance(e, Replied)]
    result = replace(
        result,
        model_name=session.model.name,
        model_digest=session.model.digest,
        model_tokens=sum(max(0, r.prompt_tokens) + max(0, r.reply_tokens) for r in replies),
        seconds=known.get("seconds", {}),
        jail_backend=known.get("jail_backend", ""),
        jail_level=known.get("jail_level", ""),
        snapshot_digest=known.get("digest", ""),
        warnings=known.get("warnings", ()),
    )
    diff = unified_diff(result.patch) if result.patch is not None else b""
    proposed = [unified_diff(c.patch) for c in result.proposals]
    agent = agent_json(request, session.log.events, known.get("tree"), judge.proof if judge is not None else None)
    agent |= known.get("analysis", {})
    applied = False
    try:
        if result.patch is not None:
            record.save_patch(result.patch)
        for number, candidate in enumerate(result.proposals, 1):
            record.save_proposal(number, candidate.patch)
        signed = evidence.ended(result, diff, journal.tip, proposed)
        if result.patch is not None and request.apply and not result.exit:
            land_recorded(session.settings, record, result.patch, request.repo.resolve())
            applied = True
        if diff and not result.exit and request.out is not None:
            write_through(request.out, diff)
        result = replace(result, attestation=signed)
        report = record.save_result(result, diff=diff or None, proposed=proposed, agent=agent)
        evidence.reported(report)
    except (CannotRecord, RecordDamaged, AnswerIsNo) as no:
        reason = f"{result.reason}, but {no}"
        result = replace(result, verdict=Verdict.NEEDS_PERSON, reason=reason, exit=no.exit_code, remedy=no.remedy)
        report = record.save_result(result, diff=diff or None, proposed=proposed, agent=agent)
    if request.report is not None:
        write_report(request.report, report)
    return DoOutcome(
        exit=result.exit,
        reason=result.reason,
        remedy=result.remedy,
        session=record.id,
        diff=diff if not result.exit else b"",
        proposal=proposed[0] if proposed else b"",
        report=report,
        warnings=result.warnings,
        applied=applied,
    )


def settled_outcome(kept: Session) -> DoOutcome | None:
    """The recorded outcome of a session that nothing is left to do in: accepted, or it waits for a person's word.

    None for any other. RecordDamaged where report or patch were altered.
    """
    report = kept.record.result_json()
    if report is None:
        return None
    accepted = kept.state == EndKind.FINISHED.value and report["outcome"] == Verdict.ACCEPTED.value
    waits = kept.state == EndKind.NEEDS_PERSON.value and report["outcome"] == Verdict.NEEDS_PERSON.value
    return recorded_outcome(kept.record, report) if accepted or waits else None


def recorded_outcome(record: TaskRecord, report: dict[str, Any]) -> DoOutcome:
    """What a front end shows of a session whose report is kept."""
    code, patch, proposal = int(report["exit"]), record.patch(), record.proposal(1)
    return DoOutcome(
        exit=code,
        reason=str(report["reason"]),
        remedy=str(report.get("remedy") or ""),
        session=record.id,
        diff=unified_diff(patch) if patch is not None and not code else b"",
        proposal=unified_diff(proposal) if proposal is not None else b"",
        report=report,
        warnings=tuple(map(str, report.get("warnings", ()))),
        applied=landing_state(record.dir / "undo") is LandState.LANDED,
    )
