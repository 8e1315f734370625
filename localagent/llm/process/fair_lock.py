"""A lock that is had in the order in which it was asked for: who lets go and asks again at once stands behind the rest.

Not promised: anything about how long a turn takes.
"""

import threading
import time
from collections import deque


class Turns:
    """One holder at a time. For threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._held = False

    def acquire(self, *, timeout: float) -> bool:
        """Whether the turn came within so many seconds."""
        mine, until = object(), time.monotonic() + timeout
        with self._changed:
            self._waiting.append(mine)
            try:
                while self._held or self._waiting[0] is not mine:
                    left = until - time.monotonic()
                    if left <= 0:
                        return False
                    self._changed.wait(left)
                self._held = True
                return True
            finally:
                self._waiting.remove(mine)
                self._changed.notify_all()

    def release(self) -> None:
        """Let the next one have it."""
        with self._changed:
            self._held = False
            self._changed.notify_all()

    def locked(self) -> bool:
        """Whether somebody has it."""
        return self._held
