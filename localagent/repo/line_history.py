"""Who last changed lines of a file: git's blame of the last commit, carried over to the working tree by the text.

Read from objects alone: no filter, textconv, hook, mailmap or list of ignored commits has a say. Not promised: an
answer for histories of which git needs more than its time; then nothing is said.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from localagent.domain.paths import RepoPath
from localagent.errors import LocalagentError
from localagent.repo.git import Git

MOST_LINES = 40
_MOST_COMPARED = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class LineChange:
    """The commit that last changed a line; `commit` is "" where the line is not in the last commit yet."""

    commit: str
    author: str = ""
    date: str = ""
    summary: str = ""


UNCOMMITTED = LineChange(commit="")


def last_changes(git: Git, path: RepoPath, lines: Iterable[int], now: bytes) -> Mapping[int, LineChange]:
    """The last change of some lines (from 1) of a file whose bytes are `now`; {} where git knows nothing of it."""
    wanted = sorted(set(lines))[:MOST_LINES]
    then = git.asks("cat-file", "blob", f"HEAD:./{path}")
    if then is None or not wanted:
        return {}
    number = _carried(then.splitlines(), now.splitlines())
    found = {line: number[line] for line in wanted if line in number}
    ranges = [option for line in sorted(set(found.values())) for option in ("-L", f"{line},{line}")]
    blamed: dict[int, LineChange] = {}
    if ranges:
        try:
            out = _blame(git, path, "--line-porcelain", *ranges, "HEAD")
        except LocalagentError:
            return {}
        blamed = _parsed(out.decode("utf-8", "replace"))
    return {
        line: blamed[found[line]] if line in found else UNCOMMITTED
        for line in wanted
        if line not in found or found[line] in blamed
    }


def commits_of_lines(
    git: Git, path: RepoPath, revision: str, goods: Sequence[str], *, first_parent: bool
) -> Mapping[int, str]:
    """By line (from 1) of a file as of a revision the commit that last changed it; of those that no good one holds.

    GitSaysNoError where the file is not there.
    """
    options = ("--first-parent",) if first_parent else ()
    out = _blame(git, path, "--incremental", *options, revision, *(f"^{good}" for good in goods))
    found: dict[int, str] = {}
    outside: set[str] = set()
    entry = ["", "0", "0", "0"]
    for row in out.decode("utf-8", "replace").split("\n"):
        words = row.split(" ")
        if len(words) == 4 and len(words[0]) in (40, 64):
            entry = words
        elif row == "boundary":  # told with a commit's first entry
            outside.add(entry[0])
        elif words[0] == "filename" and entry[0] not in outside:  # the last row of an entry
            found |= dict.fromkeys(range(int(entry[2]), int(entry[2]) + int(entry[3])), entry[0])
    return found


def _blame(git: Git, path: RepoPath, *options: str) -> bytes:
    """What git answers, asked from the root: a `.mailmap` is read from the working directory, and may be a FIFO."""
    folder = git.path("--git-dir")
    prefix = git.asks("rev-parse", "--show-prefix")
    if folder is None or prefix is None:
        return b""
    at_root = ("-c", "mailmap.file=/dev/null", f"--git-dir={folder}", "blame", "--no-ignore-revs-file")
    name = prefix.removesuffix(b"\n").decode("utf-8", "surrogateescape") + path
    return git.at(Path("/")).run(*at_root, "--no-textconv", *options, "--", name)


def _carried(then: list[bytes], now: list[bytes]) -> Mapping[int, int]:
    """Line numbers of the working tree to those of the last commit, where the line is the same."""
    if then == now:
        return {n: n for n in range(1, len(now) + 1)}
    if len(then) + len(now) > _MOST_COMPARED:
        return {n: n for n, (a, b) in enumerate(zip(now, then, strict=False), 1) if a == b}
    blocks = difflib.SequenceMatcher(a=then, b=now, autojunk=False).get_matching_blocks()
    return {b.b + n + 1: b.a + n + 1 for b in blocks for n in range(b.size)}


def _parsed(text: str) -> dict[int, LineChange]:
    found: dict[int, LineChange] = {}
    commit, line, told = "", 0, dict[str, str]()
    for row in text.split("\n"):
        if row.startswith("\t"):
            when = told.get("author-time", "")
            date = (
                datetime.fromtimestamp(int(when), UTC).date().isoformat() if when.isdigit() and len(when) < 12 else ""
            )
            found[line] = LineChange(
                commit=commit, author=told.get("author", ""), date=date, summary=told.get("summary", "")
            )
            told = {}
        elif not told and len(parts := row.split(" ")) >= 3 and len(parts[0]) in (40, 64):
            commit, line = parts[0], int(parts[2])
            told = {"commit": commit}
        else:
            key, _, value = row.partition(" ")
            told[key] = value
    return found
