"""Files of settings by their keys: JSON, TOML and INI, so that two of them can be held against each other."""

import configparser
import json
import tomllib
from collections.abc import Iterator
from typing import Any

from localagent.domain.paths import RepoPath


def setting_keys(path: RepoPath, source: bytes) -> dict[str, str] | None:
    """What each key is set to, by its dotted path, a list as one value; None for other files and faulty ones."""
    try:
        match path.name.rpartition(".")[2]:
            case "json":
                data = json.loads(source)
            case "toml":
                data = tomllib.loads(source.decode())
            case "cfg" | "ini":
                parser = configparser.RawConfigParser()
                parser.read_string(source.decode())
                data = {name: dict(parser[name]) for name in (parser.default_section, *parser.sections())}
            case _:
                return None
        return dict(_keys(data, "")) or None if isinstance(data, dict) else None
    except (ValueError, configparser.Error, RecursionError):
        return None


def _keys(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)
