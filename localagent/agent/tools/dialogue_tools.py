"""Talking: plan, ask, finish; of the roles before the work: the plan that binds, and that no test can show it."""

from collections.abc import Sequence

from localagent.agent.agent_ports import JudgeAnswer, Judgement
from localagent.agent.events import AgreedBy, Agreement
from localagent.agent.tools.tool import Action, Arguments, Done, Kind, Parameter, Tool, Workshop
from localagent.agent.tools.working_copy import ToolFault, ToolRefusal
from localagent.domain.paths import RepoPath

_MOST_STEPS = 30
_MOST_TEXT = 4_000
_MOST_FILES = 200
_LISTED = 20
NO_TEST_SAID = "no test: "
ASSUMED = (
    "Nobody is there to answer. Do what the instruction says, in the plainest way, and say in finish what you assumed."
)


def _steps(given: Arguments) -> tuple[str, ...]:
    steps = tuple(step.strip()[:300] for step in given["steps"] if step.strip())
    if not 1 <= len(steps) <= _MOST_STEPS:
        raise ToolFault(f"a plan has 1 to {_MOST_STEPS} steps")
    return steps


def _files(workshop: Workshop, names: Sequence[str]) -> tuple[RepoPath, ...]:
    """Files that a plan names. ToolFault for folders, patterns, and more than anybody reads."""
    if len(names) > _MOST_FILES:
        raise ToolFault(f"a plan names at most {_MOST_FILES} files; do less at once")
    paths = tuple(dict.fromkeys(workshop.copy.path(name.partition("::")[0]) for name in names))
    known = workshop.copy.paths()
    for path in paths:
        if any(c in path for c in "*?[") or any(other.startswith(f"{path}/") for other in known):
            raise ToolFault(f"{path}: name each file by its path, no folders and no patterns")
    return paths


def _plan_files(workshop: Workshop, given: Arguments) -> Action:
    """The planner's plan: what it names binds whoever does the work."""
    steps = _steps(given)
    files = _files(workshop, (*given["files"], *given.get("tests", ())))
    if not files:
        raise ToolFault("a plan names the files that have to be changed")

    def perform() -> Done:
        by = AgreedBy.ASSUMED if workshop.assume else AgreedBy.NOBODY
        if workshop.plan_is_asked and workshop.person.present:
            if not workshop.person.approves("this plan", _shown(steps, files)):
                raise ToolRefusal("the user does not approve this plan; ask what is wanted, or make another")
            by = AgreedBy.PERSON
        reason = f"planned: {len(files)} files may be changed"
        agreement = Agreement(by=by, files=files)
        judgement = Judgement(answer=JudgeAnswer.AGREED, reason=reason)
        return Done(text=reason, plan=steps, agreement=agreement, judgement=judgement)

    return Action(perform=perform)


def _plan_within(workshop: Workshop, given: Arguments) -> Action:
    """The steps of who works by an agreed plan; a person alone can widen that."""
    steps = _steps(given)
    agreed = workshop.agreed_files() or ()
    new = [file for file in _files(workshop, given.get("files", ())) if file not in agreed]

    def perform() -> Done:
        if not new:
            return Done(text="planned", plan=steps)
        more = ", ".join(new[:_LISTED]) + (f" and {len(new) - _LISTED} more" if len(new) > _LISTED else "")
        if not (workshop.plan_is_asked and workshop.person.present):
            raise ToolRefusal(f"nobody is there who could widen the plan by {more}; keep to its files")
        if not workshop.person.approves(f"to widen the plan by {more}", _shown(steps, new)):
            raise ToolRefusal(f"the user does not widen the plan by {more}; keep to its files, or ask")
        agreement = Agreement(by=AgreedBy.PERSON, files=tuple(new))
        return Done(text=f"the plan is wider by {more}", plan=steps, agreement=agreement)

    return Action(perform=perform)


def _numbered(steps: Sequence[str]) -> str:
    return "\n".join(f"{n}. {step}" for n, step in enumerate(steps, 1))


def _shown(steps: Sequence[str], files: Sequence[RepoPath]) -> str:
    """A plan as a person reads it who is asked about it: every file of it."""
    return "\n".join([_numbered(steps), f"{len(files)} files:", *files])


def _plan(workshop: Workshop, given: Arguments) -> Action:
    steps = _steps(given)

    def perform() -> Done:
        asked = workshop.plan_is_asked and workshop.person.present
        if asked and not workshop.person.approves("this plan", _numbered(steps)):
            raise ToolRefusal("the user does not approve this plan; ask what is wanted, or make another")
        return Done(text="planned", plan=steps)

    return Action(perform=perform)


def _ask(workshop: Workshop, given: Arguments) -> Action:
    question = given["question"].strip()[:_MOST_TEXT]
    if not question:
        raise ToolFault("say what you want to know")

    def perform() -> Done:
        if workshop.person.present:
            return Done(text=f"The user says: {workshop.person.answer(question)}")
        return Done(text=ASSUMED) if workshop.assume else Done(text="nobody is there to answer", asks=question)

    return Action(perform=perform)


def _finish(workshop: Workshop, given: Arguments) -> Action:
    summary = given["summary"].strip()[:_MOST_TEXT]

    def perform() -> Done:
        if not workshop.copy.writes:
            raise ToolFault("nothing is changed yet, so nothing is done; make the change with edit or create")
        found = workshop.judge.judge(workshop.copy.writes, summary)
        if found.answer is JudgeAnswer.REFUSED:
            raise ToolRefusal(found.reason)
        return Done(text=found.reason, judgement=found, agreement=found.agreement)

    return Action(perform=perform)


def _no_test(workshop: Workshop, given: Arguments) -> Action:
    reason = given["reason"].strip()[:_MOST_TEXT]
    if not reason:
        raise ToolFault("say why no test can show it")
    if workshop.copy.writes:
        raise ToolFault("tests stand already; delete them first, or call finish")

    def perform() -> Done:
        agreement = Agreement(by=AgreedBy.ASSUMED if workshop.assume else AgreedBy.NOBODY, files=())
        judgement = Judgement(answer=JudgeAnswer.AGREED, reason=f"{NO_TEST_SAID}{reason}")
        return Done(text=f"{NO_TEST_SAID}{reason}", agreement=agreement, judgement=judgement)

    return Action(perform=perform)


TOOLS = (
    Tool(
        name="plan",
        description="Say which steps you will take, with the files.",
        parameters=(Parameter(name="steps", kind=Kind.STRINGS),),
        prepare=_plan,
    ),
    Tool(
        name="ask",
        description="Ask the user, only if the instruction is unclear.",
        parameters=(Parameter(name="question"),),
        prepare=_ask,
    ),
    Tool(
        name="finish",
        description="All is done: every test runs again, and the change is checked.",
        parameters=(Parameter(name="summary"),),
        prepare=_finish,
    ),
)

PLAN_FILES = Tool(
    name="plan",
    description="The plan: steps, and every file to be changed, created or deleted; all others stay as they are.",
    parameters=(
        Parameter(name="steps", kind=Kind.STRINGS),
        Parameter(name="files", kind=Kind.STRINGS),
        Parameter(name="tests", kind=Kind.STRINGS, required=False),
    ),
    prepare=_plan_files,
)
PLAN_WITHIN = Tool(
    name="plan",
    description="Say which steps you will take. files: what the agreed plan lacks and has to be widened by.",
    parameters=(
        Parameter(name="steps", kind=Kind.STRINGS),
        Parameter(name="files", kind=Kind.STRINGS, required=False),
    ),
    prepare=_plan_within,
)
NO_TEST = Tool(
    name="no_test",
    description="No test can show what is asked: only text or configuration changes.",
    parameters=(Parameter(name="reason"),),
    prepare=_no_test,
)
