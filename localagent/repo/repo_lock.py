"""One writer a repository: an advisory lock on the repository's own directory, so that no file is left in it.

Kept by every localagent of every user of this machine; other programs, and machines that share the directory over a
network file system without locks, know nothing of it.
"""

import contextlib
import errno
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

from localagent.errors import AnswerIsNo
from localagent.fs.openat import root_directory

_POLL_SECONDS = 0.05


@contextlib.contextmanager
def repository_lock(repo: Path, *, wait_seconds: float = 30.0) -> Iterator[int]:
    """Holds the lock and yields the root's descriptor; AnswerIsNo if another run keeps it longer than the wait."""
    with root_directory(repo) as root:
        ends = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EINTR):
                    raise AnswerIsNo(
                        f"cannot lock {repo}: {error.strerror}",
                        remedy="use a file system with locks, or take the diff and `git apply` it",
                    ) from error
                if time.monotonic() >= ends:
                    raise AnswerIsNo(
                        f"another localagent is writing into {repo}", remedy="wait until it has ended, then try again"
                    ) from error
            time.sleep(_POLL_SECONDS)
        yield root  # closing the descriptor gives the lock back
