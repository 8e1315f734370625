"""One `fix` task from request to record: builds the parts, runs the loop, writes down what happened.

The report is written whatever the outcome; the repository is changed only when the request says `apply`.
"""

import contextlib
import time
from dataclasses import replace

from localagent.app.cancellation import Stop
from localagent.app.command_rules import refuse_denied
from localagent.app.evidence.task_evidence import TaskEvidence, audit_log, begin, land_recorded, open_signer, setting_of
from localagent.app.fix.measure_strength import shows_little, too_weak
from localagent.app.fix.pipeline import FixWork, work
from localagent.app.fix.request import FixOutcome, FixRequest
from localagent.app.policies import open_policy
from localagent.app.review.approvals import approve_by, needs_person
from localagent.app.settings import Settings
from localagent.domain.policy import Policy
from localagent.domain.task import Choosing, Event, Stage, TaskResult, Verdict
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, Interrupted, LocalagentError, UsageFault
from localagent.fs.atomic_files import CannotRecord, RecordDamaged, write_through
from localagent.jail.files.workspace import DiskFull
from localagent.ports import Sink
from localagent.record.journal import Journal
from localagent.record.store import TaskStore
from localagent.repair.search.event_fanout import combined
from localagent.repo.diff.write_diff import unified_diff
from localagent.repo.discover import root_hint
from localagent.repo.snapshot import CannotCopy, TreeChanged, TreeTooLarge
from localagent.report.task_report import report_json, write_report
from localagent.verify.baseline.test_discovery import NoTests


def run_fix(request: FixRequest, settings: Settings, sink: Sink, stop: Stop | None = None) -> FixOutcome:
    """Runs the task. Raises UsageFault for a wrong policy or request; every other outcome is returned."""
    stop = stop or Stop()
    if request.begun is None:
        request = replace(request, begun=time.monotonic())
    task = request.task()
    try:
        opened = open_policy(settings, request.policy, request.repo)
        policy, policy_bytes = opened.policy, opened.recorded()
        refuse_denied(request.checks, policy)
        signer = open_signer(settings)
    except (UsageFault, CannotEnforce) as fault:
        if request.report is not None:
            refused = TaskResult(verdict=Verdict.FAULT, reason=str(fault), exit=fault.exit_code, remedy=fault.remedy)
            write_report(request.report, report_json(task, refused))
        raise
    audit_log(settings).ready()
    record = TaskStore(settings.state_dir).create(task)
    setting = setting_of(
        policy_bytes,
        policy.name,
        policy.least_jail_level.value,
        use_model=request.use_model,
        model=request.model,
        backend=request.backend.value if request.backend is not None else "",
        ways=request.ways,
    )
    evidence = begin(settings, record, policy_bytes, setting, signer)
    with Journal(record.journal_path) as journal:
        sinks = combined((journal, sink))
        try:
            result, remedy = _answer(request, evidence, settings, policy, sinks, stop)
        except BaseException as fault:
            code = fault.exit_code if isinstance(fault, LocalagentError) else InternalFault.exit_code
            reason = str(fault) if isinstance(fault, LocalagentError) else f"{type(fault).__name__}: {fault}"
            remedy = fault.remedy if isinstance(fault, LocalagentError) else ""
            failed = TaskResult(verdict=Verdict.FAULT, reason=reason, exit=code)
            _record(request, evidence, failed, remedy, sinks, journal)
            raise
        return _record(request, evidence, result, remedy, sinks, journal)


def _answer(
    request: FixRequest, evidence: TaskEvidence, settings: Settings, policy: Policy, sink: Sink, stop: Stop
) -> tuple[TaskResult, str]:
    """The task's result; refusals and interruptions become results of their own."""
    task = evidence.record.task
    try:
        evidence.started(apply=request.apply)
        result = work(
            FixWork(
                request=request,
                task=task,
                settings=settings,
                policy=policy,
                sink=sink,
                stop=stop,
                seen=evidence.snapshot,
            )
        )
    except (KeyboardInterrupt, Interrupted):
        return TaskResult(verdict=Verdict.INTERRUPTED, reason="interrupted; the tree is as it was", exit=130), ""
    except CannotEnforce as fault:
        verdict = Verdict.CANNOT_ENFORCE
        return TaskResult(verdict=verdict, reason=str(fault), exit=fault.exit_code), fault.remedy
    except AnswerIsNo as no:
        ours = isinstance(no, CannotRecord | CannotCopy | DiskFull | TreeTooLarge | TreeChanged)
        verdict = Verdict.NEEDS_PERSON if ours else Verdict.NO_TESTS
        remedy = root_hint(request.repo) + no.remedy if isinstance(no, NoTests) else no.remedy
        return TaskResult(verdict=verdict, reason=str(no), exit=no.exit_code), remedy
    if result.ambiguity is not None:
        call = result.ambiguity.call
        kind = "doctest" if _by_doctests_alone(result) else "test"
        remedy = f"add a {kind} that says what {call} gives; or `localagent apply {task.id} --choose N`; or --assume"
        return result, remedy
    if result.chosen is not None and (critical := needs_person(result.chosen.patch, policy)):
        reason = f"a repair was found and passes every check, but {', '.join(critical)} needs a person's approval"
        remedy = f"{approve_by(task.id, policy.approvals)}, then `localagent apply {task.id} --choose 1`"
        return _proposed(result, reason), remedy
    if weak := too_weak(result, policy):
        remedy = f"add tests for what it changes; or a person takes it: `localagent apply {task.id} --choose 1`"
        return _proposed(result, f"a repair was found and passes every check, but {weak}"), remedy
    if task.choosing is not Choosing.ASSUME and (little := shows_little(result)):
        remedy = (
            "add a test that runs it and looks at what it answers; or a person takes it: "
            f"`localagent apply {task.id} --choose 1`; or --assume"
        )
        return _proposed(result, f"a repair was found and passes every check, but {little}"), remedy
    if result.verdict is Verdict.LOW_CONFIDENCE:
        return result, unsure_remedy(result, task.id)
    if result.verdict is Verdict.PROGRESS:
        return result, f"`localagent apply {task.id} --choose 1`, then run `localagent fix` again for the rest"
    if task.text and result.verdict is Verdict.NOTHING_TO_FIX:
        reason = "every test and check passes, so nothing could show that the task is done: it is refused"
        remedy = "add a test, or a --check, that fails until what is wanted is there"
        return replace(result, verdict=Verdict.NEEDS_PERSON, reason=reason, exit=AnswerIsNo.exit_code), remedy
    return result, result.remedy


def unsure_remedy(result: TaskResult, task_id: str) -> str:
    """What to do about a repair of low confidence; more time where it ran out while the tests were measured."""
    measured = result.assessment
    late = measured is not None and bool(measured.cut) and measured.seconds >= measured.allowed_seconds
    more = "give it more time to measure the tests (--max-seconds); or " if late else ""
    take = f"`localagent apply {task_id} --choose 1`"
    return f"{more}add a test for what it changes; or a person takes it: {take}; or --assume"


def _by_doctests_alone(result: TaskResult) -> bool:
    """Whether all that failed are examples in the docstrings of sources: no test file holds them."""
    before = result.baseline
    failing = [t for t in before.tests if t.id in before.failing] if before is not None else []
    return before is not None and bool(failing) and all(t.path not in before.test_files for t in failing)


def _proposed(result: TaskResult, reason: str) -> TaskResult:
    """The patch that was found, for a person to take."""
    assert result.chosen is not None
    checked = () if result.full is None else (result.full,)
    return replace(
        result,
        verdict=Verdict.NEEDS_PERSON,
        patch=None,
        chosen=None,
        confidence=None,
        confidences=(result.confidence,),
        proposals=(result.chosen,),
        proposed=checked,
        reason=reason,
        exit=AnswerIsNo.exit_code,
    )


def _record(
    request: FixRequest, evidence: TaskEvidence, result: TaskResult, remedy: str, sink: Sink, journal: Journal
) -> FixOutcome:
    """Keeps patch, evidence and report, writes what the request names, lands the patch when asked."""
    at_seconds = 0.0 if request.begun is None else time.monotonic() - request.begun
    record = evidence.record
    diff = unified_diff(result.patch) if result.patch is not None else b""
    proposed = [unified_diff(c.patch) for c in result.proposals]
    applied = False
    try:
        sink.emit(Event(kind="stage", at_seconds=round(at_seconds, 3), data={"stage": Stage.RECORD.value}))
        if result.patch is not None:
            record.save_patch(result.patch)
            if request.apply:
                result, remedy, applied = _landed(request, evidence, result)
        for number, candidate in enumerate(result.proposals, 1):
            record.save_proposal(number, candidate.patch)
        if diff and not result.exit and request.out is not None:
            write_through(request.out, diff)
        signed = evidence.ended(result, diff, journal.tip, proposed)
        result = replace(result, attestation=signed, remedy=remedy)
        report = record.save_result(result, diff=diff or None, proposed=proposed)
        evidence.reported(report)
    except (CannotRecord, RecordDamaged, UsageFault) as no:
        reason = f"{result.reason}, but {no}" if result.patch is not None else str(no)
        remedy = no.remedy
        result = replace(result, verdict=Verdict.NEEDS_PERSON, reason=reason, exit=no.exit_code, remedy=remedy)
        with contextlib.suppress(CannotRecord):
            record.save_result(result, diff=diff or None, proposed=proposed)
        report = report_json(record.task, result, diff or None, proposed)
    if request.report is not None:
        write_report(request.report, report)
    return FixOutcome(
        exit=result.exit,
        reason=result.reason,
        remedy=remedy,
        task_id=record.id,
        diff=diff,
        report=report,
        warnings=result.warnings,
        applied=applied,
    )


def _landed(request: FixRequest, evidence: TaskEvidence, result: TaskResult) -> tuple[TaskResult, str, bool]:
    """The patch in the repository, or why it is not: the tree may have changed while the task ran."""
    assert result.patch is not None
    try:
        land_recorded(evidence.settings, evidence.record, result.patch, request.repo.resolve())
    except AnswerIsNo as no:
        reason = f"a patch was accepted but not applied: {no}"
        return replace(result, verdict=Verdict.NEEDS_PERSON, reason=reason, exit=no.exit_code), no.remedy, False
    return result, "", True
