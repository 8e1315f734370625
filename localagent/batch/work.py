"""Inside one worker: what is asked for one repository, done, and its answer kept.

A worker is a process of its own that may be killed at any moment; its last act is to write the answer. Nothing of the
repository runs but in the jail, as `fix` does it, and nothing is written into it.
"""

import contextlib
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localagent.app.settings import Settings
from localagent.batch.batch_ports import HELD, Codemods
from localagent.batch.cache_key import basis_of, key_of
from localagent.batch.fleet import Fleet, FleetMember, WorkKind
from localagent.batch.runs import RunRecord, RunStore
from localagent.batch.task_result import RepositoryResult, RepositoryState, WorkStep, worst
from localagent.batch.trees import tree_of
from localagent.domain.task import Snapshot
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, LocalagentError, UsageFault
from localagent.jail.api import scratch_folder
from localagent.repo.snapshot import take_snapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """One repository of a run, and the places of this machine."""

    run: RunRecord
    fleet: Fleet
    number: int
    settings: Settings
    codemods: Codemods

    @property
    def member(self) -> FleetMember:
        """The repository."""
        return self.fleet.members[self.number]


class TwinAtWork(Exception):  # noqa: N818 - no error: somebody else is finding the same answer
    """Another worker of this run has the same key and is at work on it."""


def carry_out(assignment: Assignment) -> int:
    """Do the work and keep the answer. HELD where a fork of the same tree is being worked on: ask again later."""
    began = time.monotonic()
    _limit(assignment.member)
    try:
        answer = _answered(assignment, began)
    except TwinAtWork:
        return HELD
    except MemoryError:
        limit = assignment.member.memory_bytes >> 20
        answer = _fault(
            assignment, RepositoryState.OUT_OF_BUDGET, f"more than {limit:,} MiB of memory", "raise memory_mib"
        )
    except CannotEnforce as fault:
        answer = _fault(assignment, RepositoryState.CANNOT_ENFORCE, str(fault), fault.remedy)
    except (AnswerIsNo, UsageFault) as no:
        answer = _fault(assignment, RepositoryState.REFUSED, str(no), no.remedy)
    except LocalagentError as fault:
        answer = _fault(assignment, RepositoryState.FAULT, str(fault), fault.remedy)
    spent = resource.getrusage(resource.RUSAGE_SELF)
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = spent.ru_utime + spent.ru_stime + below.ru_utime + below.ru_stime
    answer = replace(answer, seconds=round(time.monotonic() - began, 3), cpu_seconds=round(processor, 3))
    assignment.run.save_answer(answer)
    return 0


def _limit(member: FleetMember) -> None:
    """Of our own memory: the jails set theirs. The hard limit stays, for the jails' may be higher."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = member.memory_bytes if hard == resource.RLIM_INFINITY else min(member.memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _fault(assignment: Assignment, state: RepositoryState, reason: str, remedy: str = "") -> RepositoryResult:
    member = assignment.member
    shown = reason.replace(str(member.source.folder), "the repository")
    return RepositoryResult(number=assignment.number, name=member.name, state=state, reason=shown, remedy=remedy)


def _answered(assignment: Assignment, began: float) -> RepositoryResult:
    plan, settings = assignment.run.plan, assignment.settings
    now = basis_of((assignment.member,), settings)
    if now.tool != plan.basis.tool or not now.policies.items() <= plan.basis.policies.items():
        raise InternalFault("localagent or the policy changed since the run began", remedy="begin a new run")
    with scratch_folder(settings.scratch_dir) as scratch:
        folder, commit, left_out = tree_of(assignment.run, assignment.member, assignment.number, scratch)
        snapshot = take_snapshot(folder, scratch / "seen")
        with _claimed(assignment, snapshot) as (key, kept):
            if kept is not None:
                member = assignment.member
                return replace(kept, number=assignment.number, name=member.name, commit=commit)
            odd = tuple(f"not in the tree: {path} ({why})" for path, why in sorted(left_out.items())[:20])

            def whole(answer: RepositoryResult) -> RepositoryResult:
                answer = replace(answer, commit=commit, tree=snapshot.digest, warnings=(*answer.warnings, *odd))
                return _scrubbed(answer, folder, scratch)

            answer, moved = _found(assignment, folder, snapshot, began, whole)
            answer = replace(answer, key="" if moved else key, seconds=round(time.monotonic() - began, 3))
            RunStore(settings.state_dir).kept.put(answer, assignment.run.id)
            return answer


@contextlib.contextmanager
def _claimed(assignment: Assignment, snapshot: Snapshot) -> Iterator[tuple[str, RepositoryResult | None]]:
    """The key, ours alone in this run while inside, and the answer if it is known."""
    key = key_of(assignment.member, snapshot.digest, assignment.run.plan.basis, assignment.settings)
    with assignment.run.alone(f"key-{key.removeprefix('sha256:')}") as lock:
        if lock is None:
            raise TwinAtWork
        yield key, RunStore(assignment.settings.state_dir).kept.get(key)


def _found(
    assignment: Assignment,
    folder: Path,
    snapshot: Snapshot,
    began: float,
    whole: Callable[[RepositoryResult], RepositoryResult],
) -> tuple[RepositoryResult, bool]:
    """The answer, and whether the same might not be found again: the tree changed meanwhile, or a model failed to.

    After each step, what is known is kept in case of an end.
    """
    from localagent.batch.finding_tasks import sarif_findings, type_errors  # noqa: PLC0415
    from localagent.batch.instruction_task import instructed  # noqa: PLC0415
    from localagent.batch.repair_tasks import codemods, failing_tests  # noqa: PLC0415
    from localagent.batch.stacked_patches import Patches, Proofs  # noqa: PLC0415 - not for a kept answer

    member = assignment.member

    def left() -> float:
        """Seconds for a step: what is kept back is for ending in order."""
        spent = time.monotonic() - began
        return member.max_seconds - spent - min(10.0, 0.1 * member.max_seconds)

    patches = Patches(snapshot)
    steps: list[WorkStep] = []
    warnings: tuple[str, ...] = ()
    with contextlib.ExitStack() as stack:
        proofs = Proofs(member, folder, patches, assignment.settings, left, stack)
        for work in member.work:
            try:
                if work is WorkKind.FAILING_TESTS:
                    step, warnings = failing_tests(member, folder, patches, assignment.settings, left)
                elif work is WorkKind.SARIF:
                    step = sarif_findings(member, folder, patches, proofs, assignment.codemods, left)
                elif work is WorkKind.INSTRUCTION:
                    step, warnings = instructed(member, folder, patches, assignment.settings, left)
                elif work is WorkKind.TYPE_ERRORS:
                    step = type_errors(member, patches, proofs, assignment.codemods, left)
                else:
                    step = codemods(member, patches, proofs, assignment.codemods, left)
            except (AnswerIsNo, UsageFault, CannotEnforce) as no:  # one that cannot be done does not take others along
                state = RepositoryState.CANNOT_ENFORCE if isinstance(no, CannotEnforce) else RepositoryState.REFUSED
                step = WorkStep(work=work, state=state, outcome="refused", reason=str(no), remedy=no.remedy)
            steps.append(step)
            answer = whole(_summed(assignment, steps, warnings))
            if work is not member.work[-1]:
                assignment.run.save_part(answer)
    drawn = patches.asked_model and answer.state is not RepositoryState.ACCEPTED
    return answer, patches.moved or drawn


def _summed(assignment: Assignment, steps: Sequence[WorkStep], warnings: tuple[str, ...]) -> RepositoryResult:
    """The answer that some steps make: its reason is that of the step which says most."""
    state = worst(tuple(step.state for step in steps))
    telling = next(step for step in steps if step.state is state)
    return RepositoryResult(
        number=assignment.number,
        name=assignment.member.name,
        state=state,
        reason=telling.reason,
        remedy=telling.remedy,
        steps=tuple(steps),
        warnings=warnings,
    )


def _scrubbed(answer: RepositoryResult, *folders: Path) -> RepositoryResult:
    """The same without the places of this night: a fork's answer reads alike."""
    names = sorted((str(f) for f in folders), key=len, reverse=True)

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            for name in names:
                value = value.replace(name, "the repository")
            return value
        if isinstance(value, Mapping):
            return {key: clean(item) for key, item in value.items()}
        return tuple(clean(item) for item in value) if isinstance(value, tuple | list) else value

    told: Callable[[WorkStep], WorkStep] = lambda step: replace(  # noqa: E731 - read in one place
        step, reason=clean(step.reason), remedy=clean(step.remedy), failing=clean(step.failing)
    )
    return replace(
        answer,
        reason=clean(answer.reason),
        remedy=clean(answer.remedy),
        warnings=clean(answer.warnings),
        steps=tuple(told(step) for step in answer.steps),
    )


def be_polite(nice: int) -> None:
    """Give way to others; every jail below does as well."""
    os.nice(nice)
