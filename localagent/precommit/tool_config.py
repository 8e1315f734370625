"""What the project's linters are told: which of our rules they ignore, everywhere or in some files; how long lines are.

Read at the root: `pyproject.toml`, `ruff.toml`, `setup.cfg`, `tox.ini`, `.flake8`, `.pylintrc`. Not read: files that
extend others, configuration of folders below, and `select`, which may take back what a shorter `ignore` says.
"""

import configparser
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from localagent.domain.paths import RepoPath
from localagent.fs import openat
from localagent.lint.equivalents import PYLINT, rules_with_prefix

CONFIG_LIMIT_BYTES = 1 << 20
_TOML = ("pyproject.toml", "ruff.toml", ".ruff.toml")
_INI = ("setup.cfg", "tox.ini", ".flake8", ".pylintrc", "pylintrc")
_CODE = re.compile(r"[A-Z]+[0-9]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolConfig:
    """Rules ignored in files that a pattern fits; the pattern `*` fits every file. `faults`: what cannot be read.

    `longest_line`: the most characters that the strictest of the tools allows where one says so, else 0.
    """

    by_pattern: tuple[tuple[str, frozenset[str]], ...]
    longest_line: int = 0
    faults: tuple[str, ...] = ()

    def at(self, path: RepoPath) -> frozenset[str]:
        """The rules that do not run on a file."""
        return frozenset(rule for pattern, rules in self.by_pattern if _fits(pattern, path) for rule in rules)


def tool_config(root: Path) -> ToolConfig:
    """What the configuration at a repository's root says."""
    found: list[tuple[str, frozenset[str]]] = []
    lengths: list[int] = []
    faults = []
    with openat.root_directory(root) as top:
        for name in (*_TOML, *_INI):
            try:
                text = openat.read_regular(name, top, CONFIG_LIMIT_BYTES)[0].decode()
                if name in _TOML:
                    tools = _tools(name, tomllib.loads(text))
                    found += _of_toml(tools)
                    lengths += _lengths_of_toml(tools)
                else:
                    parser = configparser.RawConfigParser(strict=False)
                    parser.read_string(text)
                    found += _of_ini(parser)
                    lengths += _lengths_of_ini(parser)
            except FileNotFoundError:
                continue
            except (OSError, ValueError, RecursionError, configparser.Error) as fault:
                faults.append(f"{name} cannot be read, so what it ignores is not known: {str(fault).splitlines()[0]}")
    return ToolConfig(
        by_pattern=tuple((p, rules) for p, rules in found if rules),
        longest_line=min((n for n in lengths if n > 0), default=0),
        faults=tuple(faults),
    )


def _fits(pattern: str, path: RepoPath) -> bool:
    wanted = pattern.removeprefix("!").removeprefix("./")
    names = (path, f"/{path}", path.rpartition("/")[2])
    fits = any(fnmatchcase(name, p) for name in names for p in (wanted, f"{wanted.rstrip('/')}/*"))
    return fits is not pattern.startswith("!")


def _tools(name: str, table: Mapping[str, Any]) -> Mapping[str, Any]:
    return _table(table, "tool") if name == "pyproject.toml" else {"ruff": table}


def _lengths_of_toml(tool: Mapping[str, Any]) -> Iterator[int]:
    ruff, pylint = _table(tool, "ruff"), _table(tool, "pylint")
    style = _table(_table(ruff, "lint"), "pycodestyle")
    values = [ruff.get("line-length"), style.get("max-line-length"), _table(tool, "black").get("line-length")]
    values += [_table(pylint, part).get("max-line-length") for part in pylint]
    yield from (value for value in values if isinstance(value, int))


def _lengths_of_ini(parser: configparser.RawConfigParser) -> Iterator[int]:
    for section in parser.sections():
        values = {key.replace("_", "-"): value for key, value in parser.items(section)}
        text = values.get("max-line-length", "").split("#")[0].strip()
        if text.isdecimal():
            yield int(text)


def _of_toml(tool: Mapping[str, Any]) -> Iterator[tuple[str, frozenset[str]]]:
    ruff = _table(tool, "ruff")
    for part in (ruff, _table(ruff, "lint")):
        for key in ("ignore", "extend-ignore"):
            yield "*", rules_with_prefix(_names(part.get(key)))
        for key in ("per-file-ignores", "extend-per-file-ignores"):
            yield from ((p, rules_with_prefix(_names(codes))) for p, codes in _table(part, key).items())
    pylint = _table(tool, "pylint")
    for part in (pylint, *(value for value in pylint.values() if isinstance(value, dict))):
        yield "*", _of_pylint(_names(part.get("disable")))


def _of_ini(parser: configparser.RawConfigParser) -> Iterator[tuple[str, frozenset[str]]]:
    for section in parser.sections():
        values = {key.replace("_", "-"): value for key, value in parser.items(section)}
        if section == "flake8":
            for key in ("ignore", "extend-ignore"):
                yield "*", rules_with_prefix(_names(values.get(key)))
            for line in re.sub(r",\s*\n", ",", values.get("per-file-ignores", "")).splitlines():
                patterns, _, codes = line.partition(":")
                yield from ((p.strip(), rules_with_prefix(_CODE.findall(codes))) for p in patterns.split(","))
        elif "disable" in values:
            yield "*", _of_pylint(_names(values["disable"]))


def _of_pylint(names: Iterable[str]) -> frozenset[str]:
    return frozenset(rule for name in names for rule in PYLINT.get(name, ()))


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key)
    return value if isinstance(value, dict) else {}


def _names(value: object) -> list[str]:
    """A list of names, or a text of them with commas and comments."""
    if isinstance(value, str):
        return re.split(r"[\s,]+", re.sub(r"#.*", "", value).strip())
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
