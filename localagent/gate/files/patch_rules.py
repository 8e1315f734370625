"""Rules by which a patch is refused before any gate can look at it: found by the reader of patches, named here."""

from localagent.domain.diff import DiffRule
from localagent.domain.gate import Severity
from localagent.gate.core.rule import Rule, RuleExample

_BEFORE = "def f(x):\n    return x\n"
_GOOD = "--- a/pkg/mod.py\n+++ b/pkg/mod.py\n@@ -1,2 +1,2 @@\n def f(x):\n-    return x\n+    return -x\n"


def _patch(text: str) -> RuleExample:
    return RuleExample(before=_BEFORE, after="", patch=text)


_FINE = (_patch(_GOOD),)
_ALL = {
    DiffRule.MALFORMED: (
        "what is not exactly one unified diff could be read differently by the next tool",
        "give the output of `git diff` or `diff -u`, unchanged",
        (
            _patch(_GOOD.replace("-1,2", "-1,9")),
            _patch(_GOOD.replace("+++ b/pkg/mod.py", "+++ b/pkg/other.py")),
            _patch(_GOOD.replace("-    return x\n+    return -x\n", "     return x\n")),
            _patch(_GOOD + _GOOD),
        ),
    ),
    DiffRule.EMPTY: (
        "nothing to judge is no reason to allow",
        "check the command that makes the patch",
        (_patch(""), _patch("see the attached file\n")),
    ),
    DiffRule.COMBINED: (
        "a combined diff has several befores",
        "give the diff against one parent",
        (_patch("diff --cc pkg/mod.py\nindex 1111111,2222222..3333333\n"),),
    ),
    DiffRule.PATH: (
        "a patch that reaches out of the repository, or into git's own folder, is an attack or a mistake",
        "name files inside the repository only",
        (
            _patch(_GOOD.replace("pkg/mod.py", "../mod.py")),
            _patch(_GOOD.replace("pkg/mod.py", ".git/hooks/pre-commit")),
            _patch(_GOOD.replace("pkg/mod.py", ".GIT/config")),
        ),
    ),
    DiffRule.LIMIT: (
        "so much cannot be read with care",
        "split it into smaller patches",
        (_patch("a line\n" * 10_001),),
    ),
    DiffRule.MISMATCH: (
        "a patch for another tree cannot be judged against this one",
        "make the patch anew against the tree as it stands",
        (_patch(_GOOD.replace("return x", "return y")), _patch(_GOOD.replace("pkg/mod.py", "pkg/gone.py"))),
    ),
}
RULES = tuple(
    Rule(id=rule.value, severity=Severity.HIGH, why=why, remedy=remedy, match=match, not_match=_FINE)
    for rule, (why, remedy, match) in _ALL.items()
)
