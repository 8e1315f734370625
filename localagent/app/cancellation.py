"""How a front end ends a task that runs in another thread of the same process."""

import contextlib
import threading
from collections.abc import Callable, Iterator


class Stop:
    """How a front end ends a task at once: what the task registered is called beside the interrupted thread."""

    def __init__(self) -> None:
        self._calls: list[Callable[[], None]] = []
        self._threads: list[threading.Thread] = []

    def now(self) -> None:
        """Safe in a signal handler; the caller raises KeyboardInterrupt afterwards."""
        self._threads = [threading.Thread(target=call, name="stop", daemon=True) for call in self._calls]
        for thread in self._threads:
            thread.start()

    @contextlib.contextmanager
    def calling(self, call: Callable[[], None]) -> Iterator[None]:
        """While inside, `now` means `call`; what was called has ended before anything further is cleared up."""
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            for thread in self._threads:
                thread.join()
