"""Which entries git would ignore, from the tree's `.gitignore` files and `.git/info/exclude`.

A remark on files, no boundary: global ignore files of the user and `core.excludesFile` are not read, and a pattern
whose matching could take long is left out (its files count as not ignored).
"""

from dataclasses import dataclass

from pathspec import GitIgnoreSpec

_MAX_BYTES = 1 << 20
_MAX_PATTERNS = 2_000
_MAX_PATTERN_CHARS = 300
_MAX_STARS = 2


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules of one `.gitignore`, for paths that begin with `prefix` (empty, or ending in a slash)."""

    prefix: str
    spec: GitIgnoreSpec


def parse_rules(prefix: str, data: bytes) -> IgnoreRules | None:
    """The rules a file holds, those that cannot be understood left out; None if there are none."""
    lines = []
    for line in data[:_MAX_BYTES].decode("utf-8", "surrogateescape").splitlines()[:_MAX_PATTERNS]:
        if line.strip() and not line.startswith("#") and _cheap(line) and _understood(line):
            lines.append(line)
    return IgnoreRules(prefix, GitIgnoreSpec.from_lines(lines)) if lines else None


def _cheap(line: str) -> bool:
    parts = line.split("/")
    stars = max(p.count("*") for p in parts if p != "**") if any(p != "**" for p in parts) else 0
    return len(line) <= _MAX_PATTERN_CHARS and stars <= _MAX_STARS and parts.count("**") <= _MAX_STARS


def _understood(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def is_ignored(path: str, *, directory: bool, rules: tuple[IgnoreRules, ...]) -> bool:
    """Whether the innermost rule that speaks of a path ignores it; `rules` come outermost first."""
    name = path + "/" if directory else path
    for rule in reversed(rules):
        if name.startswith(rule.prefix):
            # the patterns become regular expressions whose dot knows no line feed
            answer = rule.spec.check_file(name[len(rule.prefix) :].replace("\n", " ")).include
            if answer is not None:
                return answer
    return False
