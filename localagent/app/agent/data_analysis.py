"""A data analysis from files to results: copies, interpreter, loop, and what is written where the script holds.

The model sees names, sizes and what the script prints; the script sees copies of the files and nothing else of the
user's. Results are written after the script came to the same twice, and never over anything.
"""

import os
import re
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localagent import __version__
from localagent.agent.agent_ports import JudgeAnswer, Judgement, Person
from localagent.agent.approval import ChokePoint
from localagent.agent.context import result_limit
from localagent.agent.events import IMPLEMENTER, AgentEvent, Answered, Ended, EndKind, MemoryLog, ResultKind, writes_of
from localagent.agent.loop import Loop
from localagent.agent.prompts import analysis_opening
from localagent.agent.tools.data_tools import OBSERVED, SCRIPT, data_tools
from localagent.agent.tools.text_search import TextSearch
from localagent.agent.tools.tool import Workshop
from localagent.agent.tools.working_copy import WorkingCopy
from localagent.app.agent.analysis_review import AnalysisReview
from localagent.app.agent.request import DoRequest
from localagent.app.agent.results_folder import REPORT_NAME, publish, results_fault
from localagent.app.agent.script_runs import PRINTED_NAME, JailedScript
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.app.execute.run import BOUNDS
from localagent.domain.chat import Sampling
from localagent.domain.edit import digest_of
from localagent.domain.outcome import JailOutcome
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.domain.task import Snapshot, TaskResult, Verdict
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.atomic_files import RecordDamaged, read_bounded
from localagent.jail.api import Workspace
from localagent.jail.files.transfer import put_in
from localagent.ports import ChatModel
from localagent.record.store import TaskRecord
from localagent.repo.snapshot import take_snapshot
from localagent.text.strict_json import dump, load
from localagent.text.visible_text import one_line

SCHEMA = "localagent/analysis/1"
PACKAGES = ("pandas", "numpy", "matplotlib", "scipy", "polars", "pyarrow", "openpyxl", "seaborn", "scikit-learn")
_WANTED = ("pandas", "matplotlib")
_HARMLESS = frozenset(
    {"csv", "json", "statistics", "decimal", "fractions", "re", "itertools", "functools", "operator", "sqlite3"}
    | {"pathlib", "string", "textwrap", "random", "time", "sklearn", *PACKAGES}
)  # fmt: skip
_MOST_NAMED = 50
MOST_PRINTED = 20_000
_MOST_SNAPSHOT_BYTES = 256 << 20
_VERSION = re.compile(r"[\w.+!-]{1,40}")
_PROBE = f"""\
import importlib.metadata, json, sys
found = {{}}
for name in {PACKAGES!r}:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps({{"python": "%d.%d.%d" % sys.version_info[:3], "packages": found}}))
"""


def input_faults(files: Sequence[Path]) -> list[str]:
    """What is wrong with the data files that were named, as far as looking tells."""
    faults = []
    names = [Path(os.path.abspath(file)).name for file in files]  # noqa: PTH100 - links stay as they are
    for file, name in zip(files, names, strict=True):
        try:
            mode = file.lstat().st_mode
        except (OSError, ValueError) as error:
            faults.append(f"--file {one_line(str(file), 200)}: {getattr(error, 'strerror', None) or error}")
            continue
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            what = "a link" if stat.S_ISLNK(mode) else "neither a regular file nor a folder"
            faults.append(f"--file {one_line(str(file), 200)}: is {what}; name the file itself")
        if not name.isprintable():
            faults.append(f"--file {one_line(str(file), 200)}: the name holds control characters; rename it")
        if name in (SCRIPT, OBSERVED, REPORT_NAME, PRINTED_NAME):
            faults.append(f"--file {name}: this is the name of a file of an analysis; rename it")
    faults += [f"--file {one_line(n, 200)}: two files have this name" for n in sorted({*names}) if names.count(n) > 1]
    return faults


def copy_data(files: Sequence[Path], scratch: Path) -> tuple[Snapshot, tuple[str, ...]]:
    """Private copies of the data files, with digests, and remarks on what was left out of folders.

    UsageFault for what is no file or folder, or too large.
    """
    if faults := input_faults(files):
        raise UsageFault(faults)
    remarks: list[str] = []
    with Workspace(scratch) as workspace:
        for file in files:
            left_out = put_in(workspace, Path(os.path.abspath(file)), BOUNDS)  # noqa: PTH100 - links stay as they are
            remarks += [f"left out of the data: {file.name}/{one.name}: {one.why}" for one in left_out]
        data = take_snapshot(workspace.tree, scratch / "data")
    there = {path.parts[0] for path in data.entries}
    faults = [f"--file {p}: {why}" for p, why in data.left_out.items() if "/" not in p]
    faults += [
        f"--file {file}: holds no file" for file in files if not faults and Path(file).absolute().name not in there
    ]
    size = sum(entry.size for entry in data.entries.values())
    if size > BOUNDS.total_bytes:
        faults.append(f"--file: {size:,} bytes, and at most {BOUNDS.total_bytes:,} are taken")
    if faults:
        raise UsageFault(faults, remedy="name smaller files: a part of the rows, or the columns that matter")
    remarks += [f"left out of the data: {path}: {why}" for path, why in data.left_out.items()]
    return data, tuple(remarks)


def holds_data(record: TaskRecord, data: Snapshot) -> bool:
    """Whether a session that is resumed has the data that it began with; False where it had not come to copy them.

    AnswerIsNo where they are others.
    """
    path = record.dir / "snapshot.json"
    try:
        kept = load(read_bounded(path, _MOST_SNAPSHOT_BYTES))["digest"]
    except FileNotFoundError:
        return False
    except (ValueError, TypeError, KeyError) as error:
        raise RecordDamaged(f"{path} is damaged: {error}") from error
    if kept != data.digest:
        raise AnswerIsNo(
            "the data files changed since the session began",
            remedy="put them back as they were, or give the instruction anew",
        )
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class DataInterpreter:
    """The interpreter of the script: where it is, its version, and the known packages it has."""

    path: str
    version: str
    packages: Mapping[str, str]

    def __str__(self) -> str:
        """For a model."""
        found = ", ".join(f"{name} {version}" for name, version in self.packages.items())
        missing = [name for name in _WANTED if name not in self.packages]
        told = f"with {found}" if found else "with the standard library alone (csv, statistics, sqlite3)"
        return f"Python {self.version} {told}" + (f"; without {', '.join(missing)}" if missing else "")

    def remarks(self) -> tuple[str, ...]:
        """What a person should know of it."""
        missing = [name for name in _WANTED if name not in self.packages]
        if not missing:
            return ()
        return (f"{self.path} has no {' and no '.join(missing)}: --python names an interpreter that has",)


def ask_interpreter(script: JailedScript) -> DataInterpreter:
    """What the interpreter says of itself, in the jail. AnswerIsNo where it does not run there."""
    ran = script.run(_PROBE)
    try:
        if ran.ending is not JailOutcome.EXITED or ran.returncode:
            raise ValueError(ran.stderr[-300:] or str(ran.ending))
        told = load(ran.raw_stdout)
        versions = {name: str(told["packages"].get(name, "")) for name in PACKAGES}
        python = str(told["python"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise AnswerIsNo(
            f"{script.python} does not run in the jail: {one_line(str(error), 300)}",
            remedy="name another interpreter with --python",
        ) from error
    return DataInterpreter(
        path=script.python,
        version=python if _VERSION.fullmatch(python) else "unknown",
        packages={name: found for name, found in versions.items() if _VERSION.fullmatch(found)},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class DataAnalysis:
    """One analysis at work; `session` is the id of its task."""

    request: DoRequest
    results: Path
    session: str
    script: JailedScript
    interpreter: DataInterpreter
    model: ChatModel
    log: MemoryLog

    @classmethod
    def open(
        cls, request: DoRequest, session: str, script: JailedScript, model: ChatModel, log: MemoryLog
    ) -> "DataAnalysis":
        """UsageFault where there is no place for results, AnswerIsNo where the interpreter does not run."""
        if request.results is None:
            raise UsageFault("--file: --results names the folder for what comes of it")
        if fault := results_fault(request.results, session):
            raise UsageFault(fault)
        return cls(
            request=request,
            results=request.results,
            session=session,
            script=script,
            interpreter=ask_interpreter(script),
            model=model,
            log=log,
        )

    def loop(
        self,
        policy: Policy,
        person: Person,
        cancelled: threading.Event,
        tell: Callable[[AgentEvent], None],
        on_text: Callable[[str], None] | None,
    ) -> Loop:
        """The loop with the tools of an analysis."""
        request, log = self.request, self.log
        tree = SnapshotTree(self.script.data)
        copy = WorkingCopy(tree, lambda: writes_of(log.events))
        opening = analysis_opening(request.instruction, self._files(), SCRIPT, str(self.interpreter))
        return Loop(
            model=self.model,
            opening=opening,
            tools=data_tools(self.script),
            workshop=Workshop(
                copy=copy,
                search=TextSearch(copy),
                tests=self.script,
                judge=self,
                person=person,
                limit=result_limit(self.model.context_tokens),
                assume=request.assume,
                made_edits=lambda: (),
            ),
            choke=ChokePoint(
                review=AnalysisReview(policy, request.instruction, tree),
                person=person,
                trust=request.trust,
                assume=request.assume,
                instruction=opening.instruction,
                harmless=_HARMLESS,
            ),
            log=log,
            limits=request.limits,
            sampling=Sampling(seed=request.seed),
            metadata={"role": IMPLEMENTER},
            cancelled=cancelled,
            tell=tell,
            on_text=on_text,
        )

    def _files(self) -> str:
        entries = list(self.script.data.entries.values())
        shown = [f"{one_line(entry.path, 200)} ({entry.size:,} bytes)" for entry in entries[:_MOST_NAMED]]
        more = f" and {len(entries) - _MOST_NAMED} more" if len(entries) > _MOST_NAMED else ""
        return ", ".join(shown) + more

    def judge(self, writes: Mapping[RepoPath, str | None], summary: str) -> Judgement:
        """`PatchJudge`: the script runs again, and where it holds the results are written.

        CannotRecord where they cannot be: the session is not finished then, and can be resumed.
        """
        found = self.script.judge(writes, summary)
        if found.answer is not JudgeAnswer.ACCEPTED or self.script.rerun is None:
            return found
        texts = {
            SCRIPT: self.script.rerun.source,
            PRINTED_NAME: self.script.rerun.printed,
            REPORT_NAME: dump(self._report(), indent=2),
        }
        publish(self.results, self.script.rerun.folder, texts, self.session)
        return replace(found, reason=f"{found.reason}; it is in {self.results}, with what it made")

    def result(self, ended: Ended) -> TaskResult:
        """The outcome of the loop."""
        if ended.kind is EndKind.FINISHED:
            return TaskResult(verdict=Verdict.ACCEPTED, reason=ended.reason, exit=0)
        person = ended.kind is EndKind.NEEDS_PERSON
        answer = f"say it in the instruction; or `localagent session resume {self.session} --say TEXT`"
        look = f"`localagent session show {self.session}` shows every step; say more, or take a larger model"
        return TaskResult(
            verdict=Verdict.NEEDS_PERSON if person else Verdict.GAVE_UP,
            reason=ended.reason if person else f"{self._explained(ended)}; {self.results} was not written",
            exit=AnswerIsNo.exit_code,
            remedy=answer if person else look,
        )

    def _explained(self, ended: Ended) -> str:
        """Why there are no results: how far it came, and what went wrong last."""
        calls = [e for e in self.log.events if isinstance(e, Answered)]
        kept = sum(call.tool == "run" and call.kind is ResultKind.DONE for call in calls)
        bad = next((call for call in reversed(calls) if call.kind is not ResultKind.DONE), None)
        problem = [f"the last problem: {one_line(bad.text, 300)}"] if bad is not None else []
        return "; ".join([one_line(ended.reason, 600), f"{len(calls)} calls, {kept} steps kept", *problem])

    def json(self) -> dict[str, Any]:
        """What the section `agent` of the task's report says of it."""
        rerun = self.script.rerun
        script = writes_of(self.log.events).get(SCRIPT) or ""
        printed = rerun.executed.stdout[:MOST_PRINTED] if rerun is not None else ""
        return {"changed": [], "analysis": {**self._report(), "source": script, "text": printed}}

    def _report(self) -> dict[str, Any]:
        """What `analysis.json` says."""
        rerun, interpreter = self.script.rerun, self.interpreter
        met = {e.injected for e in self.log.events if isinstance(e, Answered) and e.injected}
        return {
            "schema": SCHEMA,
            "localagent": __version__,
            "session": self.session,
            "instruction": self.request.instruction,
            "results": str(self.results.absolute()),
            "model": {"name": self.model.name, "digest": self.model.digest},
            "inputs": [
                {"name": one_line(e.path, 1000), "bytes": e.size, "digest": e.digest}
                for e in self.script.data.entries.values()
            ],
            "script": {"name": str(SCRIPT), "digest": digest_of(rerun.source)} if rerun is not None else None,
            "interpreter": {
                "path": interpreter.path,
                "python": interpreter.version,
                "packages": dict(interpreter.packages),
            },
            "jail": {"backend": self.script.jail.backend, "level": self.script.jail.level},
            "printed": {"name": PRINTED_NAME, "digest": digest_of(rerun.printed)} if rerun is not None else None,
            "outputs": [
                {"name": file.name, "bytes": file.bytes, "digest": file.digest} for file in rerun.executed.files
            ]
            if rerun is not None
            else [],
            "speaks_to_machine": sorted(met),
            "not_checked": {"summary": rerun.summary if rerun is not None else ""},
        }
