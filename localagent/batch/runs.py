"""Runs on disk, one folder each below `<state>/batch/runs`, and answers kept for later nights in `<state>/batch/kept`.

`run.json` is there before anything starts and never changes; each answer is one file, there whole or not at all. So a
run is its files: what has no answer is still to be done, whenever and however the run was ended. Not protected against
the same user.
"""

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from localagent.batch.cache_key import CacheBasis
from localagent.batch.task_result import KEPT, RepositoryResult, parse_answer
from localagent.errors import UsageFault
from localagent.fs.atomic_files import CannotRecord, RecordDamaged, open_lock, read_bounded, write_private
from localagent.fs.openat import closing, sync_directory
from localagent.record.store import new_task_id
from localagent.text.strict_json import dump, load

SCHEMA = "localagent/batch-run/1"
_ID = re.compile(r"\d{8}-\d{6}-\d{6}-[0-9a-f]{6}")
_RUN_BYTES = 16 << 20
_ANSWER_BYTES = 256 << 20
_KEPT_SECONDS = 90 * 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchPlan:
    """What a run was begun with. `text` are the fleet's bytes; `source` and `folder` say where they came from."""

    text: str
    source: str
    folder: str
    fleet: str
    basis: CacheBasis
    began: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """One run's folder."""

    dir: Path
    plan: BatchPlan

    @property
    def id(self) -> str:
        """The run's name, as a task's: it sorts by time."""
        return self.dir.name

    def answer_path(self, number: int) -> Path:
        """Where the answer of one repository is kept."""
        return self.dir / "answers" / f"{number}.json"

    def answer(self, number: int) -> RepositoryResult | None:
        """The answer of one repository; None where there is none yet. RecordDamaged where it is not ours."""
        return self._load_answer(number, self.answer_path(number))

    def part(self, number: int) -> RepositoryResult | None:
        """What a worker knew before its last step, if it came so far."""
        return self._load_answer(number, self.answer_path(number).with_suffix(".part.json"))

    def _load_answer(self, number: int, path: Path) -> RepositoryResult | None:
        try:
            answer = parse_answer(load(read_bounded(path, _ANSWER_BYTES)))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise RecordDamaged(f"{path} is damaged: {error}", remedy="delete it, and resume the run") from error
        if answer.number != number:
            raise RecordDamaged(f"{path} is the answer of another repository", remedy="delete it, and resume the run")
        return answer

    def save_answer(self, answer: RepositoryResult) -> None:
        """Keep an answer."""
        write_private(self.answer_path(answer.number), dump(answer.json()))

    def save_part(self, answer: RepositoryResult) -> None:
        """Keep what is known so far."""
        write_private(self.answer_path(answer.number).with_suffix(".part.json"), dump(answer.json()))

    def pinned(self, number: int) -> str:
        """The commit that a revision named when the run first looked, or ""."""
        with contextlib.suppress(FileNotFoundError):
            return read_bounded(self.dir / "answers" / f"{number}.commit", 100).decode("ascii", "replace").strip()
        return ""

    def pin(self, number: int, commit: str) -> None:
        """Keep the commit for every later look."""
        write_private(self.dir / "answers" / f"{number}.commit", commit.encode() + b"\n")

    @contextlib.contextmanager
    def alone(self, name: str, *, wait_seconds: float = 0.0) -> Iterator[int | None]:
        """A lock of the run, as a descriptor; None where another process has it. The last holder's end frees it."""
        with closing(open_lock(self.dir / f"{name}.lock")) as number:
            yield number if _locked(number, wait_seconds) else None


def _locked(number: int, wait_seconds: float) -> bool:
    until = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.05)
        else:
            return True


class RunStore:
    """The runs below one state folder. Creating the value touches nothing."""

    def __init__(self, state_dir: Path) -> None:
        self._runs = state_dir / "batch" / "runs"
        self.kept = AnswerCache(state_dir / "batch" / "kept")

    def create(self, plan: BatchPlan) -> RunRecord:
        """Begin a run."""
        folder = self._runs / new_task_id()
        try:
            (folder / "answers").mkdir(mode=0o700, parents=True)
            self._runs.chmod(0o700)
        except OSError as error:
            raise CannotRecord(
                f"cannot keep runs in {self._runs}: {error.strerror or error}",
                remedy="set XDG_STATE_HOME to a directory that you may write to and that has space",
            ) from error
        sync_directory(self._runs)
        plan = replace(plan, began=plan.began or datetime.now(UTC).isoformat(timespec="seconds"))
        write_private(folder / "run.json", dump(_plan_json(plan), indent=1))
        return RunRecord(dir=folder, plan=plan)

    def names(self) -> list[str]:
        """Every run that was begun, newest first."""
        try:
            found = [p.name for p in self._runs.iterdir() if _ID.fullmatch(p.name) and (p / "run.json").is_file()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RecordDamaged(f"cannot read {self._runs}: {error.strerror or error}") from error
        return sorted(found, reverse=True)

    def open(self, id_or_part: str = "") -> RunRecord:
        """The run whose id begins or ends so, the newest for "". UsageFault if there is none or more than one."""
        names = self.names()
        wanted = id_or_part.strip().lower()
        found = [n for n in names if n.startswith(wanted) or n.endswith(f"-{wanted}")] if wanted else names[:1]
        if not found:
            what = f"no batch run {id_or_part!r}" if wanted else "no batch runs yet"
            remedy = (
                "`localagent batch list` lists the runs" if wanted else "`localagent batch run FLEET.toml` starts one"
            )
            raise UsageFault(what, remedy=remedy)
        if len(found) > 1:
            raise UsageFault(f"{id_or_part!r} names {len(found)} runs", remedy="write more of the id")
        return self.load(found[0])

    def load(self, name: str) -> RunRecord:
        """One run. RecordDamaged where its plan is not ours."""
        path = self._runs / name / "run.json"
        try:
            plan = _parse_plan(load(read_bounded(path, _RUN_BYTES)))
        except FileNotFoundError as error:
            raise RecordDamaged(f"{path} is missing") from error
        except (ValueError, TypeError, KeyError) as error:
            raise RecordDamaged(f"{path} is damaged: {error}") from error
        return RunRecord(dir=self._runs / name, plan=plan)


class AnswerCache:
    """Answers by key, for unchanged repositories and forks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> RepositoryResult | None:
        """The answer kept under a key, if there is one that is ours."""
        path = self._path(key)
        try:
            answer = parse_answer(load(read_bounded(path, _ANSWER_BYTES)))
            os.utime(path)
        except (FileNotFoundError, RecordDamaged, ValueError, TypeError):
            return None  # what cannot be believed is found anew
        return answer if answer.key == key else None

    def put(self, answer: RepositoryResult, run: str) -> None:
        """Keep an answer that the tree decided, not the clock."""
        if answer.key and answer.state in KEPT and not answer.same_as:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(self._path(answer.key), dump(replace(answer, same_as=f"{run}/{answer.name}").json()))

    def prune(self) -> None:
        """Forget what no run asked for in ninety days."""
        before = time.time() - _KEPT_SECONDS
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_mtime < before:
                    with contextlib.suppress(OSError):
                        Path(entry.path).unlink()

    def _path(self, key: str) -> Path:
        return self._folder / f"{key.removeprefix('sha256:')}.json"


def _plan_json(plan: BatchPlan) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "fleet": plan.fleet,
        "text": plan.text,
        "source": plan.source,
        "folder": plan.folder,
        "tool": plan.basis.tool,
        "policies": plan.basis.policies,
        "began": plan.began,
    }


def _parse_plan(found: object) -> BatchPlan:
    keys = {"schema", "fleet", "text", "source", "folder", "tool", "policies", "began"}
    if not isinstance(found, dict) or set(found) != keys or found["schema"] != SCHEMA:
        raise ValueError("not the plan of a run")
    policies = found["policies"]
    texts = [found[k] for k in keys - {"policies"}]
    if not isinstance(policies, Mapping) or not all(isinstance(t, str) for t in (*texts, *policies.values())):
        raise ValueError("not the plan of a run")
    datetime.fromisoformat(found["began"])
    return BatchPlan(
        text=found["text"],
        source=found["source"],
        folder=found["folder"],
        fleet=found["fleet"],
        basis=CacheBasis(tool=found["tool"], policies=dict(policies)),
        began=found["began"],
    )
