"""`audit verify` over signed heads: keys that are named, known and not; exports; a recorder's own keys."""

import json
import os
from pathlib import Path

import pytest
from support.evidence_builder import keep_task, settings_below

from localagent.app.settings import Settings
from localagent.cli.main import main
from localagent.record.attest.keys import CREDENTIAL, KeyRing
from localagent.record.audit.entry import AuditKind
from localagent.record.audit.log import AuditLog


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    return settings_below(tmp_path, monkeypatch)


def exported_keys(tmp_path: Path) -> list[str]:
    """Two keys, the first of them rotated away, and a task signed by each; their public parts in files."""
    out = [tmp_path / "old.pub", tmp_path / "new.pub"]
    for path, verb in zip(out, ("new", "rotate"), strict=True):
        assert main(["key", verb]) == 0
        keep_task(Settings.from_environ(), tmp_path / "repo")
        assert main(["key", "export", "--out", str(path)]) == 0
    return [str(path) for path in out]


def test_keys_may_be_named_and_one_that_is_not_is_said(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = exported_keys(tmp_path)
    assert main(["audit", "verify"]) == 0
    assert main(["audit", "verify", "--key", old, "--key", new]) == 0
    assert main(["audit", "report", "--since", "2026-01-01", "--key", new, "--key", old]) == 0
    capsys.readouterr()
    assert main(["audit", "verify", "--key", new]) == 1
    told = capsys.readouterr().out
    assert told.startswith("unverifiable: ")
    assert "which is not known here" in told
    assert "altered" not in told
    assert main(["audit", "verify", "--key", new, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["standing"] == "unverifiable"
    page = tmp_path / "page.html"
    assert main(["audit", "report", "--since", "2026-01-01", "--key", new, "--html", str(page)]) == 1
    assert '<div class="chain unverifiable">' in page.read_text()
    assert "journal: unverifiable" in capsys.readouterr().out


def test_signed_heads_may_be_required(settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep_task(settings, tmp_path / "repo")
    assert main(["audit", "verify"]) == 0
    capsys.readouterr()
    assert main(["audit", "verify", "--require-signed"]) == 1
    assert "no head is signed by a known key" in capsys.readouterr().err
    assert main(["key", "new"]) == 0
    assert main(["audit", "sign"]) == 0
    assert main(["audit", "verify", "--require-signed"]) == 0
    (settings.state_dir / "audit" / "heads.jsonl").unlink()
    assert main(["audit", "verify"]) == 1
    assert "signed head 1, which entry 4 names, is missing" in capsys.readouterr().out


def test_an_export_can_be_held_against_the_key_elsewhere(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = exported_keys(tmp_path)
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    assert main(["audit", "export", "--out", str(whole)]) == 0
    assert main(["audit", "export", "--out", str(part), "--from", "3", "--to", "7"]) == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    verify = ["audit", "verify", "--key", old, "--key", new, "--require-signed", "--file"]
    assert (main([*verify, str(whole)]), main([*verify, str(part)])) == (0, 0)
    assert main(["audit", "verify", "--file", str(whole)]) == 1
    assert "unverifiable" in capsys.readouterr().out
    bare = tmp_path / "bare.jsonl"  # like a file that was retired
    bare.write_bytes(b"".join(r for r in whole.read_bytes().splitlines(keepends=True) if b"payloadType" not in r))
    assert (main(["audit", "verify", "--file", str(bare)]), main([*verify, str(bare)])) == (0, 1)
    capsys.readouterr()
    rows = whole.read_bytes().splitlines(keepends=True)
    for forged in (rows[:-1], [*rows[:4], *rows[5:]], [*rows[:-1], rows[-1].replace(b'"sig":"', b'"sig":"AAAA')]):
        whole.write_bytes(b"".join(forged))
        assert main(["audit", "verify", "--key", old, "--key", new, "--file", str(whole)]) == 1
        assert "altered" in capsys.readouterr().out


def test_a_state_has_keys_of_its_own(settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "recorder"
    state.mkdir()
    assert main(["key", "new", "--state", str(state)]) == 0
    assert (state / "keys").is_dir()
    assert not (settings.data_dir / "keys").exists()
    for verb in ("sign", "verify"):
        assert main(["audit", verb, "--state", str(state)]) == 0
    assert main(["audit", "report", "--since", "2026-01-01", "--state", str(state)]) == 0
    assert "signed heads 1" in capsys.readouterr().out
    assert main(["key", "list", "--state", str(tmp_path / "none")]) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="two users take root")
def test_another_s_state_is_read_and_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "recorder"
    AuditLog(state).append(AuditKind.REPORTED, {})
    os.chown(state, 47123, 47123)
    assert main(["audit", "verify", "--state", str(state)]) == 0
    for verb in (["audit", "sign"], ["audit", "rotate"], ["key", "new"]):
        assert main([*verb, "--state", str(state)]) == 2
        assert "belongs to user 47123" in capsys.readouterr().err


def test_what_a_handed_over_key_signed_is_verified_without_it(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = KeyRing(tmp_path / "made")
    note = ring.new()
    handed = tmp_path / "credentials"
    handed.mkdir()
    (handed / CREDENTIAL).write_bytes((tmp_path / "made" / "keys" / f"{note.id}.pem").read_bytes())
    AuditLog(settings.state_dir).append(AuditKind.REPORTED, {})
    with monkeypatch.context() as service:
        service.setenv("CREDENTIALS_DIRECTORY", str(handed))
        assert main(["audit", "sign"]) == 0
    assert main(["audit", "verify", "--require-signed"]) == 0
    (settings.data_dir / "keys" / f"{note.id}.pub").write_bytes(b"x")
    assert main(["audit", "verify"]) == 1
