"""Calls that a model wrote as text instead of calling: one tolerant parse of the common dialects.

Hermes and Qwen `<tool_call>{json}</tool_call>`, Qwen-Coder and GLM XML (`<function=name><parameter=p>`), fenced JSON,
Mistral `[TOOL_CALLS][...]`, Llama `{"name": ..., "parameters": ...}`, `<|python_tag|>`. Only names of tools that were
offered count, so that JSON in an explanation is not taken for a call. Code inside XML parameters is not XML. What is
not closed is no call.
"""

import json
import re
from collections.abc import Collection, Iterator

from localagent.domain.chat import ToolCall

_MOST_TEXT = 400_000
_MOST_CALLS = 16
_FUNCTION = re.compile(r"<function=([\w.-]{1,64})>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]{1,64})>(.*?)</parameter>(?=\s*(?:<parameter=|\Z))", re.DOTALL)
_STARTS = re.compile(r"\{\s*\"|\[\s*\{\s*\"")
_MARKS = ("<tool_call>", "```", "[TOOL_CALLS]", "<|python_tag|>", "<function=", "<|tool_call", '{"name"', '{ "name"')


def calls_in(text: str, names: Collection[str], numbered_from: int) -> tuple[ToolCall, ...]:
    """The calls in a reply's text, in their order; none where it is talk. Ids are made up from a number."""
    if len(text) > _MOST_TEXT or not any(mark in text for mark in _MARKS):
        return ()
    found = [*_in_xml(text, names)] or [*_in_json(text, names)]
    return tuple(
        ToolCall(id=f"text_{numbered_from + n}", name=name, arguments=arguments)
        for n, (name, arguments) in enumerate(found[:_MOST_CALLS])
    )


def _in_xml(text: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
    for function in _FUNCTION.finditer(_closed(text, "</function>")):
        if function[1] in names:
            values = {p[1]: _value(p[2]) for p in _PARAMETER.finditer(_closed(function[2], "</parameter>"))}
            yield function[1], json.dumps(values, ensure_ascii=False)


def _closed(text: str, end: str) -> str:
    """A text up to the last of its ends: what is not closed would be looked for from each of its beginnings."""
    return text[: text.rfind(end) + len(end)] if end in text else ""


def _value(text: str) -> object:
    """A parameter's text; lists and numbers as what they are."""
    plain = text.removeprefix("\n").removesuffix("\n")
    if re.fullmatch(r"\s*(?:-?\d{1,9}|\[.*\])\s*", plain, re.DOTALL):
        try:
            return json.loads(plain)
        except (ValueError, RecursionError):
            return plain
    return plain


def _in_json(text: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
    decoder = json.JSONDecoder(strict=False)
    at, found = 0, 0
    while found < _MOST_CALLS and (start := _STARTS.search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.start() + 1
            continue
        for one in value if isinstance(value, list) else [value]:
            if (call := _call(one, names)) is not None:
                found += 1
                yield call


def _call(value: object, names: Collection[str]) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = value.get("name", value.get("tool"))
    given = next((value[k] for k in ("arguments", "parameters", "args", "input") if k in value), None)
    if not isinstance(name, str) or name not in names or not isinstance(given, dict | str):
        return None
    return name, given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
