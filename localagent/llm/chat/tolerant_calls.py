"""Calls found in a reply without llama.cpp's parsers: Hermes and Llama JSON, XML of functions, harmony.

Tolerant of what models do to the envelope (no line end, no closing tag, a fence), never of what would cut an argument:
where the tags of a call do not pair, there is no call but a reason. Time is linear in the text.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from localagent.domain.chat import ToolSchema

MOST_CALLS = 64
_JSON_OPENINGS = re.compile(
    r"<tool_calls?>\s*\[?\s*(?=\{)|<\|python_tag\|>\s*(?=\{)|\[TOOL_CALLS\]\s*\[?\s*(?=\{)|```(?:json|tool_call)?\s*(?=\{)"
    r"|\A\s*\[?\s*(?=\{)|<\|message_sep\|>\s*(?=\{)|<\|function_call\|>\s*(?=\{)|function call<\|role_sep\|>\s*(?=\{)"
)
_BETWEEN = re.compile(
    r"[\s,;]*(?:</tool_calls?>|<tool_calls?>|[\s,;]|<\|function_call\|>|function call<\|role_sep\|>)*(?=\{)"
)
_HARMONY = re.compile(
    r"to=functions\.([\w.\-]{1,64})[^{<]{0,64}(?:<\|channel\|>\w{1,32} ?(?:json)?)?(?:<\|constrain\|>json)?"
    r"<\|message\|>\s*(?=\{)"
)
_XML = re.compile(r"<(?:function=|invoke name=\"|function name=\")([\w.\-]{1,64})\"?>")
_XML_END = re.compile(r"</(?:function|invoke)>")
_PARAMETER = re.compile(r"<(?:parameter=|parameter name=\")([\w.\-]{1,64})\"?>")
_PARAMETER_END = re.compile(r"</parameter>")


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundCalls:
    """What stands in front of the calls, each call's name and arguments as JSON, or why they cannot be taken."""

    text: str
    calls: tuple[tuple[str, str], ...] = ()
    fault: str = ""


def find_calls(reply: str, tools: Sequence[ToolSchema]) -> FoundCalls:
    """The calls of the first family that there are any of."""
    for family in (_harmony, _xml, _json):
        found = family(reply, tools)
        if found.calls or found.fault:
            return found
    return FoundCalls(text=reply)


def _json(reply: str, _tools: Sequence[ToolSchema]) -> FoundCalls:
    opening = _JSON_OPENINGS.search(reply)
    if opening is None:
        return FoundCalls(text=reply)
    calls = tuple(_objects(reply, opening.end()))
    return FoundCalls(text=reply[: opening.start()].strip() if calls else reply, calls=calls)


def _objects(reply: str, at: int) -> Iterator[tuple[str, str]]:
    decoder = json.JSONDecoder(strict=False)
    for _ in range(MOST_CALLS):
        try:
            value, at = decoder.raw_decode(reply, at)
        except (ValueError, RecursionError):
            return
        name, arguments = value.get("name"), value.get("arguments", value.get("parameters"))
        if not isinstance(name, str) or not isinstance(arguments, dict | str):
            return
        yield name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        between = _BETWEEN.match(reply, at)
        if between is None:
            return
        at = between.end()


def _harmony(reply: str, _tools: Sequence[ToolSchema]) -> FoundCalls:
    calls, decoder = list[tuple[str, str]](), json.JSONDecoder(strict=False)
    first = len(reply)
    for opening in _HARMONY.finditer(reply):
        try:
            value, _ = decoder.raw_decode(reply, opening.end())
        except (ValueError, RecursionError):
            continue
        first = min(first, opening.start())
        calls.append((opening[1], json.dumps(value, ensure_ascii=False)))
    return FoundCalls(text=reply[:first].strip() if not calls else "", calls=tuple(calls[:MOST_CALLS]))


def _xml(reply: str, tools: Sequence[ToolSchema]) -> FoundCalls:
    openings = list(_XML.finditer(reply))
    if not openings:
        return FoundCalls(text=reply)
    begun = (len(openings), len(_PARAMETER.findall(reply)))
    ended = (len(_XML_END.findall(reply)), len(_PARAMETER_END.findall(reply)))
    if begun != ended:
        return FoundCalls(text="", fault=f"its tags do not pair ({sum(begun)} opened, {sum(ended)} closed)")
    calls = []
    for opening, following in zip(openings, (*openings[1:], None), strict=True):
        body = reply[opening.end() : following.start() if following else len(reply)]
        calls.append((opening[1], json.dumps(dict(_parameters(body, opening[1], tools)), ensure_ascii=False)))
    text = reply[: openings[0].start()].removesuffix("\n").removesuffix("<tool_call>").strip()
    return FoundCalls(text=text, calls=tuple(calls[:MOST_CALLS]))


def _parameters(body: str, tool: str, tools: Sequence[ToolSchema]) -> Iterator[tuple[str, object]]:
    for opening in _PARAMETER.finditer(body):
        end = body.find("</parameter>", opening.end())
        value = body[opening.end() : end].removeprefix("\n").removesuffix("\n")
        yield opening[1], _typed(value, opening[1], tool, tools)


def _typed(value: str, parameter: str, tool: str, tools: Sequence[ToolSchema]) -> object:
    """Text stays text where the schema says so, or nothing; else it is JSON where it can be."""
    known = next((t.parameters.get("properties") for t in tools if t.name == tool), None)
    schema = known.get(parameter) if isinstance(known, Mapping) else None
    if not isinstance(schema, Mapping) or schema.get("type", "string") == "string":
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
