"""Static gates on code before it runs: dangerous calls by resolved name, bandit's findings; all of it counts as new.

Only Python can be gated. What the code reads at run time, and files that are merely shown to the jail, are not judged.
"""

from collections.abc import Sequence

from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.execution import Language
from localagent.domain.gate import Allow, Finding
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.errors import CannotEnforce
from localagent.gate.repair_gates import open_code_gates


def refuse_ungateable(language: Language | None) -> None:
    """CannotEnforce for a command, or a language that no gate reads."""
    if language is not Language.PYTHON:
        raise CannotEnforce(
            f"cannot gate {'a command' if language is None else language}: the gates read Python only; nothing ran",
            remedy="leave --gate away (the jail confines it all the same), or write it in Python",
        )


def findings_on(sources: Sequence[tuple[str, bytes]], policy: Policy) -> tuple[Finding, ...]:
    """Why these (name, text) pairs may not run; empty means allowed. CannotEnforce if a gate's tool is not there."""
    found: list[Finding] = []
    for name, text in sources:
        path = RepoPath(name)
        patch = Patch(changes=(FileChange(path=path, before=b"", after=text),))
        chain = open_code_gates(policy)
        candidate = Candidate(number=1, patch=patch, edits=(), cost=0.0)
        for decision in chain.review(candidate, Baseline(tests=()), {path: b""}):
            if decision.answer is not Allow.ALLOW:
                found += decision.findings
    return tuple(found)
