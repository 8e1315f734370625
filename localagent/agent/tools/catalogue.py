"""All tools, by name, and which of them a role has. A new tool is a line here, its module and its test."""

from localagent.agent.tools import dialogue_tools, edit_tools, run_tools, search_tools
from localagent.agent.tools.tool import Tool

TOOLS: dict[str, Tool] = {
    tool.name: tool for module in (search_tools, edit_tools, run_tools, dialogue_tools) for tool in module.TOOLS
}

_LOOKING = ("search", "read", "symbol", "references")
PLANNER_TOOLS = {**{name: TOOLS[name] for name in (*_LOOKING, "ask")}, "plan": dialogue_tools.PLAN_FILES}
TESTER_TOOLS = {
    **{name: TOOLS[name] for name in (*_LOOKING, "edit", "create", "delete", "run_tests", "ask", "finish")},
    "no_test": dialogue_tools.NO_TEST,
}
PLANNED_TOOLS = {**TOOLS, "plan": dialogue_tools.PLAN_WITHIN}
"""Of who works by a plan that was agreed to."""
