"""`audit`, `key` and `attest` from the command line down to the files, over a task that was kept and never run."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.evidence_builder import OTHER, PATCH, keep_proposals, keep_task, settings_below

from localagent.app.evidence.task_evidence import audit_log, recorded_facts
from localagent.app.settings import Settings
from localagent.cli.main import main
from localagent.domain.edit import FileChange, Patch, digest_of
from localagent.domain.paths import RepoPath
from localagent.domain.review import PatchApproval
from localagent.domain.task import Verdict
from localagent.fs.atomic_files import RecordDamaged
from localagent.record.approval_journal import patch_approvals
from localagent.record.audit.heads import signed_today
from localagent.record.audit.segments import read_signed, segments
from localagent.repo.diff.write_diff import unified_diff


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    return settings_below(tmp_path, monkeypatch)


def said(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_an_empty_journal_holds(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "verify"]) == 0
    assert "whole: 0 entries" in capsys.readouterr().out
    assert not settings.state_dir.exists()


def test_the_ways_of_writing_are_kept_for_a_replay(settings: Settings, tmp_path: Path) -> None:
    facts, _, _ = recorded_facts(settings, keep_task(settings, tmp_path / "repo"))
    assert facts["asked"]["ways"] == ["line", "span"]


def test_landing_is_on_the_record_before_and_after(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = keep_task(settings, tmp_path / "repo")
    assert main(["apply", record.id]) == 0
    assert main(["apply", record.id]) == 1
    assert main(["undo", record.id]) == 0
    out = tmp_path / "export.jsonl"
    capsys.readouterr()
    assert main(["audit", "export", "--out", str(out), "--json"]) == 0
    head = said(capsys)["head"]
    rows = [json.loads(row) for row in out.read_text().splitlines()]
    landing = ["applying", "applied", "applying", "refused", "undoing", "undone"]
    assert [row["kind"] for row in rows] == ["task-started", "task-ended", "reported", *landing]
    assert rows[6]["data"]["why"] == "AnswerIsNo"
    assert main(["audit", "verify", "--file", str(out), "--head", head]) == 0
    out.write_text(out.read_text()[:-1].rsplit("\n", 1)[0] + "\n")
    assert main(["audit", "verify", "--file", str(out), "--head", head]) == 1
    assert "no entry has the digest" in capsys.readouterr().out


def test_a_damaged_journal_stops_landing_and_is_set_aside_by_a_person(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = keep_task(settings, tmp_path / "repo")
    segment = segments(settings.state_dir / "audit")[0]
    rows = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(rows[0] + rows[1].replace(b'"exit":0', b'"exit":1') + rows[2])
    assert main(["audit", "verify", "--json"]) == 1
    assert said(capsys)["place"] == {"file": segment.name, "line": 2, "entry": 1}
    segment.write_bytes(rows[0] + rows[1])
    assert main(["apply", record.id]) == 1
    assert "1 entries are missing at the end" in capsys.readouterr().err
    assert (tmp_path / "repo" / "a.py").read_bytes() == b"a = 1\n"
    assert main(["audit", "rotate", "--set-aside"]) == 0
    assert main(["apply", record.id]) == 0
    assert main(["audit", "verify"]) == 0


def test_with_a_key_heads_are_signed_and_a_journal_written_anew_is_told(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["key", "new"]) == 0
    keep_task(settings, tmp_path / "repo")
    capsys.readouterr()
    assert main(["audit", "verify", "--json"]) == 0
    assert [h["entry"] for h in said(capsys)["signed_heads"]] == [0, 5]  # the day's first task, then its end
    assert main(["audit", "sign", "--json"]) == 0
    assert said(capsys)["entry"] == 6
    folder = settings.state_dir / "audit"
    heads = (folder / "heads.jsonl").read_bytes()
    for path in (*segments(folder), folder / "head.json"):
        path.unlink()
    with pytest.raises(RecordDamaged, match=r"signed head 3, which the key here signed|no such entry"):
        keep_task(settings, tmp_path / "repo")
    (folder / "heads.jsonl").write_bytes(heads)
    capsys.readouterr()
    assert main(["audit", "verify"]) == 1
    assert "written anew" in capsys.readouterr().out
    assert main(["audit", "rotate", "--set-aside"]) == 0
    keep_task(settings, tmp_path / "repo")
    capsys.readouterr()
    assert main(["audit", "verify", "--require-signed"]) == 0
    assert "an earlier journal, signed up to entry 6, was set aside" in capsys.readouterr().out


def test_the_first_task_of_a_day_signs_what_stood_before_it(settings: Settings, tmp_path: Path) -> None:
    assert main(["key", "new"]) == 0
    for _ in range(2):
        keep_task(settings, tmp_path / "repo")
    folder = audit_log(settings).folder
    rows = read_signed(folder).splitlines(keepends=True)
    assert len(rows) == 3  # one of the day, one of each task
    assert signed_today(folder)
    told = json.loads(rows[-1])
    payload = json.loads(base64.b64decode(told["payload"]))
    told["payload"] = base64.b64encode(json.dumps({**payload, "at": "2020" + payload["at"][4:]}).encode()).decode()
    (folder / "heads.jsonl").write_bytes(b"".join(rows[:-1]) + json.dumps(told).encode() + b"\n")
    assert not signed_today(folder)


def test_old_files_go_away_for_keeping(settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep_task(settings, tmp_path / "repo")
    assert main(["audit", "rotate"]) == 0
    assert main(["audit", "retire", "--days", "0", "--to", str(tmp_path / "kept")]) == 2
    assert main(["audit", "retire", "--days", "1", "--to", str(tmp_path / "kept")]) == 0
    assert "no journal file is that old" in capsys.readouterr().out
    first = segments(audit_log(settings).folder)[0]
    old = first.read_bytes()
    first.write_bytes(old[:-20] + b"x" + old[-19:])
    assert main(["audit", "retire", "--days", "1", "--to", str(tmp_path / "kept")]) == 1
    assert "nothing was moved" in capsys.readouterr().err


@pytest.mark.long
def test_accepted_patches_attest_themselves_and_others_do_not(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keyless = keep_task(settings, tmp_path / "repo")
    assert not (keyless.dir / "attestation.intoto.jsonl").exists()
    assert main(["attest", keyless.id]) == 1
    assert "there is no signing key" in capsys.readouterr().err
    public, diff = tmp_path / "k.pub", tmp_path / "d"
    assert main(["key", "new"]) == 0
    assert main(["key", "export", "--out", str(public)]) == 0
    diff.write_bytes(unified_diff(PATCH))
    made = str(keep_task(settings, tmp_path / "repo").dir / "attestation.intoto.jsonl")
    capsys.readouterr()
    assert main(["attest", "verify", made, "--patch", str(diff), "--key", str(public), "--json"]) == 0
    assert said(capsys)["verified"] is True
    out = str(tmp_path / "late")
    assert main(["attest", keyless.id, "--out", out]) == 0
    assert main(["attest", "verify", out]) == 0
    diff.write_bytes(b"other")
    assert main(["attest", "verify", made, "--patch", str(diff)]) == 1
    assert "the patch has the digest" in capsys.readouterr().err
    gave_up = keep_task(settings, tmp_path / "repo", Verdict.GAVE_UP)
    assert main(["attest", gave_up.id]) == 1
    assert "no accepted patch" in capsys.readouterr().err
    assert main(["key", "rotate"]) == 0
    capsys.readouterr()
    assert main(["attest", "verify", made]) == 0
    assert "was retired" in capsys.readouterr().err


def approved(settings: Settings, task: str, patch: Patch, repo: Path, *, withdraw: bool = False) -> None:
    approval = PatchApproval(
        patch=digest_of(unified_diff(patch)),
        change="sha256:" + "1" * 64,
        repo=str(repo),
        findings="x",
        policy="default",
        who="me",
        reason="why",
        at="now",
        task=task,
    )
    store = patch_approvals(settings.state_dir)
    if withdraw:
        store.withdraw(approval)
    else:
        store.approve(approval)


def review_of(bundle: Path) -> dict[str, Any]:
    rows = [json.loads(base64.b64decode(json.loads(row)["payload"])) for row in bundle.read_bytes().splitlines()]
    found: dict[str, Any] = rows[2]["predicate"]
    return found


@pytest.mark.long
def test_a_proposal_that_a_person_chose_is_attested_with_what_persons_did(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["key", "new"]) == 0
    record = keep_proposals(settings, tmp_path / "repo")
    out, diff = tmp_path / "out", tmp_path / "d"
    assert main(["attest", record.id, "--out", str(out)]) == 1
    assert "none that a person chose" in capsys.readouterr().err
    approved(settings, record.id, PATCH, tmp_path / "repo")  # of the other proposal: says nothing of this one
    approved(settings, record.id, OTHER, tmp_path / "repo")
    assert main(["apply", record.id, "--choose", "2"]) == 0
    assert main(["attest", record.id, "--out", str(out)]) == 0
    review = review_of(out)
    assert (review["outcome"], review["patch"], review["verification"]["checks"]) == (
        "chosen",
        OTHER.digest,
        {"ruff": "clean"},
    )
    assert [a["kind"] for a in review["approvals"]] == ["approved", "applied"]
    diff.write_bytes(unified_diff(OTHER))
    assert main(["attest", "verify", str(out), "--patch", str(diff), "--tree", str(tmp_path / "repo")]) == 0
    diff.write_bytes(unified_diff(PATCH))
    assert main(["attest", "verify", str(out), "--patch", str(diff)]) == 1
    assert main(["attest", record.id, "--redact", "--out", str(out)]) == 0
    assert review_of(out)["outcome"] == "chosen"
    approved(settings, record.id, OTHER, tmp_path / "repo", withdraw=True)
    assert main(["undo", record.id]) == 0
    assert main(["attest", record.id, "--out", str(out)]) == 0
    assert [a["kind"] for a in review_of(out)["approvals"]] == ["approved", "applied", "withdrawn", "undone"]
    record.save_proposal(2, PATCH)
    assert main(["attest", record.id, "--out", str(out)]) == 1
    assert "is not the proposal that was checked" in capsys.readouterr().err


def test_an_attestation_is_held_against_the_files_of_a_tree(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["key", "new"]) == 0
    repo = tmp_path / "repo"
    record = keep_task(settings, repo)
    made = str(record.dir / "attestation.intoto.jsonl")
    assert main(["attest", "verify", made]) == 0
    assert "files were not compared" in capsys.readouterr().err
    assert main(["attest", "verify", made, "--tree", str(repo)]) == 1
    assert "a.py of" in capsys.readouterr().err
    assert main(["apply", record.id]) == 0
    assert main(["attest", "verify", made, "--tree", str(repo)]) == 0
    assert "files were not compared" not in capsys.readouterr().err
    (repo / "real.py").write_bytes((repo / "a.py").read_bytes())
    (repo / "a.py").unlink()
    assert main(["attest", "verify", made, "--tree", str(repo)]) == 1
    (repo / "a.py").symlink_to("real.py")
    assert main(["attest", "verify", made, "--tree", str(repo)]) == 1
    hidden = str(tmp_path / "hidden")
    assert main(["attest", record.id, "--redact", "--out", hidden]) == 0
    assert main(["attest", "verify", hidden]) == 0
    assert main(["attest", "verify", hidden, "--tree", str(repo)]) == 1
    assert main(["attest", "verify", made, "--tree", str(tmp_path / "nowhere")]) == 2
    assert main(["attest", record.id, "--tree", str(repo)]) == 2


@pytest.mark.parametrize("name", ["evidence.json", "patch.json"])
def test_what_was_altered_since_is_not_signed(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["key", "new"]) == 0
    record = keep_task(settings, tmp_path / "repo")
    if name == "evidence.json":
        path = record.dir / name
        path.write_bytes(path.read_bytes().replace(b'"plausible":0', b'"plausible":9'))
        reason = "was altered: entry 3 of the audit journal has another digest"
    else:
        record.save_patch(Patch(changes=(FileChange(path=RepoPath("a.py"), before=b"a = 1\n", after=b"a = 3\n"),)))
        reason = "is not the patch that was accepted"
    assert main(["attest", record.id]) == 1
    assert reason in capsys.readouterr().err


def test_an_encrypted_key_is_never_asked_for_on_the_command_line(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    word = tmp_path / "word"
    word.write_bytes(b"open sesame\n")
    word.chmod(0o600)
    assert main(["key", "new", "--passphrase-file", str(word)]) == 0
    assert main(["audit", "sign"]) == 2
    assert "encrypted and no passphrase" in capsys.readouterr().err
    reading, writing = os.pipe()
    os.write(writing, b"open sesame\n")
    os.close(writing)
    assert main(["audit", "sign", "--passphrase-fd", str(reading)]) == 0
    os.close(reading)
    monkeypatch.setenv("LOCALAGENT_PASSPHRASE_FILE", str(word))
    assert main(["audit", "sign"]) == 0
    assert main(["key", "rotate", "--passphrase", "open sesame"]) == 2


def test_every_usage_fault_at_once(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attest", "20260101", "file", "--patch", "x", "--key", "y", "--json"]) == 2
    err = capsys.readouterr().err
    assert [name for name in ("FILE", "--patch", "--key", "--json") if f"{name}: only with verify" not in err] == []
    assert main(["attest", "verify", "--out", "x"]) == 2
    assert "name the file" in capsys.readouterr().err
    assert main(["audit", "verify", "--from", "3", "--to", "1", "--head", "x"]) == 2
    err = capsys.readouterr().err
    assert "before --from" in err
    assert "--head" in err


def test_an_auditors_report(settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["key", "new"]) == 0
    record = keep_task(settings, tmp_path / "repo")
    assert main(["apply", record.id]) == 0
    web, data = tmp_path / "r.html", tmp_path / "r.json"
    capsys.readouterr()
    assert main(["audit", "report", "--since", "2020-01-01", "--html", str(web), "--json", str(data)]) == 0
    assert "patches applied 1, reverted 0, refused 0, attested 1" in capsys.readouterr().out
    found = json.loads(data.read_bytes())
    assert (found["schema"], found["totals"]["tasks"], found["chain"]["signed_heads"]) == (
        "localagent/audit-report/1",
        1,
        2,
    )
    assert record.id.encode() in web.read_bytes()
    segment = segments(settings.state_dir / "audit")[0]
    segment.write_bytes(segment.read_bytes().replace(b'"exit":0', b'"exit":1'))
    assert main(["audit", "report", "--since", "2020-01-01"]) == 1
    assert main(["audit", "report", "--since", "yesterday"]) == 2
