"""Calls that stand in a reply's text, in the dialects of the large families; talk is none."""

import json

import pytest

from localagent.agent.text_calls import calls_in

NAMES = ("edit", "read", "run_tests")
CODE = 'if a < b and c > d:\n    return "</x>"\n'


@pytest.mark.parametrize(
    "said",
    [
        '<tool_call>\n{"name": "read", "arguments": {"path": "a.py"}}\n</tool_call>',
        'Next:\n```json\n{"name": "read", "arguments": {"path": "a.py"}}\n```',
        '[TOOL_CALLS][{"name": "read", "arguments": {"path": "a.py"}}]',
        '<|python_tag|>{"name": "read", "parameters": {"path": "a.py"}}',
        '{"name": "read", "parameters": {"path": "a.py"}}',
        '```\n{"type": "function", "function": {"name": "read", "arguments": "{\\"path\\": \\"a.py\\"}"}}\n```',
        "<tool_call>\n<function=read>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>",
        "<function=read>\n<parameter=path>\na.py\n</parameter>\n</function>",
    ],
)
def test_one_call(said: str) -> None:
    (call,) = calls_in(said, NAMES, 7)
    assert (call.name, json.loads(call.arguments), call.id) == ("read", {"path": "a.py"}, "text_7")


def test_code_in_parameters_is_not_xml() -> None:
    said = f"<function=edit>\n<parameter=path>\na.py\n</parameter>\n<parameter=new>\n{CODE}</parameter>\n</function>"
    (call,) = calls_in(said, NAMES, 0)
    assert json.loads(call.arguments)["new"] == CODE.rstrip("\n")


def test_two_calls_and_a_list() -> None:
    one = '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>'
    two = '<function=run_tests><parameter=tests>["tests/a.py"]</parameter></function>'
    assert [c.name for c in calls_in(one + one, NAMES, 0)] == ["read", "read"]
    assert json.loads(calls_in(two, NAMES, 0)[0].arguments) == {"tests": ["tests/a.py"]}


@pytest.mark.parametrize(
    "said",
    [
        "I would call read with a.py.",
        '```json\n{"name": "shop", "version": 1}\n```',
        '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "edit", "arguments": {"path": "a.py", "old": "x", "new": "half',
        "<function=edit><parameter=path>a.py</parameter><parameter=new>half",
        "```" + "[" * 50_000,
        '```{"a":' * 20_000,
    ],
)
def test_talk_and_what_is_cut_are_no_calls(said: str) -> None:
    assert calls_in(said, NAMES, 0) == ()


@pytest.mark.parametrize(
    "said",
    [
        "<function=read>" * 20_000,
        "<function=read>" + "<parameter=path></parameter>x" * 10_000 + "</function>",
        "<function=read></function>" + "<function=read>" * 20_000,
    ],
)
def test_what_is_not_closed_is_not_looked_for_again_and_again(said: str) -> None:
    """Hours, where each beginning is followed to the end."""
    calls_in(said, NAMES, 0)
