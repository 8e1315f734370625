"""The repository's configuration of mypy without what would load its code or choose other tools: plugins above all.

A plugin is a program: it could end mypy with "nothing found". What is left only says how to judge types; of a module of
ours, the probe, it says that its error is told whatever the rest says. Not promised: that a repository judges its types
strictly, nor that errors which a plugin would have known away are not told.
"""

import configparser
import json
import tomllib
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from localagent.domain.paths import RepoPath
from localagent.text.visible_text import shortened

CONFIG_LIMIT_BYTES = 1 << 20
NAMES = ("mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg")
INI, TOML = "localagent-mypy.ini", "localagent-mypy.toml"
_TAKEN = frozenset(
    {
        "plugins", "python_executable", "custom_typeshed_dir", "custom_typing_module", "cache_dir", "junit_xml",
        "quickstart_file", "install_types", "non_interactive", "pdb", "output",
    }
)  # fmt: skip


class ConfigUnreadable(ValueError):  # noqa: N818 - named as the state it tells
    """The repository's configuration cannot be read, so nobody can say what is left without plugins."""


def config_of(
    store: Path, *, changes: Mapping[RepoPath, bytes] | None = None, probe: str = "", among: str = ""
) -> tuple[RepoPath, bytes]:
    """Path and bytes of a tree's configuration of mypy, without plugins. Unreadable if it is not right."""
    found = {name: (changes or {}).get(RepoPath(name)) or bounded_bytes(store / name) for name in NAMES}
    name, data = without_plugins({name: data for name, data in found.items() if data}, probe=probe, among=among)
    return RepoPath(name), data


def bounded_bytes(path: Path) -> bytes:
    """What a small regular file holds, b"" of anything else."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > CONFIG_LIMIT_BYTES:
        return b""
    return path.read_bytes()


def without_plugins(files: Mapping[str, bytes], *, probe: str = "", among: str = "") -> tuple[str, bytes]:
    """Name and bytes of a configuration of ours, from the file that mypy would take. Unreadable if it is not right.

    `probe` is the name of a module whose wrong assignment is told, whatever else is kept silent. `among` is that of one
    at the root that is judged with what is named to be judged, as the configuration says.
    """
    for name in NAMES:
        if name not in files:
            continue
        try:
            made = (_toml if name.endswith(".toml") else _ini)(files[name], probe, among)
        except (ValueError, RecursionError, configparser.Error) as fault:
            raise ConfigUnreadable(f"{name} cannot be read: {shortened(str(fault).splitlines()[0], 200)}") from fault
        if made is not None:
            return made
    return _ini(b"[mypy]\n", probe, among) or (INI, b"")


def _is_allowed(key: str) -> bool:
    plain = key.lower().replace("-", "_")
    return plain not in _TAKEN and not plain.endswith("_report")


def _ini(data: bytes, probe: str, among: str) -> tuple[str, bytes] | None:
    parser = configparser.RawConfigParser()
    parser.read_string(data.decode("utf-8"))
    sections = [s for s in parser.sections() if s == "mypy" or s.startswith("mypy-")]
    if "mypy" not in sections:
        return None
    made = configparser.RawConfigParser()
    for section in sections:
        made[section] = {key: value for key, value in parser.items(section) if _is_allowed(key)}
    made["mypy"] = dict(_among(made["mypy"], among))
    for pattern in _patterns(probe):
        made[f"mypy-{pattern}"] = {"ignore_errors": "False", "enable_error_code": "assignment"}
    text = StringIO()
    made.write(text)
    return INI, text.getvalue().encode()


def _toml(data: bytes, probe: str, among: str) -> tuple[str, bytes] | None:
    table = tomllib.loads(data.decode("utf-8")).get("tool", {})
    table = table.get("mypy") if isinstance(table, dict) else None
    if not isinstance(table, dict):
        return None
    table = _among(table, among)
    told = {"module": _patterns(probe), "ignore_errors": False, "enable_error_code": ["assignment"]}
    others = table.get("overrides", [])
    if probe and isinstance(others, list):
        table = {**table, "overrides": [*others, told]}
    lines = [f"{_text(key)} = {_value(value)}" for key, value in table.items() if _is_allowed(key)]
    return TOML, "\n".join(("[tool.mypy]", *lines, "")).encode()


def _among(table: Mapping[str, Any], module: str) -> dict[str, Any]:
    """A main section that has one more module judged, where it says which are."""
    key = next((key for key in ("files", "modules", "packages") if table.get(key)), "")
    if not module or not key:
        return dict(table)
    key, name = ("files", f"{module}.py") if key == "files" else ("modules", module)
    named = table.get(key, "")
    return {**table, key: [*named, name] if isinstance(named, list) else f"{named}, {name}".lstrip(", ")}


def _patterns(probe: str) -> list[str]:
    """The names that a module at the root may have; in a package, where the root is one."""
    return [f"*.{probe}", probe] if probe else []


def _value(value: Any) -> str:
    """A TOML value on one line; tables inside lose what is taken away as well."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(k)} = {_value(v)}" for k, v in value.items() if _is_allowed(k)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return _text(value) if isinstance(value, str) else str(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
