"""Two policies become the one that allows only what both allow. Later layers can tighten, never loosen.

Where the exact meeting cannot be written down, less is allowed. Section by section, key by key: a new key of a policy
must be given its meeting here before mypy is content.
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TypeVar

from localagent.domain.gate import Severity
from localagent.domain.policy import (
    ApprovalRules,
    DependencyRules,
    JailLevel,
    LeastStrength,
    PatchRules,
    PathRules,
    Permission,
    Policy,
    SizeRules,
    Switch,
)
from localagent.policy.limits import meet_limits

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
