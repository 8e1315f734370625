"""Guards whose condition no longer fits the text of the exception they raise.

Limitations: only single comparisons and the usual English phrases ("must not be None", "unknown", "already exists").
"""

import ast
import re
from collections.abc import Iterator
from enum import Enum, auto

from localagent.code.spans import Function
from localagent.repair.acceptance.changed_functions import FunctionPair, TouchedFile
from localagent.repair.acceptance.contradiction import (
    Contradiction,
    ContradictionKind,
    ContradictionWeight,
    Support,
    SupportKind,
)
from localagent.repair.acceptance.documentation_rules import own_nodes
from localagent.repair.acceptance.expression_diff import key
from localagent.repair.acceptance.identifier_words import mentions
from localagent.repair.acceptance.message_text import literal_text
from localagent.text.visible_text import shortened


class _Fact(Enum):
    """What holds of a value where a guard raises."""

    IS_NONE = auto()
    IS_NOT_NONE = auto()
    EMPTY = auto()
    FILLED = auto()
    ABSENT = auto()
    PRESENT = auto()
    NEGATIVE = auto()
    POSITIVE = auto()
    OF_TYPE = auto()


_MISSING = frozenset({_Fact.IS_NOT_NONE, _Fact.FILLED, _Fact.PRESENT})
_EXCLUDED: tuple[tuple[re.Pattern[str], frozenset[_Fact]], ...] = (
    (re.compile(r"(?:must not|mustn't|cannot|can't|can not|should not) be (?:none|empty|blank)"), _MISSING),
    (re.compile(r"(?:must|should|has to) be (?:given|provided|specified|set|supplied)\b"), _MISSING),
    (re.compile(r"\b(?:missing|is required|are required|not (?:given|provided|specified))\b"), _MISSING),
    (re.compile(r"\b(?:unknown|unrecogni[sz]ed|no such|does ?n[o']t exist|not found|undefined)\b"),
     frozenset({_Fact.PRESENT, _Fact.IS_NOT_NONE})),
    (re.compile(r"\b(?:already|duplicated?)\b"), frozenset({_Fact.ABSENT, _Fact.IS_NONE})),
    (re.compile(r"(?:must|should|cannot|can't) (?:not )?be (?:non-)?(?:negative|positive)|greater than (?:0|zero)"),
     frozenset({_Fact.POSITIVE})),
    (re.compile(r"(?:must|should|has to) be (?:an? |of type |instance)|expected an? |\bis not an? "),
     frozenset({_Fact.OF_TYPE})),
)  # fmt: skip


def error_texts(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction | Support]:
    """Guards that raise as before under another condition, held against their text."""
    was = {key(g.body[0]): g for g in _guards(pair.old)}
    for guard in _guards(pair.new):
        old = was.get(key(guard.body[0]))
        if old is None or key(old.test) == key(guard.test):
            continue
        text = literal_text(guard.body[0])
        before, after = _denied(old.test, text), _denied(guard.test, text)
        said = shortened(" ".join(text.split()), 80)
        if after and not before:
            why = f'the guard raises "{said}" now when `{shortened(ast.unparse(guard.test), 80)}`'
            yield Contradiction(
                kind=ContradictionKind.ERROR_TEXT,
                severity=ContradictionWeight.HARD,
                path=file.path,
                line=old.lineno,
                function=pair.qualname,
                why=why,
            )
        elif before and not after:
            yield Support(
                kind=SupportKind.ERROR_TEXT_AGREES,
                path=file.path,
                line=old.lineno,
                function=pair.qualname,
                why=f'the guard now fits the text it raises: "{said}"',
            )


def _guards(function: Function) -> Iterator[ast.If]:
    for node in own_nodes(function):
        if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise):
            yield node


def _denied(test: ast.expr, text: str) -> bool:
    """Whether a text excludes what holds where a guard raises; a number that the text states is not the test's."""
    fact = _fact(test)
    lowered = text.lower()
    if fact is not None and any(fact in facts and pattern.search(lowered) for pattern, facts in _EXCLUDED):
        return True
    numbers = [n.value for n in ast.walk(test) if isinstance(n, ast.Constant) and type(n.value) is int and n.value > 1]
    stated = set(re.findall(r"(?<![\w.])\d+(?![\w.])", text)) - {"0", "1"}
    return bool(numbers and stated) and not any(mentions(text, str(n)) for n in numbers)


def _fact(test: ast.expr) -> _Fact | None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _fact(test.operand)
        return {_Fact.FILLED: _Fact.EMPTY, _Fact.PRESENT: _Fact.ABSENT}.get(inner) if inner else None
    if isinstance(test, ast.Name | ast.Attribute):
        return _Fact.FILLED
    if isinstance(test, ast.Call):
        return _Fact.OF_TYPE if isinstance(test.func, ast.Name) and test.func.id == "isinstance" else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    op, right = test.ops[0], test.comparators[0]
    if isinstance(op, ast.In | ast.NotIn):
        return _Fact.PRESENT if isinstance(op, ast.In) else _Fact.ABSENT
    if isinstance(right, ast.Constant) and right.value is None:
        return _Fact.IS_NONE if isinstance(op, ast.Is | ast.Eq) else _Fact.IS_NOT_NONE
    if isinstance(right, ast.Constant) and type(right.value) is int and right.value in (0, 1):
        if isinstance(op, ast.Lt | ast.LtE):
            return _Fact.NEGATIVE
        return _Fact.POSITIVE if isinstance(op, ast.Gt | ast.GtE) else None
    return None
