"""Two kinds of work on findings of other tools: those of SARIF logs, and mypy's, which is run in the jail.

Both go `localagent remediate`'s way: a rule of ours must find the same mistake at the same place, and its repair must
stand before libcst, the gates and, where there are any, the tests. Not promised: that a finding without such a rule is
repaired; it is told.
"""

import contextlib
import errno
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from localagent.app.evidence.recorded_patch import Remedied
from localagent.app.review.patch_tests import Vouching
from localagent.batch.batch_ports import Codemods, FindingOutcome, Findings
from localagent.batch.fleet import FleetMember, WorkKind
from localagent.batch.stacked_patches import Patches, Proofs, too_late
from localagent.batch.task_result import RepositoryState, WorkStep
from localagent.domain.edit import Patch, digest_of
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.fs.atomic_files import RecordDamaged, read_bounded
from localagent.repo.diff.write_diff import unified_diff
from localagent.report.sarif_input import MAX_BYTES, Reported, read_log
from localagent.verify.checks.static_tools import Silence, ToolFinding

_SHOWN = 200
_MOVED = "the tree changed while it was worked on: findings were not repaired"


def sarif_findings(
    member: FleetMember, folder: Path, patches: Patches, proofs: Proofs, rules: Codemods, left: Callable[[], float]
) -> WorkStep:
    """Repairs for the findings of a repository's logs, on top of the earlier steps. UsageFault for a wrong log."""
    began = time.monotonic()
    logs = [_bytes(path) for path in member.sarif]
    reported = [_carried(one, patches) for log in logs for one in read_log(log, _roots(member, folder)).results]
    digests = tuple(map(digest_of, logs))
    return _remedied(WorkKind.SARIF, reported, (patches, proofs, rules), left, began, digests)


def type_errors(
    member: FleetMember, patches: Patches, proofs: Proofs, rules: Codemods, left: Callable[[], float]
) -> WorkStep:
    """Repairs for what mypy finds in the tree as it is now; mypy runs once more on what comes of them."""
    del member
    began = time.monotonic()
    if left() < 1:
        return too_late(WorkKind.TYPE_ERRORS, "mypy was not run")
    verifier = proofs.open_snapshot().verifier
    found = verifier.type_errors(patches.changed)
    if isinstance(found, Silence):
        return WorkStep(work=WorkKind.TYPE_ERRORS, state=RepositoryState.REFUSED, outcome="refused", reason=found.why)
    reported = [_reported(n, one) for n, one in enumerate(found)]
    step = _remedied(WorkKind.TYPE_ERRORS, reported, (patches, proofs, rules), left, began)
    if not step.patch:
        return step
    again = verifier.type_errors(patches.changed)
    after = again.why if isinstance(again, Silence) else str(len(again))
    return replace(
        step,
        evidence={**step.evidence, "type errors before": str(len(found)), "type errors after": after},
        seconds=round(time.monotonic() - began, 3),
    )


def _roots(member: FleetMember, folder: Path) -> tuple[Path, ...]:
    """Where the repository stood when a log was made."""
    was = (Path(member.sarif_was_at),) if member.sarif_was_at else ()
    return tuple(dict.fromkeys((folder, member.source.folder, member.source.folder.resolve(), *was)))


def _bytes(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_BYTES)
    except RecordDamaged as fault:
        raise UsageFault(str(fault), remedy="split the log by runs") from fault
    except OSError as error:
        raise UsageFault(f"{path.name}: cannot be read: {error.strerror or error}") from error


def _carried(one: Reported, patches: Patches) -> Reported:
    """A finding where its lines stand now: the log was made of the tree before the earlier steps."""
    if one.settled or one.path not in patches.changed:
        return one
    if one.digest not in ("", sha256(patches.sources[one.path]).hexdigest()):
        return one  # another file was analysed: that is said of it
    lines = patches.lines(one.path)
    stands = [lines.now(n) for n in range(one.line, max(one.line, one.end_line) + 1)] if one.line else []
    if stands and all(stands):
        return replace(one, line=stands[0], end_line=stands[-1], digest="")
    return replace(one, settled="its lines were changed by the repair of an earlier step: make the log anew")


def _reported(number: int, found: ToolFinding) -> Reported:
    return Reported(
        run=0,
        number=number,
        tool=found.tool,
        rule=found.rule,
        message=found.message,
        path=found.path,
        line=found.line,
        end_line=found.end_line,
        column=found.column,
    )


def _remedied(
    work: WorkKind,
    reported: Sequence[Reported],
    parts: tuple[Patches, Proofs, Codemods],
    left: Callable[[], float],
    began: float,
    digests: tuple[str, ...] = (),
) -> WorkStep:
    """`digests` are those of the logs. What there is to repair is a task, from before its tests run to its end."""
    patches, proofs, rules = parts
    if patches.moved:
        return WorkStep(work=work, state=RepositoryState.REFUSED, outcome="refused", reason=_MOVED)
    if proofs.wanted and left() < proofs.need_seconds:
        return too_late(work, "no time is left to run the tests")

    def read(path: RepoPath) -> bytes:
        if path not in patches.sources:
            raise OSError(errno.ENOENT, "not among the Python sources that are looked at")
        return patches.now(path)

    with contextlib.ExitStack() as stack:
        tasks: list[Remedied] = []

        @contextlib.contextmanager
        def vouching() -> Iterator[Vouching | None]:
            tasks.append(stack.enter_context(proofs.task(digests)))
            yield proofs.on_top()

        answered, patch = rules.remediate(
            Findings(reported=reported, read=read, vouching=vouching, policy=proofs.policy)
        )
        step = _step(work, answered, patch, tested=proofs.wanted)
        for task in tasks:
            for one in answered:
                task.answered(_finding_json(one))
            remain = any(not one.fixed and not one.settled for one in answered)
            task.end(proofs.remedy(patch, step.reason, remain=remain))
            step = replace(step, task=task.record.id)
    patches.add(patch)
    return replace(step, seconds=round(time.monotonic() - began, 3))


def _step(work: WorkKind, answered: Sequence[FindingOutcome], patch: Patch, *, tested: bool) -> WorkStep:
    fixed = [one for one in answered if one.fixed]
    open_ = [one for one in answered if not one.fixed and not one.settled]
    state = RepositoryState.IMPROVED if patch.changes else RepositoryState.GAVE_UP if open_ else RepositoryState.CLEAN
    counts = Counter(one.state for one in answered)
    told = ", ".join(f"{counts[name]} {name}" for name in ("fixed", "skipped", "failed", "won't-fix") if counts[name])
    ordered = sorted(answered, key=lambda one: (not one.fixed, one.settled))
    return WorkStep(
        work=work,
        state=state,
        outcome="repaired" if patch.changes else "gave-up" if open_ else "nothing",
        reason=f"{len(answered)} findings: {told}" if answered else "no finding",
        remedy="repair them by hand, or suppress them where they are found" if open_ else "",
        patch=unified_diff(patch).decode("utf-8", "surrogateescape"),
        patch_digest=patch.digest if patch.changes else "",
        left=dict(sorted(Counter(f"{one.reported.tool} {one.reported.rule}" for one in open_).items())),
        findings=tuple(_finding_json(one) for one in ordered[:_SHOWN]),
        files=len(patch.changes),
        evidence={
            "findings": len(answered),
            "repairs": len(fixed),
            "tests": "bear the patch" if tested and patch.changes else "none to run" if not tested else "not asked",
        },
    )


def _finding_json(one: FindingOutcome) -> dict[str, Any]:
    found = one.reported
    return {
        "tool": found.tool,
        "rule": found.rule,
        "path": str(found.path or ""),
        "line": found.line,
        "message": found.message,
        "state": one.state,
        "why": one.why,
        "proof": one.proof,
        "settled": one.settled,
    }
