"""DSSE envelopes with Ed25519: sign, and verify against given public keys.

What was signed are the payload's bytes and its type; nothing of a payload is believed, nor parsed, before that.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from localagent.domain.edit import digest_of
from localagent.errors import AnswerIsNo
from localagent.text.visible_text import one_line

_MOST_SIGNATURES = 16


class NotVerified(AnswerIsNo):
    """An envelope or what it says does not hold; the message says what exactly."""


class KeyUnknown(NotVerified):
    """Nobody who is known signed it: whether it was altered cannot be said. `key_ids` are whose it says it is."""

    def __init__(self, key_ids: str) -> None:
        super().__init__(
            f"signed by a key that is not known: {key_ids}",
            remedy="name the maker's public key with --key, if you trust it",
        )
        self.key_ids = f"key {key_ids}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Signer:
    """A private key that may be used now."""

    key_id: str
    private: Ed25519PrivateKey


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedPayload:
    """A payload whose signature holds, and the id of the key that made it."""

    payload: bytes
    key_id: str


def key_id_of(public: Ed25519PublicKey) -> str:
    """SHA-256 of the public key (DER, SubjectPublicKeyInfo), as hex."""
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return digest_of(der).removeprefix("sha256:")


def encoded(payload_type: str, payload: bytes) -> bytes:
    """The pre-authentication encoding: the bytes that are signed."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(signer: Signer, payload_type: str, payload: bytes) -> dict[str, Any]:
    """An envelope as JSON values."""
    signature = signer.private.sign(encoded(payload_type, payload))
    return {
        "payload": base64.b64encode(payload).decode("ascii"),
        "payloadType": payload_type,
        "signatures": [{"keyid": signer.key_id, "sig": base64.b64encode(signature).decode("ascii")}],
    }


def open_envelope(found: object, payload_type: str, keys: Mapping[str, Ed25519PublicKey]) -> VerifiedPayload:
    """The payload, if one of `keys` (by id) signed it as that type, and none wrongly. NotVerified with the reason."""
    if not isinstance(found, dict) or set(found) != {"payload", "payloadType", "signatures"}:
        raise NotVerified("not a DSSE envelope: exactly payload, payloadType and signatures are wanted")
    if found["payloadType"] != payload_type:
        told = one_line(repr(found["payloadType"]), 200)
        raise NotVerified(f"the payload's type is {told}, expected {payload_type!r}")
    payload = _base64(found["payload"], "the payload")
    signatures = found["signatures"]
    if not isinstance(signatures, list) or not 0 < len(signatures) <= _MOST_SIGNATURES:
        raise NotVerified("it carries no signature" if not signatures else "its signatures are no list of a few")
    data = encoded(payload_type, payload)
    signed = [_signature(signature) for signature in signatures]
    known = [(key_id, raw) for key_id, raw in signed if key_id in keys]
    for key_id, raw in known:  # all of them: beside one that holds, one that does not is an alteration too
        try:
            keys[key_id].verify(raw, data)
        except InvalidSignature:
            raise NotVerified(
                f"the signature of key {key_id[:16]} does not fit what is signed: payload or signature was altered"
            ) from None
    if known:
        return VerifiedPayload(payload=payload, key_id=known[0][0])
    raise KeyUnknown(", ".join(one_line(key_id, 64) for key_id, _ in signed))


def _signature(found: object) -> tuple[str, bytes]:
    """The key's id, "" where none is named, and the bytes."""
    if not isinstance(found, dict) or not set(found) <= {"keyid", "sig"} or "sig" not in found:
        raise NotVerified("a signature is not keyid and sig")
    key_id = found.get("keyid", "")
    if not isinstance(key_id, str):
        raise NotVerified("a signature is not keyid and sig: its keyid is no text")
    return key_id, _base64(found["sig"], "a signature")


def _base64(value: object, what: str) -> bytes:
    try:
        if isinstance(value, str):
            data = base64.b64decode(value, validate=True)
            if base64.b64encode(data).decode("ascii") == value:
                return data
    except (ValueError, binascii.Error):
        pass
    raise NotVerified(f"{what} is not base64")
