"""Small fixes in a git history: one stretch of one file changed by a commit that says it mends something.

Read through `tree.git`, so nothing of a repository's configuration runs. Not promised: that what a commit calls a fix
is one, nor that all are found; commits that change several files of code, or more than a few lines, are passed over.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localagent.repo.git import Git

WORDS = r"(fix|bug|wrong|incorrect|error|crash|regress|mistake|broken|typo|off.by|missing|should)"
LINES = 4  # of code that a fix may take away, and add
BYTES = 150_000
_COMMITS_AT_ONCE = 400
_SKIPPED = re.compile(
    r"(^|/)(tests?|testing|doc|docs|examples?|benchmarks?|_?vendor(ed)?|_vendor|extern|third_party|migrations)(/|$)"
    r"|(^|/)(test_|conftest)|_tests?\.py$|(^|/)setup\.py$"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryFix:
    """A source before and after. `first`, `last`: the lines (1-based) of `before` that change, or surround the new."""

    origin: str
    path: str
    before: bytes
    after: bytes
    first: int
    last: int


def commits_of(git: Git, most: int) -> list[str]:
    """Ids of commits whose message speaks of mending something, newest first."""
    found = git.run("rev-list", "--no-merges", "-i", "-E", f"--grep={WORDS}", f"--max-count={most}", "HEAD")
    return found.decode("ascii").split()


def fixes(git: Git, name: str, commits: Sequence[str]) -> Iterator[HistoryFix]:
    """The small fixes among some commits, in their order."""
    for at in range(0, len(commits), _COMMITS_AT_ONCE):
        yield from _fixes(git, name, commits[at : at + _COMMITS_AT_ONCE])


def _fixes(git: Git, name: str, commits: Sequence[str]) -> Iterator[HistoryFix]:
    listed = git.run(
        "diff-tree",
        "--stdin",
        "-r",
        "--raw",
        "--no-renames",
        "-z",
        "--no-abbrev",
        stdin="".join(f"{c}\n" for c in commits).encode(),
    )
    alone = list(_alone(listed))
    blobs = [blob for _, _, *pair in alone for blob in pair]
    texts = dict(_blobs(git, blobs))
    for commit, path, old, new in alone:
        before, after = texts.get(old), texts.get(new)
        if before is None or after is None:
            continue
        fix = small_fix(f"{name}@{commit}", path, before, after)
        if fix is not None:
            yield fix


def _alone(listed: bytes) -> Iterator[tuple[str, str, str, str]]:
    """(commit, path, old blob, new blob) of commits that change one file of code, tests aside."""
    commit = ""
    changed: list[tuple[str, str, str, str]] = []
    parts = iter(listed.split(b"\0"))
    for part in parts:
        if not part.startswith(b":"):
            if len(changed) == 1 and changed[0][2]:
                yield changed[0]
            commit, changed = part.decode("ascii", "replace").strip(), []
            continue
        path = next(parts, b"").decode("utf-8", "replace")
        _, _, old, new, status = part.decode("ascii").split(" ")
        if is_code(path):
            changed.append((commit, path, old if status == "M" else "", new))
    if len(changed) == 1 and changed[0][2]:
        yield changed[0]


def is_code(path: str) -> bool:
    """Whether a path is Python that is neither a test, nor an example, nor somebody else's."""
    return path.endswith(".py") and not _SKIPPED.search(path)


def _blobs(git: Git, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for at in range(0, len(names), 64):
        told = git.run("cat-file", "--batch", stdin="".join(f"{n}\n" for n in names[at : at + 64]).encode())
        start = 0
        while start < len(told):
            end = told.index(b"\n", start)
            head = told[start:end].split()
            if len(head) != 3:
                start = end + 1
                continue
            size = int(head[2])
            yield head[0].decode(), told[end + 1 : end + 1 + size]
            start = end + 2 + size


def small_fix(origin: str, path: str, before: bytes, after: bytes) -> HistoryFix | None:
    """The change as a fix if it is one stretch of a few lines; whether it means anything is not looked at."""
    if max(len(before), len(after)) > BYTES:
        return None
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    front = 0
    while front < min(len(old), len(new)) and old[front] == new[front]:
        front += 1
    back = 0
    while back < min(len(old), len(new)) - front and old[-1 - back] == new[-1 - back]:
        back += 1
    gone, come = len(old) - front - back, len(new) - front - back
    if gone > LINES or come > LINES or not (gone or come):
        return None
    first, last = (front + 1, front + gone) if gone else (max(1, front), min(len(old), front + 1))
    return HistoryFix(origin=origin, path=path, before=before, after=after, first=first, last=last)
