"""Reads instructions in words by rule: only a sentence that is understood whole is a recipe's."""

import ast
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from localagent.code.source_text import parse_or_none

_MOST = 600  # characters of an instruction that a rule reads
_QUOTES = re.compile(r"[`\u2018\u2019\u201c\u201d]")
_KINDS = {
    "function": "function|func|helper|coroutine|decorator",
    "method": "method",
    "class": "class|dataclass|enum|exception|error|type",
    "constant": "constant",
    "parameter": "parameter|param|argument|arg|kwarg",
    "variable": "variable",
    "attribute": "attribute|field",
    "property": "property",
    "module": "module|file|package",
    "fixture": "fixture",
    "test": "test",
}
_KIND_WORDS = "|".join(_KINDS.values())
_OF_KIND = (
    r"(?:(?:local|instance|class|static|public|private|internal|helper|dataclass|keyword|abstract|async|global"
    r"|module(?:-level)?|pytest)\s+)*"
)
_KIND = rf"(?:{_OF_KIND}(?P<{{0}}>{_KIND_WORDS})\s+)?"
_NAME = r"['\"`]?(?P<{0}>[^\W\d][\w.]*(?:/[\w./-]+\.pyi?(?::[\w.]+)?|\.pyi?:[\w.]+)?)(?:\(\))?['\"`]?"
_KINDS_AFTER = rf"(?:\s+{_OF_KIND}(?P<kind_after>{_KIND_WORDS}))?"
_HOLDER = rf"(?:the\s+)?(?:{_OF_KIND}(?:{_KIND_WORDS})\s+)?"
_IN = rf"(?:\s+\(?(?:in|of|on|from|inside|within)\s+{_HOLDER}{_NAME.format('around')}(?:\s+(?:{_KIND_WORDS}))?\)?)?"
_IN_OUTER = rf"(?:\s+(?:in|of|from)\s+{_HOLDER}{_NAME.format('outer')}(?:\s+module)?)?"
_IN_LAST = _IN.replace("around", "around_last")
_OWNER = r"(?:" + _NAME.format("owner") + r"['`]s\s+)?"
_USES = (
    r"(?:callers?|calls?|call\s+sites?|uses?|usages?|references?|imports?|importers?|tests?|overrides?|subclasses"
    r"|re-?exports?)"
)
_SCOPE = (
    r"(?:\s*[,;]?\s*(?:everywhere|throughout|consistently|too|as\s+well|please|thanks|instead|from\s+now\s+on|for\s+me"
    r"|(?:across|in|over|throughout)\s+the\s+(?:(?:whole|entire)\s+)?(?:repository|repo|project|code\s*base|package|tree)"
    r"|in\s+all\s+(?:files|modules|places)|tests\s+included"
    rf"|(?:including|and|then)\s+(?:also\s+)?(?:(?:update|fix|adapt|adjust|change)\s+)?(?:(?:all|every)\s+)?(?:of\s+)?"
    rf"(?:its\s+|the\s+)?{_USES}(?:\s*(?:,|,?\s*and)\s+(?:(?:all\s+)?(?:its\s+|the\s+)?){_USES})*(?:\s+accordingly)?"
    r"|without\s+changing\s+(?:the\s+|any\s+)?behaviou?r"
    r"|(?P<also>(?:and\s+)?(?:(?:also|including)\s+)?(?:the\s+)?possible\s+(?:ones|places)(?:\s+(?:too|as\s+well))?)"
    r"|(?P<leave>(?:and\s+)?(?:leave|without|leaving)\s+(?:the\s+)?possible\s+(?:ones|places))))*+"
)
_BEGIN = (
    r"(?:(?:please|kindly|hi|hello)\s*[,:]?\s+|(?:can|could|would|will)\s+you\s+|(?:i|we)(?:'d|`d|\s+would)\s+like\s+(?:you\s+)?to\s+"
    r"|(?:i|we)\s+(?:want|need)\s+(?:you\s+)?to\s+|let(?:'s|`s|\s+us)\s+|refactor(?:ing)?\s*:\s*)*+"
    rf"(?:in\s+{_HOLDER}{_NAME.format('ahead')}\s*[,:]\s+(?:please\s+)?)?"
)
_END = r"\s*[.!?]*"
_OLD = r"(?:the\s+)?" + _OWNER + _KIND.format("kind") + _NAME.format("old") + _KINDS_AFTER + _IN + _IN_OUTER
_NEW = r"['\"`]?(?P<new>[^\s'\"`,;:]+?)(?:\(\))?['\"`]?"
_MODAL = r"(?:should|must|shall|ought\s+to|needs?\s+to|has\s+to|is\s+to)"
_POOR = r"(?:poor|bad|wrong|misleading|confusing|vague|unclear|ugly|silly|terrible)"
_RENAMES = (
    rf"rename\s+(?:the\s+)?{_KIND.format('kind')}(?:of|in)\s+{_HOLDER}{_NAME.format('around')}\s+"
    rf"from\s+{_NAME.format('old')}\s+to\s+{_NEW}",
    rf"rename\s+{_OLD}\s*(?:\s(?:to|as|into)\s|->|=>|\u2192)\s*{_NEW}{_IN_LAST}",
    rf"change\s+the\s+name\s+of\s+{_OLD}\s+(?:to|into)\s+{_NEW}",
    rf"change\s+{_OLD}['`]s\s+name\s+to\s+{_NEW}",
    rf"{_OLD}\s+{_MODAL}\s+(?:now\s+)?be\s+(?:called|named|renamed\s+(?:to|as))\s+{_NEW}",
    rf"(?:i|we)\s+want\s+{_OLD}\s+(?:to\s+be\s+)?(?:called|named|renamed\s+(?:to|as))\s+{_NEW}",
    rf"give\s+{_OLD}\s+the\s+(?:new\s+|better\s+)?name\s+{_NEW}",
    rf"{_OLD}\s+is\s+an?\s+{_POOR}\s+name\s*[:;,.]\s*(?:please\s+)?(?:(?:call|name)\s+it|rename\s+it\s+(?:to|as))\s+{_NEW}",
    rf"{_OLD}\s+(?:needs|deserves)\s+a\s+(?:better|new|different|clearer)\s+name\s*[:,-]\s*{_NEW}",
    rf"use\s+the\s+(?:new\s+)?name\s+{_NEW}\s+(?:instead\s+of|in\s+place\s+of|rather\s+than|for)\s+{_OLD}",
    rf"replace\s+the\s+name\s+(?:of\s+)?{_OLD}\s+(?:with|by)\s+{_NEW}",
    rf"{_OLD}\s*(?:->|=>|\u2192)\s*{_NEW}{_IN_LAST}",
    # "call x y instead": y has the look of a name, for "call x later instead" means something else
    rf"(?:call|name)\s+{_OLD}\s+(?:`(?P<new>[^\W\d][\w.]*)`|(?P<shaped>(?-i:[^\W\d]\w*(?:_\w+|[a-z0-9][A-Z]\w*))))"
    rf"\s*,?\s+(?:instead|from\s+now\s+on)",
)
_VALUE = r"(?:b?'[^']*'|b?\"[^\"]*\"|`[^`]+`|[\w.]*\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|[^\s,;`()]+)"
_TYPE = r"`?(?P<{0}>[^\W\d][\w.]*(?:\[[\w., |]+\])?(?:\s*\|\s*[\w.]+)*)`?"
_ADJECTIVE = (
    r"(?:new|another|extra|additional|optional|required|mandatory|positional|boolean|keyword(?:[- ]only)?|kw-?only)"
)
_ADJECTIVES = rf"(?:(?:(?P<only>keyword[- ]only|kw-?only)|{_ADJECTIVE})\s+)*+"
_WORD = r"(?:parameter|param|argument|arg|kwarg)"
_OF_TYPE = rf"(?:\s+(?:of|with)\s+(?:the\s+)?type\s+{_TYPE.format('type')})?"
_ASSIGNED = r"[^\W\d]\w*(?:\s*:\s*[\w.\[\]| ]+?)?\s*=\s*" + _VALUE
_QUOTED = r"`(?P<quoted>[^`]+)`|'(?P<named>[^\W\d]\w*)'"
_PARAMETERS = (
    rf"(?:an?\s+|the\s+)?{_ADJECTIVES}{_WORD}\s+(?:named\s+|called\s+)?"
    rf"(?:{_QUOTED}|(?P<spec>{_ASSIGNED}|[^\W\d]\w*(?:\s*:\s*[\w.\[\]| ]+?)?)){_OF_TYPE}",
    rf"(?:an?\s+|the\s+)?{_ADJECTIVES}(?:{_QUOTED}|(?P<spec>(?!(?:{_ADJECTIVE}|an?|the)\b)[^\W\d]\w*))\s+"
    rf"{_ADJECTIVES.replace('only>', 'only_too>')}{_WORD}{_OF_TYPE}",
    rf"(?:`(?P<bare>[^`]+)`|(?P<spec>{_ASSIGNED}))",
)
_DEFAULT = (
    r"(?:\s*,?\s*\(?(?:(?:with|having|and|that|which|whose)\s+)?(?:an?\s+|the\s+|its\s+)?default(?:s|ing|ed)?"
    rf"(?:\s+value)?(?:\s+(?:of|to|is|being))?\s*[:=]?\s*(?P<default>{_VALUE})\)?"
    rf"|\s*,?\s*\(?(?P<usual>{_VALUE})\s+by\s+default\)?)?"
)
_FUNCTION = (
    rf"(?:(?:the\s+)?(?P<constructor>constructor|initiali[sz]er)\s+of\s+(?:the\s+)?(?:class\s+)?{_NAME.format('class')}"
    rf"|(?:the\s+)?{_OWNER}{_KIND.format('kind')}{_NAME.format('function')}{_KINDS_AFTER}{_IN}{_IN_OUTER}"
    rf"|(?:the\s+)?{_NAME.format('made')}['`]s\s+(?:constructor|initiali[sz]er))"
)
_CALLS = r"(?:all|every|each)\s+(?:of\s+)?(?:its\s+|the\s+)?(?:existing\s+)?(?:calls?(?:\s+sites?)?|callers?)"
_PASS = (
    r"(?:\s*[,;.]?\s*(?:and\s+|then\s+)*+(?:"
    rf"(?:pass|give|use)\s+(?P<value>(?!(?:it|its|that|this|them)\b){_VALUE})\s+(?:"
    rf"(?P<every>everywhere|(?:at|in|to|from|for)\s+{_CALLS})"
    rf"|(?:in|from|at|inside)\s+{_HOLDER}{_NAME.format('caller')})"
    r"|(?:pass|forward|hand|give)(?:es|s)?\s+(?:it|that|this|`?(?P<again>[^\W\d]\w*)`?)\s+(?:on\s+|along\s+|through\s+|down\s+)?to\s+"
    rf"{_HOLDER}{_NAME.format('callee')}))?"
)
_THANKS = r"(?:\s*,?\s*(?:please|thanks|too|as\s+well))*+"
_TAKE = r"(?:(?:also|now|additionally|optionally)\s+)*+(?:take|accept|have|get|support|receive|gain)"
_VERBS = (
    r"(?:add|introduce)\s+PARAMETER\s+(?:to|on|in|for)\s+FUNCTION",
    r"(?:add|introduce)\s+to\s+FUNCTION\s+PARAMETER",
    r"(?:give|extend)\s+FUNCTION\s+(?:with\s+|by\s+)?PARAMETER",
    rf"FUNCTION\s+{_MODAL}\s+{_TAKE}\s+PARAMETER",
    r"FUNCTION\s+(?:needs|requires|wants)\s+PARAMETER",
    rf"(?:make|let|have)\s+FUNCTION\s+{_TAKE}\s+PARAMETER",
    rf"allow\s+FUNCTION\s+to\s+{_TAKE}\s+PARAMETER",
)
_AS = rf"(?:\s+as\s+an?\s+{_ADJECTIVES.replace('only>', 'only_last>')}{_WORD}|\s*\((?P<only_aside>keyword[- ]only)\))?"
_AFTER = _AS + _DEFAULT.replace("default>", "default_last>").replace("usual>", "usual_last>") + _PASS + _THANKS + _END
_ABOUT_NAMES = re.compile(r"\bnam(?:e|ed)\b|\bcall|\brenam|->|=>|\u2192", re.IGNORECASE)  # one is in each of _RENAMES
_ABOUT_PARAMETERS = re.compile(rf"\b{_WORD}\b|=|\bdefault", re.IGNORECASE)
RECIPES = (
    "rename NAME [in MODULE, CLASS or FUNCTION] to NEW",
    "add a parameter NAME=DEFAULT to FUNCTION [and pass VALUE in CALLER or at every call, or pass it to CALLEE]",
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
    """`annotation` and `default` are source texts, "" for none. `value` is passed in `caller`, "" for at every call.

    The function passes the parameter on to `callee`, where that is not "".
    """

    function: str
    name: str
    annotation: str = ""
    default: str = ""
    value: str = ""
    caller: str = ""
    callee: str = ""
    kind: str = ""
    keyword_only: bool = False


Recipe = Rename | AddParameter


def recipe_of(instruction: str) -> Recipe | None:
    """The recipe that an instruction asks for; None where it is not understood whole."""
    if len(instruction) > _MOST:
        return None
    text = " ".join(_QUOTES.sub("`", instruction).split())
    for pattern in _renames() if _ABOUT_NAMES.search(text) else ():
        if (found := pattern.fullmatch(text)) is not None:
            return _rename(found.groupdict())
    for pattern in _additions() if _ABOUT_PARAMETERS.search(text) else ():
        if (found := pattern.fullmatch(text)) is not None and (made := _addition(found.groupdict())) is not None:
            return made
    return None


@cache
def _renames() -> list[re.Pattern[str]]:
    return [re.compile(_BEGIN + pattern + _SCOPE + _END, re.IGNORECASE) for pattern in _RENAMES]


@cache
def _additions() -> list[re.Pattern[str]]:
    forms = [verb.replace("PARAMETER", p + _DEFAULT) for verb in _VERBS for p in _PARAMETERS]
    return [re.compile(_BEGIN + form.replace("FUNCTION", _FUNCTION) + _AFTER, re.IGNORECASE) for form in forms]


_Parts = dict[str, str | None]


def _rename(parts: _Parts) -> Rename:
    possible = Possible.CHANGE if parts["also"] else Possible.LEAVE if parts["leave"] else Possible.ASK
    around = parts["around"] or parts.get("around_last")
    old = _joined(parts["old"] or "", around, parts.get("outer"), parts.get("owner"), parts["ahead"])
    return Rename(old=old, new=parts["new"] or parts.get("shaped") or "", kind=_kind(parts), possible=possible)


def _kind(parts: _Parts) -> str:
    said = (parts["kind"] or parts.get("kind_after") or "").lower()
    return next((kind for kind, words in _KINDS.items() if said in words.split("|")), "")


def _joined(name: str, *around: str | None) -> str:
    """`x`, `load`, `shop.io` as one name: `shop.io.load.x`; a file as `shop/io.py:load.x`."""
    path = next((part for part in around if part and part.endswith((".py", ".pyi"))), "")
    for holder in around:
        if holder and holder != path and not name.startswith(f"{holder}."):
            name = f"{holder}.{name}"
    return f"{path}:{name}" if path else name


def _addition(parts: _Parts) -> AddParameter | None:
    spec = _specification(parts.get("quoted") or parts.get("named") or parts.get("bare") or parts["spec"] or "")
    if spec is None or (parts["again"] or spec[0]) != spec[0]:
        return None
    name, annotation, default = spec
    said = (parts[key] for key in ("default", "usual", "default_last", "usual_last"))
    defaults = {_plain(text) for text in (default, *said) if text}
    if len(defaults) > 1 or (parts.get("bare") and not defaults):
        return None
    made = parts["class"] or parts["made"]
    function = parts["function"] or ""
    return AddParameter(
        function=made or _joined(function, parts["around"], parts["outer"], parts["owner"], parts["ahead"]),
        name=name,
        annotation=annotation or parts.get("type") or "",
        default="".join(defaults),
        value=_plain(parts["value"] or ""),
        caller=parts["caller"] or "",
        callee=parts["callee"] or "",
        kind="class" if made else _kind(parts),
        keyword_only=any(parts.get(key) for key in ("only", "only_too", "only_last", "only_aside")),
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
