"""Builds tiny wheels, sound ones and hostile ones, without any packaging tool."""

import base64
import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path


def encoded(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def record_of(files: Mapping[str, bytes], dist_info: str) -> bytes:
    rows = [f"{name},{encoded(data)},{len(data)}" for name, data in files.items()]
    return "\n".join([*rows, f"{dist_info}/RECORD,,", ""]).encode()


def wheel_files(
    name: str = "frob",
    version: str = "1.0",
    files: Mapping[str, bytes] | None = None,
    *,
    requires: Iterable[str] = (),
    entry_points: str = "",
) -> dict[str, bytes]:
    """The members of a sound wheel, RECORD last."""
    dist_info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {need}" for need in requires]
    held = dict(files if files is not None else {f"{name}/__init__.py": b"x = 1\n"})
    held[f"{dist_info}/METADATA"] = ("\n".join(lines) + "\n").encode()
    held[f"{dist_info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if entry_points:
        held[f"{dist_info}/entry_points.txt"] = entry_points.encode()
    held[f"{dist_info}/RECORD"] = record_of(held, dist_info)
    return held


def zipped(members: Iterable[tuple[str | zipfile.ZipInfo, bytes]]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


def write_wheel(
    folder: Path,
    name: str = "frob",
    version: str = "1.0",
    files: Mapping[str, bytes] | None = None,
    *,
    requires: Iterable[str] = (),
    entry_points: str = "",
) -> Path:
    """A sound wheel in a folder."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    members = wheel_files(name, version, files, requires=requires, entry_points=entry_points)
    path.write_bytes(zipped(members.items()))
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
