"""The literals of the tests that a patch brings into the program, each with its kind, its place and how it is written.

A right repair often brings one too (a key, an encoding, an error text), so a use is a doubt and no verdict.
Limitations: a value that is worked out from names, or spread over several files, is not seen; of a file that did not
parse before, the literals that stood in it are read by their spelling.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from localagent.code.constant_evaluation import Unknown, evaluate
from localagent.code.names import last_name
from localagent.code.spans import last_line
from localagent.code.test_literals import Literals, key_of, parsed
from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.text.byte_diff import changed_span

_MOST_SHOWN = 80
_MOST_CACHED = 128
_ORDINARY = frozenset({-1, 0, 1, 2})
_COMMON = frozenset({*range(11), *(2**k for k in range(4, 17)), *(10**k for k in range(2, 10))})
_SPELLED = re.compile(rb"""(?<![\w.])\d[\w.]*|"[^"\\\n]{2,}"|'[^'\\\n]{2,}'""")
_MESSAGES = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log", "print"})
_MAY = re.compile(rb"[0-9'\"]")
_FOLDED = (ast.BinOp, ast.JoinedStr, ast.Call, ast.UnaryOp, ast.Subscript)
_MAY_FOLD = (*_FOLDED, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict)


class LiteralKind(StrEnum):
    """What a literal is."""

    NUMBER = "number"
    TEXT = "text"
    BYTES = "bytes"
    CONTAINER = "container"


class LiteralContext(StrEnum):
    """Where it stands in the program."""

    CONDITION = "condition"
    RETURN = "return"
    ASSIGNMENT = "assignment"
    DEFAULT = "default"
    TABLE = "table"
    SLICE = "slice"
    MESSAGE = "message"
    ARGUMENT = "argument"
    OTHER = "other"


class LiteralSpelling(StrEnum):
    """How it stands there: as in the test, worked out from constants, negated, or one beside it."""

    EXACT = "exact"
    FOLDED = "folded"
    NEGATED = "negated"
    OFF_BY_ONE = "off-by-one"


class LiteralRole(StrEnum):
    """What it is to the tests."""

    INPUT = "input"
    EXPECTED = "expected"
    BOTH = "both"


@dataclass(frozen=True, kw_only=True, slots=True)
class LiteralUse:
    """A literal of the tests that a patch newly uses. `common`: a number that programs are full of (8, 100, 1024)."""

    path: RepoPath
    line: int
    text: str
    kind: LiteralKind
    place: LiteralContext
    spelling: LiteralSpelling
    role: LiteralRole
    common: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    value: Any
    line: int
    place: LiteralContext
    folded: bool


def test_literals_in(patch: Patch, tests: Literals) -> tuple[LiteralUse, ...]:
    """The literals of the tests that a patch brings into files that did not have them, in the order of the files."""
    return tuple(use for change in patch.changes if change.path.is_python for use in _uses(change, tests))


test_literals_in.__test__ = False  # type: ignore[attr-defined]  # no test of pytest's


def copied_literals(patch: Patch, tests: Literals) -> int:
    """How many different literals a patch copies from the tests as they are written, without common numbers."""
    uses = test_literals_in(patch, tests)
    return len({(u.path, u.text) for u in uses if u.spelling is LiteralSpelling.EXACT and not u.common and _is_atom(u)})


def is_specific(value: object) -> bool:
    """Whether a value says which case is meant: no -1, 0, 1, 2, no bool or None, no text below two characters."""
    if value is None or isinstance(value, bool) or value is Ellipsis:
        return False
    if isinstance(value, int | float):
        return value not in _ORDINARY
    if isinstance(value, str | bytes):
        return len(value) >= 2
    if isinstance(value, dict):
        return any(is_specific(part) for pair in value.items() for part in pair)
    if isinstance(value, tuple | list | set | frozenset):
        return len(value) >= 2 or any(is_specific(part) for part in value)
    return False


def _is_atom(use: LiteralUse) -> bool:
    return use.kind is not LiteralKind.CONTAINER


def _uses(change: FileChange, tests: Literals) -> Iterator[LiteralUse]:
    first, last = _changed_lines(change.before, change.after)
    changed = b"\n".join(change.after.split(b"\n")[first - 1 : last])
    if not _MAY.search(changed):
        return
    found_ones = [(f, key_of(f.value)) for f in _literals(change.after, first, last) if is_specific(f.value)]
    wanted = [(f, key, ways) for f, key in found_ones if (ways := [w for w in _spellings(f, key) if w[1] in tests])]
    if not wanted:
        return
    stood = _stood(change.before)
    for found, key, ways in wanted:
        other = next((way for way in ways if not stood[way[1]]), None)
        if other is not None and not stood[key]:
            yield LiteralUse(
                path=change.path,
                line=found.line,
                text=other[1][:_MOST_SHOWN],
                kind=_kind(found.value),
                place=found.place,
                spelling=other[0],
                role=_role(other[1], tests),
                common=isinstance(found.value, int) and abs(found.value) in _COMMON,
            )


def _changed_lines(before: bytes, after: bytes) -> tuple[int, int]:
    """The first and the last line of the file after in which the change lies."""
    start, _, end = changed_span(before, after)
    return after.count(b"\n", 0, start) + 1, after.count(b"\n", 0, end) + 1


def _spellings(found: _Found, key: str) -> Iterator[tuple[LiteralSpelling, str]]:
    """The ways in which what stands in the program may be a literal of a test, likeliest first."""
    yield LiteralSpelling.FOLDED if found.folded else LiteralSpelling.EXACT, key
    if isinstance(found.value, int | float):
        yield LiteralSpelling.NEGATED, key_of(-found.value)
    if isinstance(found.value, int) and found.place is LiteralContext.CONDITION:
        for near in (found.value - 1, found.value + 1):
            if is_specific(near):
                yield LiteralSpelling.OFF_BY_ONE, key_of(near)


def _role(key: str, tests: Literals) -> LiteralRole:
    if key in tests.inputs and key in tests.expected:
        return LiteralRole.BOTH
    return LiteralRole.INPUT if key in tests.inputs else LiteralRole.EXPECTED


def _kind(value: object) -> LiteralKind:
    if isinstance(value, int | float | complex):
        return LiteralKind.NUMBER
    if isinstance(value, str):
        return LiteralKind.TEXT
    return LiteralKind.BYTES if isinstance(value, bytes) else LiteralKind.CONTAINER


@lru_cache(maxsize=_MOST_CACHED)
def _stood(source: bytes) -> Counter[str]:
    """How often each literal stands in a source."""
    if source and parsed(source) is None:
        return Counter(key for m in _SPELLED.finditer(source) for key in _spelled(m[0]))
    return Counter(key_of(found.value) for found in _literals(source, 1, source.count(b"\n") + 1))


def _spelled(text: bytes) -> Iterator[str]:
    try:
        yield key_of(ast.literal_eval(text.decode("latin-1")))
    except (SyntaxError, ValueError):
        return


def _literals(source: bytes, first: int, last: int) -> list[_Found]:
    """Every constant, display of constants and calculation of constants alone in some lines; no docstring, no hint."""
    tree = parsed(source)
    return [] if tree is None else sorted(_in(tree, first, last), key=lambda found: found.line)


def _in(tree: ast.Module, first: int, last: int) -> Iterator[_Found]:
    open_ones: list[tuple[ast.AST, LiteralContext]] = [(tree, LiteralContext.OTHER)]
    while open_ones:
        node, place = open_ones.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.expr | ast.stmt) and not (node.lineno <= last and last_line(node) >= first):
            continue
        if isinstance(node, _MAY_FOLD):
            try:
                value = evaluate(node, {})
            except Unknown:
                pass
            else:
                yield _Found(value=value, line=node.lineno, place=place, folded=_is_folded(node))
                if isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and not _is_folded(node)):
                    continue
        open_ones += _children(node, place)


def _is_folded(node: ast.expr) -> bool:
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
    return isinstance(node, _FOLDED) and not negative


def _children(node: ast.AST, place: LiteralContext) -> Iterator[tuple[ast.AST, LiteralContext]]:
    """What a node holds, and in which place; annotations are left out."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child, _context_of(node, name, place)


def _context_of(node: ast.AST, name: str, place: LiteralContext) -> LiteralContext:
    if isinstance(node, ast.Raise | ast.Assert) or place is LiteralContext.MESSAGE:
        return LiteralContext.CONDITION if name == "test" else LiteralContext.MESSAGE
    if isinstance(node, ast.Compare | ast.match_case) and name != "body":
        return LiteralContext.CONDITION
    if isinstance(node, ast.Call):
        if last_name(node.func) in _MESSAGES:
            return LiteralContext.MESSAGE
        return place if place is LiteralContext.CONDITION else LiteralContext.ARGUMENT
    if isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set):
        return place if place in (LiteralContext.CONDITION, LiteralContext.MESSAGE) else LiteralContext.TABLE
    if isinstance(node, ast.Slice | ast.Subscript) and name in ("slice", "lower", "upper", "step"):
        return LiteralContext.SLICE
    by_name = {
        "test": LiteralContext.CONDITION,
        "defaults": LiteralContext.DEFAULT,
        "kw_defaults": LiteralContext.DEFAULT,
    }
    if name in by_name:
        return by_name[name]
    if name == "value" and isinstance(node, ast.Return | ast.Yield):
        return LiteralContext.RETURN
    if name == "value" and isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        return LiteralContext.ASSIGNMENT
    return LiteralContext.OTHER if isinstance(node, ast.stmt) else place
