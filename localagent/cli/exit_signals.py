"""How a verb that runs a task ends by Ctrl-C or a signal: the task's jails first, then the verb."""

import signal

from localagent.app.cancellation import Stop

_ENDING = (signal.SIGINT, signal.SIGTERM)


class _Stopped(KeyboardInterrupt):
    """Of a type of its own: Python ends itself by SIGINT when a plain one has passed through `exec` of a text."""


def stop_on_signals(stop: Stop) -> None:
    """From now on the signals call `stop` and raise KeyboardInterrupt, once."""
    for number in _ENDING:
        signal.signal(number, lambda _number, _frame: _interrupt(stop))


def _interrupt(stop: Stop) -> None:
    for number in _ENDING:  # once is enough; a second one must not disturb the clearing up
        signal.signal(number, signal.SIG_IGN)
    stop.now()
    raise _Stopped
