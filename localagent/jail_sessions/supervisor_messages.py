"""Messages between the command line and the supervisor of sessions: JSON at the border, values within.

Both ends belong to one user; what is not as agreed is refused all the same, with UsageFault.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from localagent.domain.execution import Execution, Language, SessionState
from localagent.domain.jailspec import JailLimits, JailResult, LeftOut, Produced
from localagent.domain.outcome import JailOutcome
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, LocalagentError, UsageFault

SESSION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KINDS: dict[str, type[LocalagentError]] = {
    kind.__name__: kind for kind in (AnswerIsNo, UsageFault, InternalFault, CannotEnforce)
}


@dataclass(frozen=True, kw_only=True, slots=True)
class StepOrder:
    """One step. `request` has no program: `code` is the step. `named` are what the caller gave explicitly.

    `after` is the number of steps the session must have had (what a gate has read), None for any. `out` is absolute.
    `backend` is the kind of backend asked for, "" for any; `third_party`: whether its program may be a
    Python package's.
    """

    session: str
    language: Language
    code: str
    request: Execution
    named: tuple[str, ...] = ()
    ttl_seconds: float = 1800.0
    minimum_level: str = "L1"
    gated: bool = False
    after: int | None = None
    out: str = ""
    force: bool = False
    backend: str = ""
    third_party: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class StepAnswer:
    """How a step ended, what it produced, and what the session is now."""

    result: JailResult
    session: SessionState
    files: tuple[Produced, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def checked_name(name: str) -> str:
    """A session's name as it is; UsageFault when it is none."""
    if SESSION_NAME.fullmatch(name) is None:
        raise UsageFault(
            f"{name!r} is no name of a session: letters, digits, `.`, `_`, `-`, at most 64, the first a letter or digit"
        )
    return name


def pack_order(order: StepOrder) -> dict[str, Any]:
    """As JSON."""
    return {"op": "step", **asdict(order)}


def order_of(message: Mapping[str, Any]) -> StepOrder:
    """From JSON."""
    values = _known(StepOrder, message, extra={"op"})
    try:
        asked = dict(_known(Execution, values["request"]))
        asked["limits"] = JailLimits(**_known(JailLimits, asked["limits"]))
        for key in ("command", "files", "read_only", "read_write"):
            asked[key] = tuple(str(word) for word in asked.get(key, ()))
        values["request"] = Execution(**{**asked, "code": None})
        values["session"] = checked_name(str(values["session"]))
        values["language"] = Language(values["language"])
        values["named"] = tuple(str(word) for word in values["named"])
        values["ttl_seconds"] = float(values["ttl_seconds"])
        values["backend"] = str(values.get("backend", ""))
        values["third_party"] = values.get("third_party") is True
        return StepOrder(**values)
    except (TypeError, ValueError, KeyError) as fault:
        raise UsageFault(f"not an order for a step: {fault}") from fault


def pack_answer(answer: StepAnswer) -> dict[str, Any]:
    """As JSON, bytes as base64."""
    result = asdict(answer.result)
    result["stdout"] = base64.b64encode(answer.result.stdout).decode()
    result["stderr"] = base64.b64encode(answer.result.stderr).decode()
    return {**asdict(answer), "result": result}


def answer_of(message: Mapping[str, Any]) -> StepAnswer:
    """From JSON; whatever fault the supervisor told is raised here."""
    raise_fault(message)
    try:
        result = dict(_known(JailResult, message["result"]))
        result["ending"] = JailOutcome(result["ending"])
        for key in ("stdout", "stderr"):
            result[key] = base64.b64decode(result[key], validate=True)
        return StepAnswer(
            result=JailResult(**result),
            session=session_of(message["session"]),
            files=tuple(Produced(**_known(Produced, file)) for file in message["files"]),
            left_out=tuple(LeftOut(**_known(LeftOut, one)) for one in message["left_out"]),
        )
    except (TypeError, ValueError, KeyError, binascii.Error) as fault:
        raise InternalFault(f"the supervisor's answer is not as agreed: {fault!r}") from fault


def session_of(message: Mapping[str, Any]) -> SessionState:
    """From JSON."""
    values = dict(_known(SessionState, message))
    values["language"] = Language(values["language"])
    return SessionState(**values)


def pack_fault(fault: LocalagentError) -> dict[str, Any]:
    """As JSON: the kind, the text, the remedy."""
    kind = next((name for name, kind in _KINDS.items() if isinstance(fault, kind)), "InternalFault")
    faults = list(fault.faults) if isinstance(fault, UsageFault) else [str(fault)]
    return {"fault": kind, "faults": faults, "remedy": fault.remedy}


def raise_fault(message: Mapping[str, Any]) -> None:
    """Raise the fault that a message carries, if it carries one."""
    if "fault" in message:
        kind = _KINDS.get(str(message["fault"]), InternalFault)
        faults = [str(line) for line in message.get("faults", ())]
        remedy = str(message.get("remedy", ""))
        raise UsageFault(faults, remedy=remedy) if kind is UsageFault else kind("; ".join(faults), remedy=remedy)


def _known(kind: type[Any], message: Any, extra: frozenset[str] | set[str] = frozenset()) -> dict[str, Any]:
    """The message's entries; UsageFault for one that the dataclass does not know."""
    if not isinstance(message, Mapping):
        raise UsageFault(f"not an object: {kind.__name__}")
    known = {field.name for field in fields(kind)}
    if odd := sorted(set(message) - known - extra):
        raise UsageFault(f"{kind.__name__}: unknown: {', '.join(odd)}")
    return {key: value for key, value in message.items() if key in known}
