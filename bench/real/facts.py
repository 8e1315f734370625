"""The facts of real bug fixes: which commit, which tests, which packages. Never any code of theirs.

Not promised: that a fact still reproduces on another interpreter than the one named in README.md; `run.py --self-check`
says so for the machine it runs on.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

HERE = Path(__file__).resolve().parent
FACTS = HERE / "facts.toml"

_SHA = re.compile(r"[0-9a-f]{40}")
_PINNED = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


class FactsError(Exception):
    """The facts file is wrong; carries every fault found."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(faults))


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """One bug fix of a public project.

    `test_files` of the fix commit are laid over the parent commit; `tests` are the pytest arguments of
    the repair; `fail_to_pass` are the tests (`module.Class::name` as junit has them) that the fix turns.
    `requires` are pinned requirements; `distribution` and `version` make the metadata of an editable install whose
    import root is `import_root` and whose entry points are `entry_points` (the text of an `entry_points.txt`).
    `generated` are files that a build of the project writes and git ignores.
    """

    name: str
    repository: str
    licence: str
    fix: str
    parent: str
    test_files: tuple[str, ...]
    tests: tuple[str, ...]
    fail_to_pass: tuple[str, ...]
    requires: tuple[str, ...]
    distribution: str
    version: str
    import_root: str = "."
    entry_points: str = ""
    generated: Mapping[str, str] = field(default_factory=dict)

    @property
    def project(self) -> str:
        """The repository's bare name."""
        return self.repository.rsplit("/", 1)[-1]


_TEXT = ("name", "repository", "licence", "fix", "parent", "distribution", "version")
_LISTS = ("test_files", "tests", "fail_to_pass", "requires")
_OPTIONAL = ("import_root", "entry_points", "generated")


def _inside(path: str) -> bool:
    pure = PurePosixPath(path)
    return bool(path) and not pure.is_absolute() and ".." not in pure.parts


def _faults_of(row: Mapping[str, Any], where: str) -> list[str]:
    faults = [
        f"{where}: {key} must be a non-empty text" for key in _TEXT if not isinstance(row.get(key), str) or not row[key]
    ]
    for key in _LISTS:
        value = row.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(v, str) and v for v in value):
            faults.append(f"{where}: {key} must be a non-empty list of texts")
    faults += [f"{where}: unknown key {key}" for key in row if key not in (*_TEXT, *_LISTS, *_OPTIONAL)]
    if faults:
        return faults
    faults += [f"{where}: {key} must be a full commit id" for key in ("fix", "parent") if not _SHA.fullmatch(row[key])]
    faults += [f"{where}: not pinned: {r}" for r in row["requires"] if not _PINNED.fullmatch(r)]
    paths = [*row["test_files"], *row.get("generated", {})]
    faults += [f"{where}: leaves the repository: {p}" for p in paths if not _inside(p)]
    if not _NAME.fullmatch(row["name"]):
        faults.append(f"{where}: name must be lower-case letters, digits and hyphens")
    if row["repository"].count("/") != 1:
        faults.append(f"{where}: repository must be owner/name")
    return faults


def load(path: Path = FACTS) -> tuple[Fact, ...]:
    """Every fact of a file; FactsError names every fault of it together."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FactsError([f"{path}: {error}"]) from error
    shared: Mapping[str, Any] = data.get("projects", {})
    rows: list[Mapping[str, Any]] = data.get("fact", [])
    merged = [{**shared.get(row.get("repository", ""), {}), **row} for row in rows]
    faults = [f for n, row in enumerate(merged) for f in _faults_of(row, f"fact {row.get('name', n)}")]
    names = [row.get("name") for row in merged]
    faults += [f"{name}: named twice" for name in sorted({str(n) for n in names if names.count(n) > 1})]
    if not rows:
        faults.append(f"{path}: no facts")
    if faults:
        raise FactsError(faults)
    return tuple(
        Fact(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})  # type: ignore[arg-type]
        for row in merged
    )
