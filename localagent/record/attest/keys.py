"""The signing keys of one user: Ed25519, private parts in files of their own (0600), below `<data>/keys`.

One key is active; rotated ones keep their public part, so that what they signed can still be verified. A private key
that systemd hands over as a credential is used instead, and is never written. Without a passphrase, whoever reads the
file can sign: file modes are all that keeps it.
"""

import contextlib
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.atomic_files import RecordDamaged, locked_folder, read_bounded, write_private
from localagent.record.attest.dsse import Signer, key_id_of
from localagent.text.strict_json import dump, load

_SCHEMA = "localagent/keys/1"
CREDENTIAL = "localagent.key"  # a private key in PEM, in systemd's credentials directory
PASSPHRASE = "localagent.passphrase"  # noqa: S105 - a file name
_MOST_BYTES = 1 << 20
_ANOTHER = (
    "put it back from a backup; or `localagent key rotate` makes another, and what this one signed verifies as before"
)
_LOST = (
    "name the file that holds the right one (--passphrase-file, or LOCALAGENT_PASSPHRASE_FILE); where it is lost, "
    "`localagent key rotate` makes another key, and what this one signed verifies as before"
)
_FILE = "write it into a file of your own (chmod 600): --passphrase-file or LOCALAGENT_PASSPHRASE_FILE names it"
_HANDED_OVER = f"let systemd hand over the right one: LoadCredentialEncrypted={CREDENTIAL}, and {PASSPHRASE} beside it"
MOST_PASSPHRASE_BYTES = 1023  # OpenSSL takes no longer one for a private key


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyNote:
    """What is known of a key. `retired` is "" while it is the active one; `encrypted` says how its file is kept."""

    id: str
    public: str
    created: str
    encrypted: bool
    retired: str = ""


class PassphraseMissing(UsageFault):
    """A private key is encrypted, and nobody handed over its passphrase."""


_KEYS = {field.name for field in fields(KeyNote)}


class KeyRing:
    """The keys below one data directory. Creating the value touches nothing."""

    def __init__(self, data_dir: Path, credentials: Path | None = None) -> None:
        self.folder = data_dir / "keys"
        self._ring = self.folder / "ring.json"
        self._credentials = credentials

    def notes(self) -> tuple[KeyNote, ...]:
        """Every key, oldest first. RecordDamaged if the ring is not what was written."""
        try:
            data = read_bounded(self._ring, _MOST_BYTES)
        except FileNotFoundError:
            return ()
        try:
            found = load(data)
            if set(found) != {"schema", "keys"} or found["schema"] != _SCHEMA:
                raise ValueError("another schema")
            notes = tuple(_note(item) for item in found["keys"])
        except (ValueError, TypeError) as error:
            raise RecordDamaged(f"{self._ring} is damaged: {error}", remedy=self._from_backup()) from error
        if sum(not note.retired for note in notes) > 1:
            raise RecordDamaged(f"{self._ring} is damaged: two keys are active", remedy=self._from_backup())
        return notes

    def _from_backup(self) -> str:
        return (
            f"put it back from a backup; or move {self.folder} away, and `localagent key new` makes another key: what "
            "was signed so far then verifies with the public key that was exported (--key)"
        )

    def active(self) -> KeyNote | None:
        """The key that signs now, None if there is none. A credential of systemd's comes first."""
        credential = self._credential()
        if credential is not None:
            return credential
        return next((note for note in self.notes() if not note.retired), None)

    def new(self, passphrase: bytes = b"") -> KeyNote:
        """Make the first key. UsageFault if one is active: that one is rotated."""
        with self._alone():
            notes = self.notes()
            standing = next((n for n in notes if not n.retired), None)
            if standing is not None:
                raise UsageFault(
                    f"key {standing.id[:16]} is active already", remedy="`localagent key rotate` replaces it"
                )
            return self._made(notes, passphrase)

    def rotate(self, passphrase: bytes = b"") -> tuple[KeyNote, KeyNote]:
        """Retire the active key and make another; old and new. The old private part is removed."""
        with self._alone():
            notes = self.notes()
            old = next((n for n in notes if not n.retired), None)
            if old is None:
                raise UsageFault("no key is active", remedy="`localagent key new` creates one")
            retired = replace(old, retired=_now())
            new = self._made(tuple(retired if n.id == old.id else n for n in notes), passphrase)
            with contextlib.suppress(FileNotFoundError):
                self._private(old.id).unlink()
            return retired, new

    def public_keys(self) -> dict[str, Ed25519PublicKey]:
        """Every public key by id, retired ones too."""
        notes = [*self.notes()]
        credential = self._credential()
        if credential is not None:
            notes.append(credential)
        found = {note.id: parse_public(note.public.encode("ascii")) for note in notes}
        return {**self._handed_over(), **found}

    def keep_public(self, public: Ed25519PublicKey) -> None:
        """Keep the public part of a key that systemd handed over, so that what it signed can be verified without it."""
        path = self.folder / f"{key_id_of(public)}.pub"
        if key_id_of(public) in {note.id for note in self.notes()} or path.exists():
            return
        with self._alone():
            write_private(path, _pem(public).encode("ascii"))

    def _handed_over(self) -> dict[str, Ed25519PublicKey]:
        """Public parts that `keep_public` kept. RecordDamaged where a file is not the key that its name says."""
        found: dict[str, Ed25519PublicKey] = {}
        for path in sorted(self.folder.glob("*.pub")):
            try:
                key = parse_public(read_bounded(path, _MOST_BYTES))
            except ValueError as error:
                raise RecordDamaged(f"{path} is damaged: {error}") from error
            if key_id_of(key) != path.stem:
                raise RecordDamaged(f"{path} is damaged: it holds another key than its name says")
            found[path.stem] = key
        return found

    def signer(self, passphrase: bytes = b"") -> Signer | None:
        """The active key, opened; None if there is none. UsageFault where the passphrase is missing or wrong."""
        note = self.active()
        if note is None:
            return None
        credential = self._credentials / CREDENTIAL if self._credentials is not None else None
        path = credential if credential is not None and credential.exists() else self._private(note.id)
        if path != credential:
            _only_mine(path)
        private = _opened(path, passphrase or self._stored_passphrase())
        if key_id_of(private.public_key()) != note.id:
            raise RecordDamaged(f"{path} is not key {note.id[:16]}, which its name says", remedy=_ANOTHER)
        return Signer(key_id=note.id, private=private)

    def _stored_passphrase(self) -> bytes:
        if self._credentials is None:
            return b""
        try:
            return right_passphrase(read_bounded(self._credentials / PASSPHRASE, 1 << 16), str(PASSPHRASE))
        except FileNotFoundError:
            return b""

    def _credential(self) -> KeyNote | None:
        if self._credentials is None or not (self._credentials / CREDENTIAL).exists():
            return None
        public = _opened(self._credentials / CREDENTIAL, self._stored_passphrase()).public_key()
        return KeyNote(id=key_id_of(public), public=_pem(public), created="", encrypted=False)

    def _private(self, key_id: str) -> Path:
        return self.folder / f"{key_id}.pem"

    def _made(self, notes: tuple[KeyNote, ...], passphrase: bytes) -> KeyNote:
        private = Ed25519PrivateKey.generate()
        public = private.public_key()
        note = KeyNote(id=key_id_of(public), public=_pem(public), created=_now(), encrypted=bool(passphrase))
        wrap: KeySerializationEncryption = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
        write_private(self._private(note.id), private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, wrap))
        write_private(self._ring, dump({"schema": _SCHEMA, "keys": [asdict(n) for n in (*notes, note)]}, indent=2))
        return note

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        return locked_folder(self.folder, "keys", "set XDG_DATA_HOME to a directory that you may write to")


def parse_public(data: bytes) -> Ed25519PublicKey:
    """A public key in PEM. ValueError if it is none, or of another kind."""
    if data.count(b"-----BEGIN") > 1:  # the first alone would be taken, whichever was meant
        raise ValueError("more than one key: name a file that holds one")
    try:
        key = load_pem_public_key(data)
    except UnsupportedAlgorithm as error:
        raise ValueError("a public key of an unknown kind") from error
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError("a public key, but not an Ed25519 one")
    return key


def read_public(path: Path) -> Mapping[str, Ed25519PublicKey]:
    """The public key in a file, by its id. UsageFault if there is none, or more than one."""
    try:
        key = parse_public(read_bounded(path, _MOST_BYTES))
    except (FileNotFoundError, RecordDamaged, ValueError) as error:
        raise UsageFault(
            f"{path} holds no Ed25519 public key in PEM: {error}", remedy="`localagent key export` writes one"
        ) from error
    return {key_id_of(key): key}


def read_passphrase(path: Path) -> bytes:
    """A passphrase out of a file, its last newline taken off. UsageFault if there is none or anybody may read it."""
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) and path.is_file():
            raise UsageFault(f"{path}: others may read this passphrase", remedy=f"chmod 600 {path}")
        with path.open("rb") as stream:
            data = stream.read(MOST_PASSPHRASE_BYTES + 2)
    except OSError as error:
        raise UsageFault(f"{path}: the passphrase cannot be read: {error.strerror or error}", remedy=_FILE) from error
    return right_passphrase(data, str(path))


def right_passphrase(data: bytes, where: str) -> bytes:
    """A passphrase as it was read, its last newline taken off. UsageFault for none, or one that no key can have."""
    found = data.removesuffix(b"\n")
    if not found:
        raise UsageFault(f"{where}: empty: no passphrase", remedy=_FILE)
    if len(found) > MOST_PASSPHRASE_BYTES:
        raise UsageFault(
            f"{where}: too long for a passphrase: at most {MOST_PASSPHRASE_BYTES:,} bytes can open a private key",
            remedy="take a shorter one",
        )
    return found


def _only_mine(path: Path) -> None:
    try:
        seen = path.lstat()
    except FileNotFoundError as error:
        raise RecordDamaged(f"the private key {path} is missing", remedy=_ANOTHER) from error
    except OSError as error:
        raise RecordDamaged(
            f"the private key {path} cannot be read: {error.strerror or error}", remedy=_ANOTHER
        ) from error
    if not stat.S_ISREG(seen.st_mode):
        raise RecordDamaged(f"the private key {path} is not a regular file", remedy=_ANOTHER)
    if seen.st_uid not in (os.geteuid(), 0):
        raise AnswerIsNo(
            f"the private key {path} belongs to user {seen.st_uid}, who can sign as well",
            remedy="run it as that user, or `localagent key rotate`: another key, which is yours alone",
        )
    if seen.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise AnswerIsNo(
            f"the private key {path} is open to others",
            remedy=f"chmod 600 {path}, and `localagent key rotate`: who read it can sign",
        )


def _opened(path: Path, passphrase: bytes) -> Ed25519PrivateKey:
    handed_over = path.name == CREDENTIAL
    another = _HANDED_OVER if handed_over else _ANOTHER
    try:
        data = read_bounded(path, _MOST_BYTES)
        key = (
            load_pem_private_key(data, passphrase or None) if b"ENCRYPTED" in data else load_pem_private_key(data, None)
        )
    except FileNotFoundError as error:
        raise RecordDamaged(f"the private key {path} is missing", remedy=another) from error
    except TypeError as error:
        raise PassphraseMissing(
            f"the private key {path} is encrypted and no passphrase was given",
            remedy=f"let systemd hand it over beside the key: LoadCredentialEncrypted={PASSPHRASE}"
            if handed_over
            else "name a file that holds it: LOCALAGENT_PASSPHRASE_FILE, or --passphrase-file where a verb has it",
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        locked = passphrase and b"ENCRYPTED" in data
        what = "the passphrase is wrong, or the file is damaged" if locked else "it is no private key in PEM"
        raise UsageFault(
            f"the private key {path} cannot be opened: {what}", remedy=_LOST if locked and not handed_over else another
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageFault(f"{path} holds a private key, but not an Ed25519 one", remedy=another)
    return key


def _pem(public: Ed25519PublicKey) -> str:
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode("ascii")


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _note(item: object) -> KeyNote:
    if not isinstance(item, dict) or set(item) != _KEYS:
        raise ValueError("an entry that is no key")
    texts = all(isinstance(item[name], str) for name in _KEYS - {"encrypted"})
    if not texts or not isinstance(item["encrypted"], bool):
        raise ValueError("an entry that is no key")
    note = KeyNote(**item)
    if key_id_of(parse_public(note.public.encode("ascii"))) != note.id:
        raise ValueError(f"key {note.id[:16]} is not the public key beside it")
    return note
