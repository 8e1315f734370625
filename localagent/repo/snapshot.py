"""The working tree as it stands, copied into a private store that no test ever touches.

Walks by descriptors, never through a link; a file that changes while it is read is read again, then refused. Not
promised: one instant for the whole tree (each file is whole, the tree is as good as the user's own `cp`), ownership,
extended attributes, hard links. Git's own files, caches and virtual environments are not copied.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localagent.domain.paths import RepoPath
from localagent.domain.task import FileKind, Snapshot, TreeEntry
from localagent.errors import AnswerIsNo
from localagent.fs import openat
from localagent.repo.gitignore import IgnoreRules, is_ignored, parse_rules

MAX_FILE_BYTES = 64 << 20
MAX_TOTAL_BYTES = 2 << 30
MAX_ENTRIES = 300_000
MAX_DEPTH = 100
_ATTEMPTS = 3
NOT_COPIED = {
    **dict.fromkeys((".git", ".hg", ".svn", ".bzr"), "version control"),
    **dict.fromkeys(
        (
            "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", "node_modules",
        ),
        "a cache, made anew when needed",
    ),
}  # fmt: skip


class TreeTooLarge(AnswerIsNo):
    """More than a snapshot may hold."""


class CannotCopy(AnswerIsNo):
    """The tree cannot be entered, or there is no room for the copy."""


class TreeChanged(AnswerIsNo):
    """Somebody writes into the tree while it is read."""


@dataclass(slots=True)
class _Walk:
    """What one walk gathers."""

    root: str
    exclude: frozenset[str]
    keep_ignored: bool
    entries: dict[RepoPath, TreeEntry] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    total_bytes: int = 0


def take_snapshot(repo: Path, store: Path, *, keep_ignored: bool = True, exclude: Collection[Path] = ()) -> Snapshot:
    """Copies the tree at `repo` into `store` (which must not exist yet). `exclude` are absolute paths to leave out.

    Raises AnswerIsNo when the tree cannot be entered, is too large, keeps changing, or there is no room for the copy;
    then the store is gone again.
    """
    root = os.path.realpath(repo)
    left_out = frozenset(os.path.realpath(p) for p in (*exclude, store))
    walk = _Walk(root=root, exclude=left_out, keep_ignored=keep_ignored)
    try:
        store.mkdir(mode=0o700, parents=True)
        with openat.root_directory(Path(root)) as source, openat.root_directory(store) as target:
            rules = _rules_in(source, ".git/info/exclude", "")
            _copy_directory(walk, source, target, "", rules, ignored=False)
    except BaseException as error:
        shutil.rmtree(store, ignore_errors=True)
        if isinstance(error, OSError):
            raise _refusal(error, store) from error
        raise
    entries = dict(sorted(walk.entries.items()))
    return Snapshot(root=root, store=str(store), entries=entries, digest=tree_digest(entries), left_out=walk.left_out)


def _refusal(error: OSError, store: Path) -> CannotCopy:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    remedy = "free space there, or set TMPDIR to a place with more" if full else "check the rights of that directory"
    return CannotCopy(f"cannot copy the tree to {store}: {error.strerror or error}", remedy=remedy)


def _copy_directory(
    walk: _Walk, source: int, target: int, prefix: str, rules: tuple[IgnoreRules, ...], *, ignored: bool
) -> None:
    rules = (*rules, *_rules_in(source, ".gitignore", prefix))
    try:
        with os.scandir(source) as found:
            names = sorted(x.name for x in found)
    except OSError as error:
        walk.left_out[prefix.rstrip("/")] = f"cannot be listed: {error.strerror}"
        return
    for name in names:
        path = RepoPath(prefix + name)
        reason = _not_wanted(walk, path, name)
        if reason:
            walk.left_out[path] = reason
            continue
        try:
            seen = os.stat(name, dir_fd=source, follow_symlinks=False)
        except OSError as error:
            walk.left_out[path] = f"cannot be looked at: {error.strerror}"
            continue
        now_ignored = ignored or is_ignored(path, directory=stat.S_ISDIR(seen.st_mode), rules=rules)
        if now_ignored and not walk.keep_ignored:
            walk.left_out[path] = "ignored"
            continue
        if len(walk.entries) >= MAX_ENTRIES:
            raise TreeTooLarge(
                f"{walk.root} holds more than {MAX_ENTRIES:,} files", remedy="name a smaller part of it with --repo"
            )
        if stat.S_ISDIR(seen.st_mode):
            _enter(walk, source, target, path, seen, rules, ignored=now_ignored)
        elif stat.S_ISREG(seen.st_mode):
            _copy_file(walk, source, target, path, ignored=now_ignored)
        elif stat.S_ISLNK(seen.st_mode):
            _copy_link(walk, source, target, path, ignored=now_ignored)
        else:
            walk.left_out[path] = _kind_name(seen.st_mode)


def _not_wanted(walk: _Walk, path: RepoPath, name: str) -> str:
    if name in NOT_COPIED:
        return NOT_COPIED[name]
    if walk.exclude and f"{walk.root.rstrip('/')}/{path}" in walk.exclude:
        return "excluded"
    return ""


def _kind_name(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a FIFO"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _rules_in(directory: int, name: str, prefix: str) -> tuple[IgnoreRules, ...]:
    parts = name.split("/")
    try:
        with openat.parent_directory(directory, parts) as parent:
            data, _ = openat.read_regular(parts[-1], parent, 1 << 20)
    except OSError:
        return ()
    rules = parse_rules(prefix, data)
    return (rules,) if rules else ()


def _enter(
    walk: _Walk,
    source: int,
    target: int,
    path: RepoPath,
    seen: os.stat_result,
    rules: tuple[IgnoreRules, ...],
    *,
    ignored: bool,
) -> None:
    if len(path.parts) >= MAX_DEPTH:
        walk.left_out[path] = f"more than {MAX_DEPTH} directories deep"
        return
    try:
        below = openat.open_directory(path.name, source)
    except OSError as error:
        walk.left_out[path] = f"cannot be entered: {error.strerror}"
        return
    try:
        if is_environment(below):
            walk.left_out[path] = "a virtual environment"
            return
        os.mkdir(path.name, 0o700, dir_fd=target)
        into = openat.open_directory(path.name, target)
        try:
            _copy_directory(walk, below, into, path + "/", rules, ignored=ignored)
            os.fchmod(into, stat.S_IMODE(seen.st_mode) & 0o777 | stat.S_IRWXU)
        finally:
            os.close(into)
    finally:
        os.close(below)


def is_environment(directory: int) -> bool:
    """Whether an open directory says of itself that it is a virtual environment."""
    try:
        return stat.S_ISREG(os.stat("pyvenv.cfg", dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _copy_file(walk: _Walk, source: int, target: int, path: RepoPath, *, ignored: bool) -> None:
    for _ in range(_ATTEMPTS):
        try:
            descriptor = openat.open_regular(path.name, source)
        except OSError as error:
            walk.left_out[path] = f"cannot be read: {error.strerror or error}"
            return
        try:
            before = os.fstat(descriptor)
            if before.st_size > MAX_FILE_BYTES:
                walk.left_out[path] = f"larger than {MAX_FILE_BYTES >> 20} MiB"
                return
            walk.total_bytes += before.st_size
            if walk.total_bytes > MAX_TOTAL_BYTES:
                raise TreeTooLarge(
                    f"{walk.root} holds more than {MAX_TOTAL_BYTES >> 30} GiB",
                    remedy="name a smaller part of it with --repo, or move the data out",
                )
            copied = _copy_bytes(descriptor, target, path.name, before)
            if copied is not None and _same(before, os.fstat(descriptor)) and copied[1] == before.st_size:
                walk.entries[path] = TreeEntry(
                    path=path,
                    kind=FileKind.REGULAR,
                    mode=stat.S_IMODE(before.st_mode),
                    size=copied[1],
                    digest=copied[0],
                    ignored=ignored,
                )
                return
        finally:
            os.close(descriptor)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path.name, dir_fd=target)
    raise TreeChanged(
        f"{path!r} changes while it is read", remedy="stop what writes into the repository, then try again"
    )


def _copy_bytes(descriptor: int, target: int, name: str, seen: os.stat_result) -> tuple[str, int] | None:
    """Digest and size of what was copied; None as soon as the file has outgrown what it was."""
    hashed, size = hashlib.sha256(), 0
    with openat.closing(openat.open_new(name, target)) as out:
        while part := os.read(descriptor, 1 << 20):
            size += len(part)
            if size > seen.st_size:
                return None
            hashed.update(part)
            openat.write_all(out, part)
        os.fchmod(out, stat.S_IMODE(seen.st_mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR)
        os.utime(out, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    return "sha256:" + hashed.hexdigest(), size


def _same(a: os.stat_result, b: os.stat_result) -> bool:
    return (a.st_size, a.st_mtime_ns, a.st_ctime_ns) == (b.st_size, b.st_mtime_ns, b.st_ctime_ns)


def _copy_link(walk: _Walk, source: int, target: int, path: RepoPath, *, ignored: bool) -> None:
    try:
        text = os.readlink(path.name, dir_fd=source)
    except OSError as error:
        walk.left_out[path] = f"cannot be read: {error.strerror}"
        return
    place = os.path.realpath(os.path.join(walk.root, os.path.dirname(path), text))  # noqa: PTH118, PTH120
    if place != walk.root and not place.startswith(walk.root.rstrip("/") + "/"):
        walk.left_out[path] = "a link out of the tree"
        return
    os.symlink(text, path.name, dir_fd=target)
    size = len(os.fsencode(text))
    walk.entries[path] = TreeEntry(
        path=path, kind=FileKind.SYMLINK, mode=0o777, size=size, target=text, ignored=ignored
    )


def leads_out(path: RepoPath, target: str) -> bool:
    """Whether a link's text, read without looking at the tree, leads out of it."""
    place = os.path.normpath(os.path.join(os.path.dirname(path), target))  # noqa: PTH118, PTH120
    return os.path.isabs(target) or place == ".." or place.startswith("../")  # noqa: PTH117


def tree_digest(entries: Mapping[RepoPath, TreeEntry]) -> str:
    """Digest over paths, kinds, modes and contents."""
    hashed = hashlib.sha256()
    for path, x in entries.items():
        for field_text in (path, x.kind.value, f"{x.mode:o}", x.digest, x.target):
            data = field_text.encode("utf-8", "surrogateescape")
            hashed.update(len(data).to_bytes(8, "big") + data)
    return "sha256:" + hashed.hexdigest()
