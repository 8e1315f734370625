"""A revision's tree out of an object store, written into a private folder. The store is only read.

Trees and blobs are read raw, by plumbing (see `git`): no filter, no attribute, no checkout. Names are judged one by
one; what cannot stand in a folder, or could lead out of it, is left out with the reason. Not promised: that large files
kept elsewhere (LFS) are there, submodules, or more than a snapshot may hold.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from localagent.errors import AnswerIsNo
from localagent.fs import openat
from localagent.repo.git import Git, GitSaysNoError
from localagent.repo.snapshot import MAX_DEPTH, MAX_ENTRIES, MAX_FILE_BYTES, MAX_TOTAL_BYTES, CannotCopy, TreeTooLarge

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_PIECE_BYTES = 32 << 20
_LINK_BYTES = 4096
_TREE, _LINK, _SUBMODULE = "40000", "120000", "160000"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """One entry of a tree object. `parts` are the names from the root, as bytes."""

    parts: tuple[bytes, ...]
    mode: str
    object: str


def open_mirror(folder: Path) -> Git:
    """Git at an object store (a bare repository, or a working tree's `.git`)."""
    inner = folder / ".git"
    return Git(folder, {"GIT_DIR": ".git" if inner.is_dir() else "."})


def resolve_commit(git: Git, revision: str) -> str:
    """The commit that a revision names now. AnswerIsNo where there is none."""
    out = git.asks("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    commit = "" if out is None else out.decode("ascii", "replace").strip()
    if not _COMMIT.fullmatch(commit):
        raise AnswerIsNo(f"there is no commit {revision!r} there", remedy="fetch it into the mirror, or name another")
    return commit


def materialise(git: Git, commit: str, target: Path) -> dict[str, str]:
    """Write a commit's tree into `target`, which must not exist. Answers what was left out, and why.

    Raises AnswerIsNo (TreeTooLarge, CannotCopy) and leaves nothing then.
    """
    left_out: dict[str, str] = {}
    try:
        target.mkdir(mode=0o700)
        _write(git, list(_entries(git, commit, left_out)), target, left_out)
    except BaseException as error:
        shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, OSError):
            raise CannotCopy(f"cannot write the tree to {target}: {error.strerror or error}") from error
        raise
    return left_out


def _entries(git: Git, commit: str, left_out: dict[str, str]) -> Iterator[_Entry]:
    """Folders before what is in them, level by level: a tree that holds itself many times over is cut off by number."""
    root = git.run("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}").decode("ascii").strip()
    level = [_Entry(parts=(), mode=_TREE, object=root)]
    count = 0
    for _ in range(MAX_DEPTH):
        data = _objects(git, [entry.object for entry in level], "tree")
        below: list[_Entry] = []
        for folder in level:
            found = data.get(folder.object)
            if found is None:
                raise AnswerIsNo(f"the tree {folder.object} is missing or larger than {_PIECE_BYTES >> 20} MiB")
            for entry in _parsed(folder, found, left_out):
                count += 1
                if count > MAX_ENTRIES:
                    raise TreeTooLarge(f"{commit} holds more than {MAX_ENTRIES:,} entries")
                if entry.mode == _TREE:
                    below.append(entry)
                yield entry
        if not below:
            return
        level = below
    for entry in level:
        left_out[_shown(entry.parts)] = f"more than {MAX_DEPTH} directories deep"


def _parsed(folder: _Entry, data: bytes, left_out: dict[str, str]) -> Iterator[_Entry]:
    """The entries of one tree object that may stand in a folder."""
    length = len(folder.object) // 2
    at = 0
    names: set[bytes] = set()
    while at < len(data):
        nul = data.find(b"\0", at)
        mode, blank, name = data[at:nul].partition(b" ")
        if nul < 0 or not blank or nul + 1 + length > len(data):
            raise AnswerIsNo(f"the tree {folder.object} is no tree")
        entry = _Entry(
            parts=(*folder.parts, name),
            mode=mode.decode("ascii", "replace").lstrip("0"),
            object=data[nul + 1 : nul + 1 + length].hex(),
        )
        at = nul + 1 + length
        if reason := _unwanted(name, entry.mode, names):
            left_out[_shown(entry.parts)] = reason
        else:
            names.add(name)
            yield entry


def _unwanted(name: bytes, mode: str, names: set[bytes]) -> str:
    if name in (b"", b".", b"..") or b"/" in name or len(name) > 255:
        return "not a name that can stand in a folder"
    if name.lower() == b".git":
        return "version control"
    if name in names:
        return "a name that stands twice"
    if mode == _SUBMODULE:
        return "a submodule"
    return "" if mode in (_TREE, _LINK) or mode.startswith("100") else f"of an unknown mode {mode!r}"


def _shown(parts: Sequence[bytes]) -> str:
    return b"/".join(parts).decode("utf-8", "surrogateescape")


def _objects(git: Git, names: Sequence[str], kind: str) -> dict[str, bytes]:
    """Objects of one kind that are not larger than a piece; the others are not in the answer."""
    wanted = sorted(set(names))
    sizes = _sizes(git, wanted, kind, _PIECE_BYTES)
    found: dict[str, bytes] = {}
    for piece in _pieces(sizes):
        found.update(_batch(git, piece))
    return found


def _sizes(git: Git, names: Sequence[str], kind: str, most: int) -> dict[str, int]:
    lines = git.run("cat-file", "--batch-check", stdin="".join(f"{name}\n" for name in names).encode()).splitlines()
    sizes = {}
    for name, line in zip(names, lines, strict=True):
        words = line.split()
        if len(words) == 3 and words[1] == kind.encode() and int(words[2]) <= most:
            sizes[name] = int(words[2])
    return sizes


def _pieces(sizes: dict[str, int]) -> Iterator[list[str]]:
    """Names in groups whose objects are not larger together than a piece, or one alone."""
    piece: list[str] = []
    held = 0
    for name, size in sizes.items():
        if piece and held + size > _PIECE_BYTES:
            yield piece
            piece, held = [], 0
        piece.append(name)
        held += size
    if piece:
        yield piece


def _batch(git: Git, names: Sequence[str]) -> dict[str, bytes]:
    out = git.run("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode())
    found = {}
    at = 0
    for name in names:
        end = out.find(b"\n", at)
        words = out[at:end].split()
        if end < 0 or len(words) != 3 or words[0].decode("ascii", "replace") != name:
            raise GitSaysNoError(f"git cat-file in {git.folder}: no answer on {name}")
        size = int(words[2])
        found[name] = out[end + 1 : end + 1 + size]
        at = end + 2 + size
    return found


def _write(git: Git, entries: Sequence[_Entry], target: Path, left_out: dict[str, str]) -> None:
    """Folders, then files, and links last: nothing is ever written through a link."""
    files = [entry for entry in entries if entry.mode != _TREE]
    sizes = _sizes(git, sorted({entry.object for entry in files}), "blob", MAX_FILE_BYTES)
    total = 0
    places: dict[str, list[_Entry]] = {}
    for entry in files:
        size = sizes.get(entry.object)
        if size is None or (entry.mode == _LINK and size > _LINK_BYTES):
            left_out[_shown(entry.parts)] = f"missing, or larger than {MAX_FILE_BYTES >> 20} MiB"
            continue
        total += size
        if total > MAX_TOTAL_BYTES:
            raise TreeTooLarge(f"the tree holds more than {MAX_TOTAL_BYTES >> 30} GiB")
        places.setdefault(entry.object, []).append(entry)
    links: list[tuple[_Entry, bytes]] = []
    with openat.root_directory(target) as root:
        for entry in entries:
            if entry.mode == _TREE:
                with _parent(root, entry.parts) as parent:
                    os.mkdir(entry.parts[-1], 0o755, dir_fd=parent)
        for piece in _pieces({name: sizes[name] for name in places}):
            for name, data in _batch(git, piece).items():
                for entry in places[name]:
                    if entry.mode == _LINK:
                        links.append((entry, data))
                    else:
                        _write_file(root, entry, data)
        for entry, text in links:
            if not text or b"\0" in text:
                left_out[_shown(entry.parts)] = "a link to no name"
                continue
            with _parent(root, entry.parts) as parent:
                os.symlink(text, entry.parts[-1], dir_fd=parent)


def _parent(root: int, parts: Sequence[bytes]) -> AbstractContextManager[int]:
    return openat.parent_directory(root, [os.fsdecode(part) for part in parts])


def _write_file(root: int, entry: _Entry, data: bytes) -> None:
    mode = 0o755 if entry.mode.endswith("755") else 0o644
    with _parent(root, entry.parts) as parent:
        openat.write_new(os.fsdecode(entry.parts[-1]), data, parent, mode=mode)
