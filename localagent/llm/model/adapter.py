"""Low-rank adapters that `train` learned here: one a model at most, its file and the record beside it.

Kept below the user's models, named by the digest of the registered file that it was learned on. It serves while it has
the size and (checked by whoever loads it) the digest on record; without a record it serves nobody. Not promised: that
it helps in tasks; the record says on what it was judged.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localagent.fs.openat import move_file, replace_file

FOLDER = "adapters"
_SCHEMA = 1
_MAX_RECORD_BYTES = 1 << 20
_DIGITS = frozenset("0123456789abcdef")


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterFile:
    """An adapter's file and what must be true of it. `about` is its card: data, settings, figures."""

    path: Path
    bytes: int
    sha256: str
    about: Mapping[str, Any]

    @property
    def repositories(self) -> frozenset[str]:
        """Names of the repositories that it was learned from or judged by."""
        told = self.about.get("repositories")
        return frozenset(str(name) for name in told) if isinstance(told, list) else frozenset()


def folder(data_dir: Path) -> Path:
    """Where adapters lie."""
    return data_dir / "models" / FOLDER


def adapter_path(data_dir: Path, model_sha256: str) -> Path:
    """The adapter of a registered model."""
    return folder(data_dir) / f"{model_sha256}.gguf"


def record_path(data_dir: Path, model_sha256: str) -> Path:
    """The record of a registered model's adapter."""
    return folder(data_dir) / f"{model_sha256}.json"


def load(data_dir: Path, model_sha256: str) -> AdapterFile | None:
    """The adapter of a registered model; None where no record can be read or its file is not there in its size."""
    path = adapter_path(data_dir, model_sha256)
    try:
        with record_path(data_dir, model_sha256).open("rb") as stream:
            found = _parsed(json.loads(stream.read(_MAX_RECORD_BYTES)), path)
        return found if path.stat().st_size == found.bytes else None
    except (OSError, ValueError, RecursionError):
        return None


def keep(made: Path, sha256: str, about: Mapping[str, Any], data_dir: Path, model_sha256: str) -> AdapterFile:
    """Put a finished file and then its record in place; an adapter that stood there is gone before. OSError if not."""
    place = folder(data_dir)
    place.mkdir(parents=True, exist_ok=True, mode=0o755)
    drop(data_dir, model_sha256)
    path = adapter_path(data_dir, model_sha256)
    made.chmod(0o644)
    size = made.stat().st_size
    move_file(made, path)
    record = {"schema": _SCHEMA, "bytes": size, "sha256": sha256, "about": dict(about)}
    data = json.dumps(record, indent=1, sort_keys=True).encode()
    replace_file(record_path(data_dir, model_sha256), data, mode=0o644)
    return AdapterFile(path=path, bytes=size, sha256=sha256, about=about)


def drop(data_dir: Path, model_sha256: str) -> tuple[Path, ...]:
    """Take a model's adapter away, its record first; what was there."""
    gone = [p for p in (record_path(data_dir, model_sha256), adapter_path(data_dir, model_sha256)) if p.is_file()]
    for path in gone:
        path.unlink()
    return tuple(gone)


def _parsed(table: Any, path: Path) -> AdapterFile:
    """ValueError for anything but a record."""
    if not isinstance(table, dict) or set(table) != {"schema", "bytes", "sha256", "about"}:
        raise ValueError("not a record of an adapter")
    size, sha256, about = table["bytes"], table["sha256"], table["about"]
    if table["schema"] != _SCHEMA or type(size) is not int or not isinstance(about, dict):
        raise ValueError("not a record of an adapter")
    if not isinstance(sha256, str) or len(sha256) != 64 or not set(sha256) <= _DIGITS:
        raise ValueError("not a record of an adapter")
    return AdapterFile(path=path, bytes=size, sha256=sha256, about=about)
