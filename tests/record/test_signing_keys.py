"""Keys: made, opened, rotated; refused where a file is open to others, damaged, or the passphrase is missing."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.atomic_files import RecordDamaged
from localagent.record.attest.keys import CREDENTIAL, PASSPHRASE, KeyRing, read_passphrase, read_public


def test_a_key_is_private_to_its_user_and_can_sign(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    assert (ring.active(), ring.signer()) == (None, None)
    note = ring.new()
    private = tmp_path / "keys" / f"{note.id}.pem"
    assert (private.stat().st_mode & 0o777, private.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    signer = ring.signer()
    assert signer is not None
    ring.public_keys()[note.id].verify(signer.private.sign(b"x"), b"x")
    with pytest.raises(UsageFault, match="active already"):
        ring.new()


def test_rotation_keeps_the_public_part_and_removes_the_private_one(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    first = ring.new()
    old, new = ring.rotate()
    assert (old.id, bool(old.retired)) == (first.id, True)
    assert ring.active() == new
    assert set(ring.public_keys()) == {old.id, new.id}
    assert not (tmp_path / "keys" / f"{old.id}.pem").exists()
    with pytest.raises(UsageFault, match="no key is active"):
        KeyRing(tmp_path / "none").rotate()


def test_an_encrypted_key_needs_its_passphrase(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    note = ring.new(b"open sesame")
    data = (tmp_path / "keys" / f"{note.id}.pem").read_bytes()
    assert b"ENCRYPTED" in data
    assert ring.signer(b"open sesame") is not None
    with pytest.raises(UsageFault, match="encrypted and no passphrase"):
        ring.signer()
    with pytest.raises(UsageFault, match="passphrase is wrong"):
        ring.signer(b"sesame")
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / PASSPHRASE).write_bytes(b"open sesame\n")
    assert KeyRing(tmp_path, credentials).signer() is not None


def test_a_credential_of_systemd_is_used_and_never_written(tmp_path: Path) -> None:
    made = KeyRing(tmp_path / "elsewhere").new()
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / CREDENTIAL).write_bytes((tmp_path / "elsewhere" / "keys" / f"{made.id}.pem").read_bytes())
    ring = KeyRing(tmp_path / "data", credentials)
    active, signer = ring.active(), ring.signer()
    assert active is not None
    assert signer is not None
    assert active.id == signer.key_id == made.id
    assert set(ring.public_keys()) == {made.id}
    assert not (tmp_path / "data").exists()


def test_a_key_file_open_to_others_is_not_used(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    note = ring.new()
    (tmp_path / "keys" / f"{note.id}.pem").chmod(0o644)
    with pytest.raises(AnswerIsNo, match="open to others"):
        ring.signer()


def test_a_ring_or_key_that_was_altered_is_not_believed(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    first, path = ring.new(), tmp_path / "keys" / "ring.json"
    whole = path.read_bytes()
    other = KeyRing(tmp_path / "other")
    stranger = other.new()
    (tmp_path / "keys" / f"{first.id}.pem").write_bytes((other.folder / f"{stranger.id}.pem").read_bytes())
    with pytest.raises(RecordDamaged, match="is not key"):
        ring.signer()
    path.write_bytes(whole.replace(first.id.encode(), stranger.id.encode()))
    with pytest.raises(RecordDamaged, match="not the public key beside it"):
        ring.notes()
    for data in (b"{}", b"[]", b"", whole[:-20], whole.replace(b'"encrypted": false', b'"encrypted": 0')):
        path.write_bytes(data)
        with pytest.raises(RecordDamaged):
            ring.notes()


def test_public_keys_of_others_are_ed25519_in_pem(tmp_path: Path) -> None:
    note = KeyRing(tmp_path).new()
    path = tmp_path / "k.pub"
    path.write_text(note.public)
    assert set(read_public(path)) == {note.id}
    rsa = generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    for data in (b"", b"nonsense", rsa, note.public.encode() * 2):
        path.write_bytes(data)
        with pytest.raises(UsageFault, match="no Ed25519 public key"):
            read_public(path)
    with pytest.raises(UsageFault):
        read_public(tmp_path / "none")


def test_a_passphrase_file_that_others_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(b"word\n")
    path.chmod(0o644)
    with pytest.raises(UsageFault, match="others may read"):
        read_passphrase(path)
    path.chmod(0o600)
    assert read_passphrase(path) == b"word"
    path.write_bytes(b"\n")
    with pytest.raises(UsageFault, match="empty"):
        read_passphrase(path)


@pytest.mark.parametrize("length", [1023, 1024, 4096])
def test_a_passphrase_is_as_long_as_a_key_can_take(tmp_path: Path, length: int) -> None:
    path = tmp_path / "passphrase"
    path.write_bytes(b"x" * length + b"\n")
    path.chmod(0o600)
    if length <= 1023:
        ring = KeyRing(tmp_path)
        ring.new(read_passphrase(path))
        assert ring.signer(read_passphrase(path)) is not None
    else:
        with pytest.raises(UsageFault, match="at most 1,023 bytes"):
            read_passphrase(path)
