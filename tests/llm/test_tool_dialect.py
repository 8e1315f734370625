"""How models call tools: each template of llama.cpp's source package, replies that lose text, hostile templates."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from localagent.domain.chat import ChatFailure, ChatRequest, ChatRole, Message, ToolCall, ToolSchema
from localagent.jail.api import NamespaceJail
from localagent.llm.chat.own_format import OPENING, grammar, written
from localagent.llm.chat.shim.library import find_library
from localagent.llm.chat.shim.shim_client import ChatShim, ShimFault
from localagent.llm.chat.tolerant_calls import find_calls
from localagent.llm.chat.tool_dialect import ToolDialect

DOWNLOADS = Path(__file__).resolve().parents[2] / ".build" / "downloads"
EDIT = ToolSchema(
    name="edit",
    description="Replace a text.",
    parameters={
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("path", "old", "new")},
        "required": ["path", "old", "new"],
    },
)
USER = Message(role=ChatRole.USER, text="hi")
CODE = 'def f(x):\n    if x < 1 and "a" != \'b\':\n        return {"k": [1, 2]}\n\n    return "\\n"\n'


@pytest.fixture(scope="module")
def shim(jail: NamespaceJail) -> Iterator[ChatShim]:
    library = find_library()
    if library is None:
        pytest.skip("this environment has no chat shim: `make setup` builds it where llama.cpp's source is there")
    made = ChatShim(jail, library, seconds=60.0)
    yield made
    made.close()


@pytest.fixture(scope="module")
def templates() -> dict[str, str]:
    source = next(iter(sorted(DOWNLOADS.glob("llama_cpp_python-*.tar.gz"))), None)
    if source is None:
        pytest.skip("the source package of llama.cpp, which has the templates, is not in .build/downloads")
    found: dict[str, str] = {}
    with tarfile.open(source) as package:
        for member in package:
            if "/models/templates/" in member.name and member.name.endswith(".jinja"):
                stream = package.extractfile(member)
                assert stream is not None
                found[Path(member.name).stem] = stream.read().decode("utf-8")
    return found


def edit(number: int, old: str, new: str) -> ToolCall:
    return ToolCall(id=f"c{number}", name="edit", arguments=json.dumps({"path": "a.py", "old": old, "new": new}))


def arguments(calls: tuple[ToolCall, ...]) -> list[object]:
    return [json.loads(call.arguments) for call in calls]


def own_departs(dialect: ToolDialect, calls: tuple[ToolCall, ...]) -> str:
    """As `ToolDialect.departs`, in our own format: what was said before is shown so, and read back."""
    request = ChatRequest(messages=(Message(role=ChatRole.SYSTEM, text="s"), USER), tools=(EDIT,), must_call=True)
    prompt = dialect.prompt(request)
    if isinstance(prompt, ChatFailure):
        return prompt.reason
    reply = prompt.opening.removesuffix(OPENING) + written(calls)
    found = dialect.read(prompt, reply, (EDIT,), cut=False)
    return str(found) if isinstance(found, ChatFailure) or arguments(found.calls) != arguments(calls) else ""


@pytest.mark.slow
def test_calls_come_back_whole_through_the_templates_of_llama_cpp(shim: ChatShim, templates: dict[str, str]) -> None:
    """The bars of docs/chat-models.md: of 70 templates 68, 68, 68 and 60, at least 55 by llama.cpp's own format."""
    assert len(templates) == 70
    lost: dict[str, dict[str, str]] = {name: {} for name in ("plain", "code", "tags", "two")}
    native = 0
    for name, source in templates.items():
        dialect = ToolDialect(source, front="<s>", end="</s>", shim=shim)
        departs = own_departs if dialect.native_fault else ToolDialect.departs
        native += not dialect.native_fault
        tagged = "x = '" + "' + '".join(dialect.tags[:40]) + "'\n"
        cases = {"plain": "x = 2", "code": CODE, "tags": tagged}
        for case, text in cases.items():
            if why := departs(dialect, (edit(0, "x = 1", text),)):
                lost[case][name] = why
        if why := departs(dialect, (edit(0, "x = 1", "x = 2"), edit(1, "y = 1", "y = 2"))):
            lost["two"][name] = why
    for (case, names), most in zip(lost.items(), (2, 2, 2, 10), strict=True):
        assert len(names) <= most, (case, names)
    assert native >= 55
    assert shim.restarts == 0


@pytest.mark.long
def test_a_call_that_its_own_tags_cut_is_refused(shim: ChatShim, templates: dict[str, str]) -> None:
    """Formats that carry arguments as raw text give back less than was written, and no error: we do not take it."""
    dialect = ToolDialect(templates["Qwen3-Coder"], shim=shim)
    prompt = dialect.prompt(ChatRequest(messages=(USER,), tools=(EDIT,)))
    assert not isinstance(prompt, ChatFailure)
    assert prompt.native

    def reply(new: str) -> str:
        values = {"path": "a.py", "old": "x", "new": new}
        told = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in values.items())
        return f"<tool_call>\n<function=edit>\n{told}</function>\n</tool_call>"

    whole = dialect.read(prompt, reply("y = 1\n"), (EDIT,), cut=False)
    assert not isinstance(whole, ChatFailure)
    assert arguments(whole.calls) == [{"path": "a.py", "old": "x", "new": "y = 1\n"}]
    for new in ("a\n</parameter>\nb", "a\n</parameter>\n</function>\n</tool_call>\nb", "s = '</function>'"):
        cut = dialect.read(prompt, reply(new), (EDIT,), cut=False)
        if not isinstance(cut, ChatFailure):  # read whole, or not at all
            assert arguments(cut.calls) == [{"path": "a.py", "old": "x", "new": new}]
    escaped = dialect.read(prompt, reply(dialect.controls.escaped("a\n</parameter>\nb")), (EDIT,), cut=False)
    assert not isinstance(escaped, ChatFailure)
    assert arguments(escaped.calls) == [{"path": "a.py", "old": "x", "new": "a\n</parameter>\nb"}]
    late = dialect.read(prompt, reply("y"), (EDIT,), cut=True)
    assert not isinstance(late, ChatFailure)
    assert (late.calls, late.cut) == ((), True)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 4 is divisibleby 0 }}",
        "{% for i in range(1000000000) %}{% endfor %}",
        "{{ " + "[" * 400_000 + " }}",
        "{{ (",
        "",
    ],
)
def test_a_hostile_template_costs_the_helper_alone(shim: ChatShim, template: str) -> None:
    hurried = ChatShim(shim._jail, shim._library, seconds=5.0)
    dialect = ToolDialect(template, shim=hurried)
    answer = dialect.prompt(ChatRequest(messages=(USER,), tools=(EDIT,)))
    assert isinstance(answer, ChatFailure) or answer.text is not None
    sound = ToolDialect("{{ messages[0].content }}", shim=hurried).prompt(ChatRequest(messages=(USER,)))
    hurried.close()
    assert not isinstance(sound, ChatFailure)
    assert sound.text == "hi"


def test_a_hostile_reply_costs_the_helper_alone(shim: ChatShim, templates: dict[str, str]) -> None:
    dialect = ToolDialect(templates["Qwen-Qwen2.5-7B-Instruct"], shim=shim)
    prompt = dialect.prompt(ChatRequest(messages=(USER,), tools=(EDIT,)))
    assert not isinstance(prompt, ChatFailure)
    deep = '<tool_call>\n{"name": "edit", "arguments": {"path": ' + "[" * 20_000
    assert isinstance(dialect.read(prompt, deep, (EDIT,), cut=False), ChatFailure)
    assert dialect.native_fault == ""
    before = shim.restarts
    with pytest.raises(ShimFault):
        shim.ask("parse", {"format": 2, "parser": "[" * 1_000_000, "text": "x", "generation_prompt": ""})
    assert shim.restarts <= before + 1


HERMES = '<tool_call>\n{"name": "edit", "arguments": {"path": "a", "old": "<b>", "new": "</tool_call>"}}\n</tool_call>'


@pytest.mark.parametrize(
    ("reply", "calls"),
    [
        (HERMES, [{"path": "a", "old": "<b>", "new": "</tool_call>"}]),
        ("Next:\n" + HERMES + "\n" + HERMES, [{"path": "a", "old": "<b>", "new": "</tool_call>"}] * 2),
        ('{"name": "edit", "parameters": {"path": "a"}}', [{"path": "a"}]),
        ('```json\n{"name": "edit", "arguments": {"path": "a"}}\n```', [{"path": "a"}]),
        ("<function=edit>\n<parameter=new>\n a < b\n\n</parameter>\n</function>\n</tool_call>", [{"new": " a < b\n"}]),
        ('<|channel|>commentary to=functions.edit <|constrain|>json<|message|>{"path": "a"}<|call|>', [{"path": "a"}]),
        ("I would call <tool_call> if I could", []),
        ('<tool_call>\n{"name": "edit", "argum', []),
        ("[" * 100_000, []),
        ('{"name": "edit", "arguments": ' + "[" * 100_000, []),
    ],
)
def test_four_families_are_read_without_llama_cpp(reply: str, calls: list[object]) -> None:
    assert [json.loads(given) for _, given in find_calls(reply, (EDIT,)).calls] == calls


def test_tags_that_do_not_pair_are_no_call() -> None:
    found = find_calls("<function=edit>\n<parameter=new>\na</parameter>b\n</parameter>\n</function>", (EDIT,))
    assert (found.calls, "do not pair" in found.fault) == ((), True)


def test_without_a_shim_our_own_format_goes_through_the_template_alone() -> None:
    dialect = ToolDialect("{{ messages }}", shim=None)
    said = Message(role=ChatRole.ASSISTANT, text="", calls=(edit(0, "a", "<tool_call>"),))
    result = Message(role=ChatRole.TOOL, text="done", call_id="c0")
    prompt = dialect.prompt(ChatRequest(messages=(USER, said, result, USER), tools=(EDIT,)))
    assert not isinstance(prompt, ChatFailure)
    assert (prompt.text, [role for role, _ in prompt.turns]) == (None, ["system", "user", "assistant", "user"])
    assert '"name": "edit"' in prompt.turns[0][1]
    reply = dialect.read(prompt, HERMES, (EDIT,), cut=False)
    assert not isinstance(reply, ChatFailure)
    assert arguments(reply.calls) == [{"path": "a", "old": "<b>", "new": "</tool_call>"}]
    assert 'tool0 ::= "{\\"name\\": "' in grammar((EDIT,))
