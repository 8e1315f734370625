"""All tools, by name. A new tool is a line here, its module and its test."""

from localagent.agent.tools import dialogue_tools, edit_tools, run_tools, search_tools
from localagent.agent.tools.tool import Tool

TOOLS: dict[str, Tool] = {
    tool.name: tool for module in (search_tools, edit_tools, run_tools, dialogue_tools) for tool in module.TOOLS
}
