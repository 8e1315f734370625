"""What lies around a repository: its root, its own interpreter. Looks, does not run and does not follow git's files."""

import os
import shlex
import stat
from enum import StrEnum
from pathlib import Path


class GitKind(StrEnum):
    """What stands at `.git`."""

    DIRECTORY = "directory"
    FILE = "file"  # a worktree or a submodule
    NONE = "none"


def git_kind(directory: Path) -> GitKind:
    """Whether a directory is the top of a git working tree; links do not count."""
    try:
        mode = (directory / ".git").lstat().st_mode
    except OSError:
        return GitKind.NONE
    if stat.S_ISDIR(mode):
        return GitKind.DIRECTORY
    return GitKind.FILE if stat.S_ISREG(mode) else GitKind.NONE


def repository_root(path: Path) -> Path:
    """The nearest directory at or above `path` that git calls a working tree; `path` itself if there is none."""
    start = Path(os.path.realpath(path))
    return next((p for p in (start, *start.parents) if git_kind(p) is not GitKind.NONE), start)


def root_hint(path: Path) -> str:
    """The repository to name for a folder inside one, as the beginning of a remedy; "" where the folder is its root."""
    root, folder = repository_root(path), os.path.realpath(path)
    return "" if str(root) == folder else f"{folder} is a folder of {root}: pass --repo {shlex.quote(str(root))}; or "


def is_virtual_environment(directory: Path) -> bool:
    """Whether a directory says of itself that it is one."""
    try:
        return stat.S_ISREG((directory / "pyvenv.cfg").lstat().st_mode)
    except OSError:
        return False


ENVIRONMENTS = (".venv", "venv", "env", ".env", ".pixi/envs/default", ".conda")


def default_python(repo: Path) -> str | None:
    """The interpreter of the first environment in the repository; None where there is none. It is not run."""
    for name in ENVIRONMENTS:
        folder, python = repo / name, repo / name / "bin" / "python"
        marked = is_virtual_environment(folder) or (folder / "conda-meta").is_dir()
        if marked and python.is_file() and os.access(python, os.X_OK):
            return str(python)
    return None


def dangling_environment(repo: Path) -> str | None:
    """An environment of the repository that cannot run: its folder or its interpreter leads nowhere."""
    for name in ENVIRONMENTS[:3]:
        folder, python = repo / name, repo / name / "bin" / "python"
        gone = folder.is_symlink() and not folder.exists()
        if gone or (is_virtual_environment(folder) and not python.is_file()):
            return name
    return None
