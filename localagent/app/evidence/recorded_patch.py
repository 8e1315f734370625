"""A task whose patch is made by rules, on the record from start to end: of `remediate`, the hook, the batch's work.

Nothing is looked for and nothing proven here: what was found and what vouched for it is told by whoever did. Not
promised: a trajectory. Rules answer findings, and there is no way to go again step by step.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from localagent.app.evidence.task_evidence import TaskEvidence, audit_log, begin, open_signer, setting_of
from localagent.app.policies import OpenPolicy
from localagent.app.review.patch_tests import Borne
from localagent.app.settings import Settings
from localagent.domain.edit import Patch
from localagent.domain.task import Event, Stage, Task, TaskResult, Verdict
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, Interrupted, LocalagentError
from localagent.fs.atomic_files import CannotRecord, RecordDamaged
from localagent.jail.files.workspace import DiskFull
from localagent.record.evidence_facts import Builder, TaskOrigin
from localagent.record.journal import Journal
from localagent.record.store import TaskRecord, TaskStore
from localagent.repo.diff.write_diff import unified_diff
from localagent.repo.snapshot import CannotCopy, TreeChanged, TreeTooLarge


@dataclass(frozen=True, kw_only=True, slots=True)
class Remedying:
    """What is asked for. `findings`: digests of logs; `below`: digests of patches that this one goes on top of.

    `builder` is who makes the patch, `rules` what the hook repairs by.
    """

    task: Task
    policy: OpenPolicy
    findings: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    builder: Builder = Builder.REMEDIATE
    rules: tuple[str, ...] = ()
    backend: str = ""
    apply: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Remedy:
    """What came of it. `borne`: what the tests said of the patch, None where no test was asked.

    `snapshot`: the digest of the tree, where one was taken though no test was asked.
    """

    patch: Patch
    reason: str
    remain: bool
    borne: Borne | None = None
    snapshot: str = ""


class Remedied:
    """One task while it runs; `sink` takes its events."""

    def __init__(self, evidence: TaskEvidence, sink: Journal) -> None:
        self.sink = sink
        self._evidence = evidence
        self._began = time.monotonic()
        self._report: dict[str, Any] | None = None
        self._over = False

    @property
    def record(self) -> TaskRecord:
        """The kept task."""
        return self._evidence.record

    @property
    def signed_by(self) -> str:
        """The id of the key that signed the end, "" where there is no attestation."""
        signed = (self._report or {}).get("attestation") or {}
        return str(signed.get("key", ""))

    def answered(self, data: dict[str, Any]) -> None:
        """What became of one finding, into the task's own journal."""
        self.sink.emit(Event(kind="finding", at_seconds=time.monotonic() - self._began, data=data))

    def end(self, found: Remedy) -> None:
        """Keep the patch and put the end on the record. CannotRecord, RecordDamaged where that cannot be."""
        verdict = Verdict.ACCEPTED if found.patch.changes else Verdict.GAVE_UP if found.remain else None
        tests = found.borne
        self._end(
            TaskResult(
                verdict=verdict or Verdict.NOTHING_TO_FIX,
                reason=found.reason,
                exit=1 if found.remain else 0,
                patch=found.patch if found.patch.changes else None,
                baseline=tests.baseline if tests is not None else None,
                full=tests.full if tests is not None else None,
                jail_backend=tests.jail_backend if tests is not None else "",
                jail_level=tests.jail_level if tests is not None else "",
                snapshot_digest=tests.snapshot if tests is not None else found.snapshot,
            )
        )

    def broken_off(self, fault: BaseException) -> None:
        """Put on the record why there is no answer, unless the end is there already."""
        if not self._over:
            self._end(_result_of(fault))

    def closed(self) -> None:
        """The report's digest and, where there is a key, the signed head: the last that is done."""
        if self._report is not None:
            self._evidence.reported(self._report)

    def _end(self, result: TaskResult) -> None:
        self._over = True
        spent = time.monotonic() - self._began
        result = replace(result, seconds={Stage.SEARCH.value: spent})
        diff = unified_diff(result.patch) if result.patch is not None else b""
        if result.patch is not None:
            self.record.save_patch(result.patch)
        self.sink.emit(Event(kind="stage", at_seconds=spent, data={"stage": Stage.RECORD.value}))
        try:
            result = replace(result, attestation=self._evidence.ended(result, diff, self.sink.tip))
        except (CannotRecord, RecordDamaged) as no:
            told = replace(result, verdict=Verdict.NEEDS_PERSON, reason=f"{result.reason}, but {no}", exit=no.exit_code)
            with contextlib.suppress(CannotRecord):  # the fault itself goes on
                self.record.save_result(told, diff=diff or None)
            raise
        self._report = self.record.save_result(result, diff=diff or None)


@contextlib.contextmanager
def remedied(asked: Remedying, settings: Settings) -> Iterator[Remedied]:
    """A task from its start on the record to its end. UsageFault, CannotRecord, RecordDamaged before anything runs.

    What breaks off inside is its end, and goes on.
    """
    signer = open_signer(settings)
    audit_log(settings).ready()
    record = TaskStore(settings.state_dir).create(asked.task)
    policy, data = asked.policy.policy, asked.policy.recorded()
    setting = setting_of(
        data,
        policy.name,
        policy.least_jail_level.value,
        use_model=False,
        model="",
        backend=asked.backend,
        origin=TaskOrigin(builder=asked.builder, findings=asked.findings, below=asked.below, rules=asked.rules),
    )
    evidence = begin(settings, record, data, setting, signer)
    evidence.started(apply=asked.apply)
    with Journal(record.journal_path) as journal:
        task = Remedied(evidence, journal)
        try:
            yield task
        except BaseException as fault:
            task.broken_off(fault)
            raise
        finally:
            task.closed()


def _result_of(fault: BaseException) -> TaskResult:
    """How a task ends that broke off."""
    if isinstance(fault, KeyboardInterrupt | Interrupted):
        return TaskResult(verdict=Verdict.INTERRUPTED, reason="interrupted; the tree is as it was", exit=130)
    if not isinstance(fault, LocalagentError):
        reason = f"{type(fault).__name__}: {fault}"
        return TaskResult(verdict=Verdict.FAULT, reason=reason, exit=InternalFault.exit_code)
    verdict = Verdict.FAULT
    if isinstance(fault, CannotEnforce):
        verdict = Verdict.CANNOT_ENFORCE
    elif isinstance(fault, CannotRecord | CannotCopy | DiskFull | TreeTooLarge | TreeChanged):
        verdict = Verdict.NEEDS_PERSON
    elif isinstance(fault, AnswerIsNo):
        verdict = Verdict.NO_TESTS
    return TaskResult(verdict=verdict, reason=str(fault), exit=fault.exit_code)
