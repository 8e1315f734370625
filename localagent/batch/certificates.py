"""The certificates of a cluster: an authority of its own, and one certificate for each role, in a new folder.

What Dask is to run with lies beside them.

Not promised: that a role can do less than another. Whoever holds a key that the authority signed is of the cluster.
"""

import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from localagent.batch.cluster_settings import FILE_NAME, TEXT
from localagent.errors import UsageFault
from localagent.fs.openat import write_new
from localagent.text.visible_text import shortened

MAX_DAYS = 825
_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")
_SKEW = timedelta(minutes=5)
AUTHORITY = "ca"


class CertificateRole(StrEnum):
    """Who a certificate is for."""

    SCHEDULER = "scheduler"
    WORKER = "worker"
    CLIENT = "client"


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyPair:
    """Where a certificate and its key lie."""

    certificate: Path
    key: Path


def pair_of(folder: Path, role: CertificateRole) -> KeyPair:
    """The files of a role."""
    return KeyPair(certificate=folder / f"{role.value}.pem", key=folder / f"{role.value}.key")


def make_certificates(folder: Path, hosts: Sequence[str], days: int) -> list[Path]:
    """A new authority and the three roles' certificates; keys for their owner alone. UsageFault lists all faults."""
    faults = [f"--host: {host!r} is no name and no address of a machine" for host in hosts if not _is_host(host)]
    if not 1 <= days <= MAX_DAYS:
        faults.append(f"--days: from 1 to {MAX_DAYS}, not {days}")
    try:
        if any(folder.iterdir()):
            faults.append(f"{folder} is not empty, and no certificate is written over")
    except FileNotFoundError:
        pass
    except OSError as error:
        faults.append(f"{folder}: {error.strerror or error}")
    if faults:
        raise UsageFault(faults, remedy="`localagent batch certs --help` names the arguments")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _made(folder, hosts, days)
    except OSError as error:
        raise UsageFault(f"{folder}: {error.strerror or error}") from error


def faults_of(folder: Path, role: CertificateRole, now: datetime | None = None) -> list[str]:
    """What is wrong with the files that a role needs: absent, readable for others, run out, of another authority."""
    pair, authority = pair_of(folder, role), folder / f"{AUTHORITY}.pem"
    faults = [f"{path} is not a file" for path in (authority, pair.certificate, pair.key) if not path.is_file()]
    if faults:
        return faults
    if pair.key.stat().st_mode & 0o077:
        faults.append(f"{pair.key} may be read by others: chmod 600")
    try:
        signed, signer = (x509.load_pem_x509_certificate(p.read_bytes()) for p in (pair.certificate, authority))
        signed.verify_directly_issued_by(signer)
        key = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
        if key.public_key() != signed.public_key():
            faults.append(f"{pair.key} is not the key of {pair.certificate}")
        now = now or datetime.now(UTC)
        ends = min(signed.not_valid_after_utc, signer.not_valid_after_utc)
        if now > ends:
            faults.append(f"{pair.certificate} ran out on {ends:%Y-%m-%d}: make new ones")
    except Exception as error:  # noqa: BLE001 - whatever the library says of a file that is no certificate
        faults.append(
            shortened(f"{pair.certificate} is no certificate of {authority}: {type(error).__name__}: {error}", 300)
        )
    return faults


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _HOST.fullmatch(host) is not None
    return True


def _made(folder: Path, hosts: Sequence[str], days: int) -> list[Path]:
    began = datetime.now(UTC) - _SKEW
    ends = began + _SKEW + timedelta(days=days)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"localagent batch {os.urandom(6).hex()}")])
    authority = (
        _builder(name, name, key.public_key(), began, ends)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    written = _write(folder, AUTHORITY, authority, key)
    for role in CertificateRole:
        own = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"localagent batch {role.value}")])
        names = [_alternative(host) for host in hosts] or [x509.DNSName("localhost")]
        signed = (
            _builder(subject, name, own.public_key(), began, ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]),
                critical=False,  # every role of Dask listens and connects
            )
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()),
                critical=False,
            )
            .sign(key, hashes.SHA256())
        )
        written += _write(folder, role.value, signed, own)
    return [*written, _new(folder / FILE_NAME, TEXT.encode("ascii"), 0o644)]


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, began: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _write(folder: Path, name: str, made: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> list[Path]:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return [
        _new(folder / f"{name}.key", private, 0o600),
        _new(folder / f"{name}.pem", made.public_bytes(serialization.Encoding.PEM), 0o644),
    ]


def _new(path: Path, data: bytes, mode: int) -> Path:
    write_new(path, data, mode=mode)
    return path
