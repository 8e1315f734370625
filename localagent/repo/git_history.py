"""What git tells of paths over time: the commits that touched them, and whether they differ from HEAD now."""

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


def changed_paths(git: Git) -> list[str]:
    """The tracked paths that are staged or changed since HEAD, sorted; [] where git cannot tell.

    git reads the files whose times tell it nothing, through the filters that attributes name: these are disarmed first.
    """
    options = ("--name-only", "-z", "--no-renames", "--ignore-submodules=all", "--no-ext-diff", "--no-textconv")
    disarmed = _without_filters(git)
    if disarmed is None:
        return []
    found: set[bytes] = set()
    for out in (
        git.asks(*disarmed, "diff-files", *options),
        git.asks("diff-index", "--cached", *options, "HEAD", "--"),
    ):
        found.update(filter(None, (out or b"").split(b"\0")))
    return sorted(path.decode("utf-8", "surrogateescape") for path in found)


def _without_filters(git: Git) -> list[str] | None:
    """Options that set the programs of every configured filter to none; None where one cannot be named by an option."""
    out = git.asks("config", "--name-only", "-z", "--get-regexp", r"^filter\.") or b""
    names = {name.decode("utf-8", "surrogateescape").rpartition(".")[0] for name in out.split(b"\0") if name}
    if any("=" in name for name in names):
        return None
    settings = (f"{name}.{setting}" for name in sorted(names) for setting in ("clean=", "process=", "required=false"))
    return [word for setting in settings for word in ("-c", setting)]


def last_commit_of(git: Git, path: str, lines: tuple[int, int] | None = None) -> str:
    """The newest commit that touched a path, or some of its lines at HEAD: its short hash, day and subject, or "".

    Renames are not followed.
    """
    options = ("--max-count=1", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--format=%h %as %s", "-s")
    of_lines = (f"-L{lines[0]},{lines[1]}:{path}",) if lines else ()
    out = git.asks("log", *options, *of_lines, "HEAD") if lines else git.asks("log", *options, "HEAD", "--", path)
    return (out or b"").decode("utf-8", "replace").strip()[:_MAX_SUBJECT]
