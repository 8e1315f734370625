"""In-toto statements about one accepted patch, made of the facts of its task: pure, nothing is read or signed here.

Three predicates over the same subjects (the patched files and the diff, by SHA-256): what the tests said, how the patch
came to be, and what was refused, verified and approved on the way. docs/attestation.md describes each field.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

STATEMENT = "https://in-toto.io/Statement/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
PROVENANCE = "https://slsa.dev/provenance/v1"
REVIEW = "urn:localagent:predicate:patch-review:1"
BUILD_TYPE = "urn:localagent:build-type:fix:1"
CHOSEN = "chosen"  # the outcome of a patch that a person took from a task's proposals
PREDICATES = (TEST_RESULT, PROVENANCE, REVIEW)
_ESCAPED = re.compile(rb"%([0-9A-F]{2})")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def diff_name(task: str) -> str:
    """The name that the diff has among the subjects."""
    return f"{task}.diff"


def subject_name(path: str) -> str:
    """A path as a subject's name: as it is where it is UTF-8, else its bytes with %XX for all but plain ones."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(chr(b) if b in _PLAIN else f"%{b:02X}" for b in path.encode("utf-8", "surrogateescape"))
    return path


def subject_paths(name: str) -> tuple[str, ...]:
    """The paths that a subject's name may stand for: itself, and the bytes that its %XX write."""
    if "%" not in name or not name.isascii():
        return (name,)
    data = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), name.encode("ascii"))
    return name, data.decode("utf-8", "surrogateescape")


def statements(
    facts: Mapping[str, Any], *, audit: Mapping[str, Any], approvals: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """One statement a predicate. `audit` is the entry that the task ended with; `approvals` what persons did since."""
    subject = [{"name": subject_name(f["path"]), "digest": _sha256(f["after"])} for f in facts["files"]]
    subject.append({"name": diff_name(facts["task"]), "digest": _sha256(facts["diff"])})
    predicates = (_test_result(facts), _provenance(facts), _review(facts, audit, approvals))
    return [
        {"_type": STATEMENT, "subject": subject, "predicateType": kind, "predicate": predicate}
        for kind, predicate in zip(PREDICATES, predicates, strict=True)
    ]


def _sha256(digest: str) -> dict[str, str]:
    return {"sha256": digest.removeprefix("sha256:")}


def _test_result(facts: Mapping[str, Any]) -> dict[str, Any]:
    """FAILED where any test fails, though it failed before as well and the patch was accepted all the same."""
    failed = facts["still_failing"]
    return {
        "result": "FAILED" if failed else "WARNED" if facts["flaky"] else "PASSED",
        "configuration": [_policy(facts), _snapshot(facts)],
        "passedTests": [*facts["fail_to_pass"], *facts["pass_to_pass"]],
        "warnedTests": facts["flaky"],
        "failedTests": failed,
    }


def _policy(facts: Mapping[str, Any]) -> dict[str, Any]:
    policy = facts["policy"]
    return {"name": "policy", "digest": _sha256(policy["digest"]), "annotations": {"policy": policy["name"]}}


def _snapshot(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": "snapshot", "digest": _sha256(facts["snapshot"])}


def _dependencies(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    jail, model = facts["jail"], facts["model"]
    found = [_snapshot(facts), _policy(facts)]
    if model is not None:
        weights = {"weights": model["weights"]} if model["weights"] else {}
        notes = {"model": model["name"], **weights}
        found.append({"name": "model", "digest": _sha256(model["digest"]), "annotations": notes})
    uri = f"urn:localagent:jail:{jail['backend'].replace(' ', ':')}:{jail['level']}"
    found.append({"name": "jail", "uri": uri, "annotations": dict(jail)})
    found.append({"name": "python", "uri": f"pkg:generic/python@{facts['python']}"})
    found += [{"name": name, "uri": f"pkg:pypi/{name}@{version}"} for name, version in sorted(facts["tools"].items())]
    return found


def _provenance(facts: Mapping[str, Any]) -> dict[str, Any]:
    asked = facts["asked"]
    outside = ("tests", "checks", "text", "seed", "max_candidates", "max_seconds", "use_model", "model", "choosing")
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {
                "repo": subject_name(facts["repo"]),
                **{name: asked[name] for name in outside if name in asked},
            },
            "internalParameters": {"jobs": asked["jobs"], "python": asked["python"], "backend": asked["backend"]},
            "resolvedDependencies": _dependencies(facts),
        },
        "runDetails": {
            "builder": {
                "id": "urn:localagent:builder:fix",
                "version": {"localagent": facts["version"]},
            },
            "metadata": {
                "invocationId": facts["task"],
                "startedOn": facts["started"],
                "finishedOn": facts["ended"],
            },
            "byproducts": [{"name": "journal.jsonl (last line)", "digest": _sha256(facts["journal"]["tip"])}],
        },
    }


def _review(
    facts: Mapping[str, Any], audit: Mapping[str, Any], approvals: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    return {
        "task": facts["task"],
        "outcome": facts["outcome"],
        "patch": facts["patch"],
        "gates": {"policy": facts["policy"], "enumerated": facts["enumerated"], "denied": facts["denied"]},
        "verification": {
            "candidates": facts["verified"],
            "plausible": facts["plausible"],
            "failToPass": len(facts["fail_to_pass"]),
            "passToPass": len(facts["pass_to_pass"]),
            "stillFailing": len(facts["still_failing"]),
            "checks": facts["checks"],
            "strength": facts.get("strength"),
            "jail": facts["jail"],
            "limitsHit": facts["limits_hit"],
        },
        "approvals": [dict(approval) for approval in approvals],
        "audit": dict(audit),
    }
