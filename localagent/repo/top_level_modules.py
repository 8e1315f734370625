"""What can be imported from a tree by the places of its files: packages and modules at its top, or below `src`.

Names alone, nothing is read or run. Not known: what a build makes, renames, or takes from elsewhere.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from localagent.fs import openat

_ROOTS = ("", "src", "lib", "python")
_MOST = 10_000


def importable_names(repo: Path) -> frozenset[str]:
    """The names, as they stand before any patch. AnswerIsNo if the tree cannot be entered; links are no packages."""
    with openat.root_directory(Path(os.path.realpath(repo))) as root:
        found = {name for place in _ROOTS for name in _names(root, place)}
        return frozenset(name for name in found if name.isidentifier() and name not in _ROOTS)


def _names(root: int, place: str) -> Iterator[str]:
    """Modules and packages of one folder; nothing where no real folder stands that may be listed."""
    try:
        at = openat.open_directory(place, root) if place else os.dup(root)
    except OSError:
        return  # the most trees have not all of these folders; who owns no name is asked about
    try:
        for name in _listed(at)[:_MOST]:
            if _is_importable(name, at):
                yield name.removesuffix(".py")
    finally:
        os.close(at)


def _listed(folder: int) -> list[str]:
    with os.scandir(folder) as found:
        return sorted(entry.name for entry in found)


def _is_importable(name: str, parent: int) -> bool:
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        if not stat.S_ISDIR(mode):
            return stat.S_ISREG(mode) and name.endswith(".py")
        if not name.isidentifier():
            return False
        below = openat.open_directory(name, parent)
        try:
            return any(inner.endswith(".py") for inner in _listed(below))
        finally:
            os.close(below)
    except OSError:
        return False  # gone, or not to be listed: then it is not known to be the tree's own
