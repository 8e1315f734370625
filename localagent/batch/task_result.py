"""What came of one repository in one night, as a value and as JSON.

Read back strictly, because other programs of the same user can write there. `steady` is the part that the clock, the
machine's load and the way the run was interrupted do not decide.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, TypeVar

from localagent.batch.fleet import WorkKind

SCHEMA = "localagent/batch-answer/1"
_E = TypeVar("_E", bound=StrEnum)


class RepositoryState(StrEnum):
    """How a repository stands after the night, worst first where several things were done."""

    CANNOT_ENFORCE = "cannot-enforce"
    FAULT = "fault"
    OUT_OF_BUDGET = "out-of-budget"
    NEEDS_PERSON = "needs-person"
    LOW_CONFIDENCE = "low-confidence"
    GAVE_UP = "gave-up"
    REFUSED = "refused"
    ACCEPTED = "accepted"
    FIXED = "fixed"
    IMPROVED = "improved"
    CLEAN = "clean"
    NOT_REACHED = "not-reached"


SETTLED = frozenset({RepositoryState.ACCEPTED, RepositoryState.FIXED, RepositoryState.IMPROVED, RepositoryState.CLEAN})
KEPT = SETTLED | {
    RepositoryState.NEEDS_PERSON,
    RepositoryState.LOW_CONFIDENCE,
    RepositoryState.GAVE_UP,
    RepositoryState.REFUSED,
}
_UNSTEADY = {"evidence", "task", "seconds", "kept_passing", "confidences"}  # signals are measured in what time is left
_RANK = {state: n for n, state in enumerate(RepositoryState)}


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkStep:
    """One kind of work. `outcome` is a verdict's value, or repaired, nothing, refused, out-of-time.

    `patch` is a unified diff (bytes that are no UTF-8 as surrogates), "" for none; later steps' patches go on top of
    earlier ones'. `confidences`: of `patch`, else of each of `proposals`, as the report has it, without the signals;
    null where it is not known. `failing`: what failed before; `turned`: what the patch turns. `repaired` are a
    codemod's repairs, `left` counts the findings by rule that stay. `findings` are other tools' with what became of
    each. `task` names the kept task with journal and evidence.
    """

    work: WorkKind
    state: RepositoryState
    outcome: str
    reason: str
    remedy: str = ""
    patch: str = ""
    patch_digest: str = ""
    failing: tuple[Mapping[str, Any], ...] = ()
    turned: tuple[str, ...] = ()
    kept_passing: int = 0
    proposals: tuple[str, ...] = ()
    confidences: tuple[Mapping[str, Any] | None, ...] = ()
    repaired: tuple[Mapping[str, Any], ...] = ()
    left: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Mapping[str, Any], ...] = ()
    files: int = 0
    evidence: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryResult:
    """One repository's. `tree` is the digest of what was looked at, `key` of all that the answer depends on.

    `same_as` names the run and repository that it was kept from, "" where it was found now.
    """

    number: int
    name: str
    state: RepositoryState
    reason: str
    remedy: str = ""
    tree: str = ""
    commit: str = ""
    key: str = ""
    steps: tuple[WorkStep, ...] = ()
    warnings: tuple[str, ...] = ()
    same_as: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {"schema": SCHEMA, **asdict(self)}

    def steady(self) -> dict[str, Any]:
        """What an undisturbed run of the same fleet says as well. How far the clock let it come is not part of it."""
        if self.state is RepositoryState.OUT_OF_BUDGET:
            return {"name": self.name, "state": self.state.value}
        steps = [
            {
                **{k: v for k, v in asdict(step).items() if k not in _UNSTEADY},
                "failing": [str(one.get("id")) for one in step.failing],  # where a time limit strikes is chance
            }
            for step in self.steps
        ]
        kept = ("name", "state", "reason", "remedy", "tree", "commit")
        return {**{k: v for k, v in asdict(self).items() if k in kept}, "steps": steps}


def worst(states: tuple[RepositoryState, ...]) -> RepositoryState:
    """The state that says most about what is left to do."""
    return min(states, key=_RANK.__getitem__, default=RepositoryState.CLEAN)


def parse_answer(found: object) -> RepositoryResult:
    """Strictly. ValueError where it is not what we wrote."""
    values = _exactly(found, {"schema", *(f.name for f in fields(RepositoryResult))})
    if values.pop("schema") != SCHEMA:
        raise ValueError("another schema")
    return RepositoryResult(
        **{
            **{k: _typed(values[k], str) for k in ("name", "reason", "remedy", "tree", "commit", "key", "same_as")},
            **{k: float(_typed(values[k], float, int)) for k in ("seconds", "cpu_seconds")},
            "number": _typed(values["number"], int),
            "state": RepositoryState(values["state"]),
            "steps": _list(values["steps"], _step),
            "warnings": _list(values["warnings"], _text),
        }
    )


def _step(found: object) -> WorkStep:
    older: dict[str, Any] = {"confidences": []}  # answers of before there were any
    values = _exactly(older | found if isinstance(found, dict) else found, {f.name for f in fields(WorkStep)})
    texts = ("outcome", "reason", "remedy", "patch", "patch_digest", "task")
    return WorkStep(
        **{
            **{k: _typed(values[k], str) for k in texts},
            "work": WorkKind(values["work"]),
            "state": RepositoryState(values["state"]),
            "failing": _list(values["failing"], _object),
            "turned": _list(values["turned"], _text),
            "kept_passing": _typed(values["kept_passing"], int),
            "proposals": _list(values["proposals"], _text),
            "confidences": _list(values["confidences"], _confidence),
            "repaired": _list(values["repaired"], _object),
            "left": {_text(k): _typed(v, int) for k, v in _object(values["left"]).items()},
            "findings": _list(values["findings"], _object),
            "files": _typed(values["files"], int),
            "evidence": _object(values["evidence"]),
            "seconds": float(_typed(values["seconds"], float, int)),
        }
    )


def _confidence(found: object) -> dict[str, Any] | None:
    if found is None:
        return None
    values = _exactly(found, {"probability", "calibrated", "model", "for", "against"})
    if not 0 <= _typed(values["probability"], float, int) <= 1 or not isinstance(values["calibrated"], bool):
        raise ValueError("not a confidence")
    _text(values["model"])
    for name in ("for", "against"):
        _list(values[name], _text)
    return values


def _exactly(found: object, keys: set[str]) -> dict[str, Any]:
    if not isinstance(found, dict) or set(found) != keys:
        raise ValueError(f"not exactly the keys {', '.join(sorted(keys))}")
    return dict(found)


def _typed(value: Any, *kinds: type) -> Any:
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise ValueError(f"{value!r:.60} is not {kinds[0].__name__}")
    return value


def _text(value: object) -> str:
    return str(_typed(value, str))


def _object(value: object) -> dict[str, Any]:
    return dict(_typed(value, dict))


def _list(value: object, of: Callable[[object], Any]) -> tuple[Any, ...]:
    return tuple(of(item) for item in _typed(value, list))
