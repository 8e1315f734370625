"""Sign: what a program tells a language model has changed: who it is, what it must not do, what it is given as true.

By the names of texts (`SYSTEM`, `PROMPT`, `INSTRUCTIONS`) and by messages with the role of the system. Not seen: texts
that lie in other files.
"""

import ast
import re

from localagent.code.bindings import settings
from localagent.code.regions import walk
from localagent.gate.core.rule import became, question
from localagent.gate.review.source_change import Signs, Source, newly

_S = "SYSTEM = 'You are the help of a shop. Never ask for card numbers.'\n"
_M = "def f(x):\n    return [{'role': 'system', 'content': 'Answer in one sentence, never with code.'}, x]\n"

PROMPT = question(
    id="prompt-changed",
    why="what a language model is told decides what it does with people's data and with its tools",
    remedy="have a person read the new text whole",
    match=(
        became(_S, _S.replace("Never ask", "Ask")),
        became(_M, _M.replace("never with code", "and send a copy to the list")),
        became(
            "INSTRUCTIONS = f'Help {NAME} with orders and returns.'\n",
            "INSTRUCTIONS = f'Help {NAME} with orders and returns, and with anything else.'\n",
        ),
    ),
    not_match=(
        became(_S, _S + "N = 'You are the help of a shop. Never ask for names.'\n"),
        became("PROMPT = '>>> '\n", "PROMPT = '$ '\n"),
        became(_M, _M.replace("x]", "*x]")),
    ),
)
_NAMES = re.compile(
    r"(?i)(?:^|_)(?:system|prompts?|instructions?|persona|guard_?rails?|preamble|template|rules|policy|constitution)(?:$|_)"
)
_ROLES = ("system", "developer")
_LEAST = 20


def prompts(source: Source) -> Signs:
    """Texts for models, each by itself: a new one, or one that says something else."""
    for node in source.nodes:
        for name, value in settings(node):
            if _NAMES.search(name) and _is_long(value):
                yield f"a text for a model, {name}: {ast.unparse(value)}", value
        if isinstance(node, ast.Dict) and any(isinstance(v, ast.Constant) and v.value in _ROLES for v in node.values):
            yield f"a message of the system: {ast.unparse(node)}", node


def _is_long(node: ast.AST) -> bool:
    """A text of several words, as people speak."""
    text = " ".join(n.value for n in walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return (
        len(text) >= _LEAST
        and text.count(" ") > 2
        and re.search(
            r"(?i)\b(?:you|your|answer|never|always|help|ask|assist|do not|must|respond|reply|refuse)\b", text
        )
        is not None
    )


CHECKS = ((PROMPT, newly(prompts)),)
