"""Puts a kit's programs in and signs it: every file by SHA-256 in one list, the list by the maker's Ed25519 key.

Not promised: that the key is safe. It lies unencrypted in a file of its owner's, like the key of a server.
"""

import hashlib
import os
import shutil
import tarfile
from pathlib import Path

from bootstrap import ROOT, SetupError, say
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PROGRAMS = ROOT / "scripts" / "kit"
SCRIPTS = ("install", "upgrade", "verify", "rollback", "uninstall")
NEIGHBOURS = (  # of install.py, which holds their digests
    "verify.py",
    "places.py",
    "placing.py",
    "taking.py",
    "units.py",
    "system.py",
    "building.py",
    "versions.py",
)


def seal(kit: Path, key: Ed25519PrivateKey) -> str:
    """Adds the programs and the signed list of all files. Answers the public key, in hexadecimal."""
    program = kit / "program"
    program.mkdir()
    for name in NEIGHBOURS:
        shutil.copyfile(PROGRAMS / name, program / name)
    seals = ",".join(f"{name}={hashlib.sha256((program / name).read_bytes()).hexdigest()}" for name in NEIGHBOURS)
    text = (PROGRAMS / "install.py").read_text(encoding="utf-8")
    (program / "install.py").write_text(text.replace("@NEIGHBOURS@", seals, 1), encoding="utf-8")
    shutil.copyfile(PROGRAMS / "localagent-kit.sh", program / "localagent-kit")
    (program / "localagent-kit").chmod(0o755)
    for name in SCRIPTS:
        shutil.copyfile(PROGRAMS / f"{name}.sh", kit / name)
        (kit / name).chmod(0o755)
    names = sorted(path.relative_to(kit).as_posix() for path in kit.rglob("*") if path.is_file())
    return signed_list(kit / "SHA256SUMS", kit, names, key)


def signed_list(target: Path, folder: Path, names: list[str], key: Ed25519PrivateKey) -> str:
    """Writes SHA256SUMS and its signature. Answers the public key, in hexadecimal."""
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    data = "".join(lines).encode("ascii")
    public = key.public_key().public_bytes_raw().hex()
    target.write_bytes(data)
    target.with_name(target.name + ".sig").write_text(f"ed25519 {public} {key.sign(data).hex()}\n", encoding="ascii")
    return public


def packed(kit: Path, key: Ed25519PrivateKey, when: int) -> Path:
    """The kit as one .tar of that time, with a signed list of its own beside it, and the verifier, to go apart."""
    target = kit.with_name(kit.name + ".tar")

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = when
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in [kit, *sorted(kit.rglob("*"))]:
            tar.add(path, arcname=path.relative_to(kit.parent).as_posix(), recursive=False, filter=plain)
    signed_list(target.with_name(target.name + ".SHA256SUMS"), target.parent, [target.name], key)
    shutil.copyfile(PROGRAMS / "verify.py", kit.with_name("verify.py"))
    return target


def maker_key(path: Path) -> Ed25519PrivateKey:
    """The maker's key out of an unencrypted PEM file (PKCS #8), made there once if the file is missing."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:  # noqa: PTH123
            stream.write(Ed25519PrivateKey.generate().private_bytes(*form))
        say(f"made the maker's key: {path}; keep it, and keep it from others")
    if path.stat().st_mode & 0o077:
        raise SetupError(f"{path} can be read by others: chmod 600 it")
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError) as fault:
        raise SetupError(f"{path}: not an unencrypted private key in PEM: {fault}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SetupError(f"{path}: not an Ed25519 key")
    return key
