"""How a verb that runs a task ends by Ctrl-C or a signal: the task's jails first, then the verb."""

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

from localagent.app.cancellation import Stop

_ENDING = (signal.SIGINT, signal.SIGTERM)
_AGAIN_SECONDS = 0.02


class _Stopped(KeyboardInterrupt):
    """Of a type of its own: Python ends itself by SIGINT when a plain one has passed through `exec` of a text."""


def stop_on_signals(stop: Stop, told: Callable[[int], None] = lambda _number: None) -> None:
    """From now on the signals call `stop` and raise KeyboardInterrupt, once; `told` learns which it was."""
    for number in _ENDING:
        signal.signal(number, lambda number, _frame: _interrupt(stop, told, number))
    if not isinstance(sys.unraisablehook, _RaisedAgain):
        sys.unraisablehook = _RaisedAgain(sys.unraisablehook)


def wait_on_signals() -> None:
    """From now on, until a task runs again: Ctrl-C raises KeyboardInterrupt, SIGTERM ends the program."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(stop: Stop, told: Callable[[int], None], ended_by: int) -> None:
    told(ended_by)
    for number in _ENDING:  # once is enough; a second one must not disturb the clearing up
        signal.signal(number, signal.SIG_IGN)
    stop.now()
    raise _Stopped


class _RaisedAgain:
    """Raises `_Stopped` once more where it was lost: callbacks of the garbage collector and `__del__` let nothing out.

    The signal came while one of them ran, as hypothesis has one, and nobody could end the verb any more.
    """

    def __init__(self, before: Callable[["sys.UnraisableHookArgs"], object]) -> None:
        self._before = before

    def __call__(self, lost: "sys.UnraisableHookArgs") -> None:
        if not isinstance(lost.exc_value, _Stopped):
            self._before(lost)
            return
        signal.signal(signal.SIGINT, _raise_once)
        main = threading.main_thread().ident or 0
        again = threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()


def _raise_once(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise _Stopped
