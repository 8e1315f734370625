"""A tool: its schema, what it makes of its arguments, and the result as a model reads it."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from localagent.agent.agent_ports import CodeSearch, Judgement, PatchJudge, Person, SuiteRunner
from localagent.agent.events import Agreement, FileWrite
from localagent.agent.tools.working_copy import ToolFault, WorkingCopy
from localagent.domain.chat import ToolSchema
from localagent.domain.paths import RepoPath
from localagent.text.escaping import escaped

_MOST_ARGUMENTS = 600_000
_MOST_DEPTH = 20
Arguments = Mapping[str, Any]


class Kind(Enum):
    """The type of a parameter, as JSON schema names it."""

    STRING = "string"
    INTEGER = "integer"
    STRINGS = "array"


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One parameter of a tool."""

    name: str
    kind: Kind = Kind.STRING
    required: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What a call came to. `judgement`: of `finish`; `asks`: a question that nobody is there to answer.

    `writes`: what it is known only now that the copy is to keep.
    """

    text: str
    plan: tuple[str, ...] = ()
    judgement: Judgement | None = None
    asks: str = ""
    writes: tuple[FileWrite, ...] = ()
    agreement: Agreement | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """What a call would do, for the choke point to allow; `perform` does it, after the writes are in the copy."""

    perform: Callable[[], Done]
    writes: tuple[FileWrite, ...] = ()
    code: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Workshop:
    """What the tools work with. `limit`: characters of one result; `plan_is_asked`: by a yes of whoever is there.

    `agreed_files`: those that may be changed by the plan that was agreed to, None where there is none.
    """

    copy: WorkingCopy
    search: CodeSearch
    tests: SuiteRunner
    judge: PatchJudge
    person: Person
    limit: int
    assume: bool
    made_edits: Callable[[], Collection[tuple[str, str, str]]]
    plan_is_asked: bool = True
    agreed_files: Callable[[], Collection[RepoPath] | None] = lambda: None


Prepare = Callable[[Workshop, Arguments], Action]
"""Makes the action of a call. ToolFault says what is wrong with its arguments."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSpec:
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]

    @property
    def schema(self) -> ToolSchema:
        """As a model is told."""
        strings = {"type": "array", "items": {"type": "string"}}
        kinds: dict[str, object] = {
            p.name: strings if p.kind is Kind.STRINGS else {"type": p.kind.value} for p in self.parameters
        }
        required = [p.name for p in self.parameters if p.required]
        shape: dict[str, object] = {"type": "object", "properties": kinds}
        return ToolSchema(
            name=self.name,
            description=self.description,
            parameters=shape | ({"required": required} if required else {}),
        )

    @property
    def usage(self) -> str:
        """How it is called, in a line."""
        return f"{self.name}({', '.join(p.name + ('' if p.required else '?') for p in self.parameters)})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool(ToolSpec):
    """A tool with what it does."""

    prepare: Prepare


def parse_arguments(tool: ToolSpec, text: str) -> Arguments:
    """The arguments of a call, each of its type. ToolFault says how to call."""
    if len(text) > _MOST_ARGUMENTS:
        raise ToolFault(f"the arguments are longer than {_MOST_ARGUMENTS:,} characters; make smaller edits")
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise ToolFault(f"the arguments are not valid JSON; call {tool.usage} with one JSON object") from None
    if not isinstance(given, dict) or _depth(given) > _MOST_DEPTH:
        raise ToolFault(f"the arguments must be one JSON object; call {tool.usage}")
    known = {p.name: p for p in tool.parameters}
    if unknown := [name for name in given if name not in known]:
        raise ToolFault(f"{tool.name} has no parameter {escaped(unknown[0][:40])[0]!r}; call {tool.usage}")
    if missing := [p.name for p in tool.parameters if p.required and given.get(p.name) is None]:
        raise ToolFault(f"the parameter {missing[0]!r} is missing; call {tool.usage}")
    return {name: _typed(tool, known[name], value) for name, value in given.items() if value is not None}


def _typed(tool: ToolSpec, parameter: Parameter, value: object) -> object:
    match parameter.kind:
        case Kind.STRING if isinstance(value, str):
            return value
        case Kind.INTEGER if isinstance(value, int) and not isinstance(value, bool):
            return value
        case Kind.STRINGS if isinstance(value, list) and all(isinstance(x, str) for x in value):
            return value
    kind = "a list of strings" if parameter.kind is Kind.STRINGS else f"of type {parameter.kind.value}"
    raise ToolFault(f"{parameter.name!r} must be {kind}; call {tool.usage}")


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level and depth <= _MOST_DEPTH:
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        depth += 1
    return depth


def bounded(text: str, limit: int, rest: str) -> str:
    """A result in plain characters, whole lines up to a limit; `rest` says what to do about more."""
    shown = escaped(text)[0]
    if len(shown) <= limit:
        return shown
    cut = shown.rfind("\n", 0, limit)
    head = shown[: cut if cut > limit // 2 else limit]
    return f"{head}\n[{len(shown) - len(head)} more characters: {rest}]"


def numbered(lines: list[str], first: int) -> str:
    """Lines with their numbers."""
    return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, first))
