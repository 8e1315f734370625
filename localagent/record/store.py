"""Past tasks on disk: one directory each below `<state>/tasks`, named by time and chance.

A file is there whole or not at all (written beside, synced, renamed), so a killed process or a full disk leaves a task
without its later files, never with half a one. What is read back is parsed strictly, because other programs of the
same user can write there; it is not protected against that user.
"""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from localagent.domain.edit import Patch
from localagent.domain.guard import DEFAULT_SECONDS, Guard, guard_faults, guard_of
from localagent.domain.task import Budget, Choosing, Task, TaskResult
from localagent.errors import UsageFault
from localagent.fs.atomic_files import CannotRecord, RecordDamaged, read_bounded, write_private
from localagent.fs.openat import sync_directory
from localagent.record.patchfile import exactly, parse_patch, patch_json
from localagent.report.task_report import READABLE, report_json
from localagent.text.strict_json import dump, load

_T = TypeVar("_T")
_TASK_SCHEMA = "localagent/task/1"
_REJECTION_SCHEMA = "localagent/rejection/1"
_ID = re.compile(r"\d{8}-\d{6}-\d{6}-[0-9a-f]{6}")
_TASK_BYTES = 4 << 20
_REPORT_BYTES = 64 << 20
_PATCH_BYTES = 256 << 20


def new_task_id() -> str:
    """A name that sorts by time (UTC, microseconds) and does not collide: `20260131-235959-123456-0a1b2c`."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{secrets.token_hex(3)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRecord:
    """One task's directory. Files appear as the task goes on: `task.json` first, then journal, patch and report."""

    dir: Path
    task: Task

    @property
    def id(self) -> str:
        """The task's name."""
        return self.task.id

    def is_of(self, repo: str) -> bool:
        """Whether it is about a repository, or a folder in it."""
        return Path(self.task.repo).is_relative_to(repo)

    @property
    def journal_path(self) -> Path:
        """Where the journal of this task is written."""
        return self.dir / "journal.jsonl"

    def save_result(
        self,
        result: TaskResult,
        *,
        diff: bytes | None = None,
        proposed: Sequence[bytes] = (),
        agent: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Keep the report; returns it. `diff` is the accepted patch as a unified diff, `proposed` the proposals'.

        `agent` is what a session of `localagent do` adds.
        """
        report = report_json(self.task, result, diff, proposed)
        if agent is not None:
            report["agent"] = agent
        write_private(self.dir / "report.json", dump(report, indent=2))
        return report

    def adopt_report(self, report: dict[str, Any]) -> None:
        """Keep the report that a daemon made of this task; RecordDamaged if it is another task's."""
        if report.get("schema") not in READABLE or report.get("task") != self.task.id:
            raise RecordDamaged(f"the daemon's answer is not the report of task {self.task.id}")
        write_private(self.dir / "report.json", dump(report, indent=2))

    def result_json(self) -> dict[str, Any] | None:
        """The kept report, None while the task runs or if it was killed. RecordDamaged if it is not a report."""
        found = _read_object(self.dir / "report.json", _REPORT_BYTES)
        if found is None:
            return None
        if found.get("schema") not in READABLE or found.get("task") != self.task.id:
            raise RecordDamaged(f"{self.dir / 'report.json'} is not the report of task {self.task.id}")
        return found

    def save_patch(self, patch: Patch) -> None:
        """Keep before and after of every file, with digests."""
        write_private(self.dir / "patch.json", dump(patch_json(patch)))

    def drop_patches(self) -> None:
        """Forget the accepted patch and the proposals: the task goes on, and they are not what it will end with."""
        for path in (self.dir / "patch.json", *self.dir.glob("proposal-*.json")):
            path.unlink(missing_ok=True)

    def save_proposal(self, number: int, patch: Patch) -> None:
        """Keep a patch that a person may choose; `number` counts from 1."""
        write_private(self.dir / f"proposal-{number}.json", dump(patch_json(patch)))

    def proposal(self, number: int) -> Patch | None:
        """A kept proposal with every digest checked, None if there is none of that number."""
        return self._load_patch(f"proposal-{number}.json")

    def patch(self) -> Patch | None:
        """The kept patch with every digest checked, None if there is none."""
        return self._load_patch("patch.json")

    def save_rejection(self, reason: str) -> None:
        """Keep that a person found what the task proposes, or accepted, to be wrong, and why."""
        write_private(self.dir / "rejection.json", dump({"schema": _REJECTION_SCHEMA, "reason": reason}))

    def rejection(self) -> str | None:
        """The reason for which a person rejected it, None where nobody did. RecordDamaged if it is no such file."""
        path = self.dir / "rejection.json"
        found = _read_object(path, _TASK_BYTES)
        if found is None:
            return None
        if found.get("schema") != _REJECTION_SCHEMA or not isinstance(found.get("reason"), str):
            raise RecordDamaged(f"{path} is damaged: not a rejection")
        return str(found["reason"])

    def _load_patch(self, name: str) -> Patch | None:
        path = self.dir / name
        found = _read_object(path, _PATCH_BYTES)
        return None if found is None else parse_patch(found, str(path))


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """Every task that can be read, newest first, and what is wrong with the others."""

    records: tuple[TaskRecord, ...]
    faults: tuple[str, ...]


class TaskStore:
    """The tasks below one state directory. Creating the value touches nothing."""

    def __init__(self, state_dir: Path) -> None:
        self._tasks = state_dir / "tasks"

    def create(self, task: Task, *, named: str = "") -> TaskRecord:
        """Keep `task` in a directory that only the user can enter, under a new id, or that which a daemon gave it."""
        if named and not _ID.fullmatch(named):
            raise UsageFault(f"{named!r:.60} is no id of a task")
        return self._create(replace(task, id=named or new_task_id()))

    def _create(self, named: Task) -> TaskRecord:
        directory = self._tasks / named.id
        try:
            self._tasks.mkdir(mode=0o700, parents=True, exist_ok=True)
            directory.mkdir(mode=0o700)
        except OSError as error:
            raise CannotRecord(
                f"cannot keep tasks in {self._tasks}: {error.strerror or error}",
                remedy="set XDG_STATE_HOME to a directory that you may write to and that has space",
            ) from error
        sync_directory(self._tasks)
        write_private(directory / "task.json", dump(_task_json(named), indent=2))
        return TaskRecord(dir=directory, task=named)

    def open(self, id_or_prefix: str, *, what: str = "task", lists: str = "localagent history") -> TaskRecord:
        """The task whose id starts so (or ends so: the random part). UsageFault if there is none or more than one.

        `what` is asked for, and the command `lists` them: both are told then.
        """
        wanted = id_or_prefix.strip().lower()
        names = [n for n in self._names() if n == wanted] or [
            n for n in self._names() if wanted and (n.startswith(wanted) or n.endswith(f"-{wanted}"))
        ]
        if not names:
            raise UsageFault(f"no {what} {id_or_prefix!r}", remedy=f"`{lists}` lists the {what}s")
        if len(names) > 1:
            shown = ", ".join(sorted(names)[:5])
            raise UsageFault(f"{id_or_prefix!r} names {len(names)} {what}s: {shown}", remedy="write more of the id")
        return self._load(names[0])

    def list(self) -> tuple[TaskRecord, ...]:
        """Every readable task, newest first."""
        return self.scan().records

    def scan(self) -> Listing:
        """Every readable task, newest first, with a line for each that is damaged."""
        records: list[TaskRecord] = []
        faults: list[str] = []
        for name in sorted(self._names(), reverse=True):
            try:
                records.append(self._load(name))
            except RecordDamaged as damage:
                faults.append(str(damage))
        return Listing(records=tuple(records), faults=tuple(faults))

    def latest(self, repo: str = "") -> TaskRecord | None:
        """The newest readable task; with `repo`, of that repository or a folder in it."""
        for name in sorted(self._names(), reverse=True):
            try:
                record = self._load(name)
            except RecordDamaged:
                continue
            if not repo or record.is_of(repo):
                return record
        return None

    def _names(self) -> tuple[str, ...]:
        try:
            return tuple(p.name for p in self._tasks.iterdir() if _ID.fullmatch(p.name))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise RecordDamaged(f"cannot read {self._tasks}: {error.strerror or error}") from error

    def _load(self, name: str) -> TaskRecord:
        directory = self._tasks / name
        path = directory / "task.json"
        found = _read_object(path, _TASK_BYTES)
        if found is None:
            raise RecordDamaged(f"task {name} was ended before it was kept: {path} is missing")
        return TaskRecord(dir=directory, task=_parse_task(found, name, path))


def _read_object(path: Path, limit_bytes: int) -> dict[str, Any] | None:
    try:
        data = read_bounded(path, limit_bytes)
    except FileNotFoundError:
        return None
    try:
        found = load(data)
    except ValueError as error:
        raise RecordDamaged(f"{path} is damaged: {error}") from error
    if not isinstance(found, dict):
        raise RecordDamaged(f"{path} is damaged: not an object")
    return found


def _task_json(task: Task) -> dict[str, Any]:
    budget = task.budget
    return {
        "schema": _TASK_SCHEMA,
        "id": task.id,
        "repo": task.repo,
        "tests": task.tests,
        "checks": task.checks,
        "text": task.text,
        "python": task.python,
        "seed": task.seed,
        "budget": {
            "max_candidates": budget.max_candidates,
            "max_seconds": budget.max_seconds,
            "jobs": budget.jobs,
        },
        **({} if task.choosing is Choosing.ASK else {"choosing": task.choosing.value}),
        **({} if task.guard == Guard() else {"guard": task.guard.specs, "guard_seconds": task.guard.seconds}),
        **({"min_confidence": task.min_confidence} if task.min_confidence else {}),
        **({"instruction": task.instruction} if task.instruction else {}),
    }


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError("not a list of texts")
    return tuple(value)


def _typed(value: object, wanted: type[_T]) -> _T:
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise TypeError(f"{value!r} is not {wanted.__name__}")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


def _guard(specs: object, found: object) -> Guard:
    named, seconds = _texts(specs), _number(found)
    if faults := guard_faults(named, seconds):
        raise ValueError("; ".join(faults))
    return guard_of(named, seconds)


def _share(found: object) -> float:
    share = _number(found)
    if not 0 <= share <= 1:
        raise ValueError(f"{share!r} is no number from 0 to 1")
    return share


def _parse_task(found: dict[str, Any], name: str, path: Path) -> Task:
    try:
        choosing = Choosing(found.pop("choosing", Choosing.ASK))
        guard = _guard(found.pop("guard", []), found.pop("guard_seconds", DEFAULT_SECONDS))
        min_confidence = _share(found.pop("min_confidence", 0.0))
        instruction = _typed(found.pop("instruction", ""), str)
        exactly(found, {"schema", "id", "repo", "tests", "checks", "text", "python", "seed", "budget"})
        budget = exactly(found["budget"], {"max_candidates", "max_seconds", "jobs"})
        if found["schema"] != _TASK_SCHEMA or found["id"] != name:
            raise ValueError("another schema, or another task's file")
        return Task(
            id=name,
            repo=_typed(found["repo"], str),
            tests=_texts(found["tests"]),
            checks=_texts(found["checks"]),
            text=_typed(found["text"], str),
            python=_typed(found["python"], str),
            seed=_typed(found["seed"], int),
            budget=Budget(
                max_candidates=_typed(budget["max_candidates"], int),
                max_seconds=float(budget["max_seconds"]),
                jobs=_typed(budget["jobs"], int),
            ),
            choosing=choosing,
            guard=guard,
            min_confidence=min_confidence,
            instruction=instruction,
        )
    except (TypeError, ValueError) as error:
        raise RecordDamaged(f"{path} is damaged: {error}") from error
