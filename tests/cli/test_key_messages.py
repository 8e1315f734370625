"""`key`, and what signs with it, where the key is missing, locked, damaged or another's: told, with what to do."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.evidence_builder import settings_below

from localagent.app.settings import Settings
from localagent.cli.main import main
from localagent.record.attest.keys import KeyRing


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    return settings_below(tmp_path, monkeypatch)


def secret(path: Path, text: str = "open sesame\n", mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def private(settings: Settings) -> Path:
    active = KeyRing(settings.data_dir).active()
    assert active is not None
    return settings.data_dir / "keys" / f"{active.id}.pem"


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(list(words))
    said = capsys.readouterr()
    return code, said.out + said.err


@pytest.mark.parametrize("words", [("key", "export"), ("key", "rotate"), ("audit", "sign")])
def test_without_a_key_each_verb_names_the_one_that_makes_it(
    words: tuple[str, ...], settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = told(capsys, *words)
    assert code in (1, 2)
    assert "`localagent key new` creates one" in said


def gone(path: Path) -> None:
    path.unlink()


def linked(path: Path) -> None:
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def junk(path: Path) -> None:
    path.write_text("junk\n")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def readable(path: Path) -> None:
    path.chmod(0o640)


@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        (gone, "is missing"),
        (linked, "is not a regular file"),
        (pipe, "is not a regular file"),
        (junk, "no private key in PEM"),
        (readable, "is open to others"),
    ],
)
def test_a_key_that_cannot_be_used_names_the_way_out_and_rotating_is_one(
    alter: Callable[[Path], None],
    reason: str,
    settings: Settings,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["key", "new"]) == 0
    assert main(["audit", "sign"]) == 0
    alter(private(settings))
    code, said = told(capsys, "audit", "sign")
    assert code in (1, 2)
    assert reason in said
    assert "`localagent key rotate`" in said
    assert main(["key", "rotate"]) == 0
    assert main(["audit", "sign"]) == 0
    assert main(["audit", "verify", "--require-signed"]) == 0


def test_a_key_of_another_user_is_not_used(
    settings: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["key", "new"]) == 0
    owner = private(settings).stat().st_uid
    monkeypatch.setattr("localagent.record.attest.keys.os.geteuid", lambda: owner + 1)
    if owner == 0:  # root's are believed: chown away from it
        os.chown(private(settings), 12345, -1)
        monkeypatch.setattr("localagent.record.attest.keys.os.geteuid", lambda: 0)
    code, said = told(capsys, "audit", "sign")
    assert (code, "belongs to user" in said, "who can sign as well" in said) == (1, True, True)


def test_a_locked_key_says_how_it_is_opened(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = secret(tmp_path / "right")
    assert main(["key", "new", "--passphrase-file", right]) == 0
    code, said = told(capsys, "audit", "sign")
    assert (code, "is encrypted and no passphrase was given" in said) == (2, True)
    assert "LOCALAGENT_PASSPHRASE_FILE, or --passphrase-file" in said
    code, said = told(capsys, "audit", "sign", "--passphrase-file", secret(tmp_path / "wrong", "open rye\n"))
    assert (code, "the passphrase is wrong" in said, "where it is lost" in said) == (2, True, True)
    private(settings).write_text("junk\n")
    code, said = told(capsys, "audit", "sign", "--passphrase-file", right)
    assert (code, "no private key in PEM" in said, "passphrase is wrong" in said) == (2, True, False)
    monkeypatch.setenv("LOCALAGENT_PASSPHRASE_FILE", str(tmp_path / "none"))
    code, said = told(capsys, "audit", "sign")
    assert (code, "the passphrase cannot be read" in said, "chmod 600" in said) == (2, True, True)


def test_a_passphrase_that_others_read_or_that_is_none_is_told(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, reason in (
        (secret(tmp_path / "open", mode=0o644), "others may read this passphrase"),
        (secret(tmp_path / "empty", "\n"), "empty: no passphrase"),
        (secret(tmp_path / "long", "x" * 3000), "too long for a passphrase"),
        (str(tmp_path), "cannot be read: Is a directory"),
    ):
        code, said = told(capsys, "key", "new", "--passphrase-file", path)
        assert (code, reason in said, "what to do" in said) == (2, True, True), said
    assert not (settings.data_dir / "keys" / "ring.json").exists()


@pytest.mark.parametrize("ring", [b"", b"{", b"[" * 100_000, b"null", b'{"schema":"localagent/keys/1","keys":[1]}'])
def test_a_damaged_ring_names_both_ways_out(
    ring: bytes, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["key", "new"]) == 0
    (settings.data_dir / "keys" / "ring.json").write_bytes(ring)
    for words in (("key", "list"), ("key", "new"), ("key", "export"), ("key", "rotate"), ("audit", "sign")):
        code, said = told(capsys, *words)
        assert (code, "ring.json is damaged" in said) == (1, True), words
        assert "from a backup" in said
        assert "--key" in said
