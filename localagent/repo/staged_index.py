"""What is staged for the next commit, and putting other bytes in its place.

Only blobs of the index are read and written, never through filters. A file whose attributes change its bytes between
index and working tree is not written, with the reason. Not promised: that somebody else's `git add` in the very moment
between the last look and the write is noticed.
"""

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo
from localagent.fs import openat
from localagent.repo.git import Git

MAX_BYTES = 2_000_000
MAX_UNSTAGED = 500
_MAX_LINES = 20_000
_REGULAR = ("100644", "100755")
_CHANGING = ("filter", "ident", "working-tree-encoding")
_HASH = re.compile(rb"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True, kw_only=True, slots=True)
class StagedFile:
    """One staged Python file. `data` is None where it cannot be looked at; `reason` says why."""

    path: RepoPath
    mode: str
    blob: str
    data: bytes | None
    reason: str = ""


def work_tree(git: Git) -> Path:
    """The top of the working tree around the folder. AnswerIsNo where git knows none."""
    top = git.path("--show-toplevel")
    if top is None:
        raise AnswerIsNo(
            f"{git.folder} is in no git working tree", remedy="name the files, or run it inside a repository"
        )
    return top


def staged_files(git: Git) -> list[StagedFile]:
    """The Python files that the next commit adds or changes: no links, no submodules, none that a merge brings.

    In a merge, files taken as they are from either side are left alone: only what differs from all parents counts.
    """
    changed = _against(git, _base(git))
    for parent in _merge_heads(git):
        other = _against(git, parent)
        changed = {path: entry for path, entry in changed.items() if path in other}
    wanted = {p: e for p, e in changed.items() if p.is_python and (e[0] in _REGULAR or e[2] == "U")}
    data = _blobs(git, {e[1] for e in wanted.values() if e[2] != "U"})
    return [_staged(path, *entry, data) for path, entry in sorted(wanted.items())]


def _staged(path: RepoPath, mode: str, blob: str, status: str, data: Mapping[str, bytes | None]) -> StagedFile:
    if status == "U":
        return StagedFile(path=path, mode=mode, blob=blob, data=None, reason="not merged yet: resolve it and add it")
    found = data.get(blob)
    reason = "" if found is not None else f"larger than {MAX_BYTES:,} bytes, or its object is missing"
    return StagedFile(path=path, mode=mode, blob=blob, data=found, reason=reason)


def _base(git: Git) -> str:
    head = git.asks("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    found = head if head is not None else git.run("hash-object", "-t", "tree", "--stdin")
    return found.decode().strip()


def _merge_heads(git: Git) -> list[str]:
    place = git.path("--git-path", "MERGE_HEAD")
    if place is None:
        return []
    try:
        with openat.root_directory(place.parent) as folder:
            text, _ = openat.read_regular(place.name, folder, 65_536)
    except FileNotFoundError:
        return []
    return [line.decode() for line in text.split() if _HASH.fullmatch(line)]


def _against(git: Git, tree: str) -> dict[RepoPath, tuple[str, str, str]]:
    """Path to (mode, blob, status) of what the index changes against a tree."""
    flags = ("--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv")
    more = ("--ita-invisible-in-index", "--ignore-submodules=all")
    out = git.run("diff-index", *flags, *more, tree, "--")
    found = {}
    fields = out.split(b"\0")
    for head, name in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, blob, status = head.decode().split(" ")
        if status != "D":
            found[RepoPath(name.decode("utf-8", "surrogateescape"))] = (mode, blob, status)
    return found


def unstaged(git: Git) -> dict[RepoPath, bytes | None]:
    """Files whose working bytes may differ from the index, as the index holds them. AnswerIsNo for too much of it."""
    out = git.run("diff-files", "--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=all")
    fields = out.split(b"\0")
    entries = {}
    for head, name in zip(fields[::2], fields[1::2], strict=False):
        mode, _, blob, _, status = head.decode().lstrip(":").split(" ")
        if status != "U" and mode in _REGULAR:
            entries[RepoPath(name.decode("utf-8", "surrogateescape"))] = blob
    if len(entries) > MAX_UNSTAGED:
        raise AnswerIsNo(f"more than {MAX_UNSTAGED} files have unstaged changes", remedy="stage or stash them")
    data = _blobs(git, set(entries.values()))
    missing = [path for path, blob in entries.items() if data.get(blob) is None]
    if missing:
        raise AnswerIsNo(f"{missing[0]!r} as it is staged is too large, or its object is missing")
    return {path: data[blob] for path, blob in entries.items()}


def _blobs(git: Git, names: Iterable[str]) -> dict[str, bytes | None]:
    wanted = sorted(names)
    sizes = git.run("cat-file", "--batch-check", stdin="".join(f"{n}\n" for n in wanted).encode()) if wanted else b""
    small = [
        name
        for name, line in zip(wanted, sizes.splitlines(), strict=True)
        if line.split()[1:2] == [b"blob"] and int(line.split()[2]) <= MAX_BYTES
    ]
    out = git.run("cat-file", "--batch", stdin="".join(f"{n}\n" for n in small).encode()) if small else b""
    found: dict[str, bytes | None] = {}
    at = 0
    for name in small:
        end = out.index(b"\n", at)
        size = int(out[at:end].split()[2])
        found[name] = out[end + 1 : end + 1 + size]
        at = end + 2 + size
    return found


def attribute_conflicts(git: Git, paths: Sequence[RepoPath]) -> dict[RepoPath, str]:
    """Files that attributes change on their way between index and working tree, with the attribute."""
    reasons: dict[RepoPath, str] = {}
    names = b"\0".join(os.fsencode(p) for p in paths)
    for where in ((), ("--cached",)):
        out = git.run("check-attr", "-z", "--stdin", *where, *_CHANGING, stdin=names) if paths else b""
        fields = out.split(b"\0")
        for name, attribute, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
            if value not in (b"unspecified", b"unset"):
                path = RepoPath(name.decode("utf-8", "surrogateescape"))
                told = f"{attribute.decode()}={value.decode(errors='replace')}"
                reasons[path] = f"its attribute {told} changes its bytes on the way to the index"
    return reasons


def temporary_index(git: Git) -> bool:
    """Whether git commits from an index made for some paths only: what is written there never reaches the real one."""
    return Path(git.index_file).name.startswith("next-index-")


def keep_blobs(git: Git, files: Sequence[tuple[StagedFile, bytes]], folder: Path) -> dict[RepoPath, str]:
    """Put bytes among git's objects, where nothing refers to them yet; their names. `folder` is ours, for copies."""
    copies = [folder / f"{n}.staged" for n in range(len(files))]
    for copy, (_, data) in zip(copies, files, strict=True):
        copy.write_bytes(data)
    if "\n" in str(folder):  # git reads a path a line
        raise AnswerIsNo(f"{str(folder)!r} holds a line end", remedy="name another state folder (XDG_STATE_HOME)")
    listed = b"".join(os.fsencode(copy) + b"\n" for copy in copies)
    names = git.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=listed).decode().split()
    if [_HASH.fullmatch(name.encode()) is None for name in names] != [False] * len(files):
        raise AnswerIsNo("git hash-object named other objects than it was given", remedy="see `git fsck`")
    return {file.path: name for (file, _), name in zip(files, names, strict=True)}


def write_staged(git: Git, files: Sequence[StagedFile], blobs: Mapping[RepoPath, str]) -> None:
    """Put kept bytes into the index, all files at once. AnswerIsNo if one was staged anew meanwhile."""
    now = entries_of(git, [file.path for file in files])
    moved = [file.path for file in files if now.get(file.path) != (file.mode, file.blob)]
    if moved:
        raise AnswerIsNo(f"staged anew meanwhile: {', '.join(map(repr, moved))}", remedy="try again")
    lines = [f"{file.mode} {blobs[file.path]} 0\t".encode() + os.fsencode(file.path) + b"\0" for file in files]
    git.run("update-index", "-z", "--index-info", stdin=b"".join(lines))


def entries_of(git: Git, paths: Sequence[RepoPath]) -> dict[RepoPath, tuple[str, str]]:
    """Mode and blob of paths that are in the index and merged."""
    found = {}
    for record in git.run("ls-files", "--stage", "-z", "--", *paths).split(b"\0"):
        if record:
            head, _, name = record.partition(b"\t")
            mode, blob, stage = head.decode().split(" ")
            if stage == "0":
                found[RepoPath(name.decode("utf-8", "surrogateescape"))] = (mode, blob)
    return found


def carried_over(before: bytes, after: bytes, other: bytes) -> bytes | None:
    """`other` with the changes from `before` to `after`, if the changed lines and their neighbours stand there."""
    if other in (before, after):
        return after
    old, new, theirs = (data.splitlines(keepends=True) for data in (before, after, other))
    if max(len(old), len(theirs)) > _MAX_LINES:
        return None
    blocks = difflib.SequenceMatcher(None, old, theirs, autojunk=False).get_matching_blocks()
    out, at = [], 0
    for first, last, lines in _hunks(old, new):
        low, high = max(first - 1, 0), min(last + 1, len(old))
        block = next((b for b in blocks if b.a <= low and high <= b.a + b.size), None)
        if block is None:
            return None
        move = block.b - block.a
        out += [*theirs[at : first + move], *lines]
        at = last + move
    return b"".join((*out, *theirs[at:]))


def _hunks(old: list[bytes], new: list[bytes]) -> Iterator[tuple[int, int, list[bytes]]]:
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield a, b, new[c:d]
