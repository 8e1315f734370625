"""Gate: what a patch makes of entries beside their text: executable bits, links, submodules, binary content.

Repairs change text alone and never meet it. Says nothing about what the text of a link's target does.
"""

from collections.abc import Iterator

from localagent.domain.diff import FileMode, TreeChange
from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.policy import Policy
from localagent.gate.core.gate_input import GateInput
from localagent.gate.core.rule import Rule, RuleExample, decide

_SOME = {"before": "x = 1\n", "after": "x = 2\n"}

EXECUTABLE = Rule(
    id="entry-executable",
    severity=Severity.HIGH,
    why="a new executable bit turns text into a program",
    remedy="leave the bit out (`git update-index --chmod=-x`), or have a person set it",
    match=(
        RuleExample(**_SOME, modes="100644:100755"),
        RuleExample(before="", after="x = 1\n", modes=":100755"),
    ),
    not_match=(
        RuleExample(**_SOME),
        RuleExample(**_SOME, modes="100755:100755"),
        RuleExample(**_SOME, modes="100755:100644"),
    ),
)
SYMLINK = Rule(
    id="entry-symlink",
    severity=Severity.HIGH,
    why="a link leads tools and tests to files that nobody judged",
    remedy="put the file itself there",
    match=(
        RuleExample(before="", after="/etc/passwd", modes=":120000"),
        RuleExample(before="a", after="b", modes="120000:120000"),
        RuleExample(before="a", after="", modes="120000:"),
    ),
    not_match=(RuleExample(**_SOME),),
)
SUBMODULE = Rule(
    id="entry-submodule",
    severity=Severity.HIGH,
    why="a submodule brings code that the patch does not show",
    remedy="have a person change the submodule",
    match=(
        RuleExample(before="", after="", modes=":160000"),
        RuleExample(before="", after="", modes="160000:160000"),
    ),
    not_match=(RuleExample(**_SOME),),
)
BINARY = Rule(
    id="entry-binary",
    severity=Severity.HIGH,
    why="what is not text cannot be judged",
    remedy="have a person add it, or make it from text",
    match=(RuleExample(before="", after="", modes=":100644", binary="yes"),),
    not_match=(RuleExample(**_SOME),),
)
RULES = (EXECUTABLE, SYMLINK, SUBMODULE, BINARY)


class Entries:
    """Refuses what is not plain text becoming plain text."""

    name = "entries"

    def __init__(self, _policy: Policy) -> None:
        pass

    def review(self, change: GateInput) -> Decision:
        """Deny new executable bits, and links, submodules and binary content in any role."""
        return decide(self.name, [finding for entry in change.entries for finding in _review(entry)])


def _review(entry: TreeChange) -> Iterator[Finding]:
    modes = (entry.before_mode, entry.after_mode)
    if entry.after_mode is FileMode.EXECUTABLE and entry.before_mode is not FileMode.EXECUTABLE:
        yield EXECUTABLE.finding(entry.path, 0, f"{entry.path} becomes executable")
    if FileMode.SYMLINK in modes:
        yield SYMLINK.finding(entry.path, 0, f"{entry.path} is a symbolic link, before or after")
    if FileMode.SUBMODULE in modes:
        yield SUBMODULE.finding(entry.path, 0, f"{entry.path} is a submodule, before or after")
    if entry.binary:
        yield BINARY.finding(entry.path, 0, f"{entry.path} is not text")
