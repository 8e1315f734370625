"""Running: run_tests and run. Both happen in a jail, on a copy of the copy."""

from localagent.agent.agent_ports import SuiteOutcome
from localagent.agent.tools.tool import Action, Arguments, Done, Kind, Parameter, Tool, Workshop, bounded
from localagent.agent.tools.working_copy import ToolFault

_MOST_TESTS = 50
_MOST_CODE = 100_000


def _run_tests(workshop: Workshop, given: Arguments) -> Action:
    tests = tuple(dict.fromkeys(given.get("tests", ())))
    if len(tests) > _MOST_TESTS or any(not t.strip() or t.startswith("-") or len(t) > 500 for t in tests):
        raise ToolFault(f"tests are up to {_MOST_TESTS} paths or names as `tests/test_x.py::test_y`, no options")
    for test in tests:
        path = workshop.copy.path(test.partition("::")[0].rstrip("/"))
        if not any(p == path or p.startswith(f"{path}/") for p in workshop.copy.paths()):
            raise ToolFault(f"there is no {path}; search finds tests")

    def perform() -> Done:
        ran = workshop.tests.run_tests(workshop.copy.writes, tests)
        if ran.outcome is SuiteOutcome.COULD_NOT_RUN:
            raise ToolFault(ran.text)
        return Done(text=bounded(ran.text, workshop.limit, "run fewer tests"))

    return Action(perform=perform)


def _run(workshop: Workshop, given: Arguments) -> Action:
    code = given["code"]
    if not code.strip() or len(code) > _MOST_CODE:
        raise ToolFault(f"code is a Python program of at most {_MOST_CODE:,} characters")

    def perform() -> Done:
        said = workshop.tests.run_code(workshop.copy.writes, code)
        return Done(text=bounded(said or "(no output)", workshop.limit, "print less"))

    return Action(perform=perform, code=code)


TOOLS = (
    Tool(
        name="run_tests",
        description="Run the tests (all, or those named) on your changes.",
        parameters=(Parameter(name="tests", kind=Kind.STRINGS, required=False),),
        prepare=_run_tests,
    ),
    Tool(
        name="run",
        description="Run a Python program at the repository's root; nothing it writes is kept.",
        parameters=(Parameter(name="code"),),
        prepare=_run,
    ),
)
