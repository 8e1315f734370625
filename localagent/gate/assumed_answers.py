"""Questions that `--assume` answers: what a change means for what the code does, and nothing else.

Who gives an instruction and wants no questions has asked for a best reading, and to be told of it. It may be wrong,
and whatever it says is shown; it harms nobody. What could harm stays a question: code that is planted or hides, that
starts, sends, stores or imports, that knows where it runs; what guards accounts, money or data; what judges. A test
that expects something else is answered only where runs have shown that the old one and the new code contradict.
"""

import re

from localagent.domain.gate import Finding
from localagent.gate.rule_catalogue import OF_MEANING

TESTS = frozenset({"test-changed"})
"""Rules about tests, which runs have to answer."""
ASSUMED = (OF_MEANING - {"critical-code", "excuse-added"}) | {
    "special-cases-test", "returns-expected", "guards-test-input", "broad-except", "trigger-added", "grows-unbounded",
    "magic-value",
}  # fmt: skip
"""Rules of which some findings are answered."""

_OF_INPUT = re.compile(
    r"a condition on one certain length|a condition on every so many|a condition that one input alone meets"
    r"|a condition on a (?:year|month|day|hour|minute|second)|a text that is put in place of one certain text"
    r"|.*: a number that no code has without reason"
)
_OF_SIZE = re.compile(
    r"a loop .*|a cache that forgets nothing|a call of itself .*|two calls of itself for one|what grows by its own size"
    r"|what doubles each time|a number that grows by powers or shifts"
)
_OF_NUMBER = re.compile(r"a comparison with -?\d+")


def is_assumed(finding: Finding) -> bool:
    """Whether a finding of a rule that is assumed only says what a change means."""
    match finding.rule:
        case "trigger-added":
            return _OF_INPUT.fullmatch(finding.subject) is not None
        case "grows-unbounded":
            return _OF_SIZE.fullmatch(finding.subject) is not None
        case "magic-value":
            return _OF_NUMBER.fullmatch(finding.subject) is not None
    return True
