"""localagent's own pytest, lent to an environment that has none, so that the unittest tests of a project can run.

Shown in the jail at a place of its own, which the worker puts last on its path: whatever the project has goes before.
Only where all that pytest needs on the project's Python is here and pure Python. Not promised: that code under test
which imports one of these packages by itself, and does not have it, fails as it would without them.
"""

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from localagent.domain.jailspec import Bind
from localagent.repo.python_environment import read_environment

LENT_INSIDE = "/run/la/_la_lent"
_ENTRY = re.compile(r"[A-Za-z_]\w*(?:\.py)?|.+\.dist-info")
_FOLDER = re.compile(r"python(3\.\d+)")


def lent_pytest(python: str) -> tuple[Bind, ...]:
    """What shows our pytest in a jail for an interpreter; nothing where it has its own, or ours cannot run there."""
    environment = read_environment(python)
    versions = {found[1] for site in environment.sites for part in site.parts if (found := _FOLDER.fullmatch(part))}
    if environment.ours or "pytest" in environment.distributions or len(versions) != 1:
        return ()
    try:
        needed = _needed("pytest", versions.pop())
    except (PackageNotFoundError, InvalidRequirement, InvalidSpecifier):
        return ()
    places = {entry: Path(str(one.locate_file(entry))) for one in needed for entry in _tops(one)}
    return tuple(Bind(source=str(at.resolve()), target=f"{LENT_INSIDE}/{entry}") for entry, at in places.items())


def _needed(name: str, version: str) -> tuple[Distribution, ...]:
    """A distribution and all that it needs on a Python. PackageNotFoundError: one is not here, or does not fit."""
    marks = {"python_version": version, "python_full_version": f"{version}.0", "extra": ""}
    found: dict[str, Distribution] = {}
    wanted = [name]
    while wanted:
        one = wanted.pop()
        if one in found:
            continue
        found[one] = held = distribution(one)
        asked = ",".join(held.metadata.get_all("Requires-Python") or ())
        pure = "Root-Is-Purelib: true" in (held.read_text("WHEEL") or "")
        if not pure or not SpecifierSet(asked).contains(f"{version}.0"):
            raise PackageNotFoundError(one)
        needs = map(Requirement, held.requires or ())
        wanted += [need.name for need in needs if need.marker is None or need.marker.evaluate(marks)]
    return tuple(found.values())


def _tops(held: Distribution) -> Iterator[str]:
    """The modules and packages at the top of a distribution, and its metadata, which pytest asks for."""
    firsts = dict.fromkeys(file.parts[0] for file in held.files or ())
    return (first for first in firsts if _ENTRY.fullmatch(first) and first != "__pycache__")
