"""Files and links that are there whole or not at all, also after a power cut: written beside, flushed, renamed.

A kill may leave `.NAME.new` beside; the next writing of that name takes it away, and so does an uninstall.
Not promised: that a file system which ignores fsync keeps anything.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from places import Impossible


def beside(path: Path) -> Path:
    """Where the next contents of a path are made."""
    return path.with_name(f".{path.name}.new")


def flushed(folder: Path) -> None:
    """What was renamed, made or removed in a folder is on the disk."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def written(path: Path, text: str) -> None:
    """The whole file or none of it; its mode is the umask's."""
    placed(path, text.encode("utf-8"), 0o666 & ~own_umask())


def placed(path: Path, data: bytes, mode: int) -> None:
    """The whole file or none of it, with this mode from its first moment."""
    scratch = beside(path)
    scratch.unlink(missing_ok=True)
    number = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fchmod(number, mode)
        os.fsync(number)
    scratch.replace(path)
    flushed(path.parent)


def linked(link: Path, target: Path) -> None:
    """A link replaced by rename. Impossible where something that is no link stands in its place."""
    if os.path.lexists(link) and not link.is_symlink():
        raise Impossible(f"{link} is there and is not ours: move it away")
    link.parent.mkdir(parents=True, exist_ok=True)
    scratch = beside(link)
    scratch.unlink(missing_ok=True)
    scratch.symlink_to(target)
    scratch.replace(link)
    flushed(link.parent)


def leftovers(paths: Iterable[Path]) -> Iterator[Path]:
    """What a kill while one of these was written left beside it."""
    return (scratch for scratch in map(beside, paths) if os.path.lexists(scratch))


def own_umask() -> int:
    """The umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
