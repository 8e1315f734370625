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
_FIX = "fix"
BUILDERS: Mapping[str, str] = {
    f"urn:localagent:build-type:{name}:1": f"urn:localagent:builder:{name}" for name in (_FIX, "remediate", "hook")
}  # who makes a patch in which way
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
    """The paths that a subject's name may stand for: itself, and the bytes that its %XX write.

    The second only where `subject_name` writes it so: it escapes what is not UTF-8, and nothing else.
    """
    if "%" not in name or not name.isascii():
        return (name,)
    data = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), name.encode("ascii"))
    other = data.decode("utf-8", "surrogateescape")
    return (name, other) if other != name and subject_name(other) == name else (name,)


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
    """FAILED where any test fails, though it failed before as well and the patch was accepted all the same.

    WARNED where none passed: that nothing was said against a patch is no test's word for it.
    """
    failed, passed = facts["still_failing"], [*facts["fail_to_pass"], *facts["pass_to_pass"]]
    return {
        "result": "FAILED" if failed else "WARNED" if facts["flaky"] or not passed else "PASSED",
        "configuration": [_policy(facts), *_snapshot(facts)],
        "passedTests": passed,
        "warnedTests": facts["flaky"],
        "failedTests": failed,
    }


def _policy(facts: Mapping[str, Any]) -> dict[str, Any]:
    policy = facts["policy"]
    return {"name": "policy", "digest": _sha256(policy["digest"]), "annotations": {"policy": policy["name"]}}


def _snapshot(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tree that was seen; where none was copied, since nothing of it ran, there is none to name."""
    return [{"name": "snapshot", "digest": _sha256(facts["snapshot"])}] if facts["snapshot"] else []


def _builder(facts: Mapping[str, Any]) -> str:
    return str(facts.get("origin", {}).get("builder", _FIX))


def _before(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The files that were repaired as they stood: on top of other patches they are not the snapshot's.

    Their names begin so that no file of a repository is taken for the snapshot or a tool.
    """
    if _builder(facts) == _FIX:
        return []
    return [{"name": f"before:{subject_name(f['path'])}", "digest": _sha256(f["before"])} for f in facts["files"]]


def _dependencies(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    jail, model = facts["jail"], facts["model"]
    found = [*_snapshot(facts), _policy(facts), *_before(facts)]
    if model is not None:
        weights = {"weights": model["weights"]} if model["weights"] else {}
        notes = {"model": model["name"], **weights}
        found.append({"name": "model", "digest": _sha256(model["digest"]), "annotations": notes})
    if jail["level"]:
        uri = f"urn:localagent:jail:{jail['backend'].replace(' ', ':')}:{jail['level']}"
        found.append({"name": "jail", "uri": uri, "annotations": dict(jail)})
    if facts["python"]:
        found.append({"name": "python", "uri": f"pkg:generic/python@{facts['python']}"})
    found += [{"name": name, "uri": f"pkg:pypi/{name}@{version}"} for name, version in sorted(facts["tools"].items())]
    return found


def _provenance(facts: Mapping[str, Any]) -> dict[str, Any]:
    asked, builder, origin = facts["asked"], _builder(facts), facts.get("origin", {})
    outside = (
        *("tests", "checks", "guard", "guard_seconds", "text", "seed"),
        *("max_candidates", "max_seconds", "use_model", "model", "choosing", "min_confidence"),
    )
    return {
        "buildDefinition": {
            "buildType": f"urn:localagent:build-type:{builder}:1",
            "externalParameters": {
                "repo": subject_name(facts["repo"]),
                **{name: asked[name] for name in outside if name in asked},
                **{name: origin[name] for name in ("findings", "below", "rules") if name in origin},
            },
            "internalParameters": {"jobs": asked["jobs"], "python": asked["python"], "backend": asked["backend"]},
            "resolvedDependencies": _dependencies(facts),
        },
        "runDetails": {
            "builder": {
                "id": f"urn:localagent:builder:{builder}",
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


def _guard(told: Mapping[str, Any] | None) -> dict[str, int] | None:
    """How much of the guard ran, in counts; null where none was come to, and in tasks of before there was one."""
    if told is None:
        return None
    lists = {name: len(told[name]) for name in ("broken", "flaky", "undecided")}
    return {"found": told["found"], "ran": told["ran"], "passed": told["passed"], "notRun": told["not_run"], **lists}


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
            "guard": _guard(facts.get("guard")),
            "checks": facts["checks"],
            "strength": facts.get("strength"),
            "confidence": facts.get("confidence"),
            "jail": facts["jail"],
            "limitsHit": facts["limits_hit"],
        },
        "approvals": [dict(approval) for approval in approvals],
        "audit": dict(audit),
    }
