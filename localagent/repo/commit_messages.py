"""Subjects of past commits and the paths that they touched, as git tells them."""

from localagent.repo.git import Git

MOST_COMMITS = 1_000
_MAX_SUBJECT = 300


def head_of(git: Git) -> str:
    """The commit that is checked out, in hex; "" before the first one."""
    out = git.asks("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return "" if out is None else out.decode("ascii", "replace").strip()


def recent_commits(git: Git, head: str, most: int = MOST_COMMITS) -> list[tuple[str, tuple[str, ...]]]:
    """(subject, paths) of the newest commits up to one, merges left out, newest first; [] where git cannot tell."""
    out = git.asks(
        "log", f"--max-count={most}", "--no-merges", "--no-renames", "--no-show-signature", "--no-ext-diff",
        "--no-textconv", "--name-only", "-z", "--format=%x01%s%x02", head, "--",
    )  # fmt: skip
    commits = []
    for record in (out or b"").split(b"\1")[1:]:
        subject, _, paths = record.partition(b"\2")
        named = tuple(p.strip(b"\n").decode("utf-8", "surrogateescape") for p in paths.split(b"\0") if p.strip(b"\n"))
        commits.append((subject.decode("utf-8", "replace")[:_MAX_SUBJECT], named))
    return commits
