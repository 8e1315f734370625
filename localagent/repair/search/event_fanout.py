"""Feeding several sinks as one."""

from collections.abc import Iterable

from localagent.domain.task import Event
from localagent.ports import Sink


def combined(sinks: Iterable[Sink]) -> Sink:
    """One sink that feeds several, in order."""
    return _Combined(tuple(sinks))


class _Combined:
    def __init__(self, sinks: tuple[Sink, ...]) -> None:
        self._sinks = sinks

    def emit(self, event: Event) -> None:
        for sink in self._sinks:
            sink.emit(event)
