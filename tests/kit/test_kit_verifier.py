"""The verifier that travels with kits: Ed25519 as RFC 8032 and `cryptography` know it, and all damage named."""

import os
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kit_builder import MAKER, PUBLIC, copied, make_kit, script

verify = script("verify")
RFC = [  # RFC 8032, section 7.1: public key, message, signature
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]


@pytest.mark.parametrize(("key", "message", "signature"), RFC)
def test_the_vectors_of_the_rfc(key: str, message: str, signature: str) -> None:
    assert verify.signed_by(bytes.fromhex(key), bytes.fromhex(message), bytes.fromhex(signature))
    assert not verify.signed_by(bytes.fromhex(key), bytes.fromhex(message) + b"x", bytes.fromhex(signature))


def theirs(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(seed=st.binary(min_size=32, max_size=32), message=st.binary(max_size=200), place=st.integers(0, 511))
def test_agrees_with_cryptography(seed: bytes, message: bytes, place: int) -> None:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    key, signature = private.public_key().public_bytes_raw(), private.sign(message)
    assert verify.signed_by(key, message, signature)
    flipped = bytearray(signature)
    flipped[place // 8] ^= 1 << place % 8
    assert verify.signed_by(key, message, bytes(flipped)) == theirs(key, message, bytes(flipped)) is False
    other = bytearray(key)
    other[place // 16] ^= 1 << place % 8
    assert verify.signed_by(bytes(other), message, signature) == theirs(bytes(other), message, signature) is False


def test_a_signature_has_one_form() -> None:
    """s + order verifies in careless implementations: a second signature of the same words."""
    signature = MAKER.sign(b"words")
    s = int.from_bytes(signature[32:], "little") + verify.ORDER
    assert not verify.signed_by(bytes.fromhex(PUBLIC), b"words", signature[:32] + s.to_bytes(32, "little"))
    y = (2**255 - 19 + 1).to_bytes(32, "little")
    assert not verify.signed_by(y, b"words", signature)
    assert not verify.signed_by(b"", b"words", signature)
    assert not verify.signed_by(bytes.fromhex(PUBLIC), b"words", signature + b"\0")


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_kit(tmp_path_factory.mktemp("maker") / "kit", "1.0")


def refusal(kit: Path, key: str = PUBLIC) -> str:
    with pytest.raises(verify.NotSound) as no:
        verify.checked(kit, key)
    return "\n".join(no.value.faults)


def test_a_sound_kit(kit: Path) -> None:
    sound = verify.checked(kit, PUBLIC)
    assert set(sound.files) == {p.relative_to(kit).as_posix() for p in kit.rglob("*") if p.is_file()} - {
        "SHA256SUMS",
        "SHA256SUMS.sig",
    }


def test_each_damage_is_named(kit: Path, tmp_path: Path) -> None:
    spoiled = copied(kit, tmp_path / "kit")
    (spoiled / "docs" / "kit.md").write_text("something else")
    (spoiled / "models" / "m.gguf").unlink()
    (spoiled / "wheels" / "extra.whl").write_bytes(b"")
    (spoiled / "policies" / "default.toml").unlink()
    (spoiled / "policies" / "default.toml").symlink_to("/etc/passwd")
    (spoiled / "empty").mkdir()
    os.mkfifo(spoiled / "locks" / "fifo")
    found = refusal(spoiled)
    for words in (
        "docs/kit.md: altered",
        "models/m.gguf: missing",
        "'wheels/extra.whl': not part of the kit",
        "'policies/default.toml': neither a file nor a folder",
        "'empty': an empty folder",
        "'locks/fifo': neither a file nor a folder",
    ):
        assert words in found


@pytest.mark.parametrize("name", ["a\nverify: kit is sound", "\x1b[2J", "caf\udce9"])
def test_names_that_speak_to_terminals_are_escaped(kit: Path, tmp_path: Path, name: str) -> None:
    spoiled = copied(kit, tmp_path / "kit")
    (spoiled / name).symlink_to("/")
    lines = refusal(spoiled).split("\n")
    assert [line.rpartition(": ")[2] for line in lines] == ["neither a file nor a folder", "not part of the kit"]
    assert all(line.isascii() and line.isprintable() for line in lines)


def test_another_makers_kit_is_refused(kit: Path, tmp_path: Path) -> None:
    stranger = Ed25519PrivateKey.generate()
    other = make_kit(tmp_path / "other", "1.0", key=stranger)
    assert "not by" in refusal(other)
    spoiled = copied(kit, tmp_path / "kit")
    text = (other / "SHA256SUMS.sig").read_text().replace(stranger.public_key().public_bytes_raw().hex(), PUBLIC)
    (spoiled / "SHA256SUMS.sig").write_text(text)
    assert f"SHA256SUMS: is not what {PUBLIC} signed" in refusal(spoiled)


@pytest.mark.parametrize(
    "line", ["../x", "/etc/passwd", "a/../b", "a//b", "./a", "-rf", "a\\nb", "", "a b", "docs/kit.md"]
)
def test_a_signed_list_cannot_name_what_lies_outside(kit: Path, tmp_path: Path, line: str) -> None:
    spoiled = copied(kit, tmp_path / "kit")
    data = (spoiled / "SHA256SUMS").read_bytes() + f"{'0' * 64}  {line}\n".encode()
    (spoiled / "SHA256SUMS").write_bytes(data)
    (spoiled / "SHA256SUMS.sig").write_text(f"ed25519 {PUBLIC} {MAKER.sign(data).hex()}\n")
    assert "a line that cannot be" in refusal(spoiled)


def test_keys_are_read_strictly(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"ed25519 {PUBLIC}\n")
    assert verify.read_key(str(tmp_path / "key")) == verify.read_key(PUBLIC) == PUBLIC
    for bad in ("", "0" * 63, str(tmp_path / "none"), str(tmp_path), "/dev/zero"):
        with pytest.raises(verify.NotSound):
            verify.read_key(bad)


def test_an_archive_is_judged_before_it_is_unpacked(tmp_path: Path) -> None:
    tar = tmp_path / "kit.tar"
    tar.write_bytes(b"any bytes")
    script("kit_seal").signed_list(tmp_path / "kit.tar.SHA256SUMS", tmp_path, ["kit.tar"], MAKER)
    assert verify.checked_archive(tar, PUBLIC)
    tar.write_bytes(b"any Bytes")
    with pytest.raises(verify.NotSound, match="altered"):
        verify.checked_archive(tar, PUBLIC)
    tar.rename(tmp_path / "other.tar")
    for end in ("SHA256SUMS", "SHA256SUMS.sig"):
        (tmp_path / f"kit.tar.{end}").rename(tmp_path / f"other.tar.{end}")
    with pytest.raises(verify.NotSound, match="is not about other"):
        verify.checked_archive(tmp_path / "other.tar", PUBLIC)
