"""One `fix` task from request to record: builds the parts, runs the loop, writes down what happened.

The report is written whatever the outcome; the repository is changed only when the request says `apply`.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from localagent.app.approving import needs_person
from localagent.app.checks import refuse_denied
from localagent.app.evidence import TaskEvidence, audit_log, begin, land_recorded, open_signer, setting_of
from localagent.app.fix_strength import assessed, too_weak
from localagent.app.least_level import least_level
from localagent.app.policies import open_policy
from localagent.app.prior import load_prior
from localagent.app.ranking import open_order
from localagent.app.settings import Settings
from localagent.app.written import open_writer
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Permission, Policy
from localagent.domain.task import Budget, Choosing, Event, Snapshot, Stage, Task, TaskResult, Verdict
from localagent.edit.space import open_edit_space
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, Interrupted, LocalagentError, UsageFault
from localagent.gate.chain import open_gate_chain
from localagent.jail.open import Kind, open_jail, scratch_folder
from localagent.jail.workspace import NoRoom
from localagent.llm.decoder import ModelDecoder
from localagent.llm.hosted import Hosted
from localagent.llm.prompt import build_context
from localagent.llm.reader import ModelReader
from localagent.llm.registry import ModelFile, Registry
from localagent.llm.scorer import ModelScorer
from localagent.llm.tuned import serving
from localagent.localize.fuse import SpectrumLocalizer
from localagent.ports import Jail, Sink
from localagent.record.files import CannotRecord, RecordDamaged, write_through
from localagent.record.journal import Journal
from localagent.record.report import report_json, write_report
from localagent.record.store import TaskStore
from localagent.repair.pace import Live, Pace
from localagent.repair.progress import baseline_failures
from localagent.repair.search import Repair
from localagent.repair.sinks import combined
from localagent.repair.state import Parts
from localagent.tree.diff import unified_diff
from localagent.tree.find import default_python
from localagent.tree.snapshot import CannotCopy, SourceMap, TreeChanged, TreeTooLarge, take_snapshot
from localagent.verify.verifier import JailVerifier

Seen = Callable[[Snapshot], None]
_NEVER_NEEDED = frozenset({"version control", "a cache, made anew when needed", "a virtual environment"})


@dataclass(frozen=True, kw_only=True, slots=True)
class FixRequest:
    """What the user asked for, parsed. Paths as given.

    `threads` of the model; None: as many as cores are free. `scored`: of the model's first answers only so many scores,
    as a replayed task had in time. `model_line`: the descriptor of a socket to a model process that serves others too;
    None: a child of the task's own.
    """

    repo: Path
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    text: str = ""
    python: str = ""
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    use_model: bool = True
    model: str = ""
    writing: bool = True
    policy: Path | None = None
    out: Path | None = None
    report: Path | None = None
    apply: bool = False
    backend: Kind | None = None
    threads: int | None = None
    scored: tuple[int, ...] = ()
    ways: tuple[str, ...] = ()
    cut: tuple[tuple[int, tuple[int, ...]], ...] = ()
    model_line: int | None = None
    choosing: Choosing = Choosing.ASK


@dataclass(frozen=True, kw_only=True, slots=True)
class FixOutcome:
    """What a front end shows."""

    exit: int
    reason: str
    remedy: str = ""
    task_id: str = ""
    diff: bytes = b""
    report: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    applied: bool = False


class Stop:
    """How a front end ends a task at once: what the task registered is called beside the interrupted thread."""

    def __init__(self) -> None:
        self._calls: list[Callable[[], None]] = []
        self._threads: list[threading.Thread] = []

    def now(self) -> None:
        """Safe in a signal handler; the caller raises KeyboardInterrupt afterwards."""
        self._threads = [threading.Thread(target=call, name="stop", daemon=True) for call in self._calls]
        for thread in self._threads:
            thread.start()

    @contextlib.contextmanager
    def calling(self, call: Callable[[], None]) -> Iterator[None]:
        """While inside, `now` means `call`; what was called has ended before anything further is cleared up."""
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            for thread in self._threads:
                thread.join()


def free_cores() -> int:
    """Cores that nobody uses right now, at least one."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, round(cores - os.getloadavg()[0])))


def run_fix(request: FixRequest, settings: Settings, sink: Sink, stop: Stop | None = None) -> FixOutcome:
    """Runs the task. Raises UsageFault for a wrong policy or request; every other outcome is returned."""
    stop = stop or Stop()
    task = Task(
        id="",
        repo=str(request.repo.resolve()),
        tests=request.tests,
        checks=request.checks,
        text=request.text,
        python=request.python,
        seed=request.seed,
        budget=request.budget,
        choosing=request.choosing,
    )
    try:
        opened = open_policy(settings, request.policy, request.repo)
        policy, policy_bytes = opened.policy, opened.recorded()
        refuse_denied(request.checks, policy)
        signer = open_signer(settings)
    except (UsageFault, CannotEnforce) as fault:
        if request.report is not None:
            refused = TaskResult(verdict=Verdict.FAULT, reason=str(fault), exit=fault.exit_code)
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
            _record(request, evidence, TaskResult(verdict=Verdict.FAULT, reason=reason, exit=code), "", sinks, journal)
            raise
        return _record(request, evidence, result, remedy, sinks, journal)


def _answer(
    request: FixRequest, evidence: TaskEvidence, settings: Settings, policy: Policy, sink: Sink, stop: Stop
) -> tuple[TaskResult, str]:
    """The task's result; refusals and interruptions become results of their own."""
    task = evidence.record.task
    try:
        evidence.started(apply=request.apply)
        result = work(request, task, settings, policy, sink, stop, evidence.snapshot)
    except (KeyboardInterrupt, Interrupted):
        return TaskResult(verdict=Verdict.INTERRUPTED, reason="interrupted; the tree is as it was", exit=130), ""
    except CannotEnforce as fault:
        verdict = Verdict.CANNOT_ENFORCE
        return TaskResult(verdict=verdict, reason=str(fault), exit=fault.exit_code), fault.remedy
    except AnswerIsNo as no:
        ours = isinstance(no, CannotRecord | CannotCopy | NoRoom | TreeTooLarge | TreeChanged)
        verdict = Verdict.NEEDS_PERSON if ours else Verdict.NO_TESTS
        return TaskResult(verdict=verdict, reason=str(no), exit=no.exit_code), no.remedy
    if result.chosen is not None and (critical := needs_person(result.chosen.patch, policy)):
        reason = f"a repair was found and passes every check, but {', '.join(critical)} needs a person's approval"
        remedy = f"`localagent approve {task.id} --reason WHY`, then `localagent apply {task.id} --choose 1`"
        proposed = replace(result, verdict=Verdict.NEEDS_PERSON, patch=None, chosen=None, proposals=(result.chosen,))
        return replace(proposed, reason=reason, exit=AnswerIsNo.exit_code), remedy
    if weak := too_weak(result, policy):
        assert result.chosen is not None
        remedy = f"add tests for what it changes; or a person takes it: `localagent apply {task.id} --choose 1`"
        proposed = replace(result, verdict=Verdict.NEEDS_PERSON, patch=None, chosen=None, proposals=(result.chosen,))
        reason = f"a repair was found and passes every check, but {weak}"
        return replace(proposed, reason=reason, exit=AnswerIsNo.exit_code), remedy
    if task.text and result.verdict is Verdict.NOTHING_TO_FIX:
        reason = "every test and check passes, so nothing could show that the task is done: it is refused"
        remedy = "add a test, or a --check, that fails until what is wanted is there"
        return replace(result, verdict=Verdict.NEEDS_PERSON, reason=reason, exit=AnswerIsNo.exit_code), remedy
    return result, ""


def work(
    request: FixRequest,
    task: Task,
    settings: Settings,
    policy: Policy,
    sink: Sink,
    stop: Stop,
    seen: Seen,
    pace: Pace | None = None,
) -> TaskResult:
    """The task itself, nothing of it kept. `seen` is told the snapshot before anything of it runs, and may refuse.

    `pace` says when the loop goes on; without one, as things come, and the strength of what was found is measured.
    """
    again, pace = pace is not None, pace or Live()
    start = time.monotonic()
    jail = open_jail(
        backend=request.backend,
        allow_third_party=policy.third_party_binaries is Permission.ALLOW,
        least=least_level(settings, policy),
    )
    gates = open_gate_chain(policy, ())
    with contextlib.ExitStack() as stack:
        model, no_model = _model(request, settings)
        if no_model:
            sink.emit(Event(kind="warning", at_seconds=0.0, data={"text": no_model}))
        scorer = _scorer(model, settings, jail, request) if model is not None else None
        if scorer is not None:
            stack.callback(scorer.close)
        scratch = stack.enter_context(scratch_folder(settings.scratch_dir))
        sink.emit(Event(kind="stage", at_seconds=0.0, data={"stage": Stage.SNAPSHOT.value}))
        snapshot = take_snapshot(Path(task.repo), scratch / "store")
        took = time.monotonic() - start
        told = {"digest": snapshot.digest, "files": len(snapshot.entries)}
        sink.emit(Event(kind="snapshot", at_seconds=took, data=told))
        seen(snapshot)
        verifier = verifier_of(task, jail, snapshot, scratch, settings, policy, sink)
        stack.callback(verifier.cancel)
        stack.enter_context(stop.calling(verifier.cancel))
        sources = SourceMap(snapshot)
        weights, ranker = open_order(settings)
        space = open_edit_space(load_prior(settings.models_dir / "prior.json"))
        parts = Parts(
            verifier=verifier,
            localizer=SpectrumLocalizer(text=task.text),
            space=space,
            gates=gates,
            scorer=scorer,
            sink=sink,
            sources=sources,
            weights=weights,
            context=lambda path, baseline: _context(path, baseline, sources, task),
            reader=ModelReader(ModelDecoder(scorer)) if scorer is not None else None,
            pace=pace,
            writer=open_writer(scorer, request.ways or model.writing, weights, sources, task, space, cut=request.cut)
            if scorer is not None and model is not None and request.writing
            else None,
            ranker=ranker,
        )
        result = Repair(task, parts, clock=pace.clock).run()
        if not again:
            assessment = assessed(
                result,
                verifier,
                parts,
                seed=task.seed,
                policy=policy,
                took=time.monotonic() - start,
            )
            spent = {Stage.STRENGTH.value: round(assessment.seconds, 3)} if assessment is not None else {}
            result = replace(result, assessment=assessment, seconds={**result.seconds, **spent})
        remarks = result.full.remarks if result.full is not None and result.chosen is not None else ()
        seconds = {Stage.SNAPSHOT.value: round(took, 3), **result.seconds}
        return replace(
            result,
            reason="; ".join((result.reason, *remarks)),
            seconds=seconds,
            jail_backend=jail.backend,
            jail_level=jail.level,
            snapshot_digest=snapshot.digest,
            threads=scorer.threads if scorer is not None else 0,
            warnings=(
                *((no_model,) if no_model else ()),
                *((scorer.remark,) if scorer is not None and scorer.remark else ()),
                *result.warnings,
                *remarks,
                *verifier.notes,
                *left_out(snapshot),
            ),
        )


def _context(path: RepoPath, baseline: Baseline, sources: SourceMap, task: Task) -> str:
    """What the model reads in front of the source: the visible tests that fail, first."""
    failing = set(baseline.failing)
    tests = dict.fromkeys(t.path for t in baseline.tests if t.id in failing and t.path is not None)
    texts = [(p, sources[p]) for p in tests if p in sources]
    return build_context(texts, baseline_failures(baseline), path, task=task.text, source=sources[path])


def _model(request: FixRequest, settings: Settings) -> tuple[ModelFile | None, str]:
    """The model, or why there is none. The default one may be missing or altered; one that was named may not."""
    if not request.use_model:
        return None, ""
    registry = Registry(settings.models_dir, settings.data_dir)
    try:
        return (registry.resolve(request.model) if request.model else registry.default()), ""
    except CannotEnforce as fault:
        if request.model:
            raise
        return None, f"no model: {fault}"


def _scorer(model: ModelFile, settings: Settings, jail: Jail, request: FixRequest) -> ModelScorer:
    """With the format of the weights that is fastest on this machine, where that was measured."""
    tuned = serving(model, settings.data_dir)
    spare = None if tuned is model else model
    starter = jail if request.model_line is None else Hosted(descriptor=request.model_line)
    return ModelScorer(tuned, starter, threads=request.threads, spare=spare, taken=request.scored)


def left_out(snapshot: Snapshot) -> tuple[str, ...]:
    """A remark on entries of the tree that the tests do not find in the jail, unless they never need them."""
    odd = [(p, why) for p, why in snapshot.left_out.items() if why not in _NEVER_NEEDED]
    if not odd:
        return ()
    more = f" and {len(odd) - 5} more" if len(odd) > 5 else ""
    return ("not copied into the jail: " + ", ".join(f"{p} ({why})" for p, why in odd[:5]) + more,)


def verifier_of(
    task: Task, jail: Jail, snapshot: Snapshot, scratch: Path, settings: Settings, policy: Policy, sink: Sink
) -> JailVerifier:
    """Runs what a task's tests and checks are, on its snapshot."""
    return JailVerifier(
        jail=jail,
        task=task,
        snapshot=snapshot,
        python=interpreter_of(task),
        scratch=scratch,
        sandbox_dir=settings.sandbox_dir,
        policy=policy,
        sink=sink,
    )


def interpreter_of(task: Task) -> str:
    """The project's interpreter: the one that was named (a virtual environment's folder will do), its own, or ours."""
    if not task.python:
        return default_python(Path(task.repo)) or sys.executable
    named = Path(task.python).absolute()
    python = named / "bin" / "python" if named.is_dir() else named
    if not os.access(python, os.X_OK):
        raise UsageFault(
            f"--python: {python} is not an interpreter", remedy="name a Python or a virtual environment's folder"
        )
    return str(python)


def _record(
    request: FixRequest, evidence: TaskEvidence, result: TaskResult, remedy: str, sink: Sink, journal: Journal
) -> FixOutcome:
    """Keeps patch, evidence and report, writes what the request names, lands the patch when asked."""
    record = evidence.record
    diff = unified_diff(result.patch) if result.patch is not None else b""
    proposed = [unified_diff(c.patch) for c in result.proposals]
    applied = False
    try:
        sink.emit(Event(kind="stage", at_seconds=sum(result.seconds.values()), data={"stage": Stage.RECORD.value}))
        if result.patch is not None:
            record.save_patch(result.patch)
            if request.apply:
                result, remedy, applied = _landed(request, evidence, result)
        for number, candidate in enumerate(result.proposals, 1):
            record.save_proposal(number, candidate.patch)
        if diff and not result.exit and request.out is not None:
            write_through(request.out, diff)
        result = replace(result, attestation=evidence.ended(result, diff, journal.tip))
        report = record.save_result(result, diff=diff or None, proposed=proposed)
        evidence.reported(report)
    except (CannotRecord, RecordDamaged, UsageFault) as no:
        reason = f"{result.reason}, but {no}" if result.patch is not None else str(no)
        result, remedy = replace(result, verdict=Verdict.NEEDS_PERSON, reason=reason, exit=no.exit_code), no.remedy
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
