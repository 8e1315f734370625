"""`hook fix` with a key: what it wrote is attested as others are; nothing is written where that cannot be."""

import json
from pathlib import Path
from typing import Any

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]
from support.git_builder import Repo

from localagent.app.evidence.task_evidence import key_ring
from localagent.app.settings import Settings
from localagent.cli.main import main
from localagent.record.attest.statement import PROVENANCE, REVIEW, TEST_RESULT
from localagent.record.audit.verify_chain import check_audit
from localagent.record.store import TaskStore

BAD = b"a = not x in y\n\n\n\n\nb = 1\n"
FIXED = b"a = x not in y\n\n\n\n\nb = 1\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    repo = Repo(tmp_path / "repo")
    monkeypatch.chdir(repo.folder)
    for name, folder in (("XDG_STATE_HOME", "state"), ("XDG_DATA_HOME", "data")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    names = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "CREDENTIALS_DIRECTORY", "LOCALAGENT_PASSPHRASE_FILE")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    return repo


def bundle() -> Path:
    (record,) = TaskStore(Settings.from_environ().state_dir).list()
    return record.dir / "attestation.intoto.jsonl"


def predicates(path: Path) -> dict[str, Any]:
    """By type, as a verifier that is not ours opens them."""
    ((key_id, public),) = key_ring(Settings.from_environ()).public_keys().items()
    key = SSlibKey.from_crypto(public, keyid=key_id)
    found = {}
    for row in path.read_bytes().splitlines():
        envelope = Envelope.from_dict(json.loads(row))
        assert envelope.verify([key], 1) == {key_id: key}
        statement = json.loads(envelope.payload)
        found[statement["predicateType"]] = statement["predicate"]
    return found


@pytest.mark.long
def test_what_it_staged_is_attested_and_the_commit_holds_it(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["key", "new"]) == 0
    repo.stage("a.py", BAD)
    repo.write("a.py", BAD + b"c = 2\n")  # unstaged, and no part of what is attested
    assert main(["hook", "fix", "--json"]) == 1
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    kept = bundle()
    assert told["attested"]["task"] == kept.parent.name
    entries = check_audit(Settings.from_environ().state_dir / "audit").entries
    assert [e.kind.value for e in entries] == [
        *("key-made", "head-signed", "task-started", "applying", "applied"),
        *("task-ended", "attested", "reported", "head-signed"),
    ]
    assert {e.data.get("task") for e in entries if e.kind.value.startswith("appl")} == {kept.parent.name}
    found = predicates(kept)
    build = found[PROVENANCE]["buildDefinition"]
    assert build["buildType"] == "urn:localagent:build-type:hook:1"
    assert build["externalParameters"]["rules"] == ["not-in"]
    assert found[PROVENANCE]["runDetails"]["builder"]["id"] == "urn:localagent:builder:hook"
    assert (found[TEST_RESULT]["result"], found[TEST_RESULT]["passedTests"]) == ("WARNED", [])
    assert [x["kind"] for x in found[REVIEW]["approvals"]] == ["applied"]
    assert main(["attest", "verify", str(kept)]) == 0
    assert main(["attest", "verify", str(kept), "--tree", "."]) == 1  # the working file has an unstaged line more
    repo.write("a.py", FIXED)
    assert main(["attest", "verify", str(kept), "--tree", "."]) == 0
    repo.git("commit", "-qm", "x")
    assert main(["attest", kept.parent.name, "--note", "HEAD", "--write"]) == 0
    assert main(["attest", "verify", "--note", "HEAD", "--repo", "."]) == 0
    capsys.readouterr()
    assert main(["show", kept.parent.name]) == 0
    shown = capsys.readouterr().out
    assert "nothing was run" in shown
    assert "(level )" not in shown
    capsys.readouterr()
    assert main(["replay", kept.parent.name]) == 1
    assert "`localagent hook fix` does it anew" in capsys.readouterr().err


@pytest.mark.long
def test_named_files_are_attested_and_the_report_says_who_made_it(repo: Repo, tmp_path: Path) -> None:
    assert main(["key", "new"]) == 0
    repo.write("b.py", BAD)
    assert main(["hook", "fix", "b.py"]) == 1
    assert main(["attest", "verify", str(bundle()), "--tree", "."]) == 0
    report = tmp_path / "report.json"
    assert main(["audit", "report", "--since", "2000-01-01", "--json", str(report)]) == 0
    (row,) = json.loads(report.read_text())["tasks"]
    assert (row["builder"], row["outcome"], row["attested"], bool(row["applied"])) == ("hook", "accepted", True, True)
    assert main(["hook", "fix", "b.py"]) == 0  # nothing to write: no task


def test_a_locked_key_ends_it_before_anything_is_written(
    repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("open sesame\n")
    secret.chmod(0o600)
    assert main(["key", "new", "--passphrase-file", str(secret)]) == 0
    repo.stage("a.py", BAD)
    capsys.readouterr()
    assert main(["hook", "fix"]) == 2
    assert "LOCALAGENT_PASSPHRASE_FILE" in capsys.readouterr().err
    assert (repo.staged("a.py"), repo.read("a.py")) == (BAD, BAD)
    assert main(["hook", "check"]) == 1
    monkeypatch.setenv("LOCALAGENT_PASSPHRASE_FILE", str(secret))
    assert main(["hook", "fix"]) == 1
    assert main(["attest", "verify", str(bundle()), "--tree", "."]) == 0


def test_what_cannot_be_written_ends_as_no_patch_and_is_not_attested(repo: Repo) -> None:
    assert main(["key", "new"]) == 0
    repo.stage("a.py", BAD)
    (repo.folder / ".git" / "index.lock").write_bytes(b"")
    assert main(["hook", "fix"]) == 1
    assert not bundle().exists()
    assert json.loads((bundle().parent / "report.json").read_text())["outcome"] != "accepted"
    assert main(["attest", bundle().parent.name]) == 1
    assert main(["audit", "verify", "--require-signed"]) == 0


def test_without_a_key_there_is_no_task(repo: Repo) -> None:
    repo.stage("a.py", BAD)
    assert main(["hook", "fix"]) == 1
    assert TaskStore(Settings.from_environ().state_dir).list() == ()
