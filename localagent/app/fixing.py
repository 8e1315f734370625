"""One `fix` task from request to record: builds the parts, runs the loop, writes down what happened.

The report is written whatever the outcome; the repository is changed only when the request says `apply`.
"""

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from localagent.app.prior import load_prior
from localagent.app.settings import Settings
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Permission, Policy
from localagent.domain.task import Budget, Event, Snapshot, Stage, Task, TaskResult, Verdict
from localagent.edit.space import open_edit_space
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, Interrupted, LocalagentError, UsageFault
from localagent.gate.chain import open_gate_chain
from localagent.jail.level import at_least
from localagent.jail.open import open_jail
from localagent.llm.prompt import build_context
from localagent.llm.registry import Registry
from localagent.llm.scorer import ModelScorer
from localagent.localize.fuse import SpectrumLocalizer
from localagent.policy.load import load_policy
from localagent.ports import Jail, Sink
from localagent.record.journal import Journal
from localagent.record.report import write_report
from localagent.record.store import TaskRecord, TaskStore
from localagent.repair.progress import baseline_failures
from localagent.repair.search import Parts, Repair, combined
from localagent.repair.weights import load_weights
from localagent.tree.diff import unified_diff
from localagent.tree.find import default_python
from localagent.tree.land import land
from localagent.tree.snapshot import SourceMap, take_snapshot
from localagent.verify.verifier import JailVerifier


@dataclass(frozen=True, kw_only=True, slots=True)
class FixRequest:
    """What the user asked for, parsed. Paths as given."""

    repo: Path
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    text: str = ""
    python: str = ""
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    use_model: bool = True
    model: str = ""
    policy: Path | None = None
    out: Path | None = None
    report: Path | None = None
    apply: bool = False


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


def free_cores() -> int:
    """Cores that nobody uses right now, at least one."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, round(cores - os.getloadavg()[0])))


def run_fix(request: FixRequest, settings: Settings, sink: Sink) -> FixOutcome:
    """Runs the task. Raises UsageFault for a wrong policy or request; every other outcome is returned."""
    policy = load_policy(request.policy or settings.policies_dir / "default.toml")
    task = Task(
        id="",
        repo=str(request.repo.resolve()),
        tests=request.tests,
        checks=request.checks,
        text=request.text,
        python=request.python,
        seed=request.seed,
        budget=request.budget,
    )
    record = TaskStore(settings.state_dir).create(task)
    with Journal(record.journal_path) as journal:
        sinks = combined((journal, sink))
        try:
            result, remedy = _answer(request, record.task, settings, policy, sinks)
        except BaseException as fault:
            code = fault.exit_code if isinstance(fault, LocalagentError) else InternalFault.exit_code
            reason = f"{type(fault).__name__}: {fault}"
            _record(request, record, TaskResult(verdict=Verdict.FAULT, reason=reason, exit=code), "", sinks)
            raise
        return _record(request, record, result, remedy, sinks)


def _answer(request: FixRequest, task: Task, settings: Settings, policy: Policy, sink: Sink) -> tuple[TaskResult, str]:
    """The task's result; refusals and interruptions become results of their own."""
    try:
        return _work(request, task, settings, policy, sink), ""
    except (KeyboardInterrupt, Interrupted):
        return TaskResult(verdict=Verdict.INTERRUPTED, reason="interrupted; the tree is as it was", exit=130), ""
    except CannotEnforce as fault:
        verdict = Verdict.CANNOT_ENFORCE
        return TaskResult(verdict=verdict, reason=str(fault), exit=fault.exit_code), fault.remedy
    except AnswerIsNo as no:
        return TaskResult(verdict=Verdict.NO_TESTS, reason=str(no), exit=no.exit_code), no.remedy


def _work(request: FixRequest, task: Task, settings: Settings, policy: Policy, sink: Sink) -> TaskResult:
    start = time.monotonic()
    jail = open_jail(allow_third_party=policy.third_party_binaries is Permission.ALLOW)
    if not at_least(jail.level, policy.least_jail_level.value):
        raise CannotEnforce(
            f"this machine's jail reaches level {jail.level}, and the policy asks for {policy.least_jail_level.value}",
            remedy="`localagent doctor` says which layer is missing and what mends it",
        )
    gates = open_gate_chain(policy, ())
    with contextlib.ExitStack() as stack:
        scorer = stack.enter_context(_scorer(request, settings, jail, sink))
        scratch = Path(stack.enter_context(_scratch(settings.scratch_dir)))
        sink.emit(Event(kind="stage", at_seconds=0.0, data={"stage": Stage.SNAPSHOT.value}))
        snapshot = take_snapshot(Path(task.repo), scratch / "store")
        took = time.monotonic() - start
        verifier = _verifier(task, jail, snapshot, scratch, settings, policy, sink)
        stack.callback(verifier.cancel)
        sources = SourceMap(snapshot)
        parts = Parts(
            verifier=verifier,
            localizer=SpectrumLocalizer(),
            space=open_edit_space(load_prior(settings.models_dir / "prior.json")),
            gates=gates,
            scorer=scorer,
            sink=sink,
            sources=sources,
            weights=load_weights(settings.models_dir / "order.json"),
            context=lambda path, baseline: _context(path, baseline, sources, task),
        )
        result = Repair(task, parts).run()
        seconds = {Stage.SNAPSHOT.value: round(took, 3), **result.seconds}
        return replace(
            result,
            seconds=seconds,
            jail_backend=jail.backend,
            jail_level=jail.level,
            threads=scorer.threads if scorer is not None else 0,
            warnings=(*result.warnings, *verifier.notes),
        )


def _context(path: RepoPath, baseline: Baseline, sources: SourceMap, task: Task) -> str:
    """What the model reads in front of the source: the visible tests that fail, first."""
    failing = set(baseline.failing)
    tests = dict.fromkeys(t.path for t in baseline.tests if t.id in failing and t.path is not None)
    texts = [(p, sources[p]) for p in tests if p in sources]
    return build_context(texts, baseline_failures(baseline), path, task=task.text, source=sources[path])


@contextlib.contextmanager
def _scorer(request: FixRequest, settings: Settings, jail: Jail, sink: Sink) -> Iterator[ModelScorer | None]:
    """The model, starting up in its own jail. The default one may be missing; one that was named may not."""
    if not request.use_model:
        yield None
        return
    registry = Registry(settings.models_dir, settings.data_dir)
    try:
        model = registry.resolve(request.model) if request.model else registry.default()
    except CannotEnforce as fault:
        if request.model:
            raise
        sink.emit(Event(kind="warning", at_seconds=0.0, data={"text": f"no model: {fault}"}))
        yield None
        return
    scorer = ModelScorer(model, jail)
    try:
        yield scorer
    finally:
        scorer.close()


@contextlib.contextmanager
def _scratch(parent: Path) -> Iterator[str]:
    """A directory that an unprivileged uid can pass through but not list; removed at the end."""
    path = tempfile.mkdtemp(prefix="localagent-", dir=parent)
    Path(path).chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _verifier(
    task: Task, jail: Jail, snapshot: Snapshot, scratch: Path, settings: Settings, policy: Policy, sink: Sink
) -> JailVerifier:
    return JailVerifier(
        jail=jail,
        task=task,
        snapshot=snapshot,
        python=_interpreter(task),
        scratch=scratch,
        sandbox_dir=settings.sandbox_dir,
        policy=policy,
        sink=sink,
    )


def _interpreter(task: Task) -> str:
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


def _record(request: FixRequest, record: TaskRecord, result: TaskResult, remedy: str, sink: Sink) -> FixOutcome:
    """Keeps patch and report, writes what the request names, lands the patch when asked."""
    sink.emit(Event(kind="stage", at_seconds=sum(result.seconds.values()), data={"stage": Stage.RECORD.value}))
    diff = unified_diff(result.patch) if result.patch is not None else b""
    applied = False
    if result.patch is not None:
        record.save_patch(result.patch)
        if request.apply:
            result, remedy, applied = _landed(request, record, result)
    report = record.save_result(result, diff=diff or None)
    if request.report is not None:
        write_report(request.report, report)
    if diff and not result.exit and request.out is not None:
        _write_atomically(request.out, diff)
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


def _landed(request: FixRequest, record: TaskRecord, result: TaskResult) -> tuple[TaskResult, str, bool]:
    """The patch in the repository, or why it is not: the tree may have changed while the task ran."""
    assert result.patch is not None
    try:
        land(result.patch, request.repo.resolve(), record.dir / "undo")
    except AnswerIsNo as no:
        reason = f"a patch was accepted but not applied: {no}"
        return replace(result, verdict=Verdict.NEEDS_PERSON, reason=reason, exit=no.exit_code), no.remedy, False
    return result, "", True


def _write_atomically(path: Path, data: bytes) -> None:
    """Whole or not at all; a write that fails says which file."""
    descriptor, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise LocalagentError(f"cannot write {path}: {error.strerror or error}") from error
