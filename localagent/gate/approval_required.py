"""Which parts of a repair a person must look at: the gates that ask, over a patch that has passed all the others."""

from localagent.domain.edit import Candidate, Patch
from localagent.domain.gate import Allow
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.gate.core.gate_input import Files, GateInput
from localagent.gate.files.critical_paths import Critical
from localagent.gate.repair_gates import ask
from localagent.gate.security.forbidden_apis import Dangerous


def files_needing_approval(patch: Patch, policy: Policy) -> tuple[RepoPath, ...]:
    """The files of a repair that hold critical code, or what only a person may let be. All of them on an error."""
    sources = {change.path: change.before for change in patch.changes}
    candidate = Candidate(number=0, patch=patch, edits=(), cost=0.0)
    change = GateInput(candidate, Baseline(tests=()), sources, Files())
    found: dict[RepoPath, None] = {}
    for gate in (Critical(policy), Dangerous(policy, asks_person=True)):
        decision = ask(gate, change)
        if decision.answer is Allow.ERROR:
            return tuple(sources)
        found.update((finding.path, None) for finding in decision.findings if finding.path is not None)
    return tuple(found)
