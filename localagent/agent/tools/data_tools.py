"""The tools of a data analysis: each `run` adds a step to one script, which runs from its beginning; `finish` ends it.

State between steps is what the script computes again: nothing lives on that is not in it.
"""

from typing import Protocol

from localagent.agent.agent_ports import JudgeAnswer
from localagent.agent.events import FileWrite
from localagent.agent.observation import Observation
from localagent.agent.tools import dialogue_tools
from localagent.agent.tools.tool import Action, Arguments, Done, Kind, Parameter, Tool, Workshop, bounded
from localagent.agent.tools.working_copy import ToolFault, ToolRefusal
from localagent.code.source_text import parse_or_reason
from localagent.domain.paths import RepoPath
from localagent.text.strict_json import dump

SCRIPT = RepoPath("analysis.py")
OBSERVED = RepoPath("analysis.observed.json")
_CELL = "# %%\n"
_MOST_SCRIPT_BYTES = 200_000  # as JSON: script and observation stand in one line of the journal
_MOST_SUMMARY = 4_000


class ScriptRuns(Protocol):
    """Runs the script of an analysis on its data files, each time from nothing."""

    def observe(self, script: str, before: str) -> tuple[str, Observation]:
        """What a model reads of a run, and the run. `before`: what was kept of the run before this step, "" for none.

        ToolFault where the script fails, or leaves what cannot be a result.
        """
        ...


def data_tools(runs: ScriptRuns) -> dict[str, Tool]:
    """The tools by name."""

    def run(workshop: Workshop, given: Arguments) -> Action:
        steps = _steps(workshop.copy.get(SCRIPT) or "")
        number, code = given.get("replaces", len(steps) + 1), given["code"].strip("\n")
        if not 1 <= number <= len(steps) + 1:
            raise ToolFault(f"replaces is the number of a step, 1 to {len(steps)}; leave it away to add one")
        kept = [step for step in (*steps[: number - 1], code, *steps[number:]) if step.strip()]
        if not kept or (number > len(steps) and not code.strip()):
            raise ToolFault("code is empty; it is the next step of the script, or takes the place of one of several")
        script = "\n".join(f"{_CELL}{step}\n" for step in kept)
        if len(dump(script)) > _MOST_SCRIPT_BYTES:
            raise ToolFault(f"the whole script has at most {_MOST_SCRIPT_BYTES:,} bytes; data belong into files")
        parsed = parse_or_reason(script)
        if isinstance(parsed, str):
            raise ToolFault(f"the step is not Python that parses, and is not kept: {parsed}")
        before = "" if number <= len(steps) else workshop.copy.get(OBSERVED) or ""

        def perform() -> Done:
            text, observed = runs.observe(script, before)
            shown = bounded(f"step {number}: {text}", workshop.limit, "print less")
            return Done(text=shown, writes=(FileWrite(path=OBSERVED, text=observed.json()),))

        return Action(perform=perform, writes=(FileWrite(path=SCRIPT, text=script),), code=script)

    return {
        tool.name: tool
        for tool in (
            Tool(
                name="run",
                description="Add a step to the script, or replace one (by nothing: code is empty), and run it all.",
                parameters=(Parameter(name="code"), Parameter(name="replaces", kind=Kind.INTEGER, required=False)),
                prepare=run,
            ),
            *(tool for tool in dialogue_tools.TOOLS if tool.name == "ask"),
            Tool(
                name="finish",
                description="All is done: the script runs again from nothing, and must come to the same.",
                parameters=(Parameter(name="summary"),),
                prepare=_finish,
            ),
        )
    }


def _steps(script: str) -> list[str]:
    """The steps of a script, in order. Text that looks like the line between two of them makes two."""
    return [step.strip("\n") for step in f"\n{script}".split(f"\n{_CELL}")[1:]]


def _finish(workshop: Workshop, given: Arguments) -> Action:
    def perform() -> Done:
        if not workshop.copy.get(SCRIPT):
            raise ToolFault("no step ran yet, so nothing is done; compute the answer with run")
        found = workshop.judge.judge(workshop.copy.writes, given["summary"].strip()[:_MOST_SUMMARY])
        if found.answer is JudgeAnswer.REFUSED:
            raise ToolRefusal(found.reason)
        return Done(text=found.reason, judgement=found)

    return Action(perform=perform)
