"""A base policy and the layers over it, the system's and then the repository's, become one policy.

A layer gives any part of the keys of a policy; what it does not give stays. A later layer can only tighten
(`localagent.policy.meet`): what it asks for beyond that has no effect, and `decided` shows it. Reads no files.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localagent.domain.policy import Policy
from localagent.errors import UsageFault
from localagent.policy.flat_keys import facts
from localagent.policy.load import REMEDY, SCHEMA, parse_policy_toml, policy_of
from localagent.policy.meet import meet
from localagent.policy.table import Faults, Table

LAYER_SCHEMA = "localagent/policy-layer/1"
IN_PROJECT = "tool.localagent."
_BASE_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_FIXED = {"name": "the base's name is kept", "dependencies.known_names": "a layer cannot change it"}
_MOST_TEXT, _MOST_STARS, _MOST_ITEMS = 300, 3, 300
_FREE_TEXT = frozenset({"why", "match", "not_match"})


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicySource:
    """A policy file's bytes and the name it has in messages."""

    name: str
    data: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Layered:
    """The policy that holds. `layers` names the base and what lies over it; `decided` which of them settled each key.

    `without_effect` are keys that a layer gave, by layer, without tightening anything.
    """

    policy: Policy
    layers: tuple[str, ...]
    decided: Mapping[str, str]
    without_effect: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """A layer's keys, and where they stand in its file."""

    source: str
    values: dict[str, Any]
    faults: Faults


def allowed_bases(system: Sequence[PolicySource]) -> tuple[str, ...] | None:
    """The names that every layer with `base.allowed` names, in the first one's order; None where none has it.

    What cannot be read allows nothing; `combine` says what is wrong with it.
    """
    allowed: tuple[str, ...] | None = None
    for source in system:
        try:
            values, _ = parse_policy_toml(source.data, source.name)
        except UsageFault:
            return ()
        base = values.get("base")
        if base is None:
            continue
        names = base.get("allowed") if isinstance(base, dict) else None
        named = tuple(n for n in names if isinstance(n, str)) if isinstance(names, list) else ()
        allowed = named if allowed is None else tuple(n for n in allowed if n in named)
    return allowed


def combine(
    base: PolicySource,
    system: Sequence[PolicySource],
    repository: PolicySource | None,
    reference: bytes,
    taken: frozenset[str] = frozenset(),
) -> Layered:
    """The policy of all layers. UsageFault with every fault of every layer.

    `reference` is a policy that is right: where the base is not, the layers are read over that one. `taken` are ids
    that no danger may have.
    """
    lines: list[str] = []
    values: dict[str, Any] = {}
    policy: Policy | None = None
    try:
        values, text = parse_policy_toml(base.data, base.name)
        faults = Faults(base.name, text)
        policy = policy_of(values, faults, taken)
        lines += faults.lines
    except UsageFault as fault:
        lines += fault.faults
    if lines:
        values, _ = parse_policy_toml(reference, "the built-in policy")
        policy = policy_of(values, Faults(""))
    assert policy is not None
    names, decided = [base.name], dict.fromkeys(facts(policy), base.name)
    idle: dict[str, tuple[str, ...]] = {}
    for part in _parts(system, repository, lines):
        over = policy_of(_overlaid(values, part.values), part.faults, taken)
        lines += part.faults.lines
        joined = meet(policy, over)
        before, after = facts(policy), facts(joined)
        changed = [key for key, value in after.items() if before.get(key) != value]
        decided.update(dict.fromkeys(changed, part.source))
        asked = [key for key in _keys(part.values) if not any(c == key or c.startswith(f"{key}.") for c in changed)]
        idle[part.source] = tuple(asked)
        names.append(part.source)
        policy = joined
    if lines:
        raise UsageFault(lines, remedy=REMEDY)
    return Layered(policy=policy, layers=tuple(names), decided=decided, without_effect=idle)


def _parts(system: Sequence[PolicySource], repository: PolicySource | None, lines: list[str]) -> Iterator[_Part]:
    """Every layer that can be read; what is wrong with the others is added to `lines`."""
    for source in system:
        try:
            values, text = parse_policy_toml(source.data, source.name)
        except UsageFault as fault:
            lines += fault.faults
            continue
        faults = Faults(source.name, text)
        _take_head(values, faults)
        _refuse_fixed(values, faults)
        yield _Part(source=source.name, values=values, faults=faults)
    if repository is not None and (part := _in_project(repository, lines)) is not None:
        yield part


def _take_head(values: dict[str, Any], faults: Faults) -> None:
    """Checks and takes away what a file of the system's layers holds beside the keys of a policy."""
    schema = values.pop("schema", None)
    if schema != LAYER_SCHEMA:
        faults.add("schema", f"must be {LAYER_SCHEMA!r}: it tells a layer from a whole policy")
    if "base" in values:
        table = Table(values.pop("base"), "base", faults)
        table.take_texts("allowed", required=True, valid=_base_fault)
        table.close()


def _base_fault(name: str) -> str:
    return "" if _BASE_NAME.fullmatch(name) else f"{name!r} is not the name of a policy (lower case, no path)"


def _in_project(repository: PolicySource, lines: list[str]) -> _Part | None:
    """The repository's `[tool.localagent]`, None where there is none.

    A file that is no TOML and never says `localagent` asks for nothing; it may be what is to be repaired.
    """
    try:
        values, text = parse_policy_toml(repository.data, repository.name)
    except UsageFault as fault:
        escaped = b"\\u" in repository.data or b"\\U" in repository.data
        lines += fault.faults if escaped or b"localagent" in repository.data else ()
        return None
    tool = values.get("tool")
    if not isinstance(tool, dict) or "localagent" not in tool:
        return None
    faults = Faults(repository.name, text, IN_PROJECT)
    mine = tool["localagent"]
    if not isinstance(mine, dict):
        faults.add("", "must be a table")
        mine = {}
    for key in ("schema", "base"):
        if mine.pop(key, None) is not None:
            faults.add(key, "a repository cannot say that; only keys of a policy stand here")
    _refuse_fixed(mine, faults)
    for path, what in _excessive(mine, ""):
        faults.add(path, what)
    return _Part(source=f"{repository.name} [tool.localagent]", values=mine, faults=faults)


def _refuse_fixed(values: dict[str, Any], faults: Faults) -> None:
    for path, why in _FIXED.items():
        table, _, key = path.rpartition(".")
        at = values.get(table) if table else values
        if isinstance(at, dict) and key in at:
            del at[key]
            faults.add(path, why)


def _excessive(value: object, path: str) -> Iterator[tuple[str, str]]:
    """What would make matching costly: a repository is hostile, and patterns with many `*` are slow."""
    stack: list[tuple[object, str]] = [(value, path)]
    told = 0
    while stack and told < 20:
        item, at = stack.pop()
        if isinstance(item, dict | list) and (len(item) > _MOST_ITEMS or at.count(".") + at.count("[") > 8):
            told += 1
            yield at, f"more than {_MOST_ITEMS} entries, or too deep, for a repository's layer"
        elif isinstance(item, dict):
            stack += [(inner, f"{at}.{key}" if at else key) for key, inner in item.items() if key not in _FREE_TEXT]
        elif isinstance(item, list):
            stack += [(inner, f"{at}[{n}]") for n, inner in enumerate(item)]
        elif isinstance(item, str) and (len(item) > _MOST_TEXT or len(re.findall(r"\*+", item)) > _MOST_STARS):
            told += 1
            yield at, f"longer than {_MOST_TEXT} characters or with more than {_MOST_STARS} `*`: too costly"


def _overlaid(values: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A whole policy's values with those of a layer put over them, section by section."""
    return {**_merged(values, over), "schema": SCHEMA}


def _merged(below: Mapping[str, Any], over: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """The tables of both, one over the other, as deep as a policy has tables."""
    found = dict(below)
    for key, value in over.items():
        stood = found.get(key)
        nested = depth < 3 and isinstance(value, dict) and isinstance(stood, dict)
        found[key] = _merged(stood, value, depth + 1) if nested and stood is not None else value
    return found


def _keys(values: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[str]:
    """The dotted keys that a layer gives, its arrays of tables by their ids."""
    for key, value in values.items():
        at = f"{path}.{key}" if path else key
        if isinstance(value, dict) and depth < 3:
            yield from _keys(value, at, depth + 1)
        elif key == "rule" and isinstance(value, list):
            yield from (f"{at}.{rule['id']}" for rule in value if isinstance(rule, dict) and "id" in rule)
        else:
            yield at
