"""Our own way of calling tools, for models whose chat template has none that can be trusted: JSON between two tags.

Tools stand in the system message, calls in the assistant's text, results in the user's, so any template that carries a
conversation carries it. The form is that of Hermes and Qwen 2.5, which most models have seen.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby

from localagent.domain.chat import ChatRequest, ChatRole, Message, ToolCall, ToolSchema

OPEN, CLOSE = "<tool_call>", "</tool_call>"
OPENING = OPEN + '\n{"name": "'
_SPACE = 'ws ::= | " " | "\\n" [ \\t]{0,20}'
_JSON = (
    _SPACE,
    'char ::= [^"\\\\\\x7F\\x00-\\x1F] | [\\\\] (["\\\\/bfnrt] | "u" [0-9a-fA-F]{4})',
    'string ::= "\\"" char* "\\""',
    'integer ::= "-"? ("0" | [1-9] [0-9]{0,15})',
    'boolean ::= "true" | "false"',
    'strings ::= "[" ws (string (ws "," ws string)*)? ws "]"',
)
_RULES = {"string": "string", "integer": "integer", "boolean": "boolean", "array": "strings"}


def instructions(tools: Sequence[ToolSchema]) -> str:
    """What the system message says of tools."""
    told = "\n".join(
        json.dumps(
            {"name": t.name, "description": t.description, "parameters": _plain(t.parameters)}, ensure_ascii=False
        )
        for t in tools
    )
    return (
        f"You may call these tools:\n{told}\n\nTo call one, write exactly\n{OPEN}\n"
        '{"name": NAME, "arguments": {...}}\n'
        f"{CLOSE}\nand nothing after it. You can write several calls one after the other."
    )


def flattened(request: ChatRequest) -> list[tuple[str, str]]:
    """The conversation in the roles system, user and assistant, no two neighbours alike, tools described in front."""
    system = [m.text for m in request.messages if m.role is ChatRole.SYSTEM]
    system += [instructions(request.tools)] if request.tools else []
    turns = [(_role(m), _text(m)) for m in request.messages if m.role is not ChatRole.SYSTEM]
    joined = [(role, "\n\n".join(text for _, text in some)) for role, some in groupby(turns, key=lambda turn: turn[0])]
    return [*([("system", "\n\n".join(system))] if system else []), *joined]


def written(calls: Sequence[ToolCall]) -> str:
    """Calls as an assistant writes them."""
    return "\n".join(f'{OPEN}\n{{"name": {json.dumps(c.name)}, "arguments": {c.arguments}}}\n{CLOSE}' for c in calls)


def grammar(tools: Sequence[ToolSchema]) -> str:
    """GBNF of one call or several: each argument of its type, the required ones all there, in the schema's order."""
    rules = ['root ::= call ("\\n" call)*', f'call ::= "{OPEN}\\n" body "\\n{CLOSE}"']
    rules.append("body ::= " + " | ".join(f"tool{at}" for at in range(len(tools))))
    for at, tool in enumerate(tools):
        name = _quoted(json.dumps(tool.name))
        rules.append(f'tool{at} ::= "{{\\"name\\": " {name} ", \\"arguments\\": {{" {_arguments(tool)} "}}}}"')
    return "\n".join((*rules, *_JSON)) + "\n"


def _arguments(tool: ToolSchema) -> str:
    properties, required = tool.parameters.get("properties"), tool.parameters.get("required")
    table = properties if isinstance(properties, Mapping) else {}
    needed = set(required) if isinstance(required, list | tuple) else set()
    first = [name for name in table if name in needed]
    pairs = [f"{_quoted(json.dumps(name) + ': ')} {_rule(table[name])}" for name in first]
    rest = [f"{_quoted(json.dumps(name) + ': ')} {_rule(table[name])}" for name in table if name not in needed]
    text = ' ", " '.join(pairs)
    if text:
        return " ".join((text, *(f'(", " {pair})?' for pair in rest)))
    return f"({' | '.join(rest)})?" if rest else '""'


def _rule(schema: object) -> str:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return _RULES.get(kind, "string") if isinstance(kind, str) else "string"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _role(message: Message) -> str:
    return "assistant" if message.role is ChatRole.ASSISTANT else "user"


def _text(message: Message) -> str:
    if message.role is ChatRole.TOOL:
        return f"<tool_response>\n{message.text}\n</tool_response>"
    return "\n".join(part for part in (message.text, written(message.calls)) if part)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
