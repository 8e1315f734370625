"""Names in a diff, quoted or not, made into paths that stay inside the repository and out of git's own folder.

Names must have the prefixes `a/` and `b/`: without them tools do not agree which folder is meant. They may miss only in
plain diffs and for files at the top, where there is no folder to disagree about.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from localagent.domain.diff import ChangeKind, DiffFault, DiffRule
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.text.visible_text import shortened

_MAX_NAME = 4096
_MAX_PART = 255
_DEV_NULL = b"/dev/null"
_ESCAPES = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}
_PREFIXES = "make it with the prefixes a/ and b/: `git diff --src-prefix=a/ --dst-prefix=b/`"
_GIT_SHORT = ("git~1", ".git")


@dataclass(frozen=True, kw_only=True, slots=True)
class NamePair:
    """The path before and after; the same where nothing is renamed."""

    old: RepoPath
    new: RepoPath


def _fault(line: int, what: str, remedy: str = "give the output of `git diff`, unchanged") -> DiffFault:
    return DiffFault(DiffRule.MALFORMED, line, what, remedy=remedy)


def unquoted(name: bytes, line: int) -> bytes:
    """A name without git's quotes, if it has them."""
    if not name.startswith(b'"'):
        return name
    out, rest = _quoted(name, line)
    if rest:
        raise _fault(line, "something follows a quoted name")
    return out


def _quoted(text: bytes, line: int) -> tuple[bytes, bytes]:
    """A quoted name at the start of some text, and what follows it."""
    out = bytearray()
    at = 1
    while at < len(text):
        c = text[at : at + 1]
        if c == b'"':
            return bytes(out), text[at + 1 :]
        if c != b"\\":
            out += c
            at += 1
            continue
        octal = text[at + 1 : at + 4]
        if text[at + 1 : at + 2] in _ESCAPES:
            out.append(_ESCAPES[text[at + 1 : at + 2]])
            at += 2
        elif len(octal) == 3 and octal[:1] in b"0123" and all(48 <= b < 56 for b in octal):
            out.append(int(octal, 8))
            at += 4
        else:
            raise _fault(line, "a quoted name holds an escape that git does not write")
    raise _fault(line, "a quoted name does not end")


def safe_path(name: bytes, line: int) -> RepoPath:
    """A path inside the repository, or a DiffFault."""
    text = name.decode("utf-8", "surrogateescape")

    def refuse(why: str) -> DiffFault:
        remedy = "a patch may name only files inside the repository, and none of git's own"
        return DiffFault(DiffRule.PATH, line, f"{shortened(text, 200)!r} {why}", remedy=remedy)

    if len(name) > _MAX_NAME:
        raise refuse("is longer than a path can be")
    try:
        path = RepoPath(text)
    except UsageFault:
        raise refuse("is not a path inside the repository") from None
    if "\\" in text:
        raise refuse("holds a backslash, which some systems take for a separator")
    if any(len(part.encode("utf-8", "surrogateescape")) > _MAX_PART for part in path.parts):
        raise refuse("has a part that is longer than a name can be")
    if any(_is_git(part) for part in path.parts):
        raise refuse("reaches into git's own folder")
    return path


def _is_git(part: str) -> bool:
    """Whether any file system could take a name for `.git`: without regard to case, ignored characters, endings."""
    kept = "".join(c for c in unicodedata.normalize("NFKC", part) if unicodedata.category(c) not in ("Cf", "Mn", "Cc"))
    return kept.casefold().split(":", 1)[0].rstrip(" .") in _GIT_SHORT


def _prefixed(name: bytes, prefix: bytes, line: int) -> bytes:
    if not name.startswith(prefix):
        raise _fault(line, f"a name without {prefix.decode()!r}: tools do not agree which folder it means", _PREFIXES)
    return name[2:]


def plain_name(mark: bytes, line: int) -> bytes:
    """The name after `---` or `+++`: quoted, or up to a tab (what follows is a time)."""
    if mark.startswith(b'"'):
        out, rest = _quoted(mark, line)
        if rest and not rest.startswith(b"\t"):
            raise _fault(line, "something follows a quoted name")
        return out
    return mark.split(b"\t", 1)[0]


def same_name(old: bytes, new: bytes, line: int) -> NamePair:
    """The path of a plain part: both names must be one but for the prefixes; /dev/null says that there is none."""
    sides = [side for side in (old, new) if side != _DEV_NULL]
    prefixed = all(side.startswith(want) for side, want in ((old, b"a/"), (new, b"b/")) if side != _DEV_NULL)
    if not prefixed and any(b"/" in side and not side.startswith((b"../", b"/")) for side in sides):
        raise _fault(
            line, "a name with folders and without a/ and b/: tools do not agree which folder it means", _PREFIXES
        )
    names = [side[2:] if prefixed else side for side in sides]
    paths = [safe_path(name, line) for name in names]
    if len(set(paths)) > 1:
        raise _fault(
            line,
            f"two names for one file: {paths[0]!r} and {paths[1]!r}",
            "make it with `git diff`, or name it a/… and b/…",
        )
    return NamePair(old=paths[0], new=paths[0])


def git_names(
    said: bytes, line: int, kind: ChangeKind, moved: Mapping[str, bytes], marks: tuple[bytes, bytes] | None
) -> NamePair:
    """The names of a git part. Every line that says them must say the same."""
    old, new = _first_line(said, line, moved)
    pair = NamePair(old=safe_path(old, line), new=safe_path(new, line))
    if pair.old != pair.new and not moved:
        raise _fault(line, f"{pair.old!r} becomes {pair.new!r} without `rename` or `copy`")
    if marks is not None:
        a = plain_name(marks[0], line)
        b = plain_name(marks[1], line)
        want = (
            _DEV_NULL if kind is ChangeKind.ADDED else b"a/" + old,
            _DEV_NULL if kind is ChangeKind.DELETED else b"b/" + new,
        )
        if (a, b) != want:
            raise _fault(
                line, f"the names after `---` and `+++` are not those of the part, {pair.old!r} and {pair.new!r}"
            )
    return pair


def _first_line(said: bytes, line: int, moved: Mapping[str, bytes]) -> tuple[bytes, bytes]:
    rest = said.removeprefix(b"diff --git ").removesuffix(b"\n")
    if rest.endswith(b"\r"):
        raise _fault(line, "the patch's own lines end in CR LF", "turn the patch's own lines into LF")
    if moved:
        old, new = (unquoted(value, line) for _, value in sorted(moved.items()))  # from, to
        pairs = list(_splits(rest, line))
        if (b"a/" + old, b"b/" + new) not in pairs:
            raise _fault(line, "`rename` or `copy` names other files than the head of the part", _PREFIXES)
        return old, new
    for a, b in _splits(rest, line):
        if a.startswith(b"a/") and b.startswith(b"b/") and a[2:] == b[2:]:
            return a[2:], b[2:]
    for a, b in _splits(rest, line):
        _prefixed(a, b"a/", line)
        _prefixed(b, b"b/", line)
    raise _fault(line, "the head of the part does not name one file twice")


def _splits(rest: bytes, line: int) -> list[tuple[bytes, bytes]]:
    """Every way to read two names: names without quotes may hold blanks."""
    if rest.startswith(b'"'):
        a, tail = _quoted(rest, line)
        return [(a, unquoted(tail[1:], line))] if tail.startswith(b" ") else []
    if rest.endswith(b'"') and b' "' in rest:
        at = rest.index(b' "')
        return [(rest[:at], unquoted(rest[at + 1 :], line))]
    if len(rest) > 4 * _MAX_NAME:
        raise _fault(line, "names longer than paths can be")
    spaces = [at for at, byte in enumerate(rest) if byte == 32]
    return [(rest[:at], rest[at + 1 :]) for at in spaces if rest[at + 1 : at + 3] == b"b/" or len(spaces) == 1]
