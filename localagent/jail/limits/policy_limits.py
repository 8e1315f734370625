"""A jail under a policy's limits: no run gets more than they allow, and one that they end says which key did it.

Not promised: that a limit which only makes a call fail inside (a file too large, a process too many) was the cause
where a text says so; such texts come from the code itself. Nor that several of a task's jails share one limit.
"""

import socket
import threading
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from localagent.domain.jailspec import JailLimits, JailResult, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.domain.policy import LimitRules
from localagent.ports import Jail, JailProcess

OPEN_ENDED_SECONDS = 1e6  # of a worker that is kept warm: whoever asks it limits each request
_MIB = 1 << 20
_FIELDS: Mapping[str, tuple[str, int]] = MappingProxyType(  # key of the policy -> field of JailLimits, factor
    {
        "memory_mib": ("resident_bytes", _MIB),
        "processes": ("processes", 1),
        "cpu_seconds": ("cpu_seconds", 1),
        "wall_seconds": ("wall_seconds", 1),
        "file_mib": ("file_bytes", _MIB),
        "disk_mib": ("tmp_bytes", _MIB),
    }
)
_ENDINGS: Mapping[JailOutcome, str] = MappingProxyType(
    {
        JailOutcome.MEMORY: "memory_mib",
        JailOutcome.PROCESSES: "processes",
        JailOutcome.CPU: "cpu_seconds",
        JailOutcome.WALL: "wall_seconds",
        JailOutcome.DISK: "disk_mib",
    }
)
_SAID: Mapping[str, tuple[str, ...]] = MappingProxyType(  # what the kernel's refusals read like inside
    {
        "file_mib": ("[Errno 27]", "File too large", "File size limit exceeded"),
        "processes": ("Resource temporarily unavailable", "can't start new thread"),
        "disk_mib": ("[Errno 28]", "No space left on device"),
    }
)
_TIMES = ("cpu_seconds", "wall_seconds")


class PolicyLimits:
    """A policy's limits, and what they came to. Threads may share it."""

    def __init__(self, rules: LimitRules | None = None) -> None:
        self.rules = rules or LimitRules()
        self._told: dict[str, str] = {}
        self._lock = threading.Lock()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Each limit that was reached: by its key, with what to do."""
        with self._lock:
            return tuple(self._told.values())

    def tightened(self, limits: JailLimits) -> JailLimits:
        """The limits with those of the policy, where they are less. An open-ended worker's life is not limited."""
        less: dict[str, int] = {}
        for key, (field, factor) in _FIELDS.items():
            limit, given = getattr(self.rules, key), getattr(limits, field)
            if limit is None or limit * factor >= given or (key in _TIMES and given >= OPEN_ENDED_SECONDS):
                continue
            less[field] = limit * factor
        return replace(limits, **less)

    def cpu(self, seconds: float) -> float:
        """Processor seconds of one request, within the policy's."""
        return seconds if self.rules.cpu_seconds is None else min(seconds, self.rules.cpu_seconds)

    def wall(self, seconds: float) -> float:
        """Seconds of one request, within the policy's."""
        return seconds if self.rules.wall_seconds is None else min(seconds, self.rules.wall_seconds)

    def ended(self, ending: JailOutcome, asked: JailLimits) -> str:
        """What to say of a run that ended so; "" where no limit of the policy ended it. `asked`: before tightening."""
        key = _ENDINGS.get(ending)
        if key is None or self.tightened(asked) == asked:
            return ""
        field, _ = _FIELDS[key]
        return self.reached(key) if getattr(self.tightened(asked), field) < getattr(asked, field) else ""

    def reached(self, key: str) -> str:
        """Remember that a limit was reached, and what to say of it."""
        text = f"the policy's limits.{key} = {getattr(self.rules, key)} was reached; {_REMEDY}"
        with self._lock:
            return self._told.setdefault(key, text)

    def heard(self, text: str) -> None:
        """Remember a limit that a text out of a jail speaks of, where the policy sets it."""
        for key, words in _SAID.items():
            limit = getattr(self.rules, key)
            if limit is not None and any(word in text for word in words):
                with self._lock:
                    self._told.setdefault(key, f"the policy's limits.{key} = {limit} may have been reached; {_REMEDY}")


_REMEDY = "`localagent policy show --layers` names the layer that sets it: give more there, or have the code use less"


class BoundedJail:
    """ports.Jail over another one, within bounds."""

    def __init__(self, jail: Jail, bounds: PolicyLimits) -> None:
        self._jail = jail
        self._bounds = bounds

    @property
    def backend(self) -> str:
        """Of the jail below."""
        return self._jail.backend

    @property
    def level(self) -> str:
        """Of the jail below."""
        return self._jail.level

    def run(self, spec: JailSpec, *, stdin: bytes = b"") -> JailResult:
        """Run to the end, within the bounds."""
        return _explained(self._jail.run(self._within(spec), stdin=stdin), spec.limits, self._bounds)

    def start(self, spec: JailSpec) -> "BoundedProcess":
        """Start with a channel, within the bounds."""
        return BoundedProcess(self._jail.start(self._within(spec)), spec.limits, self._bounds)

    def _within(self, spec: JailSpec) -> JailSpec:
        return replace(spec, limits=self._bounds.tightened(spec.limits))


class BoundedProcess:
    """ports.JailProcess over another one: its result says which of the bounds ended it."""

    def __init__(self, process: JailProcess, asked: JailLimits, bounds: PolicyLimits) -> None:
        self._process = process
        self._asked = asked
        self._bounds = bounds

    @property
    def channel(self) -> socket.socket:
        """Our end of the byte channel."""
        return self._process.channel

    @property
    def alive(self) -> bool:
        """False once every process of the jail is gone."""
        return self._process.alive

    def wait(self) -> JailResult:
        """Block until the end."""
        return _explained(self._process.wait(), self._asked, self._bounds)

    def kill(self) -> JailResult:
        """End the whole process tree now."""
        return _explained(self._process.kill(), self._asked, self._bounds)


def _explained(result: JailResult, asked: JailLimits, bounds: PolicyLimits) -> JailResult:
    """The result, its errors followed by the limit that ended it."""
    told = bounds.ended(result.ending, asked)
    bounds.heard(result.stderr.decode("utf-8", "replace"))
    if not told:
        return result
    return replace(result, stderr=result.stderr + f"\n{told}\n".encode())
