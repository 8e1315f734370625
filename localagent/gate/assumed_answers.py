"""Questions that `--assume` answers: what a change means for what the code does, and nothing else.

Who gives an instruction and wants no questions has asked for a best reading, and to be told of it. It may be wrong,
and whatever it says is shown; it harms nobody. What could harm stays a question: code that is planted or hides, that
starts, sends, stores or imports, that knows where it runs; what answers tests by heart; what guards accounts, money or
data; what judges. A test that expects something else is answered only where the instruction speaks of it, and runs
have shown that the old one and the new code contradict.
"""

import ast
import re
from collections.abc import Iterable

from localagent.code.source_text import parse_or_none
from localagent.domain.diff import TreeChange
from localagent.domain.gate import Finding
from localagent.gate.instructed_tests import is_stated
from localagent.gate.instructed_uses import asks_clock
from localagent.gate.review.source_change import module_values
from localagent.gate.rule_catalogue import OF_MEANING

TESTS = frozenset({"test-changed", "test-fixture-changed"})
"""Rules about tests, which runs have to answer."""
ASSUMED = (OF_MEANING - {"critical-code", "excuse-added", "protection-dropped", "check-gone", "guard-gone"}) | {
    "broad-except", "trigger-added", "grows-unbounded",
}  # fmt: skip
"""Rules of which some findings are answered."""

_SHORT_TEXT, _SHORT_NUMBER, _ROUND = 2, 12, 100
_ONE_INPUT = "a condition that one input alone meets"
_OF_FILE = re.compile(r"a condition on (?:argv|whether (?:l?exists|is_?file|is_?dir))")
_OF_DATE = re.compile(r"a condition on (?:a )?(?:(?:iso)?weekday|year|month|day|hour|minute|second)")
_OF_INPUT = re.compile(
    r"a condition on one certain length|a condition on every so many|a text that is put in place of one certain text"
    r"|.*: a number that no code has without reason"
)
_OF_SIZE = re.compile(
    r"a loop .*|a cache that forgets nothing|a call of itself .*|two calls of itself for one|what grows by its own size"
    r"|what doubles each time|a number that grows by powers or shifts|\w+ of a product"
)


def is_assumed(finding: Finding, entry: TreeChange, instruction: str) -> bool:
    """Whether a finding of a rule that is assumed only says what a change means."""
    match finding.rule:
        case "trigger-added" if finding.subject == _ONE_INPUT:
            return _asks_for_known_texts(entry, finding.line, instruction)
        case "literal-answers":
            return _asks_for_known_texts(entry, finding.line, instruction)
        case "trigger-added" if _OF_FILE.fullmatch(finding.subject):
            return _asks_for_known_texts(entry, finding.line, instruction)
        case "trigger-added" if _OF_DATE.fullmatch(finding.subject):
            tree = parse_or_none(entry.after)
            return tree is not None and not asks_clock(tree)
        case "trigger-added":
            return _OF_INPUT.fullmatch(finding.subject) is not None
        case "grows-unbounded":
            return _OF_SIZE.fullmatch(finding.subject) is not None
    return True


def _asks_for_known_texts(entry: TreeChange, line: int, instruction: str) -> bool:
    """Whether every text and number in the conditions of a line is the instruction's, stood in the file, or is short.

    So is a text of two letters, and a number as of a month, or a round one. A name means what the module calls so.
    """
    tree, before = parse_or_none(entry.after), parse_or_none(entry.before)
    if tree is None:
        return False
    stood = _values([before]) if before is not None else frozenset[str | float]()
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.expr) and n.lineno == line]
    names = {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}
    found = _values([*nodes, *(value for name, value in module_values(tree) if name in names)])
    return bool(nodes) and all(_is_short(v) or v in stood or is_stated(v, instruction) for v in found)


def _is_short(value: str | float) -> bool:
    if isinstance(value, str):
        return len(value) <= _SHORT_TEXT
    return abs(value) <= _SHORT_NUMBER or value % _ROUND == 0


def _values(nodes: Iterable[ast.AST]) -> frozenset[str | float]:
    """The texts and numbers that stand in some nodes."""
    inside = (n.value for node in nodes for n in ast.walk(node) if isinstance(n, ast.Constant))
    return frozenset(v for v in inside if isinstance(v, str | int | float) and not isinstance(v, bool))
