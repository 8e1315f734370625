"""The leaves of redacted documents: the forms and words of ours that may stand. `rules` are words of gates.

A field that is added to one of these documents is marked until its shape is named: forgetting it hides too much, never
too little. Rules of a user's own policy are not among the words.
"""

from localagent.domain.claim import Claim, DifferenceKind, FunctionEffect
from localagent.domain.dependency import DependencyVerdict
from localagent.domain.outcome import JailOutcome
from localagent.domain.review import PatchVerdict
from localagent.domain.strength import Grade
from localagent.domain.task import Verdict
from localagent.domain.verification import VerifyVerdict
from localagent.record.attest.statement import CHOSEN
from localagent.record.audit.entry import AuditKind
from localagent.record.evidence_facts import Builder
from localagent.record.redacted.redaction import Fields, Named, Shape, among, matching, never

TASK = matching(r"\d{8}-\d{6}-\d{6}-[0-9a-f]{6}")
DIGEST = matching(r"sha256:[0-9a-f]{64}")
HEX = matching(r"[0-9a-f]{64}")  # the id of a key; a digest where the field says of what kind
COMMIT = matching(r"[0-9a-f]{40}([0-9a-f]{24})?")
TIME = matching(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,6})?Z)?")
VERSION = matching(r"\d{1,4}(\.\d{1,4}){1,3}")
BACKEND = matching(r"(bubblewrap|nsjail)( \d{1,4}(\.\d{1,4}){0,3})?")
LEVEL = matching(r"L[0-4]|none")
POLICY = among(frozenset({"default", "strict", "permissive", "appliance"}))
KIND = among(frozenset({*(kind.value for kind in AuditKind), "gate", "verify", "deps", "task"}))
VERDICT = among(frozenset({*map(str, PatchVerdict), *map(str, VerifyVerdict), *map(str, DependencyVerdict)}))
BUILDER = among(frozenset(builder.value for builder in Builder))
HOOK = among(frozenset({"fix"}))
OUTCOME = among(frozenset({*(verdict.value for verdict in Verdict), "unfinished", CHOSEN}))
ENDING = among(frozenset(ending.value for ending in JailOutcome))
CLAIM = among(frozenset(claim.value for claim in Claim))
EFFECT = among(frozenset(effect.value for effect in DifferenceKind))
FUNCTION_EFFECT = among(frozenset(effect.value for effect in FunctionEffect))
GRADE = among(frozenset(grade.value for grade in Grade))
CHECK = among(frozenset({"ruff", "mypy", "bandit", "hypothesis", "shuffled", "properties", "pytest"}))
JAIL = Fields({"backend": BACKEND, "level": LEVEL})
LIMITS = Named(ENDING, never)


def denied(rules: frozenset[str]) -> Named:
    """Refusals, counted by rule."""
    return Named(among(rules), never)


def each(names: str, shape: Shape = never) -> dict[str, Shape]:
    """One shape for several fields; `never` keeps figures and truth values, and marks every text."""
    return dict.fromkeys(names.split(), shape)
