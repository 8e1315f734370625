"""Why a model can no longer be used, and what its user can do about it."""

from localagent.domain.outcome import JailOutcome
from localagent.errors import LocalagentError

_STARVED = "free some memory, or name a smaller model with --model"
_DIED = "the task went on without it; if this happens again, leave it out with --no-model"


class Dropped(Exception):  # noqa: N818
    """Inside this room only: the model can no longer be used, and why."""


def number(value: object) -> float:
    """A finite number below 2^53, or Dropped."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1 << 53:
        raise Dropped("the child sent something that is not a number")
    return float(value)


def reason_of(fault: Exception) -> str:
    """What happened, in a few words."""
    return "its process ended" if isinstance(fault, BrokenPipeError | ConnectionResetError) else str(fault)


def ended(ending: JailOutcome) -> str:
    """The limit that ended its process, in brackets; "" where none did."""
    return "" if ending in (JailOutcome.CANCELLED, JailOutcome.EXITED) else f" ({ending})"


def remedy_of(fault: Exception, name: str, ending: JailOutcome, *, loaded: bool) -> str:
    """What to do. `loaded`: it had answered that it was ready."""
    if isinstance(fault, LocalagentError) and fault.remedy:
        return fault.remedy
    if ending is JailOutcome.MEMORY:
        return _STARVED
    return _DIED if loaded else f"`localagent model verify {name}` says whether its file is the registered one"
