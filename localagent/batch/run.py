"""One run of a fleet: begun or resumed, worked off by a pool, its answers on disk.

What is decided here is who works when and for how long; what a repository's answer is, its worker decides. Killing this
process at any moment loses the work in flight and nothing else.
"""

import os
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from localagent.app.jail_level import open_policy_jail
from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.batch.batch_ports import HELD, WorkerCommands, WorkerCrew
from localagent.batch.cache_key import basis_of, policy_of
from localagent.batch.fleet import DiskPriority, Fleet, FleetMember, WorkKind
from localagent.batch.parse_fleet import parse_fleet, read_fleet
from localagent.batch.pool import BatchPool, WorkerEnded
from localagent.batch.runs import BatchPlan, RunRecord, RunStore
from localagent.batch.task_result import RepositoryResult, RepositoryState
from localagent.errors import AnswerIsNo
from localagent.fs.atomic_files import RecordDamaged
from localagent.jail.api import sweep

TRIES = 3
_TICK_SECONDS = 1.0
_TAKE_OVER_SECONDS = 4.0
_CLASSES = {DiskPriority.IDLE: ("-c", "3"), DiskPriority.BEST_EFFORT: ("-c", "2", "-n", "7")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """A run and what it is of."""

    run: RunRecord
    fleet: Fleet


def begin(
    path: Path,
    settings: Settings,
    ways: WorkerCommands,
    *,
    anytime: bool = False,
    agree: Callable[[Fleet], None] | None = None,
) -> Begun:
    """A new run. `agree` may raise against its fleet.

    UsageFault for a wrong fleet or policy, AnswerIsNo outside its window, CannotEnforce without a sound jail: then
    nothing is begun.
    """
    data, folder = read_fleet(path), path.absolute().parent
    fleet = parse_fleet(data, str(path), folder, ways.rules)
    if agree is not None:
        agree(fleet)
    if not anytime and (why := _shut(fleet)):
        raise AnswerIsNo(f"{why}: nothing was begun", remedy="begin inside it, or say --anytime")
    basis = basis_of(fleet.members, settings)
    _sound(fleet, settings)
    plan = BatchPlan(
        text=data.decode("utf-8"),
        source=str(path.absolute()),
        folder=str(folder),
        fleet=fleet.name,
        basis=basis,
        began="",
    )
    return Begun(run=RunStore(settings.state_dir).create(plan), fleet=fleet)


def resume(name: str, settings: Settings, ways: WorkerCommands) -> Begun:
    """A run to go on with ("": the newest). AnswerIsNo where tool or policy are no longer those it was begun with."""
    run = RunStore(settings.state_dir).open(name)
    fleet = fleet_of(run, ways)
    if basis_of(fleet.members, settings) != run.plan.basis:
        raise AnswerIsNo(
            f"localagent or a policy is not what it was when run {run.id} began: its answers would not fit together",
            remedy=f"begin a new run: localagent batch run {run.plan.source} (what did not change is kept)",
        )
    _sound(fleet, settings)
    return Begun(run=run, fleet=fleet)


def fleet_of(run: RunRecord, ways: WorkerCommands) -> Fleet:
    """The fleet that a run was begun with."""
    plan = run.plan
    return parse_fleet(plan.text.encode("utf-8"), plan.source, Path(plan.folder), ways.rules, look=False)


def _sound(fleet: Fleet, settings: Settings) -> None:
    """CannotEnforce where no jail is good enough for what would run here; each machine of a cluster asks itself."""
    if fleet.cluster is not None:
        return
    for path in {policy_of(m) for m in fleet.members if _runs_code(m)}:
        open_policy_jail(settings, open_policy(settings, path).policy)


def _runs_code(member: FleetMember) -> bool:
    """Whether anything of it would run: codemods alone look."""
    return set(member.work) != {WorkKind.CODEMODS} or bool(member.tests or member.checks)


def _shut(fleet: Fleet) -> str:
    shut = fleet.window is not None and fleet.window.closes(datetime.now()) is None
    return f"the window {fleet.window} is shut" if shut else ""


class _Local:
    """ports.Crew of this machine's processes."""

    def __init__(self, pool: BatchPool, argv: Callable[[int], Sequence[str]]) -> None:
        self._argv = argv
        self._pool = pool

    @property
    def free(self) -> bool:
        return self._pool.free

    @property
    def busy(self) -> tuple[int, ...]:
        return self._pool.busy

    def running_seconds(self) -> float:
        return self._pool.running_seconds()

    def start(self, number: int, seconds: float) -> None:
        self._pool.start(number, self._argv(number), seconds=seconds)

    def wait(self, seconds: float) -> list[WorkerEnded]:
        return self._pool.wait(seconds)

    def end(self) -> None:
        self._pool.end()


class BatchRun:
    """Works off what has no answer yet."""

    def __init__(
        self,
        begun: Begun,
        settings: Settings,
        ways: WorkerCommands,
        *,
        jobs: int,
        told: Callable[[str], None],
        crew: WorkerCrew | None = None,
    ) -> None:
        self._run, self._fleet = begun.run, begun.fleet
        self._settings, self._ways, self._told = settings, ways, told
        self._jobs, self._crew = jobs, crew
        self._queue: deque[int] = deque()
        self._held: list[int] = []
        self._tries: Counter[int] = Counter()
        self._spent: Counter[int] = Counter()  # hundredths of a second, of workers that died
        self._total = 0.0

    def work(self, *, anytime: bool = False) -> str:
        """Until everything has an answer: "" then, else why it ended before. AnswerIsNo while another works on it."""
        with self._run.alone("run", wait_seconds=_TAKE_OVER_SECONDS) as lock:
            if lock is None:
                raise AnswerIsNo(f"run {self._run.id} is being worked on", remedy="`localagent batch status` shows it")
            self._take_stock()
            crew = self._crew or _Local(BatchPool(self._jobs, passed=(lock,)), self._argv)
            try:
                return self._worked(crew, anytime=anytime)
            finally:
                crew.end()
                sweep(self._settings.scratch_dir)
                RunStore(self._settings.state_dir).kept.prune()

    def _take_stock(self) -> None:
        for number in range(len(self._fleet.members)):
            answer = self._stored_result(number)
            if answer is None:
                self._queue.append(number)
            else:
                self._total += answer.seconds

    def _stored_result(self, number: int) -> RepositoryResult | None:
        try:
            return self._run.answer(number)
        except RecordDamaged as damage:
            self._told(f"{damage}: done again")
            return None

    def _worked(self, crew: WorkerCrew, *, anytime: bool) -> str:
        while self._queue or self._held or crew.busy:
            if why := self._over(crew, anytime=anytime):
                return why
            while self._queue and crew.free:
                self._start(self._queue.popleft(), crew)
            for ended in crew.wait(_TICK_SECONDS):
                self._settle(ended)
            if self._held and not crew.busy and not self._queue:
                self._release()
        return ""

    def _over(self, crew: WorkerCrew, *, anytime: bool) -> str:
        """Why no more may be done now, or ""."""
        if not anytime and (why := _shut(self._fleet)):
            return why
        most = self._fleet.max_seconds
        if most is not None and self._total + crew.running_seconds() >= most:
            return f"the total budget of {most:g} s is spent"
        return ""

    def _start(self, number: int, crew: WorkerCrew) -> None:
        self._tries[number] += 1
        crew.start(number, self._left(number))

    def _argv(self, number: int) -> tuple[str, ...]:
        polite = () if self._fleet.disk is DiskPriority.NORMAL else ("ionice", *_CLASSES[self._fleet.disk], "-t")
        return (*polite, *self._ways.worker, str(self._run.dir), str(number), str(os.getpid()))

    def _settle(self, ended: WorkerEnded) -> None:
        """Note what became of a worker: its answer, or why there is none, or that it is to be tried again."""
        member = self._fleet.members[ended.number]
        answer = self._stored_result(ended.number)
        if answer is None and ended.code == HELD and not ended.late:
            self._tries[ended.number] -= 1
            self._held.append(ended.number)
            return
        if answer is None:
            self._spent[ended.number] += round(ended.seconds * 100)
            if not ended.late and self._tries[ended.number] < TRIES and self._left(ended.number) > 0:
                self._told(f"{member.name}: its worker died ({_exit_text(ended.code)}); tried again")
                self._queue.append(ended.number)
                return
            answer = self._unanswered(ended)
            self._run.save_answer(answer)
        self._total += answer.seconds
        self._told(f"{member.name}: {answer.state}: {answer.reason}")
        self._release()

    def _left(self, number: int) -> float:
        return self._fleet.members[number].max_seconds - self._spent[number] / 100

    def _release(self) -> None:
        self._queue.extend(self._held)
        self._held.clear()

    def _unanswered(self, ended: WorkerEnded) -> RepositoryResult:
        member = self._fleet.members[ended.number]
        seconds = round(self._spent[ended.number] / 100, 3)
        late = ended.late or self._left(ended.number) <= 0
        part = self._part(ended.number)
        return RepositoryResult(
            number=ended.number,
            name=member.name,
            state=RepositoryState.OUT_OF_BUDGET if late else RepositoryState.FAULT,
            reason=f"did not end within its {member.max_seconds:g} s: ended, with all its processes"
            if late
            else f"its worker died {TRIES} times, the last time by {_exit_text(ended.code)}",
            remedy="see what hangs there, or raise its max_seconds" if late else "try `localagent fix` there by hand",
            tree=part.tree if part else "",
            commit=part.commit if part else "",
            steps=part.steps if part else (),
            warnings=part.warnings if part else (),
            seconds=seconds,
        )

    def _part(self, number: int) -> RepositoryResult | None:
        """The steps that were done before a worker was ended: what they found is not lost."""
        try:
            return self._run.part(number)
        except RecordDamaged:
            return None


def _exit_text(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit status {code}"
