"""How a verb that runs a task ends by Ctrl-C or a signal: the task's jails first, then the verb."""

import signal
from collections.abc import Callable

from localagent.app.cancellation import Stop

_ENDING = (signal.SIGINT, signal.SIGTERM)


class _Stopped(KeyboardInterrupt):
    """Of a type of its own: Python ends itself by SIGINT when a plain one has passed through `exec` of a text."""


def stop_on_signals(stop: Stop, told: Callable[[int], None] = lambda _number: None) -> None:
    """From now on the signals call `stop` and raise KeyboardInterrupt, once; `told` learns which it was."""
    for number in _ENDING:
        signal.signal(number, lambda number, _frame: _interrupt(stop, told, number))


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
