"""A task as a client orders it: JSON at the border, one value within. Every fault of an order is told at once.

An order names no path of anybody: the tree comes as a snapshot, interpreter and model as names that the daemon knows.
"""

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from localagent.domain.guard import DEFAULT_SECONDS, guard_faults
from localagent.domain.instruction import instruction_fault
from localagent.domain.task import Choosing
from localagent.errors import UsageFault

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
TASK_ID = re.compile(r"\d{8}-\d{6}-\d{6}-[0-9a-f]{6}")
IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,128}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST_WORDS = 256
_MOST_CHARACTERS = 4096
_MOST_TEXT = 64 << 10
_MOST_CANDIDATES = 1_000_000
_MOST_JOBS = 64
_MOST_PRIORITY = 9
_MOST_STEPS = 10_000
_MOST_TOKENS = 1_000_000_000


class TaskState(StrEnum):
    """Where a task of the daemon is."""

    HELD = "held"  # until somebody with the role approves it
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"  # there is a report; its exit code says which answer
    FAILED = "failed"  # it could not be answered: its worker died, twice
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        """True when nothing more will come."""
        return self in (TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskOrder:
    """What is asked for. `snapshot` is the digest of a manifest that was uploaded; `jobs` 0 leaves it to the daemon.

    `guard`: as `fix --guard` says it, empty for the whole suite. `min_confidence` is asked for beside the policy's, 0
    for nothing. `priority` (0 to 9, higher first) orders the tasks of one user; it is no means against other users.
    With an `instruction` it is a task of `do`, else one of `fix`; `model` is then a chat model of the daemon's, and
    `max_steps` and `max_tokens` are what it may use.
    """

    snapshot: str
    tests: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    text: str = ""
    python: str = ""
    seed: int = 0
    max_candidates: int = 500
    max_seconds: float = 300.0
    jobs: int = 0
    use_model: bool = True
    model: str = ""
    priority: int = 0
    choosing: Choosing = Choosing.ASK
    guard: tuple[str, ...] = ()
    guard_seconds: float = DEFAULT_SECONDS
    min_confidence: float = 0.0
    instruction: str = ""
    max_steps: int = 200
    max_tokens: int = 2_000_000


_FIELDS = tuple(f.name for f in fields(TaskOrder))


def pack_order(order: TaskOrder) -> dict[str, Any]:
    """As JSON."""
    return {name: getattr(order, name) for name in _FIELDS}  # asdict copies deep, and this is asked at every look


def aim_of(order: Mapping[str, Any]) -> str:
    """What a packed order is for, in its own words."""
    return str(order.get("instruction") or " ".join(order["tests"]) or order["text"] or "all tests")


def order_of(found: object) -> TaskOrder:
    """From JSON; UsageFault with every fault."""
    if not isinstance(found, Mapping):
        raise UsageFault("an order is an object")
    faults = [f"unknown: {key!r:.80}" for key in found if key not in _FIELDS]
    values: dict[str, Any] = {k: found[k] for k in found if k in _FIELDS}
    _digest(values, faults)
    for key in ("tests", "checks", "guard"):
        values[key] = _texts(values.get(key, []), key, faults)
    faults += [f"checks: {fault}" for command in values["checks"] if (fault := command_fault(command))]
    _text(values, "text", _MOST_TEXT, faults)
    for key in ("python", "model"):
        _text(values, key, _MOST_CHARACTERS, faults)
        if values.get(key) and not NAME.fullmatch(values[key]):
            faults.append(f"{key}: a name that the daemon knows, not a path")
    _number(values, "seed", -(2**63), 2**63 - 1, faults)
    _number(values, "max_candidates", 1, _MOST_CANDIDATES, faults)
    _number(values, "jobs", 0, _MOST_JOBS, faults)
    _number(values, "priority", 0, _MOST_PRIORITY, faults)
    seconds = values.get("max_seconds", 1.0)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        faults.append("max_seconds: a positive, finite number")
    if not isinstance(values.get("use_model", True), bool):
        faults.append("use_model: true or false")
    _choosing(values, faults)
    _guard(values, faults)
    share = values.get("min_confidence", 0.0)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        faults.append("min_confidence: a number from 0 to 1")
    _instruction(values, faults)
    if faults:
        raise UsageFault(faults, remedy="the daemon serves what it takes at /v1/openapi.json")
    return TaskOrder(**values)


def command_fault(command: str) -> str:
    """Why a check is no command, or ""."""
    try:
        return "" if shlex.split(command) else "is empty"
    except ValueError as fault:
        return f"{command!r}: {fault}"


def _digest(values: dict[str, Any], faults: list[str]) -> None:
    found = values.get("snapshot")
    if not isinstance(found, str) or not DIGEST.fullmatch(found):
        faults.append("snapshot: the digest of an uploaded manifest, sha256:<64 hexadecimal digits>")


def _choosing(values: dict[str, Any], faults: list[str]) -> None:
    try:
        values["choosing"] = Choosing(values.get("choosing", Choosing.ASK))
    except ValueError:
        faults.append(f"choosing: one of {', '.join(Choosing)}")


def _guard(values: dict[str, Any], faults: list[str]) -> None:
    seconds = values.get("guard_seconds", DEFAULT_SECONDS)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        faults.append("guard_seconds: a number")
        seconds = DEFAULT_SECONDS
    found = guard_faults(values["guard"], seconds)
    faults += [fault.replace("--guard-seconds:", "guard_seconds:").replace("--guard:", "guard:") for fault in found]


def _instruction(values: dict[str, Any], faults: list[str]) -> None:
    """An instruction with its limits; what belongs to repairs alone would be without effect and is refused."""
    _number(values, "max_steps", 1, _MOST_STEPS, faults)
    _number(values, "max_tokens", 1, _MOST_TOKENS, faults)
    found = values.get("instruction", "")
    if not isinstance(found, str):
        faults.append("instruction: a text")
    elif found:
        fault = instruction_fault(found)
        faults += [f"instruction: {fault}"] if fault else []
        odd = [key for key in ("text", "guard", "min_confidence") if values.get(key)]
        odd += ["choosing"] if values["choosing"] is Choosing.FIRST else []
        faults += [f"{key}: not for an instruction" for key in odd]


def _texts(found: object, key: str, faults: list[str]) -> tuple[str, ...]:
    if not isinstance(found, list) or len(found) > _MOST_WORDS:
        faults.append(f"{key}: a list of at most {_MOST_WORDS} texts")
        return ()
    if not all(isinstance(word, str) and len(word) <= _MOST_CHARACTERS and "\0" not in word for word in found):
        faults.append(f"{key}: texts of at most {_MOST_CHARACTERS} characters, without NUL")
        return ()
    return tuple(found)


def _text(values: dict[str, Any], key: str, most: int, faults: list[str]) -> None:
    found = values.get(key, "")
    if not isinstance(found, str) or len(found) > most or "\0" in found:
        faults.append(f"{key}: a text of at most {most} characters, without NUL")
        values[key] = ""


def _number(values: dict[str, Any], key: str, least: int, most: int, faults: list[str]) -> None:
    found = values.get(key, least if least > 0 else 0)
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
        faults.append(f"{key}: a whole number from {least} to {most}")
