"""What pytest does for the readers of its output only, put off in sessions whose output nobody reads.

Whoever asks for it all the same (a hook of the repository) gets what pytest would have made.
"""

from __future__ import annotations

from typing import Any, Callable, List


class LaterText:
    """Stands for how pytest shows a failure, which is made when somebody looks."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: List[Any] = []

    def _real(self) -> Any:
        if not self._made:
            self._made.append(self._make())
        return self._made[0]

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """Of what it stands for, so that `isinstance` answers as it would."""
        return type(self._real())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)

    def __str__(self) -> str:
        return str(self._real())

    def __repr__(self) -> str:
        return repr(self._real())

    def __eq__(self, other: object) -> bool:
        return bool(self._real() == other)

    def __hash__(self) -> int:
        return hash(self._real())


_TOLD_OF_TESTS = ("pytest_runtest_logstart", "pytest_runtest_logreport", "pytest_runtest_logfinish")


def put_off(config: Any) -> None:
    """From now on failures are shown only to somebody who looks, and the terminal is not told of single tests."""
    plugins = config.pluginmanager
    reporter = plugins.getplugin("terminalreporter")
    if type(reporter).__module__ == "_pytest.terminal":
        name = plugins.get_name(reporter)
        plugins.unregister(reporter)
        for hook in _TOLD_OF_TESTS:
            setattr(reporter, hook, None)
        plugins.register(reporter, name)
    try:
        from _pytest.python import Function
    except ImportError:
        return
    shown = Function.repr_failure

    def repr_failure(self: Any, *args: Any, **kwargs: Any) -> Any:
        return LaterText(lambda: shown(self, *args, **kwargs))

    setattr(Function, "repr_failure", repr_failure)  # noqa: B010 - not ours, so no checker knows it
