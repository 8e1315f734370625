"""What `doctor` says of the key that signs: none, which one, and whether it can sign without a person."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from support.evidence_builder import keep_task, settings_below

from localagent.app.settings import Settings
from localagent.cli import doctor
from localagent.cli.doctor_key import key_rows
from localagent.cli.main import main
from localagent.record.attest.dsse import key_id_of
from localagent.record.attest.keys import CREDENTIAL, PASSPHRASE

SECRET = b"a phrase that nobody guesses"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    return settings_below(tmp_path, monkeypatch)


def told() -> dict[str, tuple[str, str, str]]:
    """Name to state, detail and remedy, of this moment's environment."""
    return {row.name: (row.state.value, row.detail, row.remedy) for row in key_rows(Settings.from_environ())}


def encrypted_key(tmp_path: Path) -> Path:
    phrase = tmp_path / "phrase"
    phrase.write_bytes(SECRET)
    phrase.chmod(0o600)
    assert main(["key", "new", "--passphrase-file", str(phrase)]) == 0
    return phrase


def credential(folder: Path, passphrase: bytes) -> str:
    folder.mkdir()
    private = Ed25519PrivateKey.generate()
    wrap = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    (folder / CREDENTIAL).write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, wrap))
    return key_id_of(private.public_key())


def test_without_a_key_it_says_how_to_make_one(settings: Settings) -> None:
    state, detail, remedy = told()["signing key"]
    assert (state, detail.startswith("none"), "localagent key new" in remedy) == ("absent", True, True)
    assert not settings.state_dir.exists()
    assert not settings.data_dir.exists()


def test_a_key_is_named_with_how_it_is_kept_and_what_it_signed(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["key", "new", "--json"]) == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    state, detail, _ = told()["signing key"]
    assert (state, made["id"] in detail, "not encrypted" in detail) == ("works", True, True)
    assert told()["signed head"][0] == "absent"
    keep_task(settings, tmp_path / "repo")
    assert told()["signed head"][:2][0] == "works"
    (settings.data_dir / "keys" / f"{made['id']}.pem").chmod(0o644)
    state, detail, remedy = told()["signing key"]
    assert (state, "open to others" in detail, "chmod 600" in remedy) == ("faulty", True, True)


def test_an_encrypted_key_signs_unattended_only_with_its_passphrase_at_hand(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phrase = encrypted_key(tmp_path)
    state, detail, remedy = told()["signing key"]
    assert (state, "encrypted: cannot be used unattended" in detail) == ("faulty", True)
    assert all(name in remedy for name in ("LOCALAGENT_PASSPHRASE_FILE", PASSPHRASE))
    monkeypatch.setenv("LOCALAGENT_PASSPHRASE_FILE", str(phrase))
    assert told()["signing key"][0] == "works"
    phrase.write_bytes(b"another")
    assert told()["signing key"][0] == "faulty"
    assert "passphrase is wrong" in told()["signing key"][1]


def test_what_systemd_hands_over_is_used_and_named(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = credential(tmp_path / "credentials", SECRET)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "credentials"))
    state, detail, remedy = told()["signing key"]
    assert (state, "no passphrase was given" in detail, PASSPHRASE in remedy) == ("faulty", True, True)
    (tmp_path / "credentials" / PASSPHRASE).write_bytes(SECRET + b"\n")
    state, detail, _ = told()["signing key"]
    assert (state, key in detail, CREDENTIAL in detail) == ("works", True, True)
    assert not settings.data_dir.exists()


def test_a_damaged_ring_is_told_and_nothing_breaks_off(settings: Settings) -> None:
    assert main(["key", "new"]) == 0
    (settings.data_dir / "keys" / "ring.json").write_text("{}")
    state, detail, _ = told()["signing key"]
    assert (state, "is damaged" in detail) == ("faulty", True)


@pytest.mark.long
def test_doctor_shows_it_in_its_table_and_as_json(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    (row,) = [row for row in json.loads(capsys.readouterr().out)["rows"] if row["part"] == "evidence"]
    assert (row["name"], row["state"], row["needed"]) == ("signing key", "absent", False)
    assert any("localagent key new" in line for line in doctor.table(list(key_rows(settings))))
