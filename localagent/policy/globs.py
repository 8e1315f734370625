"""What is wrong with a pattern of paths: one that can match no path of a repository, or something else than it says.

Such a pattern is worse than none: it stands in a list of what is denied and denies nothing. Not promised: that a
pattern which is right matches any file that there is.
"""

import re
from functools import lru_cache

import pathspec

_DRIVE = re.compile(r"[A-Za-z]:(/|$)")
_HOME = re.compile(r"~[^/]*(/|$)")
_STARS = re.compile(r"\*{3,}")
_CLASS = re.compile(r"\[!?+[^/][^\]/]*\]")  # as gitwildmatch ends one: not at a `]` in the first place


@lru_cache(maxsize=2048)  # every layer is read over the whole base, whose patterns were compiled before
def pattern_fault(pattern: str) -> str:
    """What is wrong, why, and what to write instead; "" if nothing is."""
    return _character_fault(pattern) or _shape_fault(pattern) or _class_fault(pattern)


def _character_fault(pattern: str) -> str:
    if pattern.startswith("!"):
        return "a pattern cannot take another back (`!`)"
    if any(ord(c) < 32 or ord(c) == 127 for c in pattern):
        return f"{pattern!r} holds a control character: a pattern is one line, and paths hold none; leave it out"
    if pattern != pattern.strip():
        return (
            f"{pattern!r} begins or ends with a blank, which patterns lose: it would match another path; leave it out"
        )
    if "\\" in pattern:
        return f"{pattern!r} holds a backslash: paths are written with `/`, and `[*]` stands for a `*` itself"
    if pattern.startswith("#"):
        return f"{pattern!r} would be a comment and match nothing; `[#]` stands for a `#` itself"
    return ""


def _shape_fault(pattern: str) -> str:
    if _DRIVE.match(pattern) or _HOME.match(pattern):
        return f"{pattern!r} is a place of a machine: patterns are for paths below the repository's root"
    inner = pattern.removeprefix("/").removesuffix("/")
    if not inner:
        return f"{pattern!r} names nothing: `*` is for everything, `/x` for an `x` at the repository's root"
    for part in inner.split("/"):
        if not part:
            return f"{pattern!r} has an empty part (`//`), which no path has; write one `/`"
        if part in (".", ".."):
            return f"{pattern!r} has the part `{part}`, which no path of a repository has; write the path without it"
        if _STARS.search(part):
            return f"{pattern!r} has three `*` in a row; `*` is for one part of a path, `**` for any number of them"
        if "**" in part and part != "**":
            return f"{pattern!r} has `**` beside other letters, where it is no more than `*`; write `*`, or `**/`"
    return ""


def _class_fault(pattern: str) -> str:
    if "[" in _CLASS.sub("", pattern):
        return f"{pattern!r} has a `[` without its `]` in the same part: it matches nothing; `[[]` is for a `[` itself"
    try:
        compiled = pathspec.GitIgnoreSpec.from_lines([pattern])
    except (ValueError, re.error) as error:
        return f"{pattern!r} is no gitwildmatch pattern: {error}"
    if any(one.include is None for one in compiled.patterns):
        return f"{pattern!r} matches nothing"
    return ""
