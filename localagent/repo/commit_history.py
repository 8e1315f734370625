"""A repository's commits, read by git's plumbing: their graph, what they changed, and a log of `git bisect`.

Not promised: what a shallow clone does not hold; replaced objects and grafts are not followed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localagent.domain.bisection import CommitSummary, CommitVerdict
from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo, UsageFault
from localagent.repo.git import Git
from localagent.repo.snapshot import MAX_FILE_BYTES
from localagent.text.visible_text import shortened

MOST_COMMITS = 1_000_000
_LIST_BYTES = 512 << 20
_SUMMARY_BYTES = 16 << 20
_CHANGED_BYTES = 64 << 20
_ZERO = re.compile("0+")
_LOG_LINE = re.compile(r"git bisect (good|bad|skip|new|old|start) ?(.*)")
_MODES = {mode.value: mode for mode in FileMode}


def read_parents(
    git: Git, bad: str, goods: Sequence[str], *, first_parent: bool, since: int | None = None
) -> dict[str, tuple[str, ...]]:
    """The commits that lead to `bad` and to none of `goods`, parents first, each with its parents.

    `since`: only commits that are not older (seconds since 1970). AnswerIsNo where the history is too long.
    """
    options = ["--first-parent"] if first_parent else []
    options += [f"--max-age={since}"] if since is not None else []
    excluded = [f"^{good}" for good in goods]
    out = git.read_bounded(
        "rev-list",
        "--topo-order",
        "--parents",
        f"--max-count={MOST_COMMITS + 1}",
        *options,
        bad,
        *excluded,
        "--",
        most_bytes=_LIST_BYTES,
    )
    lines = [] if out is None else out.decode("ascii").splitlines()
    if out is None or len(lines) > MOST_COMMITS:
        raise AnswerIsNo(f"more than {MOST_COMMITS:,} commits lead to {bad[:12]}", remedy="name a newer --good")
    found = {}
    for line in reversed(lines):
        commit, *parents = line.split()
        found[commit] = tuple(parents[:1] if first_parent else parents)
    return found


def seconds_of(git: Git, date: str) -> int | None:
    """The moment that git understands by a date, seconds since 1970; None where it understands now."""
    out = git.asks("rev-parse", f"--since={date}")
    now = git.asks("rev-parse", "--since=now")
    if out is None or now is None:
        return None
    told, current = (int(text.decode().strip().removeprefix("--max-age=")) for text in (out, now))
    return told if told < current - 5 else None


def merge_bases(git: Git, bad: str, good: str) -> tuple[str, ...]:
    """The best common ancestors of two commits: the good commit itself where it is an ancestor of the bad one."""
    out = git.asks("merge-base", "--all", bad, good)
    return () if out is None else tuple(out.decode("ascii").split())


def is_shallow(git: Git) -> bool:
    """Whether history is cut off somewhere."""
    return git.asks("rev-parse", "--is-shallow-repository") == b"true\n"


def summary_of(git: Git, commit: str) -> CommitSummary:
    """Author, date, subject, parents and changed files (against the first parent) of a commit."""
    out = git.read_bounded(
        "rev-list", "-1", "--format=%P%x00%an <%ae>%x00%aI%x00%s", commit, "--",
        most_bytes=_SUMMARY_BYTES,
    )  # fmt: skip
    if out is None:
        raise AnswerIsNo(f"the message of the commit {commit[:12]} is longer than {_SUMMARY_BYTES >> 20} MiB")
    text = out.decode("utf-8", "replace").partition("\n")[2]  # behind the line that names the commit
    parents, author, date, subject = text.rstrip("\n").split("\0", 3)
    files = tuple((change.status, change.path) for change in _changed(git, commit, *parents.split()[:1]))
    return CommitSummary(
        commit=commit, author=author, date=date, subject=subject, parents=tuple(parents.split()), files=files
    )


def changes_of(git: Git, commit: str, parent: str) -> tuple[TreeChange, ...]:
    """What a commit changed against a parent, as whole files; renames are a file less and a file more.

    AnswerIsNo where an object is missing or all are larger than 64 MiB together. Submodules are left out.
    """
    changed = [c for c in _changed(git, commit, parent) if FileMode.SUBMODULE not in (c.before_mode, c.after_mode)]
    held = 0
    found = []
    for change in changed:
        before, after = (_blob(git, name) for name in (change.before, change.after))
        held += len(before) + len(after)
        if held > _CHANGED_BYTES:
            raise AnswerIsNo(f"the commit {commit[:12]} changes more than {_CHANGED_BYTES >> 20} MiB")
        kind = _KINDS.get(change.status, ChangeKind.MODIFIED)
        found.append(
            TreeChange(
                path=change.path,
                source=change.path,
                kind=kind,
                before=before,
                after=after,
                before_mode=change.before_mode,
                after_mode=change.after_mode,
            )
        )
    return tuple(found)


def commits_changing(
    git: Git, bad: str, goods: Sequence[str], paths: Sequence[RepoPath], *, first_parent: bool
) -> frozenset[str]:
    """Of the commits that lead to `bad` and to no good one those that change one of the files.

    Without `first_parent` no merges are among them. AnswerIsNo where the list is too long, or git takes too long.
    """
    if not paths:
        return frozenset()
    options = ["--full-history", "--first-parent" if first_parent else "--no-merges"]
    excluded = [f"^{good}" for good in goods]
    out = git.read_bounded("rev-list", *options, bad, *excluded, "--", *paths, most_bytes=_LIST_BYTES)
    if out is None:
        raise AnswerIsNo(f"more than {MOST_COMMITS:,} commits lead to {bad[:12]}")
    return frozenset(out.decode("ascii").split())


def renamed_from(git: Git, older: str, newer: str, path: RepoPath) -> RepoPath | None:
    """The name that a file of the newer commit had in the older one; None if none."""
    return renames(git, older, newer).get(path)


def renames(git: Git, older: str, newer: str) -> dict[RepoPath, RepoPath]:
    """The older names of files by the newer ones, by git's detection of renames."""
    out = git.read_bounded(
        "diff-tree", "--relative", "-r", "-z", "-M", "--name-status", "--diff-filter=R", "-l2000", older, newer, "--",
        most_bytes=_SUMMARY_BYTES,
    )  # fmt: skip
    fields = (out or b"").decode("utf-8", "surrogateescape").split("\0")
    found = {}
    for old, new in zip(fields[1::3], fields[2::3], strict=False):
        try:
            found[RepoPath(new)] = RepoPath(old)
        except UsageFault:  # git itself makes no such tree; no private copy holds it
            continue
    return found


def read_bisect_log(git: Git, text: str, option: str = "--log") -> tuple[tuple[str, CommitVerdict], ...]:
    """What `git bisect log` wrote. UsageFault for lines that it does not write, and for commits that are not there."""
    verdicts: list[tuple[str, CommitVerdict]] = []
    faults = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LOG_LINE.fullmatch(line.strip())
        if match is None:
            faults.append(f"{option}: line {number} is no line of `git bisect log`: {shortened(line, 80)!r}")
        elif match[1] != "start":
            verdict = {"old": CommitVerdict.GOOD, "new": CommitVerdict.BAD}.get(match[1]) or CommitVerdict(match[1])
            for name in match[2].replace("'", "").split():
                out = git.asks("rev-parse", "--quiet", "--verify", "--end-of-options", name + "^{commit}")
                if out is None:
                    faults.append(f"{option}: line {number}: {name!r} names no commit here")
                else:
                    verdicts.append((out.decode("ascii").strip(), verdict))
    if faults:
        raise UsageFault(faults, remedy="give the output of `git bisect log`, unchanged")
    return tuple(verdicts)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Changed:
    """One line of `git diff-tree`. `before` and `after` are names of objects, "" for none."""

    status: str
    path: RepoPath
    before: str
    after: str
    before_mode: FileMode | None
    after_mode: FileMode | None


_KINDS = {"A": ChangeKind.ADDED, "D": ChangeKind.DELETED}


def _changed(git: Git, commit: str, parent: str = "") -> Iterator[_Changed]:
    """The entries that a commit changed against a parent; all that it holds where there is none."""
    trees = (parent, commit) if parent else ("--root", "--no-commit-id", commit)
    out = git.read_bounded(
        "diff-tree", "--relative", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", *trees, "--",
        most_bytes=_CHANGED_BYTES,
    )  # fmt: skip
    if out is None:
        raise AnswerIsNo(f"the commit {commit[:12]} changes more files than can be read")
    fields = out.decode("utf-8", "surrogateescape").split("\0")
    for head, name in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, before, after, status = head.lstrip(":").split()
        try:
            path = RepoPath(name)
        except UsageFault:  # git itself makes no such tree; no private copy holds it
            continue
        yield _Changed(
            status=status[0],
            path=path,
            before="" if _ZERO.fullmatch(before) else before,
            after="" if _ZERO.fullmatch(after) else after,
            before_mode=_MODES.get(old_mode),
            after_mode=_MODES.get(new_mode),
        )


def _blob(git: Git, name: str) -> bytes:
    if not name:
        return b""
    out = git.read_bounded("cat-file", "blob", name, most_bytes=MAX_FILE_BYTES)
    if out is None:
        raise AnswerIsNo(f"a file of the commit is larger than {MAX_FILE_BYTES >> 20} MiB")
    return out
