"""Bundles: accepted by somebody else's verifier, refused with the reason once anything about them is changed."""

import base64
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]

from localagent.domain.confidence import Confidence
from localagent.domain.edit import FileChange, Patch, digest_of
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task, TaskResult, Verdict
from localagent.record.attest.bundle import signed_bundle, verify_bundle
from localagent.record.attest.dsse import NotVerified, Signer, key_id_of, sign
from localagent.record.attest.statement import (
    PAYLOAD_TYPE,
    PREDICATES,
    PROVENANCE,
    REVIEW,
    STATEMENT,
    TEST_RESULT,
    statements,
    subject_name,
    subject_paths,
)
from localagent.record.evidence_facts import Setting, facts_of
from localagent.record.redacted.redacted_statement import redacted_statements
from localagent.repo.diff.write_diff import unified_diff
from localagent.text.strict_json import canonical

PRIVATE = Ed25519PrivateKey.generate()
SIGNER = Signer(key_id=key_id_of(PRIVATE.public_key()), private=PRIVATE)
OTHER_PRIVATE = Ed25519PrivateKey.generate()
OTHER = Signer(key_id=key_id_of(OTHER_PRIVATE.public_key()), private=OTHER_PRIVATE)
KEYS = {SIGNER.key_id: PRIVATE.public_key()}
PATCH = Patch(
    changes=(
        FileChange(path=RepoPath("a.py"), before=b"a = 1\n", after=b"a = 2\n"),
        FileChange(path=RepoPath("caf\udce9.py"), before=b"b\n", after=b"c\n"),
    )
)
DIFF = unified_diff(PATCH)
DIGEST = "sha256:" + "1" * 64
SETTING = Setting(
    version="0.1.0",
    started="2026-01-01T00:00:00.000000Z",
    ended="2026-01-01T00:01:00.000000Z",
    policy=DIGEST,
    policy_name="default",
    least_level="L2",
    use_model=True,
    model="",
    backend="",
    tools={"ruff": "0.17.0"},
)
RESULT = TaskResult(
    verdict=Verdict.ACCEPTED,
    reason="",
    exit=0,
    patch=PATCH,
    baseline=Baseline(tests=(), python="3.11.7", pytest="9.2.0"),
    full=FullResult(
        accepted=True,
        reasons=(),
        fail_to_pass=("t::a",),
        pass_to_pass=("t::b",),
        pass_to_fail=(),
        still_failing=(),
    ),
    model_name="m",
    model_digest=DIGEST,
    model_weights=DIGEST,
    jail_backend="bubblewrap 0.11",
    jail_level="L4",
    snapshot_digest=DIGEST,
    denied={"bandit": 3},
)
TASK = Task(id="20260101-000000-000000-abcdef", repo="/srv/r", text="a secret wish")
FACTS = facts_of(TASK, RESULT, SETTING, DIFF, (3, DIGEST))
MADE = statements(FACTS, audit={"entry": 4, "digest": DIGEST}, approvals=[{"kind": "applied"}])
BUNDLE = signed_bundle(MADE, SIGNER)


def test_ours_accepts_it_whole() -> None:
    found = verify_bundle(BUNDLE, KEYS, patch=DIFF)
    assert (found.task, found.key_id, found.diff) == (TASK.id, SIGNER.key_id, digest_of(DIFF))
    assert dict(found.subjects) == {
        "a.py": digest_of(b"a = 2\n"),
        "caf%E9.py": digest_of(b"c\n"),
        f"{TASK.id}.diff": digest_of(DIFF),
    }
    assert found.predicates[TEST_RESULT]["result"] == "PASSED"
    assert found.predicates[REVIEW]["gates"]["denied"] == {"bandit": 3}
    assert b"secret wish" not in base64.b64decode(json.loads(BUNDLE.splitlines()[1])["payload"])


def test_somebody_elses_verifier_accepts_it_too() -> None:
    key = SSlibKey.from_crypto(PRIVATE.public_key(), keyid=SIGNER.key_id)
    wrong = SSlibKey.from_crypto(OTHER_PRIVATE.public_key(), keyid=SIGNER.key_id)
    kinds = []
    for row in BUNDLE.splitlines():
        envelope = Envelope.from_dict(json.loads(row))
        assert envelope.payload_type == PAYLOAD_TYPE
        assert envelope.verify([key], 1) == {SIGNER.key_id: key}
        with pytest.raises(VerificationError):
            Envelope.from_dict(json.loads(row)).verify([wrong], 1)
        statement = json.loads(envelope.payload)
        assert statement["_type"] == STATEMENT
        assert all(set(s["digest"]) == {"sha256"} for s in statement["subject"])
        kinds.append(statement["predicateType"])
    assert tuple(kinds) == PREDICATES


def test_dependencies_name_what_the_answer_rests_on() -> None:
    found = verify_bundle(BUNDLE, KEYS).predicates["https://slsa.dev/provenance/v1"]["buildDefinition"]
    by_name = {d["name"]: d for d in found["resolvedDependencies"]}
    assert {"snapshot", "policy", "model", "jail", "python", "pytest", "ruff"} <= set(by_name)
    assert by_name["jail"]["annotations"] == {"backend": "bubblewrap 0.11", "level": "L4"}
    assert all({"uri", "digest"} & set(d) for d in by_name.values())


def test_the_confidence_stands_beside_the_strength_without_its_words() -> None:
    told = Confidence(probability=0.87654, calibrated=True, model="right-1", opposing=("a secret reason",))
    asked, found = replace(TASK, min_confidence=0.8), replace(RESULT, confidence=told)
    made = statements(facts_of(asked, found, SETTING, DIFF, (3, DIGEST)), audit={"entry": 4}, approvals=[])
    holds = verify_bundle(signed_bundle(made, SIGNER), KEYS, patch=DIFF).predicates
    told_of = holds[REVIEW]["verification"]["confidence"]
    assert told_of == {"probability": 0.8765, "calibrated": True, "model": "right-1"}
    assert holds[PROVENANCE]["buildDefinition"]["externalParameters"]["min_confidence"] == 0.8
    redacted = redacted_statements(made, frozenset())[2]["predicate"]["verification"]["confidence"]
    assert (redacted["probability"], redacted["calibrated"]) == (0.8765, True)


def test_attestations_of_before_there_was_a_confidence_hold() -> None:
    old = {name: value for name, value in FACTS.items() if name != "confidence"}
    made = statements(old, audit={"entry": 4, "digest": DIGEST}, approvals=[])
    review = made[PREDICATES.index(REVIEW)]["predicate"]["verification"]
    assert review.pop("confidence") is None
    holds = verify_bundle(signed_bundle(made, SIGNER), KEYS, patch=DIFF).predicates
    assert "confidence" not in holds[REVIEW]["verification"]
    assert "min_confidence" not in holds[PROVENANCE]["buildDefinition"]["externalParameters"]


@pytest.mark.parametrize(
    ("still_failing", "flaky", "result"),
    [((), (), "PASSED"), ((), ("t::c",), "WARNED"), (("t::d",), ("t::c",), "FAILED")],
)
def test_a_test_that_fails_is_a_failure_though_the_patch_was_accepted(
    still_failing: tuple[str, ...], flaky: tuple[str, ...], result: str
) -> None:
    assert RESULT.full is not None
    assert RESULT.baseline is not None
    full = replace(RESULT.full, still_failing=still_failing)
    facts = facts_of(
        TASK, replace(RESULT, full=full, baseline=replace(RESULT.baseline, flaky=flaky)), SETTING, DIFF, (3, DIGEST)
    )
    made = statements(facts, audit={"entry": 4, "digest": DIGEST}, approvals=[])
    found = verify_bundle(signed_bundle(made, SIGNER), KEYS).predicates[TEST_RESULT]
    assert (found["result"], found["failedTests"], found["warnedTests"]) == (result, [*still_failing], [*flaky])
    assert redacted_statements(made, frozenset())[0]["predicate"]["result"] == result


# ---- tampering: what was changed, and the reason that must be given ------------------------------------------------

Rows = list[dict[str, Any]]


def opened(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.b64decode(row["payload"]))
    return found


def closed(row: dict[str, Any], statement: object) -> None:
    row["payload"] = base64.b64encode(canonical(statement)).decode()


def resigned(row: dict[str, Any], statement: object, signer: Signer = SIGNER, kind: str = PAYLOAD_TYPE) -> None:
    row.update(sign(signer, kind, canonical(statement)))


def subject(rows: Rows, n: int, rng: random.Random) -> str:
    statement = opened(rows[n])
    chosen = rng.choice(statement["subject"])
    if rng.random() < 0.5:
        chosen["digest"]["sha256"] = f"{rng.getrandbits(256):064x}"
    else:
        chosen["name"] += "x"
    closed(rows[n], statement)
    return "does not fit what is signed"


def predicate(rows: Rows, n: int, rng: random.Random) -> str:
    statement = opened(rows[n])
    field = rng.choice(sorted(statement["predicate"]))
    statement["predicate"][field] = "FAILED" if rng.random() < 0.5 else {"n": rng.random()}
    closed(rows[n], statement)
    return "does not fit what is signed"


def signature(rows: Rows, n: int, rng: random.Random) -> str:
    raw = bytearray(base64.b64decode(rows[n]["signatures"][0]["sig"]))
    raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    rows[n]["signatures"][0]["sig"] = base64.b64encode(bytes(raw)).decode()
    return "does not fit what is signed"


def payload_byte(rows: Rows, n: int, rng: random.Random) -> str:
    raw = bytearray(base64.b64decode(rows[n]["payload"]))
    raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    rows[n]["payload"] = base64.b64encode(bytes(raw)).decode()
    return "does not fit what is signed"


def foreign_key(rows: Rows, n: int, rng: random.Random) -> str:
    resigned(rows[n], opened(rows[n]), OTHER)
    return "a key that is not known"


def borrowed_key_id(rows: Rows, n: int, rng: random.Random) -> str:
    resigned(rows[n], opened(rows[n]), OTHER)
    rows[n]["signatures"][0]["keyid"] = SIGNER.key_id
    return "does not fit what is signed"


def no_signature(rows: Rows, n: int, rng: random.Random) -> str:
    rows[n]["signatures"] = []
    return "no signature"


def payload_type(rows: Rows, n: int, rng: random.Random) -> str:
    rows[n]["payloadType"] = rng.choice(["application/json", "", PAYLOAD_TYPE + " "])
    return "the payload's type is"


def signed_as_another_type(rows: Rows, n: int, rng: random.Random) -> str:
    resigned(rows[n], opened(rows[n]), kind="text/plain")
    rows[n]["payloadType"] = PAYLOAD_TYPE
    return "does not fit what is signed"


def statement_type(rows: Rows, n: int, rng: random.Random) -> str:
    resigned(rows[n], {**opened(rows[n]), "_type": "https://in-toto.io/Statement/v0.1"})
    return "a statement of type"


def predicate_type(rows: Rows, n: int, rng: random.Random) -> str:
    resigned(rows[n], {**opened(rows[n]), "predicateType": "urn:nobody"})
    return "unknown type"


def one_of_another_patch(rows: Rows, n: int, rng: random.Random) -> str:
    statement = opened(rows[n])
    statement["subject"][0]["digest"]["sha256"] = "2" * 64
    resigned(rows[n], statement)
    return "other subjects"


def missing_statement(rows: Rows, n: int, rng: random.Random) -> str:
    del rows[n]
    return "lacks the statement"


def doubled_statement(rows: Rows, n: int, rng: random.Random) -> str:
    rows[n] = rows[n - 1]
    return "a second statement"


def second_signature_that_is_none(rows: Rows, n: int, rng: random.Random) -> str:
    more = rng.choice([{"keyid": SIGNER.key_id, "sig": "AAAA"}, {"sig": 5}, {"keyid": 7, "sig": "AAAA"}, "x"])
    rows[n]["signatures"].append(more)
    return "signature"


def outcome_of_no_patch(rows: Rows, n: int, rng: random.Random) -> str:
    (review,) = (row for row in rows if opened(row)["predicateType"] == REVIEW)
    statement = opened(review)
    statement["predicate"]["outcome"] = "gave-up"
    resigned(review, statement)
    return "only accepted and chosen patches"


def chosen_and_never_applied(rows: Rows, n: int, rng: random.Random) -> str:
    (review,) = (row for row in rows if opened(row)["predicateType"] == REVIEW)
    statement = opened(review)
    statement["predicate"].update(outcome="chosen", approvals=[{"kind": "approved"}, {"kind": "undone"}])
    resigned(review, statement)
    return "names no entry where it was applied"


def weak_digest(rows: Rows, n: int, rng: random.Random) -> str:
    statement = opened(rows[n])
    statement["subject"][0]["digest"] = {"md5": "0" * 32}
    resigned(rows[n], statement)
    return "no SHA-256"


WAYS: list[Callable[[Rows, int, random.Random], str]] = [
    subject,
    predicate,
    signature,
    payload_byte,
    foreign_key,
    borrowed_key_id,
    no_signature,
    payload_type,
    signed_as_another_type,
    statement_type,
    predicate_type,
    one_of_another_patch,
    missing_statement,
    doubled_statement,
    weak_digest,
    second_signature_that_is_none,
    outcome_of_no_patch,
    chosen_and_never_applied,
]


@pytest.mark.parametrize("n", range(120))
def test_tampered_bundles_are_refused_with_the_reason(n: int) -> None:
    rng = random.Random(n)
    rows: Rows = [json.loads(row) for row in BUNDLE.splitlines()]
    reason = WAYS[n % len(WAYS)](rows, rng.randrange(len(rows)), rng)
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    with pytest.raises(NotVerified, match=reason):
        verify_bundle(data, KEYS)


def test_a_second_signature_of_a_stranger_takes_nothing_away() -> None:
    rows = [json.loads(row) for row in BUNDLE.splitlines()]
    for row in rows:
        theirs = sign(OTHER, PAYLOAD_TYPE, canonical(opened(row)).rstrip(b"\n"))["signatures"]
        row["signatures"] = [*theirs, *row["signatures"]]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    assert verify_bundle(data, KEYS).key_id == SIGNER.key_id


def test_redacted_statements_verify_as_others_do_and_name_nothing() -> None:
    made = redacted_statements(MADE, frozenset({"bandit"}))
    bundle = signed_bundle(made, SIGNER)
    found = verify_bundle(bundle, KEYS, patch=DIFF)
    assert sorted(found.subjects.values()) == sorted(verify_bundle(BUNDLE, KEYS).subjects.values())
    assert found.predicates[REVIEW]["gates"]["denied"] == {"bandit": 3}
    shown = json.dumps(made)
    assert [word for word in ("a.py", "caf", "t::a", "t::b", "/srv/r") if word in shown] == []
    key = SSlibKey.from_crypto(PRIVATE.public_key(), keyid=SIGNER.key_id)
    assert all(Envelope.from_dict(json.loads(row)).verify([key], 1) for row in bundle.splitlines())


@pytest.mark.parametrize("path", ["a.py", "caf\udce9.py", "100%.py", "%41.py", "\udcff%41"])
def test_a_subjects_name_leads_back_to_its_path(path: str) -> None:
    assert path in subject_paths(subject_name(path))


def test_another_diff_is_not_the_attested_one() -> None:
    with pytest.raises(NotVerified, match="the patch has the digest") as no:
        verify_bundle(BUNDLE, KEYS, patch=DIFF + b"\n")
    assert "the diff that `fix --out` wrote" in no.value.remedy


def test_a_forged_fact_signed_anew_by_the_key_is_beyond_what_a_signature_shows() -> None:
    """The control of the tampering above: with the key itself, a lie verifies. Only the audit journal can tell."""
    rows = [json.loads(row) for row in BUNDLE.splitlines()]
    for row in rows:
        statement = opened(row)
        if statement["predicateType"] == TEST_RESULT:
            statement["predicate"]["result"] = "FAILED"
        resigned(row, statement)
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    assert verify_bundle(data, KEYS).predicates[TEST_RESULT]["result"] == "FAILED"


@pytest.mark.parametrize("data", [b"", b"\n", b"{}", b"[]", b"\xff", b"null\n" * 3, BUNDLE + b"{}\n", BUNDLE[:-9]])
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(NotVerified):
        verify_bundle(data, KEYS)
