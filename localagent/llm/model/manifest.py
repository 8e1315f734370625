"""A model's manifest: one small TOML file, parsed strictly. It describes a file; it proves nothing about it."""

import dataclasses
import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localagent.errors import UsageFault

SCHEMA = 1
WRITING = "span"
_MAX_BYTES = 64 << 10


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSource:
    """Where the file came from, as far as known."""

    package: str = ""
    version: str = ""
    package_sha256: str = ""
    member: str = ""
    upstream: str = ""
    base_model: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mender:
    """The adapter with which a model mends (`llm/process/child.py`): a file beside the manifest."""

    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelManifest:
    """One model. `file` is a bare name, looked for in the user's models and beside the manifest.

    `writing` names the ways in which it writes edits, joined by `+`, as measured.
    """

    name: str
    file: str
    bytes: int
    sha256: str
    licence: str
    context_tokens: int
    dialect: str
    quantization: str
    default: bool
    origin: ModelSource
    writing: str = WRITING
    mender: Mender | None = None


_TYPES: dict[str, type] = {
    "name": str, "file": str, "bytes": int, "sha256": str, "licence": str, "context_tokens": int, "dialect": str,
    "quantization": str, "default": bool, "writing": str,
}  # fmt: skip
_SHAPES = {
    "name": re.compile(r"[a-z0-9][a-z0-9._-]{0,63}"),
    "file": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.gguf"),
    "sha256": re.compile(r"[0-9a-f]{64}"),
    "writing": re.compile(r"[a-z]{1,16}(\+[a-z]{1,16}){0,8}"),
}


_MENDER_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.mender")


def load_manifest(path: Path) -> ModelManifest:
    """Reads one manifest. UsageFault with every fault of the file at once."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            raise UsageFault(f"{path}: larger than {_MAX_BYTES} bytes")
        table = tomllib.loads(raw.decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise UsageFault(f"{path}: {fault}", remedy="restore the manifest, or remove it") from None
    origin, mender = table.pop("origin", {}), table.pop("mender", None)
    table.setdefault("writing", WRITING)  # manifests of before models were measured have none
    faults = [*_faults(table), *_origin_faults(origin), *([] if mender is None else _mender_faults(mender))]
    if faults:
        raise UsageFault([f"{path}: {fault}" for fault in faults], remedy="restore the manifest, or remove it")
    del table["schema"]
    return ModelManifest(origin=ModelSource(**origin), mender=None if mender is None else Mender(**mender), **table)


def manifest_text(manifest: ModelManifest) -> str:
    """The TOML of a manifest; `load_manifest` reads back an equal one."""
    lines = [f"schema = {SCHEMA}"]
    lines += [f"{key} = {_toml(getattr(manifest, key))}" for key in _TYPES]
    lines += ["", "[origin]"]
    lines += [
        f"{field.name} = {_toml(getattr(manifest.origin, field.name))}"
        for field in dataclasses.fields(ModelSource)
        if getattr(manifest.origin, field.name)
    ]
    if manifest.mender is not None:
        lines += ["", "[mender]"]
        lines += [f"{f.name} = {_toml(getattr(manifest.mender, f.name))}" for f in dataclasses.fields(Mender)]
    return "\n".join(lines) + "\n"


def _faults(table: dict[str, Any]) -> list[str]:
    faults = [f"unknown key {key!r}" for key in table if key not in _TYPES and key != "schema"]
    if table.get("schema") != SCHEMA:
        faults.append(f"schema is {table.get('schema')!r}, not {SCHEMA}")
    for key, kind in _TYPES.items():
        value = table.get(key)
        if type(value) is not kind:
            faults.append(f"{key} must be given as {kind.__name__}")
        elif isinstance(value, int) and value < 0:
            faults.append(f"{key} is negative")
        elif key in _SHAPES and not _SHAPES[key].fullmatch(str(value)):
            faults.append(f"{key} is malformed: {value!r}")
    return faults


def _mender_faults(mender: object) -> list[str]:
    names = [field.name for field in dataclasses.fields(Mender)]
    if not isinstance(mender, dict) or set(mender) != set(names):
        return [f"mender must be a table of {', '.join(names)}"]
    faults = [
        f"mender.{key} must be given as {_TYPES[key].__name__}" for key in names if type(mender[key]) is not _TYPES[key]
    ]
    if not faults and mender["bytes"] < 0:
        faults.append("mender.bytes is negative")
    shapes = {"file": _MENDER_FILE, "sha256": _SHAPES["sha256"]}
    return faults or [
        f"mender.{key} is malformed: {mender[key]!r}"
        for key, shape in shapes.items()
        if not shape.fullmatch(mender[key])
    ]


def _origin_faults(origin: object) -> list[str]:
    if not isinstance(origin, dict):
        return ["origin must be a table"]
    known = {field.name for field in dataclasses.fields(ModelSource)}
    faults = [f"unknown key origin.{key}" for key in origin if key not in known]
    return faults + [f"origin.{key} must be text" for key, value in origin.items() if not isinstance(value, str)]


def _toml(value: str | int | bool) -> str:
    """ASCII only; lone surrogates (from undecodable file names) and astral characters become `?`."""
    if isinstance(value, str):
        return json.dumps("".join(c if ord(c) < 0xD800 else "?" for c in value)).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else str(value)
