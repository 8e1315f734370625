"""The tree of a commit, read from the object store into a private copy. Nothing is checked out.

Only plumbing runs, neutralised as everything of `tree.git`; no filter, no attribute and no hook has a say, so a file
is there with the bytes that the object store holds. Submodules, links out of the tree and what a snapshot of the
working tree leaves out are left out here as well. Not promised: what only the working tree holds (built extensions).
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.domain.paths import RepoPath
from localagent.domain.task import Snapshot, TreeEntry
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.write_tree import StoreWriter
from localagent.repo.git import Git
from localagent.repo.snapshot import (
    MAX_DEPTH,
    MAX_ENTRIES,
    MAX_FILE_BYTES,
    MAX_TOTAL_BYTES,
    NOT_COPIED,
    CannotCopy,
    TreeTooLarge,
    leads_out,
    tree_digest,
)

_BATCH_BYTES = 64 << 20
_LISTING_BYTES = 32 << 20
_LINK, _MODULE = "120000", "160000"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Object:
    """One line of `git ls-tree -l`."""

    path: RepoPath
    mode: str
    blob: str
    size: int


def commit_of(git: Git, revision: str, *, option: str = "--baseline") -> str:
    """The full id of the commit that a revision names. UsageFault, about the option, where it names none."""
    found = git.asks("rev-parse", "--quiet", "--verify", "--end-of-options", revision + "^{commit}")
    if found is None:
        raise UsageFault(
            f"{option}: {revision!r} names no commit in {git.folder}", remedy="name a commit, a branch or a tag"
        )
    return found.decode().strip()


def take_commit(git: Git, commit: str, store: Path) -> Snapshot:
    """The commit's tree (the part of it that lies in git's folder) in `store`, which must not exist yet.

    AnswerIsNo when the folder is not in the commit, the tree is too large, or there is no room for the copy.
    """
    prefix = git.run("rev-parse", "--show-prefix").removesuffix(b"\n").decode("utf-8", "surrogateescape")
    tree = git.asks("rev-parse", "--quiet", "--verify", f"{commit}:{prefix.rstrip('/')}")
    if tree is None:
        raise AnswerIsNo(f"the commit {commit[:12]} does not hold {prefix!r}", remedy="name a commit that does")
    left_out: dict[str, str] = {}
    entries: dict[RepoPath, TreeEntry] = {}
    try:
        store.mkdir(mode=0o700, parents=True)
        writer = StoreWriter(store)
        for batch in _batches(_listed(git, tree.decode().strip(), left_out)):
            for entry, data in zip(batch, _contents(git, batch), strict=True):
                if entry.mode != _LINK:
                    executable = entry.mode == "100755"
                    entries[entry.path] = writer.file(entry.path, data, executable=executable)
                elif leads_out(entry.path, os.fsdecode(data)):
                    left_out[entry.path] = "a link out of the tree"
                else:
                    entries[entry.path] = writer.link(entry.path, os.fsdecode(data))
    except OSError as error:
        raise CannotCopy(f"cannot copy the commit to {store}: {error.strerror or error}") from error
    entries = dict(sorted(entries.items()))
    root = os.path.realpath(git.folder)
    return Snapshot(root=root, store=str(store), entries=entries, digest=tree_digest(entries), left_out=left_out)


def _listed(git: Git, tree: str, left_out: dict[str, str]) -> list[_Object]:
    found: list[_Object] = []
    total = 0
    listing = git.read_bounded("ls-tree", "-r", "-l", "-z", "--full-tree", tree, most_bytes=_LISTING_BYTES)
    if listing is None:
        raise TreeTooLarge(f"the list of the commit's files is longer than {_LISTING_BYTES >> 20} MiB")
    for record in listing.split(b"\0"):
        if not record:
            continue
        head, _, raw = record.partition(b"\t")
        mode, _kind, blob, size = head.decode().split()
        name = raw.decode("utf-8", "surrogateescape")
        reason = _not_wanted(name, mode, size)
        if reason:
            left_out[name] = reason
            continue
        total += int(size)
        found.append(_Object(path=RepoPath(name), mode=mode, blob=blob, size=int(size)))
        if len(found) > MAX_ENTRIES or total > MAX_TOTAL_BYTES:
            raise TreeTooLarge(
                f"the commit holds more than {MAX_ENTRIES:,} files or {MAX_TOTAL_BYTES >> 30} GiB",
                remedy="name a smaller part of it with --repo",
            )
    return found


def _not_wanted(name: str, mode: str, size: str) -> str:
    """Why an entry of a commit's tree is left out, or "". A tree that git itself would not make may hold any name."""
    parts = name.split("/")
    if mode == _MODULE:
        return "a submodule"
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        return "a name that no tree may hold"
    for part in parts:
        if part.lower() == ".git" or part in NOT_COPIED:
            return NOT_COPIED.get(part, "version control")
    if len(parts) > MAX_DEPTH:
        return f"more than {MAX_DEPTH} directories deep"
    if not size.isdigit() or int(size) > MAX_FILE_BYTES:
        return f"larger than {MAX_FILE_BYTES >> 20} MiB, or its object is missing"
    return ""


def _batches(found: Sequence[_Object]) -> Iterator[list[_Object]]:
    batch: list[_Object] = []
    held = 0
    for entry in found:
        if batch and held + entry.size > _BATCH_BYTES:
            yield batch
            batch, held = [], 0
        batch.append(entry)
        held += entry.size
    if batch:
        yield batch


def _contents(git: Git, batch: Sequence[_Object]) -> Iterator[bytes]:
    """The bytes of each object, in order. AnswerIsNo where one is missing."""
    out = git.run("cat-file", "--batch", stdin="".join(f"{entry.blob}\n" for entry in batch).encode())
    at = 0
    for entry in batch:
        end = out.index(b"\n", at)
        head = out[at:end].split()
        if len(head) != 3 or head[1] != b"blob" or int(head[2]) != entry.size:
            raise AnswerIsNo(
                f"the object of {entry.path!r} is missing or damaged", remedy="fetch the whole history, then try again"
            )
        yield out[end + 1 : end + 1 + entry.size]
        at = end + 2 + entry.size
