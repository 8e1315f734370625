"""Why a model can no longer be used, and what its user can do about it."""

import signal

from localagent.domain.jailspec import JailResult
from localagent.domain.outcome import JailOutcome
from localagent.errors import LocalagentError

_STARVED = "free some memory, or name a smaller model with --model"
ENDED = "its process ended"
_CRASHES = frozenset(n + 128 for n in (signal.SIGILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGABRT))
_CRASHED = "llama.cpp crashes on it here: `make setup` compiles llama.cpp for this processor"
_DIED = "the task went on without it; if this happens again, leave it out with --no-model"


class Dropped(Exception):  # noqa: N818
    """Inside this package only: the model can no longer be used, and why."""


def number(value: object) -> float:
    """A finite number below 2^53, or Dropped."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1 << 53:
        raise Dropped("the child sent something that is not a number")
    return float(value)


def reason_of(fault: Exception) -> str:
    """What happened, in a few words."""
    return ENDED if isinstance(fault, BrokenPipeError | ConnectionResetError) else str(fault)


def ended(result: JailResult | None) -> str:
    """The signal or the limit that ended its process, in brackets; "" where none did."""
    if result is None or result.ending in (JailOutcome.CANCELLED, JailOutcome.EXITED):
        return ""
    if result.ending is not JailOutcome.SIGNALLED:
        return f" ({result.ending})"
    number = result.returncode - 128
    return f" ({signal.Signals(number).name})" if number in set(signal.Signals) else f" (signal {number})"


def remedy_of(fault: Exception, name: str, result: JailResult | None) -> str:
    """What to do so that it runs."""
    if isinstance(fault, LocalagentError) and fault.remedy:
        return fault.remedy
    if result is not None and result.ending is JailOutcome.MEMORY:
        return _STARVED
    if result is not None and result.ending is JailOutcome.SIGNALLED and result.returncode in _CRASHES:
        return _CRASHED
    return f"`localagent model verify {name}` says whether its file is the registered one"


def task_remedy_of(fault: Exception, name: str, result: JailResult | None, *, loaded: bool) -> str:
    """The same for a task, which goes on without it. `loaded`: it had answered that it was ready."""
    remedy = remedy_of(fault, name, result)
    if remedy == _CRASHED:
        return f"{remedy}; until then leave it out with --no-model"
    plain = remedy != _STARVED and not (isinstance(fault, LocalagentError) and fault.remedy)
    return _DIED if loaded and plain else remedy
