"""Reads instructions in words by rule: only a sentence that is understood whole is a recipe's."""

import ast
import re
from dataclasses import dataclass
from enum import StrEnum

from localagent.code.source_text import parse_or_none

_MOST = 600  # characters of an instruction that a rule reads
_QUOTES = re.compile(r"[`\u2018\u2019\u201c\u201d]")
_KIND = (
    r"(?:(?P<{0}>function|method|class|constant|parameter|param|argument|arg|variable|attribute|field|property|module"
    r"|file|package|test)\s+)?"
)
_NAME = r"['\"`]?(?P<{0}>[^\W\d][\w.]*(?:/[\w./-]+\.pyi?(?::[\w.]+)?|\.pyi?:[\w.]+)?)(?:\(\))?['\"`]?"
_KINDS_AFTER = r"(?:\s+(?P<kind_after>function|method|class|constant|parameter|argument|variable|attribute|property))?"
_IN = (
    r"(?:\s+(?:in|of|from|inside|within|on)\s+(?:the\s+)?(?:function\s+|method\s+|class\s+|module\s+|file\s+)?"
    + _NAME.format("around")
    + r"(?:\s+(?:function|method|class|module))?)?"
)
_IN_OUTER = (
    r"(?:\s+(?:in|of|from)\s+(?:the\s+)?(?:class\s+|module\s+|file\s+)?" + _NAME.format("outer") + r"(?:\s+module)?)?"
)
_IN_LAST = _IN.replace("around", "around_last")
_SCOPE = (
    r"(?:\s*,?\s*(?:(?:everywhere|across\s+the\s+(?:repository|project|code\s*base)|in\s+all\s+files"
    r"|and\s+(?:update\s+)?(?:all\s+)?(?:its\s+|the\s+)?(?:callers|calls|uses|usages|references)(?:\s+too)?"
    r"|(?P<also>(?:and\s+)?(?:also\s+|including\s+)(?:the\s+)?possible\s+(?:ones|places))"
    r"|(?P<leave>(?:and\s+)?(?:leave|without|leaving)\s+(?:the\s+)?possible\s+(?:ones|places)))))*"
)
_BEGIN = r"(?:please\s+)?(?:can\s+you\s+|could\s+you\s+)?"
_END = r"\s*[.!?]?"
_OLD = r"(?:the\s+)?" + _KIND.format("kind") + _NAME.format("old") + _KINDS_AFTER + _IN + _IN_OUTER
_NEW = r"['\"`]?(?P<new>[^\s'\"`,;]+?)(?:\(\))?['\"`]?"
_RENAMES = tuple(
    re.compile(_BEGIN + pattern + _SCOPE + _END, re.IGNORECASE)
    for pattern in (
        rf"rename\s+{_OLD}\s*(?:\s(?:to|as|into)\s|->|=>|\u2192)\s*{_NEW}{_IN_LAST}",
        rf"change\s+the\s+name\s+of\s+{_OLD}\s+(?:to|into)\s+{_NEW}",
        rf"change\s+{_OLD}['\"`]?s?\s+name\s+to\s+{_NEW}",
        rf"{_OLD}\s+(?:should|must|shall)\s+be\s+(?:called|named|renamed\s+to)\s+{_NEW}",
        rf"give\s+{_OLD}\s+the\s+(?:new\s+)?name\s+{_NEW}",
    )
)
_VALUE = r"(?:'[^']*'|\"[^\"]*\"|`[^`]+`|[\w.]*\([^()]*\)|\[[^\[\]]*\]|\{{[^{{}}]*\}}|[^\s,;`()]+)"
_SPEC = (
    r"(?:`(?P<quoted>[^`]+)`|(?P<spec>[^\W\d]\w*(?:\s*:\s*[\w.\[\]| ]+?)?(?:\s*=\s*" + _VALUE.format() + r")?))"
    r"(?:\s*,?\s*\(?(?:(?:with|having)\s+)?(?:a\s+|the\s+)?default(?:s|ing)?(?:\s+value)?(?:\s+(?:of|to))?\s*:?\s*"
    r"(?P<default>" + _VALUE.format() + r")\)?)?"
)
_PARAMETER = (
    r"(?:an?\s+|the\s+)?(?:new\s+|optional\s+|required\s+|keyword(?:-only)?\s+|another\s+|extra\s+)*"
    r"(?:parameter|param|argument|arg)\s+(?:named\s+|called\s+)?"
)
_FUNCTION = (
    r"(?:the\s+)?(?:(?P<kind>function|method|class)\s+)?" + _NAME.format("function")
    + r"(?:\s+(?:function|method))?" + _IN + _IN_OUTER
)  # fmt: skip
_PASS = (
    r"(?:\s*,?\s*(?:and\s+|then\s+)?(?:pass|give|use)\s+(?P<value>" + _VALUE.format() + r")\s+(?:"
    r"(?P<every>everywhere|(?:at|in|to|from|for)\s+(?:all|every|each)\s+(?:of\s+)?(?:its\s+|the\s+)?(?:calls?|callers?))"
    r"|(?:in|from|at)\s+(?:the\s+)?(?:function\s+|method\s+)?" + _NAME.format("caller") + r"))?"
)
_ADDS = tuple(
    re.compile(_BEGIN + pattern + _PASS + _END, re.IGNORECASE)
    for pattern in (
        rf"(?:add|introduce)\s+{_PARAMETER}{_SPEC}\s+(?:to|on|in|for)\s+{_FUNCTION}",
        rf"add\s+to\s+{_FUNCTION}\s+{_PARAMETER}{_SPEC}",
        rf"(?:give|extend)\s+{_FUNCTION}\s+(?:with\s+|by\s+)?{_PARAMETER}{_SPEC}",
        rf"{_FUNCTION}\s+(?:should|must|shall)\s+(?:take|accept|have|get)\s+{_PARAMETER}{_SPEC}",
    )
)
RECIPES = (
    "rename NAME [in MODULE, CLASS or FUNCTION] to NEW",
    "add a parameter NAME=DEFAULT to FUNCTION [and pass VALUE in CALLER, or at every call]",
)
"""What can be said, to be shown."""


class Possible(StrEnum):
    """What is done with places that may belong to a renamed thing."""

    ASK = "ask"
    CHANGE = "change"
    LEAVE = "leave"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rename:
    """`old` is a name as `find_symbols` takes it; `kind` "" where none was said."""

    old: str
    new: str
    kind: str = ""
    possible: Possible = Possible.ASK


@dataclass(frozen=True, kw_only=True, slots=True)
class AddParameter:
    """`annotation` and `default` are source texts, "" for none. `value` is passed in `caller`, "" for at every call."""

    function: str
    name: str
    annotation: str = ""
    default: str = ""
    value: str = ""
    caller: str = ""
    kind: str = ""


Recipe = Rename | AddParameter


def recipe_of(instruction: str) -> Recipe | None:
    """The recipe that an instruction asks for; None where it is not understood whole."""
    if len(instruction) > _MOST:
        return None
    text = " ".join(_QUOTES.sub("`", instruction).split())
    for pattern in _RENAMES:
        if (found := pattern.fullmatch(text)) is not None:
            return _rename(found)
    for pattern in _ADDS:
        if (found := pattern.fullmatch(text)) is not None and (made := _addition(found)) is not None:
            return made
    return None


def _rename(found: re.Match[str]) -> Rename:
    parts = found.groupdict()
    possible = Possible.CHANGE if parts["also"] else Possible.LEAVE if parts["leave"] else Possible.ASK
    around = parts["around"] or parts.get("around_last") or ""
    kind = (parts["kind"] or parts["kind_after"] or "").lower()
    old = _joined(parts["old"], around, parts["outer"] or "")
    return Rename(old=old, new=parts["new"], kind=kind, possible=possible)


def _joined(name: str, around: str, outer: str) -> str:
    """`x`, `load`, `shop.io` as one name: `shop.io.load.x`; a file as `shop/io.py:load.x`."""
    holders = [part for part in (outer, around) if part]
    path = next((p for p in holders if p.endswith((".py", ".pyi"))), "")
    inner = ".".join([*(p for p in holders if p != path), name])
    return f"{path}:{inner}" if path else inner


def _addition(found: re.Match[str]) -> AddParameter | None:
    parts = found.groupdict()
    spec = _specification(parts["quoted"] or parts["spec"])
    if spec is None:
        return None
    name, annotation, default = spec
    default = default or _plain(parts["default"] or "")
    return AddParameter(
        function=_joined(parts["function"], parts["around"] or "", parts["outer"] or ""),
        name=name,
        annotation=annotation,
        default=default,
        value=_plain(parts["value"] or ""),
        caller=parts["caller"] or "",
        kind=(parts["kind"] or "").lower(),
    )


def _plain(value: str) -> str:
    return value.strip("`").strip() if value.startswith("`") else value


def _specification(text: str) -> tuple[str, str, str] | None:
    """(name, annotation, default) of one parameter as Python writes it."""
    tree = parse_or_none(f"def f(*, {text}\n): pass")
    if tree is None:
        return (text, "", "") if text.isidentifier() else None
    made = tree.body[0]
    if len(tree.body) != 1 or not isinstance(made, ast.FunctionDef) or len(made.args.kwonlyargs) != 1:
        return None
    if made.args.args or made.args.kwarg or made.args.vararg:
        return None
    argument, default = made.args.kwonlyargs[0], made.args.kw_defaults[0]
    try:
        annotation = ast.unparse(argument.annotation) if argument.annotation is not None else ""
    except RecursionError:
        return None
    return argument.arg, annotation, text.partition("=")[2].strip() if default is not None else ""
