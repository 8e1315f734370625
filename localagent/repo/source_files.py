"""The text files of a working tree as it stands, untracked ones included, without what ignore files leave out.

Walks by descriptors, never through a link. Beside `.gitignore` and `.git/info/exclude` it reads the files that keep
content from tools: `.aiignore`, `.aiexclude` and `.agentsignore`, in the syntax of `.gitignore`; what one of them
leaves out, no other brings back. Not promised: one instant for the whole tree.
"""

import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

from localagent.domain.paths import RepoPath
from localagent.fs import openat
from localagent.fs.bounded_read import read_below
from localagent.repo.gitignore import IgnoreRules, is_ignored, parse_rules
from localagent.repo.snapshot import MAX_DEPTH, MAX_ENTRIES, NOT_COPIED, TreeTooLarge, is_environment

MAX_SOURCE_BYTES = 2 << 20
TOOL_IGNORES = (".aiignore", ".aiexclude", ".agentsignore")
_SETTLED_NS = 2_000_000_000  # a file that changed later than so long ago may change again under the same stamp
_MAX_IGNORE_BYTES = 1 << 20
_BINARY_SUFFIXES_TEXT = """
.pyc .pyo .so .o .a .dll .exe .png .jpg .jpeg .gif .ico .webp .pdf .zip .gz .bz2 .xz .zst .tar .whl .egg .jar
.class .woff .woff2 .ttf .otf .eot .mp3 .mp4 .mov .avi .sqlite .db .bin .npy .npz .parquet .gguf .mo .pickle
"""
_BINARY_SUFFIXES = frozenset(_BINARY_SUFFIXES_TEXT.split())


@dataclass(kw_only=True, slots=True)
class SourceFiles:
    """The stamp of each file by path ("" where it changed a moment ago), and what is left out with the reason."""

    root: str
    stamps: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    settled_ns: int = 0

    def read(self, path: str) -> bytes:
        """A listed file's bytes; OSError where it is no regular file of at most MAX_SOURCE_BYTES any more."""
        return read_below(Path(self.root), path, MAX_SOURCE_BYTES)


Rules = tuple[tuple[IgnoreRules, ...], ...]  # of git, then of each of TOOL_IGNORES


def list_source_files(root: Path) -> SourceFiles:
    """Walk the tree at `root`. AnswerIsNo where it cannot be entered or holds too many files."""
    found = SourceFiles(root=os.path.realpath(root), settled_ns=time.time_ns() - _SETTLED_NS)
    with openat.root_directory(Path(found.root)) as descriptor:
        first = _rules_in(descriptor, ".git/info/exclude", "")
        _walk(found, descriptor, "", ((first,) if first else (), *((),) * len(TOOL_IGNORES)))
    return found


def _walk(found: SourceFiles, directory: int, prefix: str, rules: Rules) -> None:
    try:
        with os.scandir(directory) as entries:
            names = sorted((x.name, x.is_dir(follow_symlinks=False), x.is_symlink()) for x in entries)
    except OSError as error:
        found.left_out[prefix.rstrip("/")] = f"cannot be listed: {error.strerror}"
        return
    there = {name for name, _, _ in names}
    rules = tuple(
        (*outer, *((own,) if name in there and (own := _rules_in(directory, name, prefix)) else ()))
        for outer, name in zip(rules, (".gitignore", *TOOL_IGNORES), strict=True)
    )
    for name, is_directory, is_link in names:
        path = prefix + name
        if name in NOT_COPIED or is_link or _left_out(path, is_directory, rules):
            continue
        if is_directory:
            _enter(found, directory, path, rules)
        else:
            _add(found, directory, name, path)


def _left_out(path: str, directory: bool, rules: Rules) -> bool:
    return any(is_ignored(path, directory=directory, rules=one) for one in rules if one)


def _enter(found: SourceFiles, directory: int, path: str, rules: Rules) -> None:
    if path.count("/") >= MAX_DEPTH:
        found.left_out[path] = f"more than {MAX_DEPTH} directories deep"
        return
    try:
        below = openat.open_directory(RepoPath(path).name, directory)
    except OSError as error:
        found.left_out[path] = f"cannot be entered: {error.strerror}"
        return
    with openat.closing(below):
        if not is_environment(below):
            _walk(found, below, path + "/", rules)


def _add(found: SourceFiles, directory: int, name: str, path: str) -> None:
    if name[name.rfind(".") :].lower() in _BINARY_SUFFIXES:
        return
    try:
        seen = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError as error:
        found.left_out[path] = f"cannot be looked at: {error.strerror}"
        return
    if not stat.S_ISREG(seen.st_mode):
        found.left_out[path] = "not a regular file"
    elif seen.st_size > MAX_SOURCE_BYTES:
        found.left_out[path] = f"larger than {MAX_SOURCE_BYTES >> 20} MiB"
    else:
        settled = max(seen.st_mtime_ns, seen.st_ctime_ns) < found.settled_ns
        found.stamps[path] = f"{seen.st_size}:{seen.st_mtime_ns}:{seen.st_ctime_ns}:{seen.st_ino}" if settled else ""
    if len(found.stamps) > MAX_ENTRIES:
        raise TreeTooLarge(
            f"{found.root} holds more than {MAX_ENTRIES:,} files", remedy="name a smaller part of it with --repo"
        )


def _rules_in(directory: int, name: str, prefix: str) -> IgnoreRules | None:
    parts = name.split("/")
    try:
        with openat.parent_directory(directory, parts) as parent:
            return parse_rules(prefix, openat.read_regular(parts[-1], parent, _MAX_IGNORE_BYTES)[0])
    except OSError:
        return None
