"""Talking: plan, ask, finish."""

from localagent.agent.agent_ports import JudgeAnswer
from localagent.agent.tools.tool import Action, Arguments, Done, Kind, Parameter, Tool, Workshop
from localagent.agent.tools.working_copy import ToolFault, ToolRefusal

_MOST_STEPS = 30
_MOST_TEXT = 4_000
ASSUMED = (
    "Nobody is there to answer. Do what the instruction says, in the plainest way, and say in finish what you assumed."
)


def _plan(workshop: Workshop, given: Arguments) -> Action:
    steps = tuple(step.strip()[:300] for step in given["steps"] if step.strip())
    if not 1 <= len(steps) <= _MOST_STEPS:
        raise ToolFault(f"a plan has 1 to {_MOST_STEPS} steps")

    def perform() -> Done:
        shown = "\n".join(f"{n}. {step}" for n, step in enumerate(steps, 1))
        asked = workshop.plan_is_asked and workshop.person.present
        if asked and not workshop.person.approves("this plan", shown):
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
        return Done(text=found.reason, judgement=found)

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
