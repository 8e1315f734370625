"""How one model calls tools: by its template through llama.cpp's chat code where that is sound, else in our own format.

A template is trusted with tools when it shows them, has a grammar, and when a call that it renders itself is read back
whole. What comes from outside is escaped (`control_text`) by the vocabulary's control texts and the template's tags. A
reply is read, never believed: a call whose text holds a tag of its format more often than the format itself writes it
is refused, for it may have been cut there.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from localagent.domain.chat import (
    ChatFailure,
    ChatFault,
    ChatReply,
    ChatRequest,
    ChatRole,
    Message,
    ToolCall,
    ToolSchema,
)
from localagent.llm.chat.control_text import ControlTexts, mapped_texts
from localagent.llm.chat.own_format import OPEN, OPENING, flattened, grammar
from localagent.llm.chat.shim.shim_client import Shim, ShimFault
from localagent.llm.chat.tolerant_calls import MOST_CALLS, find_calls

_TAG = re.compile(
    r"</?[A-Za-z_|\uff5c][^<>\s{}\"'%]{0,48}>|\[/?[A-Z_]{3,32}\]|<(?:parameter|function)=|\]\]>|\]<\]minimax\[>\["
)
_MOST_TAGS = 256
_LAST_TAG = re.compile(r"\s*(?:<[^<>]{1,48}>|\[e~\[)\s*\Z")
_WORD = 1  # llama.cpp's number of a trigger that is a text
_PROBE = ToolSchema(
    name="edit",
    description="Replace a text of a file.",
    parameters={
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("path", "old", "new")},
        "required": ["path", "old", "new"],
    },
)
_PROBE_CODE = 'def f(x):\n    if x < 1 and "a" != \'b\':\n        return {"k": [1, 2]}\n\n    return "\\n"\n'
_USER = Message(role=ChatRole.USER, text="hi")


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatPrompt:
    """What the model reads, and how its reply is drawn and read. `text` None: render `turns` by the template alone.

    `opening` is how a forced reply begins, `begun` the part of it that belongs to the call; a grammar that is not lazy
    has read `fed` and that first.
    """

    text: str | None
    turns: tuple[tuple[str, str], ...] = ()
    native: bool = False
    grammar: str = ""
    lazy: bool = False
    fed: str = ""
    opening: str = ""
    begun: str = ""
    triggers: tuple[tuple[int, str], ...] = ()
    stops: tuple[str, ...] = ()
    preserved: tuple[str, ...] = ()
    thinking_ends: tuple[str, ...] = ()
    reader: Mapping[str, object] | None = None


class ToolDialect:
    """One template's way. Without a shim everything goes in our own format."""

    def __init__(
        self,
        template: str,
        *,
        front: str = "",
        end: str = "",
        controls: Iterable[str] = (),
        shim: Shim | None,
        own_format: bool = False,
    ) -> None:
        """`front` and `end` spell the first and last token of a text, `controls` the vocabulary's control texts.

        `own_format`: tools go in localagent's own format, whatever the template carries.
        """
        self._own_format = own_format
        self._template, self._front, self._end, self._shim = template, front, end, shim
        self.tags = tuple(sorted(set(_TAG.findall(template)))[:_MOST_TAGS])
        self.controls = ControlTexts((*controls, *self.tags, OPEN, "</tool_call>"))

    @cached_property
    def native_fault(self) -> str:
        """Why the template is not trusted with tools; "" where it is."""
        if self._own_format:
            return "the model called tools better in localagent's own format"
        if self._shim is None:
            return "this build has no chat shim (a kit holds none; `make setup` in a checkout compiles it)"
        calls = (_probe_call("x = 1", "x = 2"), _probe_call("x = 1", _PROBE_CODE))
        return next((fault for call in calls if (fault := self.departs((call,)))), "")

    def departs(self, calls: Sequence[ToolCall]) -> str:
        """How calls that the template renders differ from what is read back of them, natively; "" if they do not."""
        try:
            asked = self._ask("apply", (_USER,), (_PROBE,))
            if _PROBE.description not in _str(asked, "prompt"):
                return "it does not show tools to the model"
            if not _str(asked, "grammar") and not _str(
                self._ask("apply", (_USER,), (_PROBE,), choice="required"), "grammar"
            ):
                return "it has no grammar of calls"
            turn = Message(role=ChatRole.ASSISTANT, text="", calls=tuple(calls))
            ways = [self._read_of(reply, reader) for reply, reader in self._rendered_replies(turn, escape=True)]
        except ShimFault as fault:
            return str(fault)
        want = [(call.name, _loaded(call.arguments)) for call in calls]
        if any([(call.name, _loaded(call.arguments)) for call in way] == want for way in ways):
            return ""
        return f"of {len(want)} calls that it renders {max(map(len, ways))} are read back, or others"

    def _read_of(self, reply: str, reader: Mapping[str, object]) -> tuple[ToolCall, ...]:
        found = self.read(ChatPrompt(text="", native=True, reader=reader), reply, (_PROBE,), cut=False)
        return () if isinstance(found, ChatFailure) else found.calls

    def prompt(self, request: ChatRequest) -> ChatPrompt | ChatFailure:
        """The conversation as the model is to read it. REFUSED where the template cannot carry it."""
        if request.tools and not self.native_fault:
            try:
                return self._native(request)
            except ShimFault:
                pass  # what the template refuses (two system messages, two calls) our own format may carry
        try:
            return self._own(request)
        except ShimFault as fault:
            return ChatFailure(fault=ChatFault.REFUSED, reason=f"the model's chat template cannot carry this: {fault}")

    def read(self, prompt: ChatPrompt, text: str, tools: Sequence[ToolSchema], *, cut: bool) -> ChatReply | ChatFailure:
        """A whole reply, the opening in front; MALFORMED where it is a call and cannot be taken."""
        try:
            reply = self._read_back(prompt, text) if prompt.reader else ChatReply(text=text, calls=())
        except ShimFault as fault:
            reply = ChatReply(text=text, calls=())
            if prompt.native and _opened(prompt, text) and not find_calls(text, tools).calls:
                return _malformed(f"a call that does not follow the model's own format ({fault})")
        if not reply.calls and tools:
            found = find_calls(reply.text, tools)
            if found.fault:
                return _malformed(found.fault)
            reply = replace(
                reply,
                text=found.text,
                calls=tuple(ToolCall(id="", name=name, arguments=given) for name, given in found.calls),
            )
        elif prompt.native and (tag := self._spare_tag(text, reply)):
            return _malformed(f"a call whose text holds {tag}, at which the model's format may have cut it")
        whole = reply.calls[:-1] if cut else reply.calls  # the last one may have been cut
        if any(not isinstance(_loaded(call.arguments), dict) for call in whole):
            return _malformed("a call whose arguments are no JSON object")
        if text.strip() and not (reply.text or reply.calls or reply.reasoning):
            return _malformed("nothing that can be read")
        calls = tuple(
            replace(call, id=call.id or f"call-{at}", arguments=self.controls.unescaped_json(call.arguments))
            for at, call in enumerate(whole[:MOST_CALLS])
        )
        return replace(
            reply,
            text=self.controls.unescaped(reply.text),
            reasoning=self.controls.unescaped(reply.reasoning),
            calls=calls,
            cut=cut,
        )

    def _native(self, request: ChatRequest) -> ChatPrompt:
        prompt = _prompt(self._ask("apply", request.messages, request.tools), native=True)
        if not request.must_call:
            return prompt
        if prompt.lazy and any(kind == _WORD for kind, _ in prompt.triggers):
            return _forced(prompt, request.tools)
        return _prompt(self._ask("apply", request.messages, request.tools, choice="required"), native=True)

    def _own(self, request: ChatRequest) -> ChatPrompt:
        turns = flattened(replace(request, messages=tuple(map(self._escaped, request.messages))))
        prompt = ChatPrompt(text=None, turns=tuple(turns))
        if self._shim is not None:
            prompt = replace(_prompt(self._plain(turns), native=False), turns=tuple(turns))
        if not request.tools:
            return prompt
        if request.must_call:
            return replace(
                prompt,
                grammar=grammar(request.tools),
                lazy=False,
                fed="",
                opening=_closed_thinking(prompt) + OPENING,
                begun=OPENING,
            )
        return replace(prompt, grammar=grammar(request.tools), lazy=True, fed="", triggers=((_WORD, OPEN),))

    def _plain(self, turns: Sequence[tuple[str, str]]) -> Mapping[str, object]:
        """Turns through the template, without tools; the system message joined to the user's where it is not taken."""
        try:
            return self._carried(turns)
        except ShimFault:
            if turns[0][0] != "system" or len(turns) < 2:
                raise
            return self._carried(_without_system(turns))

    def _carried(self, turns: Sequence[tuple[str, str]]) -> Mapping[str, object]:
        messages = [Message(role=ChatRole(role), text=text) for role, text in turns]
        answer = self._ask("apply", messages, (), choice="none", escape=False)
        prompt = _str(answer, "prompt")
        lost = [text.strip()[:40] for _, text in turns if text.strip()[:400] not in prompt]
        if lost:
            raise ShimFault(f"the template leaves out {lost[0]!r}")
        return answer

    def _ask(
        self,
        kind: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        *,
        choice: str = "auto",
        generate: bool = True,
        escape: bool = True,
    ) -> Mapping[str, object]:
        if self._shim is None:
            raise ShimFault("this build has no chat shim")
        told = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in tools
        ]
        return self._shim.ask(
            kind,
            {
                "template": self._template,
                "bos": self._front,
                "eos": self._end,
                "messages": self._messages(messages, escape=escape),
                "tools": told,
                "tool_choice": choice,
                "parallel": True,
                "thinking": False,
                "generate": generate,
            },
        )

    def _escaped(self, message: Message) -> Message:
        calls = tuple(replace(c, arguments=_each_text(c.arguments, self.controls)) for c in message.calls)
        return replace(message, text=self.controls.escaped(message.text), calls=calls)

    def _messages(self, messages: Sequence[Message], *, escape: bool = True) -> list[dict[str, object]]:
        names = {call.id: call.name for message in messages for call in message.calls}
        numbers = {call_id: f"call{at:05d}" for at, call_id in enumerate(names)}  # Mistral wants nine characters
        told: list[dict[str, object]] = []
        for message in map(self._escaped, messages) if escape else messages:
            one: dict[str, object] = {"role": message.role.value, "content": message.text}
            if message.calls:
                one["tool_calls"] = [
                    {"id": numbers[c.id], "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                    for c in message.calls
                ]
            if message.role is ChatRole.TOOL:
                one["tool_call_id"] = numbers.get(message.call_id, "call99999")
                one["name"] = names.get(message.call_id, "")
            told.append(one)
        return told

    def _rendered_replies(self, turn: Message, *, escape: bool) -> list[tuple[str, Mapping[str, object]]]:
        """What the template makes of an assistant's turn, and how a model's reply of that text is read.

        Where the template begins the turn otherwise than its own prompt does (with no thought, or without the thought
        that the prompt opens), there is a second way: the same behind the whole prompt.
        """
        asked = self._ask("apply", (_USER,), (_PROBE,))
        whole = _str(self._ask("apply", (_USER, turn), (_PROBE,), generate=False, escape=escape), "prompt")
        first, generation = _str(asked, "prompt"), _str(asked, "generation_prompt")
        common, begins = len(_common_start((first, whole))), len(first) - len(generation)
        if common < begins:
            raise ShimFault("what it renders does not begin like its own prompt")
        again = _common_start((first[::-1], whole[common:][::-1]))[::-1]  # some put the next prompt behind any turn
        end = len(whole) - (len(again) - at if (at := again.find("<")) >= 0 else 0)
        ways: list[tuple[str, Mapping[str, object]]] = [
            (whole[common:end], {**_reader(asked), "generation_prompt": generation[: common - begins]})
        ]
        if common < len(first):
            line = max(begins, whole.rfind("\n", 0, common) + 1)
            closed = _closed_thinking(_prompt(asked, native=True))
            ways.append((closed + whole[line:end].lstrip("\n"), _reader(asked)))
        return ways

    def _read_back(self, prompt: ChatPrompt, text: str) -> ChatReply:
        """By llama.cpp's parser; texts of the end of a turn may still stand behind it."""
        if self._shim is None or prompt.reader is None:
            raise ShimFault("this build has no chat shim")
        rest = text
        for _ in range(4):
            try:
                answer = self._shim.ask("parse", {**prompt.reader, "text": rest})
            except ShimFault:
                last = _LAST_TAG.search(rest)
                if last is None:
                    raise
                rest = rest[: last.start()]
            else:
                return _reply(answer)
        raise ShimFault("llama.cpp cannot parse this")

    def _spare_tag(self, text: str, reply: ChatReply) -> str:
        """A tag of the template that a reply has more often than the template itself writes for what was read."""
        calls = tuple(replace(call, id=f"c{at}") for at, call in enumerate(reply.calls))
        try:
            turn = Message(role=ChatRole.ASSISTANT, text=reply.text, calls=calls)
            whole = self._rendered_replies(turn, escape=False)[0][0]
        except ShimFault:
            return ""
        expected, there = Counter(_TAG.findall(whole)), Counter(_TAG.findall(text))
        return next((t for t in self.tags if 0 < expected[t] < there[t] and "think" not in t.lower()), "")


def _probe_call(old: str, new: str) -> ToolCall:
    return ToolCall(id="c0", name=_PROBE.name, arguments=json.dumps({"path": "a.py", "old": old, "new": new}))


def _prompt(answer: Mapping[str, object], *, native: bool) -> ChatPrompt:
    lazy = answer.get("lazy") is True
    return ChatPrompt(
        text=_str(answer, "prompt"),
        native=native,
        grammar=_str(answer, "grammar") if native else "",
        lazy=lazy,
        fed="" if lazy else _str(answer, "generation_prompt"),
        triggers=_triggers(answer),
        stops=_texts(answer, "stops"),
        preserved=_texts(answer, "preserved"),
        thinking_ends=_texts(answer, "thinking_ends")[:1] if _opens_thinking(answer) else (),
        reader=_reader(answer),
    )


def _opens_thinking(answer: Mapping[str, object]) -> bool:
    """Whether the prompt has begun a thought that the model is to end."""
    start, generation = _str(answer, "thinking_start").strip(), _str(answer, "generation_prompt")
    if not start or start not in generation:
        return False
    behind = generation.rpartition(start)[2]
    return not any(end in behind for end in _texts(answer, "thinking_ends"))


def _forced(prompt: ChatPrompt, tools: Sequence[ToolSchema]) -> ChatPrompt:
    """A lazy prompt whose call has begun already, as far as all calls begin alike."""
    words = [value for kind, value in prompt.triggers if kind == _WORD]
    general = [word for word in words if not any(tool.name in word for tool in tools)]
    begun = general[0] if general else _common_start([*words, words[0].partition(tools[0].name)[0]])
    return replace(prompt, lazy=False, fed="", triggers=(), opening=_closed_thinking(prompt) + begun, begun=begun)


def _opened(prompt: ChatPrompt, text: str) -> bool:
    return bool(prompt.opening) or any(value in text for kind, value in prompt.triggers if kind == _WORD)


def _common_start(texts: Sequence[str]) -> str:
    least, most = min(texts), max(texts)
    at = next((at for at, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), min(len(least), len(most)))
    return least[:at]


def _closed_thinking(prompt: ChatPrompt) -> str:
    return "".join(f"\n{end}\n\n" for end in prompt.thinking_ends)


def _without_system(turns: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The system message in front of the first of the user's: some templates know none."""
    (_, system), (role, first), *rest = turns
    return [(role, f"{system}\n\n{first}"), *rest]


def _each_text(arguments: str, controls: ControlTexts) -> str:
    """Arguments with the control texts of each string escaped; as one text where they are no JSON."""
    try:
        return json.dumps(mapped_texts(json.loads(arguments), controls.escaped), ensure_ascii=False)
    except (ValueError, RecursionError):
        return json.dumps({"text": controls.escaped(arguments)})


def _reader(answer: Mapping[str, object]) -> Mapping[str, object]:
    return {name: answer.get(name) for name in ("format", "generation_prompt", "parser")}


def _reply(answer: Mapping[str, object]) -> ChatReply:
    listed = answer.get("calls")
    calls = [call for call in (listed if isinstance(listed, list) else []) if isinstance(call, dict)]
    return ChatReply(
        text=_str(answer, "content"),
        reasoning=_str(answer, "reasoning"),
        calls=tuple(
            ToolCall(id=_str(call, "id"), name=_str(call, "name"), arguments=_str(call, "arguments")) for call in calls
        ),
    )


def _triggers(answer: Mapping[str, object]) -> tuple[tuple[int, str], ...]:
    listed = answer.get("triggers")
    found = (
        [(one.get("type"), one.get("value")) for one in listed if isinstance(one, dict)]
        if isinstance(listed, list)
        else []
    )
    return tuple((kind, value) for kind, value in found if isinstance(kind, int) and isinstance(value, str) and value)


def _texts(answer: Mapping[str, object], name: str) -> tuple[str, ...]:
    listed = answer.get(name)
    return tuple(text for text in listed if isinstance(text, str) and text) if isinstance(listed, list) else ()


def _str(answer: Mapping[str, object], name: str) -> str:
    value = answer.get(name)
    return value if isinstance(value, str) else ""


def _loaded(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def _malformed(why: str) -> ChatFailure:
    return ChatFailure(fault=ChatFault.MALFORMED, reason=f"the model's reply is {why}")
