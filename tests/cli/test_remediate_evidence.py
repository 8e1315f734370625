"""A remediation as a task: on the record from start to end, attested for others, and ended where it breaks off."""

import json
from pathlib import Path
from typing import Any

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]
from support.evidence_builder import settings_below
from support.fix_builder import home
from support.sarif_builder import log, result, run

from localagent.app.evidence.task_evidence import audit_log
from localagent.app.settings import Settings
from localagent.cli.main import main
from localagent.domain.edit import digest_of
from localagent.record.attest.keys import KeyRing
from localagent.record.attest.statement import PROVENANCE, REVIEW, TEST_RESULT
from localagent.record.audit.verify_chain import check_audit
from localagent.record.store import TaskStore

BAD = "def f(a, b):\n    if len(a) == None:\n        return 1\n    return not a in b\n"
GOOD = "def f(a, b):\n    if len(a) is None:\n        return 1\n    return a not in b\n"
LOG = log(run(result("E711", line=2), result("E713", line=4), tool="ruff"))
TESTS = "from a import f\n\n\ndef test_f():\n    assert f([], [1])\n"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    found = settings_below(tmp_path, monkeypatch)
    (tmp_path / "repo" / "a.py").write_text(BAD)
    (tmp_path / "in.sarif").write_bytes(LOG)
    return found


def remediate(tmp_path: Path, *arguments: str) -> int:
    return main(["remediate", "--sarif", str(tmp_path / "in.sarif"), "--repo", str(tmp_path / "repo"), *arguments])


def kinds(settings: Settings) -> list[str]:
    return [e.kind.value for e in check_audit(audit_log(settings).folder).entries]


def foreign(bundle: Path, ring: KeyRing) -> dict[str, dict[str, Any]]:
    """Predicates by type, as a verifier that is not ours opens them."""
    ((key_id, public),) = ring.public_keys().items()
    key = SSlibKey.from_crypto(public, keyid=key_id)
    found = {}
    for row in bundle.read_bytes().splitlines():
        envelope = Envelope.from_dict(json.loads(row))
        assert envelope.verify([key], 1) == {key_id: key}
        statement = json.loads(envelope.payload)
        found[statement["predicateType"]] = statement["predicate"]
    return found


def test_a_remediation_is_a_task_that_is_attested(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["key", "new"]) == 0
    out = tmp_path / "p.diff"
    assert remediate(tmp_path, "--out", str(out), "--apply") == 0
    (record,) = TaskStore(settings.state_dir).list()
    assert kinds(settings) == [
        *("key-made", "head-signed", "task-started", "task-ended", "attested"),
        *("applying", "applied", "reported", "head-signed"),
    ]
    kept = record.dir / "attestation.intoto.jsonl"
    verify = ["attest", "verify", str(kept), "--patch", str(out), "--tree", str(tmp_path / "repo")]
    assert main(verify) == 0
    found = foreign(kept, KeyRing(settings.data_dir))
    made = found[PROVENANCE]["buildDefinition"]
    assert made["buildType"] == "urn:localagent:build-type:remediate:1"
    assert found[PROVENANCE]["runDetails"]["builder"]["id"] == "urn:localagent:builder:remediate"
    assert made["externalParameters"]["findings"] == [digest_of(LOG)]
    names = {d["name"]: d for d in made["resolvedDependencies"]}
    assert names["before:a.py"]["digest"] == {"sha256": digest_of(BAD.encode()).removeprefix("sha256:")}
    assert not {"snapshot", "jail", "python"} & set(names)  # nothing ran, so no tree was copied and no jail opened
    assert (found[TEST_RESULT]["result"], found[TEST_RESULT]["passedTests"]) == ("WARNED", [])
    assert found[REVIEW]["outcome"] == "accepted"
    (tmp_path / "repo" / "a.py").write_text(GOOD + "\n")
    assert main(verify) == 1
    capsys.readouterr()
    again = tmp_path / "again.jsonl"
    assert main(["attest", record.id, "--out", str(again)]) == 0
    assert [x["kind"] for x in foreign(again, KeyRing(settings.data_dir))[REVIEW]["approvals"]] == ["applied"]
    assert main(["audit", "verify", "--require-signed"]) == 0
    assert main(["audit", "report", "--since", "2000-01-01", "--json", str(tmp_path / "report.json")]) == 0
    (row,) = json.loads((tmp_path / "report.json").read_text())["tasks"]
    assert (row["builder"], row["outcome"], row["attested"], bool(row["applied"])) == (
        "remediate",
        "accepted",
        True,
        True,
    )
    capsys.readouterr()
    assert main(["replay", record.id]) == 1
    assert "was made by remediate" in capsys.readouterr().err


@pytest.mark.long
def test_what_tests_said_is_attested_with_tree_and_jail() -> None:
    with home({"a.py": BAD, "test_a.py": TESTS}) as place:
        (place.root / "in.sarif").write_bytes(LOG)
        assert place.run("key", "new").code == 0
        assert place.run("remediate", "--sarif", "in.sarif", "--repo", str(place.repo), "--test", "test_a.py").code == 0
        (folder,) = place.tasks.iterdir()
        found = foreign(folder / "attestation.intoto.jsonl", KeyRing(place.root / "data" / "localagent"))
        assert (found[TEST_RESULT]["result"], found[TEST_RESULT]["passedTests"]) == ("PASSED", ["test_a.py::test_f"])
        names = {d["name"] for d in found[PROVENANCE]["buildDefinition"]["resolvedDependencies"]}
        assert {"snapshot", "jail", "python", "pytest", "before:a.py"} <= names
        assert found[REVIEW]["verification"]["passToPass"] == 1
        assert found[REVIEW]["verification"]["jail"]["level"].startswith("L")


def test_nothing_repaired_is_on_the_record_and_not_attested(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["key", "new"]) == 0
    (tmp_path / "in.sarif").write_bytes(log(run(result("S102", line=1), tool="ruff")))
    assert remediate(tmp_path, "--apply") == 1
    assert kinds(settings)[2:] == ["task-started", "task-ended", "reported", "head-signed"]
    (record,) = TaskStore(settings.state_dir).list()
    assert (record.result_json() or {})["outcome"] == "gave-up"
    capsys.readouterr()
    assert main(["attest", record.id]) == 1
    assert "no accepted patch" in capsys.readouterr().err


@pytest.mark.long
def test_what_breaks_off_has_an_end(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "repo" / "test_a.py").write_text("def test_x():\n    assert False\n")
    assert remediate(tmp_path, "--test", "test_a.py") == 1
    assert kinds(settings) == ["task-started", "task-ended", "reported"]
    (record,) = TaskStore(settings.state_dir).list()
    report = record.result_json() or {}
    assert (report["outcome"], "none can vouch" in report["reason"]) == ("no-tests", True)


def test_a_key_that_cannot_be_opened_ends_it_before_anything(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    phrase = tmp_path / "phrase"
    phrase.write_text("secret")
    phrase.chmod(0o600)
    assert main(["key", "new", "--passphrase-file", str(phrase)]) == 0
    assert remediate(tmp_path, "--apply") == 2
    assert "is encrypted and no passphrase was given" in capsys.readouterr().err
    assert (tmp_path / "repo" / "a.py").read_text() == BAD
    assert kinds(settings) == ["key-made"]


def test_a_damaged_journal_keeps_it_from_beginning(settings: Settings, tmp_path: Path) -> None:
    assert remediate(tmp_path) == 0
    (settings.state_dir / "audit" / "head.json").write_text("{}")
    assert remediate(tmp_path, "--apply") == 1
    assert (tmp_path / "repo" / "a.py").read_text() == BAD
    assert len(TaskStore(settings.state_dir).list()) == 1


@pytest.mark.long
def test_critical_files_are_written_only_where_a_person_approved(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "repo" / "setup.py").write_text(BAD)
    (tmp_path / "in.sarif").write_bytes(log(run(result("E711", "setup.py", 2), tool="ruff")))
    assert remediate(tmp_path, "--apply") == 1
    assert "localagent approve" in capsys.readouterr().err
    assert (tmp_path / "repo" / "setup.py").read_text() == BAD
    (record,) = TaskStore(settings.state_dir).list()
    assert main(["approve", record.id, "--reason", "read it"]) == 0
    assert main(["apply", record.id]) == 0
    assert "len(a) is None" in (tmp_path / "repo" / "setup.py").read_text()


@pytest.mark.long
def test_its_attestation_can_be_had_without_names(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["key", "new"]) == 0
    assert remediate(tmp_path, "--out", str(tmp_path / "p.diff")) == 0
    (record,) = TaskStore(settings.state_dir).list()
    out = tmp_path / "redacted.jsonl"
    assert main(["attest", record.id, "--redact", "--out", str(out)]) == 0
    assert main(["attest", "verify", str(out), "--patch", str(tmp_path / "p.diff")]) == 0
    found = json.dumps(foreign(out, KeyRing(settings.data_dir)))
    assert "a.py" not in found
    assert "build-type:remediate" in found
    assert digest_of(LOG) in found
    assert main(["audit", "export", "--redact", "--out", str(tmp_path / "e.jsonl")]) == 0
    assert '"builder":"remediate"' in (tmp_path / "e.jsonl").read_text()


def test_a_file_called_as_one_of_our_resources_is_not_taken_for_it(settings: Settings, tmp_path: Path) -> None:
    assert main(["key", "new"]) == 0
    (tmp_path / "repo" / "snapshot").mkdir()
    (tmp_path / "repo" / "snapshot" / "policy.py").write_text(BAD)
    (tmp_path / "in.sarif").write_bytes(log(run(result("E711", "snapshot/policy.py", 2), tool="ruff")))
    assert remediate(tmp_path) == 0
    (record,) = TaskStore(settings.state_dir).list()
    found = foreign(record.dir / "attestation.intoto.jsonl", KeyRing(settings.data_dir))
    names = [d["name"] for d in found[PROVENANCE]["buildDefinition"]["resolvedDependencies"]]
    assert len(names) == len(set(names))
    assert "before:snapshot/policy.py" in names
