"""Attestations as git notes: a file of its own beside a commit, below a ref of its own; written only when asked.

No branch, index, working file or setting is touched. git runs neutralised (`tree.git`), so nothing that the repository
configures starts, and what was written is read back. Nothing signed binds a note to its commit: whoever can write the
repository can hang it elsewhere. So it is held against what the commit holds. Not promised: that notes are pushed or
fetched; git does neither unasked.
"""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from localagent.domain.edit import digest_of
from localagent.errors import AnswerIsNo
from localagent.repo.git import Git

REF = "refs/notes/localagent"
_MOST_BYTES = 64 << 20


def command(git: Git, file: Path, commit: str) -> str:
    """What a person types to hang `file` on a commit."""
    return shlex.join(
        ["git", "-C", str(git.folder), "notes", f"--ref={REF}", "add", "-F", str(file.absolute()), commit]
    )


def read_note(git: Git, commit: str) -> bytes | None:
    """The note of a commit, None if there is none. AnswerIsNo for one that is too large."""
    listed = git.asks("notes", f"--ref={REF}", "list", commit)
    return None if listed is None else _blob(git, listed.decode().strip(), "the note")


def write_note(git: Git, commit: str, data: bytes) -> None:
    """Hang `data` on a commit. AnswerIsNo where another note of ours hangs there: none is replaced."""
    before = read_note(git, commit)
    if before == data:
        return
    if before is not None:
        raise AnswerIsNo(
            f"commit {commit[:12]} has another note below {REF} already",
            remedy=f"`git notes --ref={REF} show {commit[:12]}` shows it, `remove` for `show` takes it away",
        )
    blob = git.run("hash-object", "-w", "--stdin", stdin=data).decode().strip()
    git.run("notes", f"--ref={REF}", "add", "-C", blob, commit)
    if read_note(git, commit) != data:
        raise AnswerIsNo(f"git did not keep the note of {commit[:12]} as it was given", remedy="use a file instead")


def unlike(git: Git, commit: str, wanted: Mapping[tuple[str, ...], str]) -> list[str]:
    """The files of a commit that are not what is wanted: digests by path, several where a name has several readings.

    Each reading that is there must be what is wanted: one may stand beside an altered file.

    Paths are below git's folder, as those of a task are below its repository.
    """
    below = git.run("rev-parse", "--show-prefix").removesuffix(b"\n").decode("utf-8", "surrogateescape")
    return [paths[0] for paths, digest in wanted.items() if _digests(git, commit, below, paths) != {digest}]


def _digests(git: Git, commit: str, below: str, paths: Iterable[str]) -> set[str]:
    found = set()
    for path in paths:
        named = None if "\0" in path else git.asks("rev-parse", "--quiet", "--verify", f"{commit}:{below}{path}")
        if named is None:
            continue
        blob = git.asks("cat-file", "-t", named.decode().strip()) == b"blob\n"
        found.add(digest_of(_blob(git, named.decode().strip(), path)) if blob else "")
    return found


def _blob(git: Git, name: str, what: str) -> bytes:
    size = git.run("cat-file", "-s", name)
    if int(size) > _MOST_BYTES:
        raise AnswerIsNo(f"{what} is larger than {_MOST_BYTES >> 20} MiB")
    return git.run("cat-file", "blob", name)
