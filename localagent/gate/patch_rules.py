"""Rules by which a patch is refused before any gate can look at it: found by the reader of patches, named here."""

from localagent.domain.diff import DiffRule
from localagent.domain.gate import Severity
from localagent.gate.rule import Rule

_WHY = {
    DiffRule.MALFORMED: ("what is not exactly one unified diff could be read differently by the next tool",
                         "give the output of `git diff` or `diff -u`, unchanged"),
    DiffRule.EMPTY: ("nothing to judge is no reason to allow", "check the command that makes the patch"),
    DiffRule.COMBINED: ("a combined diff has several befores", "give the diff against one parent"),
    DiffRule.PATH: ("a patch that reaches out of the repository, or into git's own folder, is an attack or a mistake",
                    "name files inside the repository only"),
    DiffRule.LIMIT: ("so much cannot be read with care", "split it into smaller patches"),
    DiffRule.MISMATCH: ("a patch for another tree cannot be judged against this one",
                        "make the patch anew against the tree as it stands"),
}  # fmt: skip
RULES = tuple(
    Rule(id=rule.value, severity=Severity.HIGH, why=why, remedy=remedy, match=(), not_match=())
    for rule, (why, remedy) in _WHY.items()
)
