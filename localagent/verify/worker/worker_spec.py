"""How a worker is started: the workspace at the repository's own path, the project's interpreter, one neutral folder.

Not promised: that files kept out of the snapshot are there; the interpreter's environment is bound read-only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from localagent.domain.jailspec import Access, Bind, JailLimits, JailSpec
from localagent.domain.paths import RepoPath
from localagent.domain.policy import LimitRules
from localagent.jail.files.binds import interpreter_binds
from localagent.jail.files.host import fresh_uid
from localagent.jail.files.workspace import Workspace
from localagent.jail.limits.policy_limits import OPEN_ENDED_SECONDS, BoundedJail, PolicyLimits
from localagent.ports import Jail, JailProcess
from localagent.verify.worker.lent_pytest import lent_pytest

WORKER_SOURCE = Path(__file__).resolve().parents[2] / "runner"
WORKER_INSIDE = "/run/la/_la_worker"


class WorkerUse(StrEnum):
    """What a worker is for; each has a profile of limits of this name."""

    BASELINE = "baseline"
    QUICK = "quick"
    FULL = "full"


ACCESS = {WorkerUse.BASELINE: Access.READ_WRITE, WorkerUse.QUICK: Access.READ_ONLY, WorkerUse.FULL: Access.READ_WRITE}


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerSpec:
    """Everything that is the same for each worker of a task. What `jail` runs stays within `bounds`.

    `variables` of the environment take the place of those that a worker has otherwise.
    """

    jail: Jail
    repo: str
    store: Path
    scratch: Path
    executable: str
    binds: tuple[Bind, ...]
    limits: Mapping[WorkerUse, JailLimits]
    bounds: PolicyLimits
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def make(
        cls,
        *,
        jail: Jail,
        repo: str,
        store: Path,
        scratch: Path,
        python: str,
        limits: Mapping[WorkerUse, JailLimits],
        tighter: LimitRules | None = None,
    ) -> "WorkerSpec":
        """UsageFault when `python` cannot be shown in a jail. `tighter`: a policy's limits, for all that runs here."""
        executable, binds = interpreter_binds(python)
        binds += lent_pytest(executable)
        bounds = PolicyLimits(tighter)
        return cls(
            jail=BoundedJail(jail, bounds),
            repo=repo,
            store=store,
            scratch=scratch,
            executable=executable,
            binds=binds,
            limits=limits,
            bounds=bounds,
        )

    def workspace(self, changes: Mapping[RepoPath, bytes], use: WorkerUse) -> Workspace:
        """A copy of the snapshot with `changes`; hard-linked when nobody inside may write."""
        read_only = ACCESS[use] is Access.READ_ONLY
        workspace = Workspace.create(
            self.scratch, self.store, changes=changes, link=read_only, uid=None if read_only else fresh_uid()
        )
        inside = self.repo.rstrip("/") + "/"
        for bind in self.binds:
            if bind.target.startswith(inside):
                workspace.make_folder(RepoPath(bind.target[len(inside) :]))
        return workspace

    def spec(self, workspace: Workspace, use: WorkerUse) -> JailSpec:
        """The worker's jail. A warm worker lives as long as it is needed: there the worker limits what it starts."""
        limits = self.limits.get(use) or JailLimits()
        if use is WorkerUse.QUICK:
            limits = replace(limits, wall_seconds=OPEN_ENDED_SECONDS, cpu_seconds=OPEN_ENDED_SECONDS)
        access = ACCESS[use]
        return JailSpec(
            argv=(self.executable, f"{WORKER_INSIDE}/__main__.py", "{channel}"),
            cwd=self.repo,
            binds=(
                *self.binds,
                Bind(source=str(workspace.tree), target=self.repo, access=access, untrusted=True),
                Bind(source=str(WORKER_SOURCE), target=WORKER_INSIDE),
            ),
            env=self.environment(),
            limits=limits,
        )

    def environment(self) -> tuple[tuple[str, str], ...]:
        """What code under test finds: reproducible hashes, no compiled leftovers, the project's tools first."""
        own = str(Path(self.executable).parent)
        usual = (
            ("PATH", ":".join(dict.fromkeys((own, "/usr/local/bin", "/usr/bin", "/bin")))),
            ("HOME", "/tmp"),  # noqa: S108 - the jail's own
            ("TMPDIR", "/tmp"),  # noqa: S108 - the jail's own
            ("LANG", "C.UTF-8"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("PYTHONHASHSEED", "0"),
            ("HYPOTHESIS_STORAGE_DIRECTORY", "/tmp/la-hypothesis"),  # noqa: S108 - the jail's own, gone with it
        )
        return tuple({**dict(usual), **self.variables}.items())

    def start(self, workspace: Workspace, use: WorkerUse) -> JailProcess:
        """A worker that is starting. CannotEnforce when no jail could be made."""
        return self.jail.start(self.spec(workspace, use))
