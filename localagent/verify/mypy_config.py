"""The repository's configuration of mypy without what would load its code or choose other tools: plugins above all.

A plugin is a program: it could end mypy with "nothing found". What is left only says how to judge types. Not promised:
that a repository judges its types strictly, nor that errors which a plugin would have known away are not told.
"""

import configparser
import json
import tomllib
from collections.abc import Mapping
from io import StringIO
from typing import Any

INI, TOML = "localagent-mypy.ini", "localagent-mypy.toml"
_TAKEN = frozenset(
    {
        "plugins", "python_executable", "custom_typeshed_dir", "custom_typing_module", "cache_dir", "junit_xml",
        "quickstart_file", "install_types", "non_interactive", "pdb", "output",
    }
)  # fmt: skip


class Unreadable(ValueError):  # noqa: N818 - named as the state it tells
    """The repository's configuration cannot be read, so nobody can say what is left without plugins."""


def without_plugins(files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """Name and bytes of a configuration of ours, from the file that mypy would take. Unreadable if it is not right."""
    for name in ("mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"):
        if name not in files:
            continue
        try:
            made = _toml(files[name]) if name.endswith(".toml") else _ini(files[name])
        except (ValueError, RecursionError, configparser.Error) as fault:
            raise Unreadable(f"{name} cannot be read: {str(fault).splitlines()[0][:200]}") from fault
        if made is not None:
            return made
    return INI, b"[mypy]\n"


def _kept(key: str) -> bool:
    plain = key.lower().replace("-", "_")
    return plain not in _TAKEN and not plain.endswith("_report")


def _ini(data: bytes) -> tuple[str, bytes] | None:
    parser = configparser.RawConfigParser()
    parser.read_string(data.decode("utf-8"))
    sections = [s for s in parser.sections() if s == "mypy" or s.startswith("mypy-")]
    if "mypy" not in sections:
        return None
    made = configparser.RawConfigParser()
    for section in sections:
        made[section] = {key: value for key, value in parser.items(section) if _kept(key)}
    text = StringIO()
    made.write(text)
    return INI, text.getvalue().encode()


def _toml(data: bytes) -> tuple[str, bytes] | None:
    table = tomllib.loads(data.decode("utf-8")).get("tool", {})
    table = table.get("mypy") if isinstance(table, dict) else None
    if not isinstance(table, dict):
        return None
    lines = [f"{_text(key)} = {_value(value)}" for key, value in table.items() if _kept(key)]
    return TOML, "\n".join(("[tool.mypy]", *lines, "")).encode()


def _value(value: Any) -> str:
    """A TOML value on one line; tables inside lose what is taken away as well."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(k)} = {_value(v)}" for k, v in value.items() if _kept(k)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return _text(value) if isinstance(value, str) else str(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
