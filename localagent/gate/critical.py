"""Gates: files that a person must look at whatever the change is, and dependencies. By name alone.

A repair of such a file is found and proven like any other, and then kept as a proposal until a person approves it.
"""

from collections.abc import Iterable

import pathspec

from localagent.domain.gate import Decision, Severity
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.gate.change import GateInput
from localagent.gate.rule import Example, Rule, decide

_SOME = {"before": "x = 1\n", "after": "x = 2\n"}

CRITICAL = Rule(
    id="critical-file",
    severity=Severity.MEDIUM,
    why="what guards accounts, money, keys, data or deployments is changed",
    remedy="have somebody who owns that code read the change",
    match=tuple(
        Example(path=path, **_SOME)
        for path in (
            "app/auth/tokens.py",
            "app/payment_gateway.py",
            "app/migrations/0002_add.py",
            "deploy/run.py",
            "Setup.py",
        )
    ),
    not_match=(Example(**_SOME), Example(path="app/author.py", **_SOME)),
    asks_person=True,
)
DEPENDENCY = Rule(
    id="dependency-edit",
    severity=Severity.MEDIUM,
    why="a dependency brings code that the patch does not show",
    remedy="have a person check what comes in, and from where",
    match=tuple(
        Example(path=path, before="a==1\n", after="a==1\nb==2\n")
        for path in ("requirements.txt", "requirements/dev.txt", "poetry.lock", "constraints.txt")
    ),
    not_match=(Example(path="docs/list.txt", **_SOME),),
    asks_person=True,
)
RULES = (CRITICAL, DEPENDENCY)


def critical_paths(paths: Iterable[RepoPath], policy: Policy) -> tuple[RepoPath, ...]:
    """Those of some paths that the policy wants a person to look at."""
    specs = [spec for _, spec, _ in _specs(policy)]
    return tuple(path for path in paths if any(spec.match_file(path.replace("\n", " ").lower()) for spec in specs))


def _specs(policy: Policy) -> tuple[tuple[Rule, pathspec.GitIgnoreSpec, str], ...]:
    return tuple(
        (rule, pathspec.GitIgnoreSpec.from_lines([p.lower() for p in patterns]), key)
        for rule, patterns, key in (
            (CRITICAL, policy.patches.critical, "critical"),
            (DEPENDENCY, policy.patches.dependencies, "dependencies"),
        )
    )


class Critical:
    """Asks a person where the policy names a file as critical, or as one that says what is depended on."""

    name = "critical"

    def __init__(self, policy: Policy) -> None:
        self._rules = _specs(policy)

    def review(self, change: GateInput) -> Decision:
        """Deny if any path, before or after, is named."""
        paths = dict.fromkeys(path for entry in change.entries for path in (entry.path, entry.source))
        return decide(
            self.name,
            [
                rule.finding(path, 0, f"{path} is named by the policy's patches.{key}")
                for path in paths
                for rule, spec, key in self._rules
                if spec.match_file(path.replace("\n", " ").lower())
            ],
        )
