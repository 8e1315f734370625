"""The program of one batch worker: `RUN NUMBER PARENT`. Puts together what a sibling's room cannot: batch and hook.

No verb: `localagent batch run` starts it. It shows nothing; its answer is a file.
"""

import gc
import sys
from collections.abc import Sequence
from pathlib import Path

from localagent.app import Settings
from localagent.app.settings import PACKAGE
from localagent.batch.batch_ports import FindingOutcome, Findings, RepairedFile, WorkerCommands
from localagent.batch.run import fleet_of
from localagent.batch.runs import RunStore
from localagent.batch.task_result import RepositoryResult, RepositoryState
from localagent.batch.work import Assignment, be_polite, carry_out
from localagent.domain.edit import Patch
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.errors import InternalFault
from localagent.jail.launcher.launcher_main import die_with
from localagent.lint.engine import choose
from localagent.lint.rules import BY_ID
from localagent.precommit import fix_files
from localagent.precommit.sarif_fixes import RemediationWork as Remediating

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from localagent.cli.batch_worker import main; sys.exit(main(sys.argv[2:]))"
)


def ways() -> WorkerCommands:
    """How workers start: isolated, so that no module of a repository or of PYTHONPATH is imported instead of ours."""
    return WorkerCommands(worker=(sys.executable, "-I", "-B", "-c", _PROGRAM, str(PACKAGE.parent)), rules=tuple(BY_ID))


class HookCodemods:
    """The hook's safe repairs."""

    def __init__(self) -> None:
        self._policy: Policy | None = None
        self._gates: fix_files.Gates | None = None

    def repair(self, path: RepoPath, data: bytes, rules: Sequence[str], policy: Policy) -> RepairedFile:
        """A file's repairs, judged by the gates of a policy."""
        if self._gates is None or policy is not self._policy:
            self._policy, self._gates = policy, fix_files.Gates(lambda: policy)
        report = fix_files.fix(path, data, choose(rules), self._gates, suggestions=False)
        return RepairedFile(
            after=report.after,
            repaired=tuple((f.line, f.rule, f.message) for f in report.applied),
            left=tuple(f.rule for f in report.findings),
            refused=report.refused,
        )

    def remediate(self, findings: Findings) -> tuple[tuple[FindingOutcome, ...], Patch]:
        """As `localagent remediate`, without what only a person can vouch for."""
        gates = fix_files.Gates(lambda: findings.policy, whole=True)
        done = Remediating(findings.read, gates, findings.vouching, suggestions=False).remediate(findings.reported)
        answered = tuple(
            FindingOutcome(reported=f.reported, state=f.state.value, why=f.why, proof=f.proof or "", settled=f.settled)
            for f in done.findings
        )
        return answered, done.patch


def main(arguments: Sequence[str]) -> int:
    """The worker. Its exit status matters only where it left no answer."""
    folder, number, parent = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    die_with(parent)
    gc.set_threshold(200_000)
    settings = Settings.from_environ()
    run = RunStore(settings.state_dir).load(folder.name)
    fleet = fleet_of(run, ways())
    be_polite(fleet.nice)
    assignment = Assignment(run=run, fleet=fleet, number=number, settings=settings, codemods=HookCodemods())
    try:
        return carry_out(assignment)
    except Exception as bug:  # noqa: BLE001 - the front end: what is ours to mend is said in the answer
        reason = f"a bug of localagent: {type(bug).__name__}: {bug}"
        run.save_answer(
            RepositoryResult(number=number, name=assignment.member.name, state=RepositoryState.FAULT, reason=reason)
        )
        return InternalFault.exit_code
