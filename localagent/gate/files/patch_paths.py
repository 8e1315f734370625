"""Gate: which files a patch that anybody wrote may touch, by name alone. A repair's reach is `paths`' to judge.

Not known: what a name means to a project, and how it is started.
"""

import unicodedata
from collections.abc import Iterator, Sequence

import pathspec

from localagent.domain.diff import ChangeKind, TreeChange
from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Permission, Policy
from localagent.gate.core.gate_input import GateInput
from localagent.gate.core.rule import Rule, RuleExample, decide, question
from localagent.gate.files.editable_paths import DENIED, IS_TEST, NOT_EDITABLE
from localagent.gate.files.stdlib_shadowing import stands_for
from localagent.text.confusable_letters import as_read, has_mixed_script

_SOME = {"before": "x = 1\n", "after": "x = 2\n"}

ODD_NAME = Rule(
    id="path-odd-name",
    severity=Severity.HIGH,
    why="a name that reads differently from what it is misleads whoever reviews it",
    remedy="use plain names: no control or invisible characters, no blanks at the ends, one form of each letter",
    match=tuple(
        RuleExample(path=path, **_SOME)
        for path in (
            "pkg/mod\n.py",
            "pkg/\u202eyp.py",
            "pkg/a\u200bb.py",
            "pkg /mod.py",
            "pkg/\uff4dod.py",
            "pkg/\udcff.py",
            "\u0430uth/a.py",
            "migrati\u03bfns/a.py",
            "pkg/\u0441\u043e\u0440\u0443.py",
        )
    ),
    not_match=(
        RuleExample(**_SOME),
        RuleExample(path="docs/über uns.md", **_SOME),
        RuleExample(path="docs/имя.md", **_SOME),
    ),
)
ALIAS = Rule(
    id="path-alias",
    severity=Severity.HIGH,
    why="on some file systems the two names are one file, on others the wrong one is imported",
    remedy="use the name that stands in the tree",
    match=(RuleExample(path="pkg/Mod.py", alias="pkg/mod.py", **_SOME),),
    not_match=(RuleExample(**_SOME),),
)
SHADOWS = question(
    id="path-shadows-module",
    why="whoever imports the module of that name would get this file instead",
    remedy="call it otherwise, or put it inside the package; where it is meant, a person may let it be",
    match=(
        RuleExample(path="pkg/mod/__init__.py", alias="pkg/mod.py", before="", after="x = 1\n", modes=":100644"),
        *(
            RuleExample(path=path, before="", after="x = 1\n", modes=":100644")
            for path in (
                "pytest.py",
                "requests.py",
                "random.py",
                "unittest/__init__.py",
                "src/logging.py",
                "tests/json.py",
            )
        ),
    ),
    not_match=(
        *(
            RuleExample(path=path, before="", after="x = 1\n", modes=":100644")
            for path in ("pkg/logging.py", "src/pkg/random.py", "tests/__init__.py", "test/__init__.py", "logging.md")
        ),
        RuleExample(path="random.py", **_SOME),
    ),
)
RULES = (ODD_NAME, ALIAS, SHADOWS)
_NEW = (ChangeKind.ADDED, ChangeKind.RENAMED, ChangeKind.COPIED)


class PatchPaths:
    """Refuses by name. Denials hold without regard to case."""

    name = "paths"

    def __init__(self, policy: Policy) -> None:
        lists = (policy.patches.editable, *policy.patches.narrowed)
        self._editable = tuple(pathspec.GitIgnoreSpec.from_lines(patterns) for patterns in lists)
        self._denied = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.patches.denied])
        tests = () if policy.patches.tests is Permission.ALLOW else policy.paths.tests
        self._tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in tests])

    def review(self, change: GateInput) -> Decision:
        """Deny if any path, before or after, may not be touched, or is not what it seems."""
        return decide(self.name, self.found(change.entries))

    def found(self, entries: Sequence[TreeChange]) -> list[Finding]:
        """Why the entries may not become so."""
        paths = dict.fromkeys(path for entry in entries for path in (entry.path, entry.source))
        found = [finding for path in paths for finding in self._by_name(path)]
        folded: dict[str, RepoPath] = {}
        for entry in entries:
            other = entry.alias or folded.get(as_read(entry.path), entry.path)
            folded[as_read(entry.path)] = entry.path
            if other == entry.path.hidden_module:
                if entry.kind in _NEW:
                    found.append(SHADOWS.finding(entry.path, 0, f"{entry.path} would be imported instead of {other}"))
            elif other != entry.path:
                found.append(
                    ALIAS.finding(entry.path, 0, f"{entry.path} and {other} are alike but for case, form or letters")
                )
            if entry.kind in _NEW and (module := stands_for(entry.path)):
                found.append(SHADOWS.finding(entry.path, 0, f"{entry.path} would be imported as {module}"))
        return found

    def _by_name(self, path: RepoPath) -> Iterator[Finding]:
        """Why a path may not be touched, whatever becomes of it."""
        if _odd(path):
            yield ODD_NAME.finding(path, 0, f"{path!r} is not what it seems")
        plain = path.replace("\n", " ")  # the patterns become regular expressions whose dot knows no line feed
        if self._denied.match_file(plain.lower()) or self._denied.match_file(as_read(plain)):
            yield DENIED.finding(path, 0, f"{path} is denied by the policy's patches.denied")
        elif self._tests.match_file(plain.lower()):
            yield IS_TEST.finding(path, 0, f"{path} is a test, and the policy's patches.tests denies tests")
        elif not all(spec.match_file(plain) for spec in self._editable):
            yield NOT_EDITABLE.finding(path, 0, f"{path} is not named by the policy's patches.editable")


def _odd(path: str) -> bool:
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for c in path):
        return True
    if unicodedata.normalize("NFKC", path) != path and unicodedata.normalize("NFC", path) != unicodedata.normalize(
        "NFKC", path
    ):
        return True
    if has_mixed_script(path):
        return True
    return any(part != part.strip() or part.endswith(".") for part in path.split("/"))
