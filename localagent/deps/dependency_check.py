"""The answer for one requirement: allowed by the policy's list, a lock file or a person; refused; or unknown.

Only the name and the version asked for are judged here; what a wheel holds is judged by `localagent.deps.wheel`.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from localagent.deps.squat import KnownNames
from localagent.domain.dependency import (
    DependencyApproval,
    DependencyVerdict,
    Likeness,
    Locked,
    Ruling,
    UnreadableRequirement,
    Wanted,
)
from localagent.domain.policy import DependencyRules, Permission
from localagent.text.visible_text import shortened


@dataclass(frozen=True, kw_only=True, slots=True)
class DependencyGuard:
    """Everything an answer depends on. `policy_option` goes into the approval command where a policy was named."""

    rules: DependencyRules
    known: KnownNames
    locked: Sequence[Locked] = ()
    approvals: Sequence[DependencyApproval] = ()
    policy_option: str = ""

    def rule(self, item: Wanted | UnreadableRequirement) -> Ruling:
        """The answer; the first of these that applies: deny, allow, approval, likeness, lock file, unknown."""
        if isinstance(item, UnreadableRequirement):
            why = item.why + (f"; {_looks_like(item.likeness)}" if item.likeness else "")
            return Ruling(
                name="",
                shown=item.shown,
                source=item.source,
                answer=DependencyVerdict.REFUSED,
                why=why,
                likeness=item.likeness,
            )
        if pattern := _match(item.name, self.rules.deny):
            return self._ruling(item, DependencyVerdict.REFUSED, f"denied by the policy ({pattern!r})")
        if pattern := _match(item.name, self.rules.allow):
            return self._ruling(item, DependencyVerdict.ALLOWED, f"on the policy's list ({pattern!r})")
        if approval := self._approval(item):
            return self._ruling(
                item, DependencyVerdict.ALLOWED, f"approved by {approval.who} at {approval.at}: {approval.reason}"
            )
        locked = [entry for entry in self.locked if entry.name == item.name]
        if likeness := self.known.look_alike(item.name):
            where = f"although {locked[0].lock} locks it" if locked else ""
            return self._person(
                item, DependencyVerdict.REFUSED, " ".join(filter(None, (_looks_like(likeness), where))), likeness
            )
        if fitting := [entry for entry in locked if entry.hashes and fits(entry.version, item.specifier)]:
            entry = fitting[0]
            return self._ruling(item, DependencyVerdict.ALLOWED, f"locked by {entry.lock} at {entry.version}")
        if locked and not any(entry.hashes for entry in locked):
            if folder := locked[0].folder:
                why = (
                    f"{locked[0].lock} takes it from the folder {shortened(folder, 80)}: no index is to be asked for it"
                )
                return self._ruling(item, DependencyVerdict.UNKNOWN, why)
            why = f"{locked[0].lock} takes it from elsewhere than an index"
            return self._person(item, DependencyVerdict.UNKNOWN, why, None)
        if locked:
            versions = ", ".join(sorted({entry.version for entry in locked if entry.hashes}))
            why = f"{locked[0].lock} locks {versions}, which is not {item.specifier}"
            return self._person(item, DependencyVerdict.UNKNOWN, why, None)
        return self._person(item, DependencyVerdict.UNKNOWN, "on no list: neither the policy's nor a lock file's", None)

    def _approval(self, item: Wanted) -> DependencyApproval | None:
        if self.rules.approvals is Permission.DENY:
            return None
        for approval in reversed(self.approvals):
            if approval.name == item.name and (not approval.version or approval.version == pinned(item.specifier)):
                return approval
        return None

    def _person(self, item: Wanted, answer: DependencyVerdict, why: str, likeness: Likeness | None) -> Ruling:
        if self.rules.approvals is Permission.DENY:
            why += "; this policy counts no approvals, so only its `dependencies.allow` or a lock file lets it in"
            return self._ruling(item, answer, why, likeness)
        command = ["localagent", "deps", "approve", item.name]
        if version := pinned(item.specifier):
            command[-1] += f"=={version}"
        command += ["--distinct-from", likeness.known] if likeness else []
        command += ["--policy", self.policy_option] if self.policy_option else []
        return self._ruling(item, answer, why, likeness, f"{shlex.join(command)} --reason 'WHY IT IS NEEDED'")

    @staticmethod
    def _ruling(
        item: Wanted, answer: DependencyVerdict, why: str, likeness: Likeness | None = None, approve: str = ""
    ) -> Ruling:
        return Ruling(
            name=item.name,
            shown=item.shown,
            source=item.source,
            answer=answer,
            why=why,
            likeness=likeness,
            approve=approve,
        )


def _match(name: str, patterns: Sequence[str]) -> str:
    return next((pattern for pattern in patterns if fnmatchcase(name, pattern)), "")


def _looks_like(likeness: Likeness) -> str:
    return f"looks like {likeness.known!r}: {likeness.family}, {likeness.detail}"


def pinned(specifier: str) -> str:
    """The one version that a specifier allows, "" if it allows several."""
    text = specifier.strip()
    return text[2:].strip() if text.startswith("==") and not set(text[2:]) & set("*,=") else ""


def fits(version: str, specifier: str) -> bool:
    """True if a version satisfies a specifier, pre-releases included. False for what cannot be read."""
    try:
        return SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False
