"""A base policy and the layers over it, the system's and then the repository's, become one policy.

A layer gives any part of the keys of a policy; what it does not give stays. A later layer can only tighten
(`localagent.policy.meet`): what it asks for beyond that has no effect, and `decided` shows it. Reads no files.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from localagent.domain.gate import Severity
from localagent.domain.policy import (
    ApprovalRules,
    DependencyRules,
    InstructionRules,
    JailLevel,
    LeastStrength,
    PatchRules,
    PathRules,
    Permission,
    Policy,
    SizeRules,
    Switch,
)
from localagent.errors import UsageFault
from localagent.policy.flat_keys import facts
from localagent.policy.limits import meet_limits
from localagent.policy.load import REMEDY, SCHEMA, parse_policy_toml, policy_of
from localagent.policy.table import Faults, Table

# Two policies become the one that allows only what both allow. Later layers can tighten, never loosen.
#
# Where the exact meeting cannot be written down, less is allowed. Section by section, key by key: a new key of a
# policy must be given its meeting here before mypy is content.

ANYBODY = "*"
_E = TypeVar("_E", bound=StrEnum)
_T = TypeVar("_T")
_LOOSEST_FIRST: dict[type[StrEnum], tuple[StrEnum, ...]] = {
    Severity: (Severity.HIGH, Severity.MEDIUM, Severity.LOW, Severity.INFO),  # refused from here on
    Switch: (Switch.NEVER, Switch.AUTO, Switch.ALWAYS),
    Permission: (Permission.ALLOW, Permission.DENY),
    JailLevel: tuple(JailLevel),
    LeastStrength: tuple(LeastStrength),
}


def meet(earlier: Policy, later: Policy) -> Policy:
    """The policy that allows what both do. Its name, and the names that squatters imitate, are the earlier one's."""
    return Policy(
        name=earlier.name,
        paths=_paths(earlier.paths, later.paths),
        size=_size(earlier.size, later.size),
        deny_at=tighter(earlier.deny_at, later.deny_at),
        dangers=_union(earlier.dangers, later.dangers),
        bandit_deny_at=tighter(earlier.bandit_deny_at, later.bandit_deny_at),
        swallowed_exceptions=tighter(earlier.swallowed_exceptions, later.swallowed_exceptions),
        special_cased_tests=tighter(earlier.special_cased_tests, later.special_cased_tests),
        third_party_binaries=tighter(earlier.third_party_binaries, later.third_party_binaries),
        ruff=tighter(earlier.ruff, later.ruff),
        mypy=tighter(earlier.mypy, later.mypy),
        unanswered=tighter(earlier.unanswered, later.unanswered),
        least_jail_level=tighter(earlier.least_jail_level, later.least_jail_level),
        limits=meet_limits(earlier.limits, later.limits),
        min_strength=tighter(earlier.min_strength, later.min_strength),
        accept_at=max(earlier.accept_at, later.accept_at),
        dependencies=_dependencies(earlier.dependencies, later.dependencies),
        patches=_patches(earlier.patches, later.patches),
        commands=_union(earlier.commands, later.commands),
        approvals=_approvals(earlier.approvals, later.approvals),
        instruction=_instruction(earlier.instruction, later.instruction),
    )


def tighter(one: _E, other: _E) -> _E:
    """Of two values of one kind the one that allows less."""
    order = _LOOSEST_FIRST[type(one)]
    return max(one, other, key=order.index)


def _union(one: tuple[_T, ...], other: tuple[_T, ...]) -> tuple[_T, ...]:
    return (*one, *(item for item in dict.fromkeys(other) if item not in one))


def _paths(one: PathRules, other: PathRules) -> PathRules:
    return PathRules(
        editable=one.editable,
        denied=_union(one.denied, other.denied),
        tests=_union(one.tests, other.tests),
        narrowed=_narrowed(one.editable, one.narrowed, other.editable, other.narrowed),
    )


def _narrowed(
    editable: tuple[str, ...],
    narrowed: tuple[tuple[str, ...], ...],
    others: tuple[str, ...],
    more: tuple[tuple[str, ...], ...],
) -> tuple[tuple[str, ...], ...]:
    """Every list that a path must match beside the first one."""
    return tuple(kept for kept in dict.fromkeys((*narrowed, others, *more)) if kept != editable)


def _size(one: SizeRules, other: SizeRules) -> SizeRules:
    return SizeRules(
        max_files=min(one.max_files, other.max_files),
        max_hunks=min(one.max_hunks, other.max_hunks),
        max_changed_lines=min(one.max_changed_lines, other.max_changed_lines),
        max_changed_bytes=min(one.max_changed_bytes, other.max_changed_bytes),
        max_changed_nodes=min(one.max_changed_nodes, other.max_changed_nodes),
        max_file_bytes=min(one.max_file_bytes, other.max_file_bytes),
        max_depth=min(one.max_depth, other.max_depth),
    )


def _patches(one: PatchRules, other: PatchRules) -> PatchRules:
    return PatchRules(
        editable=one.editable,
        denied=_union(one.denied, other.denied),
        critical=_union(one.critical, other.critical),
        critical_names=_union(one.critical_names, other.critical_names),
        critical_uses=_union(one.critical_uses, other.critical_uses),
        dependencies=_union(one.dependencies, other.dependencies),
        test_configuration=_union(one.test_configuration, other.test_configuration),
        tests=tighter(one.tests, other.tests),
        weaker_tests=tighter(one.weaker_tests, other.weaker_tests),
        routine=tighter(one.routine, other.routine),
        allowed_in_tests=tuple(rule for rule in one.allowed_in_tests if rule in other.allowed_in_tests),
        size=_size(one.size, other.size),
        lenient=one.lenient,  # more tests must not mean more places where tests' liberties hold
        narrowed=_narrowed(one.editable, one.narrowed, other.editable, other.narrowed),
    )


def _instruction(one: InstructionRules | None, other: InstructionRules | None) -> InstructionRules | None:
    """None is the tightest: without the section nothing is allowed beyond a repair."""
    if one is None or other is None:
        return None
    return InstructionRules(
        editable=one.editable,
        denied=_union(one.denied, other.denied),
        critical=_union(one.critical, other.critical),
        new_tests=tighter(one.new_tests, other.new_tests),
        answered=tuple(rule for rule in one.answered if rule in other.answered),
        size=_size(one.size, other.size),
        narrowed=_narrowed(one.editable, one.narrowed, other.editable, other.narrowed),
    )


def _dependencies(one: DependencyRules, other: DependencyRules) -> DependencyRules:
    return replace(
        one,
        allow=_covered(one.allow, other.allow),
        deny=_union(one.deny, other.deny),
        lock_files=_covered(one.lock_files, other.lock_files),
        require_hashes=one.require_hashes or other.require_hashes,
        approvals=tighter(one.approvals, other.approvals),
    )


def _covered(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    """Patterns of either list that a pattern of the other covers whole: never more than both match."""
    kept = [p for p in one if any(_covers(q, p) for q in other)]
    kept += [q for q in other if any(_covers(p, q) for p in one)]
    return tuple(dict.fromkeys(kept))


def _covers(wide: str, narrow: str) -> bool:
    """True if all that `narrow` matches `wide` does: a `*` of it is matched like any letter, so only by a `*`.

    Folders must be equal: `*` stands in the last part alone.
    """
    (folder, _, last), (other, _, inner) = wide.rpartition("/"), narrow.rpartition("/")
    plain = str.maketrans("[?", "\0\1")  # wildcards of fnmatch alone
    return folder == other and fnmatchcase(inner.translate(plain), last.translate(plain))


def _approvals(one: ApprovalRules, other: ApprovalRules) -> ApprovalRules:
    if ANYBODY in one.people:
        people = other.people
    elif ANYBODY in other.people:
        people = one.people
    else:
        people = tuple(name for name in one.people if name in other.people)
    return ApprovalRules(people=people, by_asker=tighter(one.by_asker, other.by_asker))


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
        given = {k: v for k, v in part.values.items() if k in values or k != "instruction"}  # none can be given later
        over = policy_of(_overlaid(values, given), part.faults, taken)
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
