"""A bundle: the signed statements about one patch, one DSSE envelope a line; made, and verified strictly.

A bundle verifies only whole: every predicate once, all over the same subjects, each signed by a known key. What an
accepted bundle does not show: that the key's holder told the truth.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from localagent.domain.edit import digest_of
from localagent.domain.task import Verdict
from localagent.record.attest.dsse import NotVerified, Signer, open_envelope, sign
from localagent.record.attest.statement import (
    BUILDERS,
    CHOSEN,
    PAYLOAD_TYPE,
    PREDICATES,
    PROVENANCE,
    REVIEW,
    STATEMENT,
    TEST_RESULT,
    diff_name,
)
from localagent.text.strict_json import canonical, load

_HEX = re.compile(r"[0-9a-f]{64}")
_SHAPES: Mapping[str, Mapping[str, type]] = {
    TEST_RESULT: {
        "result": str,
        "configuration": list,
        "passedTests": list,
        "warnedTests": list,
        "failedTests": list,
    },
    PROVENANCE: {"buildDefinition": dict, "runDetails": dict},
    REVIEW: {
        "task": str,
        "outcome": str,
        "patch": str,
        "gates": dict,
        "verification": dict,
        "approvals": list,
        "audit": dict,
    },
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Attested:
    """A bundle that holds. `subjects` maps names to `sha256:` digests; `predicates` are by type."""

    task: str
    key_id: str
    subjects: Mapping[str, str]
    predicates: Mapping[str, Mapping[str, Any]]

    @property
    def diff(self) -> str:
        """The digest of the diff."""
        return self.subjects[diff_name(self.task)]


def signed_bundle(made: Sequence[Mapping[str, Any]], signer: Signer) -> bytes:
    """Statements as a bundle's bytes."""
    return b"".join(canonical(sign(signer, PAYLOAD_TYPE, canonical(s).rstrip(b"\n"))) for s in made)


def verify_bundle(data: bytes, keys: Mapping[str, Ed25519PublicKey], *, patch: bytes | None = None) -> Attested:
    """What a bundle says, once everything about it holds. NotVerified names the first thing that does not."""
    rows = data.splitlines()
    if not rows:
        raise NotVerified("the file is empty")
    if len(rows) > len(PREDICATES):
        raise NotVerified(f"{len(rows)} lines; a bundle has {len(PREDICATES)} envelopes, one a line")
    predicates: dict[str, Mapping[str, Any]] = {}
    subjects: Mapping[str, str] | None = None
    signers: set[str] = set()
    for number, row in enumerate(rows, 1):
        try:
            kind, predicate, named, key_id = _statement(row, keys)
            if kind in predicates:
                raise NotVerified(f"a second statement of type {kind}")
            if subjects is not None and named != subjects:
                raise NotVerified("it is about other subjects than the statements before it")
        except NotVerified as no:
            raise NotVerified(f"line {number}: {no}", remedy=no.remedy) from None
        predicates[kind], subjects = predicate, named
        signers.add(key_id)
    if missing := [kind for kind in PREDICATES if kind not in predicates]:
        raise NotVerified(f"the bundle lacks the statement of type {', '.join(missing)}")
    if len(signers) > 1:
        raise NotVerified("its statements are signed by different keys")
    assert subjects is not None
    return _whole(predicates, subjects, signers.pop(), patch)


def _whole(
    predicates: Mapping[str, Mapping[str, Any]], subjects: Mapping[str, str], key_id: str, patch: bytes | None
) -> Attested:
    """The statements held against each other and against the diff."""
    task = predicates[REVIEW]["task"]
    if diff_name(task) not in subjects:
        raise NotVerified(f"the diff {diff_name(task)!r} is not among the subjects")
    outcome = predicates[REVIEW]["outcome"]
    if outcome not in (Verdict.ACCEPTED.value, CHOSEN):
        raise NotVerified(f"the review's outcome is {outcome!r}: only accepted and chosen patches are attested")
    done = [x.get("kind") for x in predicates[REVIEW]["approvals"] if isinstance(x, dict)]
    if outcome == CHOSEN and "applied" not in done:
        raise NotVerified("the review says that a person chose the patch, and names no entry where it was applied")
    metadata = predicates[PROVENANCE]["runDetails"].get("metadata")
    if not isinstance(metadata, dict) or metadata.get("invocationId") != task:
        raise NotVerified("review and provenance are of different tasks")
    found = Attested(task=task, key_id=key_id, subjects=subjects, predicates=predicates)
    if patch is not None and digest_of(patch) != found.diff:
        raise NotVerified(
            f"the patch has the digest {digest_of(patch)}, the attested one {found.diff}",
            remedy="name the diff that `fix --out` wrote, byte for byte (git's own has other headers), "
            "or hold the files against it: --tree DIR",
        )
    return found


def _statement(
    row: bytes, keys: Mapping[str, Ed25519PublicKey]
) -> tuple[str, Mapping[str, Any], Mapping[str, str], str]:
    try:
        envelope = load(row)
    except ValueError as error:
        raise NotVerified(f"not JSON: {error}") from None
    opened = open_envelope(envelope, PAYLOAD_TYPE, keys)
    try:
        found = load(opened.payload)
    except ValueError as error:
        raise NotVerified(f"the payload is not JSON: {error}") from None
    if not isinstance(found, dict) or set(found) != {"_type", "subject", "predicateType", "predicate"}:
        raise NotVerified("the payload is not an in-toto statement")
    if found["_type"] != STATEMENT:
        raise NotVerified(f"a statement of type {found['_type']!r}, expected {STATEMENT!r}")
    kind = found["predicateType"]
    if not isinstance(kind, str) or kind not in _SHAPES:
        raise NotVerified(f"a predicate of the unknown type {kind!r}")
    return kind, _predicate(kind, found["predicate"]), _subjects(found["subject"]), opened.key_id


def _predicate(kind: str, found: object) -> Mapping[str, Any]:
    shape = _SHAPES[kind]
    if not isinstance(found, dict) or set(found) != set(shape):
        raise NotVerified(f"the predicate of type {kind} does not have exactly its fields")
    if wrong := [name for name, wanted in shape.items() if not isinstance(found[name], wanted)]:
        raise NotVerified(f"the predicate of type {kind}: {wrong[0]} is not a {shape[wrong[0]].__name__}")
    if kind == PROVENANCE:
        _built(found)
    return found


def _built(provenance: Mapping[str, Any]) -> None:
    """NotVerified where a patch was made in a way that is none of ours, or by another builder than makes it so."""
    way, builder = provenance["buildDefinition"].get("buildType"), provenance["runDetails"].get("builder")
    if not isinstance(way, str) or way not in BUILDERS:
        raise NotVerified(f"built in another way than {' or '.join(BUILDERS)}")
    if not isinstance(builder, dict) or builder.get("id") != BUILDERS[way]:
        raise NotVerified(f"built as {way}, and not by {BUILDERS[way]}")


def _subjects(found: object) -> Mapping[str, str]:
    if not isinstance(found, list) or not found:
        raise NotVerified("it has no subject")
    subjects: dict[str, str] = {}
    for item in found:
        if not isinstance(item, dict) or set(item) != {"name", "digest"} or not isinstance(item["name"], str):
            raise NotVerified("a subject is not name and digest")
        digest = item["digest"]
        value = digest.get("sha256") if isinstance(digest, dict) and set(digest) == {"sha256"} else None
        if not isinstance(value, str) or not _HEX.fullmatch(value):
            raise NotVerified(f"the subject {item['name']!r} has no SHA-256 digest")
        if item["name"] in subjects:
            raise NotVerified(f"the subject {item['name']!r} is named twice")
        subjects[item["name"]] = f"sha256:{value}"
    return subjects
