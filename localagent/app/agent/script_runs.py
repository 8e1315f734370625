"""The script of a data analysis in jails: each run in a new one, from nothing but the script and the data files.

What a run leaves may be a result only where it is all there: regular files, within the bounds, new names. Not promised:
that a script which came to the same twice does so on another machine or with other versions.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.agent.agent_ports import JudgeAnswer, Judgement, SuiteOutcome, SuiteReport
from localagent.agent.observation import Observation, differences, likely_causes, parse_observation
from localagent.agent.tools.data_tools import OBSERVED, SCRIPT
from localagent.agent.tools.working_copy import ToolFault
from localagent.app.agent.results_folder import REPORT_NAME
from localagent.app.execute.known_secrets import open_sanitizer
from localagent.app.execute.run import code_of, execute
from localagent.app.settings import Settings
from localagent.domain.execution import Executed, Execution, Language
from localagent.domain.jailspec import JailLimits
from localagent.domain.outcome import JailOutcome
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.domain.task import Snapshot
from localagent.fs.atomic_files import RecordDamaged
from localagent.jail.api import load_profile
from localagent.jail.limits.policy_limits import BoundedJail, PolicyLimits
from localagent.ports import Jail
from localagent.text.escaping import escaped_name
from localagent.text.secret_redaction import Sanitizer
from localagent.text.visible_text import one_line

PRINTED_NAME = "analysis.txt"
_MOST_ERRORS = 3_000
_MOST_LINE = 200
_MOST_OBSERVED = 250_000
_SHOWN = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Rerun:
    """The run that counts: `folder` holds copies of its files, `summary` is the model's word."""

    folder: Path
    script: str
    executed: Executed
    summary: str

    @property
    def source(self) -> bytes:
        """The script as a file."""
        return self.script.encode("utf-8", "surrogateescape")

    @property
    def printed(self) -> bytes:
        """What it printed, as a file that may be read."""
        return self.executed.stdout.encode("utf-8", "surrogateescape")


@dataclass(kw_only=True)
class JailedScript:
    """`ScriptRuns` in jails, and the `PatchJudge` of an analysis: what the script comes to when it runs again."""

    jail: Jail
    settings: Settings
    limits: JailLimits
    python: str
    data: Snapshot
    scratch: Path
    sanitizer: Sanitizer
    rerun: Rerun | None = None

    @classmethod
    def of(
        cls, jail: Jail, settings: Settings, policy: Policy, python: str, data: Snapshot, scratch: Path
    ) -> "JailedScript":
        """With the limits of `localagent jail run`, and the policy's where they are tighter."""
        return cls(
            jail=BoundedJail(jail, PolicyLimits(policy.limits)),
            settings=settings,
            limits=load_profile(settings.sandbox_dir / "run.toml"),
            python=python,
            data=data,
            scratch=scratch,
            sanitizer=open_sanitizer(),
        )

    def run(self, text: str, *, name: str = SCRIPT, out: Path | None = None) -> Executed:
        """A program in a new jail, with copies of the data files beside it."""
        tops = sorted({path.parts[0] for path in self.data.entries})
        request = Execution(
            limits=self.limits,
            code=code_of(text.encode("utf-8", "surrogateescape"), Language.PYTHON, name=name),
            python=self.python,
            files=tuple(str(Path(self.data.store, top)) for top in tops),
        )
        return execute(request, self.settings, self.jail, self.sanitizer, out=out)

    def observe(self, script: str, before: str) -> tuple[str, Observation]:
        """What a model reads of a run, and the run. `before`: what was kept of the run before this step, "" for none.

        ToolFault where the script fails, or leaves what cannot be a result.
        """
        ran = self.run(script)
        was = _parsed(before) if before else None
        moved = was is not None and not was.begins(ran.raw_stdout)
        start = was.length if was is not None and not moved else 0
        new = self.sanitizer.clean([ran.raw_stdout[start:]]).text
        if why := self._unfit(ran):
            raise ToolFault("\n".join((f"the step is not kept: {why}", *_errors(ran), new)).rstrip())
        head = f"kept, after {ran.wall_seconds:.1f} s"
        if moved:
            head += "; the earlier steps print something else than before: they depend on chance or the time of day"
        return "\n".join((head, *_files(ran), new.rstrip("\n") or "(it printed nothing)", *_errors(ran))), _seen(ran)

    def judge(self, writes: Mapping[RepoPath, str | None], summary: str) -> Judgement:
        """Whether the script, run from nothing, comes to what the session showed last."""
        script = writes.get(SCRIPT) or ""
        out = self.scratch / "results"
        shutil.rmtree(out, ignore_errors=True)
        again = self.run(script, out=out)
        if why := self._unfit(again):
            return _refused(f"run again from nothing, the script is no result: {why}", *_errors(again))
        differing = differences(_parsed(writes.get(OBSERVED) or ""), _seen(again))
        if differing:
            causes = "; ".join(likely_causes(script, differing)) or "nothing in the script is known for it"
            return _refused(f"run again from nothing, the script came to something else ({causes})", *differing)
        if not again.files and not again.raw_stdout:
            return _refused("the script prints nothing and writes no file: print the answer, or write it to a file")
        self.rerun = Rerun(folder=out, script=script, executed=again, summary=summary)
        told = f"the same text and the same files ({len(again.files)})" if again.files else "the same text"
        reason = f"run again from nothing in a new jail, the script came to {told}"
        return Judgement(answer=JudgeAnswer.ACCEPTED, reason=reason)

    def run_tests(self, writes: Mapping[RepoPath, str | None], tests: Sequence[str]) -> SuiteReport:
        """`SuiteRunner`: an analysis has no tests."""
        del writes, tests
        return SuiteReport(outcome=SuiteOutcome.NO_TESTS, text="an analysis has no tests")

    def run_code(self, writes: Mapping[RepoPath, str | None], code: str) -> str:
        """`SuiteRunner`: output of a program beside the data."""
        del writes
        ran = self.run(code)
        return f"exit {ran.returncode} ({ran.ending.value})\n{ran.stdout}{ran.stderr}".rstrip()

    def _unfit(self, ran: Executed) -> str:
        """Why a run is no result, "" where it is one."""
        if ran.ending is not JailOutcome.EXITED:
            return f"it was ended: {ran.ending} after {ran.wall_seconds:.1f} s"
        if ran.returncode:
            last = one_line(ran.stderr.rstrip().rpartition("\n")[2], _MOST_LINE)
            return f"it ended with exit {ran.returncode}" + (f": {last}" if last else "")
        ours = {self.sanitizer.clean_text("/".join(map(escaped_name, path.parts))).text for path in self.data.entries}
        names = [file.name for file in ran.files]
        if changed := [name for name in names if name in ours]:
            return f"it changes the data file {changed[0]}: data stay as they are, write a new file"
        if taken := [name for name in names if name in (SCRIPT, REPORT_NAME, PRINTED_NAME)]:
            return f"it writes {taken[0]}, which is the name of a file of ours: choose another"
        if ran.left_out:
            return f"it leaves {ran.left_out[0].name}, which cannot be a result: {ran.left_out[0].why}"
        if len({*names}) < len(names):
            return "it leaves files whose names are the same once secrets are taken out of them"
        if len(_seen(ran).json()) > _MOST_OBSERVED:
            return f"it leaves {len(names)} files, which are too many, or have too long names"
        return ""


def _refused(reason: str, *more: str) -> Judgement:
    return Judgement(answer=JudgeAnswer.REFUSED, reason="\n".join((reason, *more)))


def _seen(ran: Executed) -> Observation:
    return Observation.of(ran.raw_stdout, ran.stdout, {file.name: file.digest for file in ran.files})


def _parsed(text: str) -> Observation:
    try:
        return parse_observation(text)
    except ValueError as error:
        raise RecordDamaged(f"what the session kept of its last run is damaged: {error}") from error


def _errors(ran: Executed) -> list[str]:
    """The end of what it wrote to standard error."""
    text = ran.stderr.strip()
    return [f"standard error:\n{text[-_MOST_ERRORS:]}"] if text else []


def _files(ran: Executed) -> list[str]:
    shown = [f"{file.name} ({file.bytes:,} bytes)" for file in ran.files[:_SHOWN]]
    more = f" and {len(ran.files) - _SHOWN} more" if len(ran.files) > _SHOWN else ""
    return [f"files: {', '.join(shown)}{more}"] if shown else []
