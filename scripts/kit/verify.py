"""Says whether a kit is the one its maker signed: every file by SHA-256, the list of files by Ed25519.

    python3 -I -B verify.py KIT --key KEY        KIT is a kit's folder or its .tar; KEY the maker's public key

Standard library only, one file, so that it can be kept apart from the kits it judges: a verifier that came with a
kit proves that nothing was damaged, one that came another way proves who made it. Nothing of the kit is run,
imported or unpacked. Exit codes: 0 sound, 1 not (each fault named), 2 usage.

Not promised: secrecy, and a signature in constant time: this only verifies, with public values.
"""

import argparse
import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
MAX_SUMS_BYTES = 8 << 20
MAX_SIGNATURE_BYTES = 1 << 10
MAX_FAULTS = 20
CHUNK_BYTES = 1 << 20
LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_+@!,=][A-Za-z0-9_+@!,=.-]*(?:/[A-Za-z0-9_+@!,=.-]+)*)")
SIGNED = re.compile(r"ed25519 ([0-9a-f]{64}) ([0-9a-f]{128})\n")
KEY = re.compile(r"(?:ed25519[: ])?([0-9a-f]{64})")

# RFC 8032, section 5.1: the curve's prime, the base point's order, the constant d, a square root of -1
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]  # extended homogeneous coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, x*y = T/Z


class NotSound(Exception):  # noqa: N818 - an answer, no error
    """The kit is not what its maker signed; `faults` names everything that was found, at most MAX_FAULTS."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


@dataclass(frozen=True)
class Sound:
    """A kit whose every byte is the maker's: `files` are their SHA-256 by path, `key` the maker's public key.

    `sums` is the digest of the list itself, which names this kit among all others.
    """

    folder: Path
    files: dict[str, str]
    key: str
    sums: str


def add(p: Point, q: Point) -> Point:
    """The sum of two points; complete, so it doubles too."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(scalar: int, point: Point) -> Point:
    """`scalar` times `point`."""
    out: Point = (0, 1, 1, 0)
    while scalar > 0:
        if scalar & 1:
            out = add(out, point)
        point = add(point, point)
        scalar >>= 1
    return out


def recovered(y: int, sign: int) -> Point | None:
    """The point with this y and this lowest bit of x; None where there is none."""
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if (x & 1) != sign else x
    return x, y, 1, x * y % P


def encoded(point: Point) -> bytes:
    """The 32 bytes of a point."""
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def base() -> Point:
    """The point that every key is a multiple of: y is 4/5, x even."""
    point = recovered(4 * pow(5, P - 2, P) % P, 0)
    assert point is not None
    return point


def signed_by(key: bytes, message: bytes, signature: bytes) -> bool:
    """True if and only if `signature` is an Ed25519 signature of `message` by `key`, all in canonical form."""
    if len(key) != 32 or len(signature) != 64:
        return False
    number = int.from_bytes(key, "little")
    public = recovered(number & (1 << 255) - 1, number >> 255)
    s = int.from_bytes(signature[32:], "little")
    if public is None or s >= ORDER:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    negative = (P - public[0], public[1], public[2], P - public[3])
    return encoded(add(times(s, base()), times(h, negative))) == signature[:32]


def read_key(text: str) -> str:
    """The public key as 64 hexadecimal digits, from those digits or from a file that holds them. NotSound otherwise."""
    found = KEY.fullmatch(text.strip())
    if found is None:
        try:
            found = KEY.fullmatch(regular(Path(text), 1 << 10).decode("ascii").strip())
        except (NotSound, ValueError) as fault:
            raise NotSound(
                f"--key {text}: neither 64 hexadecimal digits nor a file that holds them ({fault})"
            ) from None
    if found is None:
        raise NotSound(f"--key {text}: the file does not hold a public key (ed25519 and 64 hexadecimal digits)")
    return found[1]


def opened(path: Path) -> int:
    """A descriptor of a regular file, no link followed, nothing waited for. NotSound otherwise."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as fault:
        raise NotSound(f"{path}: cannot be read: {fault.strerror or fault}") from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise NotSound(f"{path}: not a regular file")
    return number


def regular(path: Path, limit_bytes: int) -> bytes:
    """The bytes of a small regular file. NotSound where it is none or larger."""
    with open(opened(path), "rb") as stream:
        data = stream.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise NotSound(f"{path}: larger than {limit_bytes} bytes")
    return data


def digest(path: Path) -> str:
    """The SHA-256 of a regular file."""
    whole = hashlib.sha256()
    with open(opened(path), "rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            whole.update(chunk)
    return whole.hexdigest()


def signed_sums(data: bytes, signature: bytes, key: str) -> dict[str, str]:
    """SHA-256 by path from a signed list. NotSound when the signature, the key or the list is not right."""
    found = SIGNED.fullmatch(signature.decode("ascii", "replace"))
    if found is None:
        raise NotSound(f"{SIGNATURE}: not a signature (ed25519, a public key, 128 hexadecimal digits)")
    if found[1] != key:
        raise NotSound(f"{SIGNATURE}: signed by the key {found[1]}, not by {key}")
    if not signed_by(bytes.fromhex(key), data, bytes.fromhex(found[2])):
        raise NotSound(f"{SUMS}: is not what {key} signed")
    sums: dict[str, str] = {}
    for line in data.decode("ascii", "replace").splitlines():
        row = LINE.fullmatch(line)
        if row is None or ".." in row[2].split("/") or "." in row[2].split("/") or row[2] in sums:
            raise NotSound(f"{SUMS}: a line that cannot be: {line[:120]!r}")
        sums[row[2]] = row[1]
    return sums


def walked(folder: Path) -> Iterator[tuple[str, str]]:
    """(path below `folder`, what is wrong with it or "") of everything there, folders left out unless empty."""
    for place, folders, files in os.walk(folder):
        here = Path(place)
        for name in sorted([*folders, *files]):
            path = here / name
            mode = path.lstat().st_mode
            below = path.relative_to(folder).as_posix()
            if stat.S_ISDIR(mode):
                if not any(path.iterdir()):
                    yield below, "an empty folder, which no kit has"
            else:
                yield below, "" if stat.S_ISREG(mode) else "neither a file nor a folder"


def checked(folder: Path, key: str) -> Sound:
    """The kit in `folder`, if every byte in it is what the maker with this key signed. NotSound otherwise."""
    if folder.is_symlink() or not folder.is_dir():
        raise NotSound(f"{folder}: no folder of a kit")
    listed = regular(folder / SUMS, MAX_SUMS_BYTES)
    sums = signed_sums(listed, regular(folder / SIGNATURE, MAX_SIGNATURE_BYTES), key)
    try:
        found = dict(walked(folder))
    except OSError as fault:
        raise NotSound(f"{folder}: cannot be read: {fault}") from None
    faults = [f"{path!a}: {why}" for path, why in found.items() if why]  # names may hold what terminals obey
    faults += [f"{path}: missing" for path in sums if path not in found]
    faults += [f"{path!a}: not part of the kit" for path in found if path not in sums and path not in (SUMS, SIGNATURE)]
    for path, expected in sums.items():
        if found.get(path) == "" and len(faults) < MAX_FAULTS:
            try:
                faults += [f"{path}: altered"] if digest(folder / path) != expected else []
            except NotSound as fault:
                faults += fault.faults
    if faults:
        raise NotSound(*faults[:MAX_FAULTS])
    return Sound(folder=folder, files=sums, key=key, sums=hashlib.sha256(listed).hexdigest())


def checked_archive(archive: Path, key: str) -> str:
    """The SHA-256 of a kit's .tar that its maker signed in the files beside it. NotSound otherwise."""
    lists = [archive.with_name(f"{archive.name}.{name}") for name in (SUMS, SIGNATURE)]
    sums = signed_sums(regular(lists[0], MAX_SUMS_BYTES), regular(lists[1], MAX_SIGNATURE_BYTES), key)
    if set(sums) != {archive.name}:
        raise NotSound(f"{lists[0]}: is not about {archive.name}")
    if digest(archive) != sums[archive.name]:
        raise NotSound(f"{archive}: altered")
    return sums[archive.name]


def main() -> int:
    """Entry point of the verifier as a program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kit", type=Path, help="a kit's folder, or its .tar before it is unpacked")
    parser.add_argument("--key", required=True, help="the maker's public key: 64 hexadecimal digits, or a file of them")
    args = parser.parse_args()
    try:
        key = read_key(args.key)
        what = checked_archive(args.kit, key) if args.kit.is_file() else f"{len(checked(args.kit, key).files)} files"
    except NotSound as no:
        for fault in no.faults:
            print(f"verify: {fault}", file=sys.stderr)
        print(f"verify: {args.kit} is refused: do not run anything of it; fetch it again", file=sys.stderr)
        return 1
    print(f"verify: {args.kit} is what {key} signed ({what})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
