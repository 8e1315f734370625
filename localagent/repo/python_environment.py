"""What an interpreter's environment holds, by the names of its files; nothing of it is run.

Not promised: what a start-up file (`sitecustomize`, the code of a `.pth`) adds.
"""

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from localagent.fs.bounded_read import matches_below, read_below

_MOST_BYTES = 1 << 20
_FINDER_FOLDER = re.compile(r"'[\w.]+': '(/[^']+)'")


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonEnvironment:
    """`distributions`: normalized name -> version; `outside`: what its `.pth` files add, by the name of the file."""

    python: str
    ours: bool
    made_by_uv: bool
    distributions: Mapping[str, str]
    outside: tuple[tuple[str, Path], ...]
    sites: tuple[Path, ...] = ()

    def install(self, arguments: Sequence[str]) -> str:
        """The command that brings something into the project's environment; never into localagent's own."""
        told = " ".join(map(shlex.quote, arguments))
        if self.ours:
            return f"python3 -m venv .venv && .venv/bin/python -m pip install pytest {told}"
        if "pip" in self.distributions:
            return f"{shlex.quote(self.python)} -m pip install {told}"
        if self.made_by_uv:
            return f"uv pip install --python {shlex.quote(self.python)} {told}"
        python = shlex.quote(self.python)
        return f"{python} -m ensurepip && {python} -m pip install {told}"


def read_environment(python: str) -> PythonEnvironment:
    """The environment of an interpreter."""
    prefix = Path(python).parent.parent
    sites = [*prefix.glob("lib*/python3*/site-packages"), *prefix.glob("lib*/python3*/dist-packages")]
    config = _text(prefix, "pyvenv.cfg")
    if re.search(r"^include-system-site-packages\s*=\s*true", config, re.MULTILINE | re.IGNORECASE):
        home = re.search(r"^home\s*=\s*(/.+)$", config, re.MULTILINE)
        sites += Path(home[1].strip()).parent.glob("lib*/python3*/site-packages") if home else ()
    return PythonEnvironment(
        python=python,
        ours=prefix.resolve() == Path(sys.prefix).resolve(),
        made_by_uv=re.search(r"^uv\s*=", config, re.MULTILINE) is not None,
        distributions={
            canonicalize_name(name): version
            for site in sites
            for folder in site.glob("*.dist-info")
            for name, _, version in [folder.name.removesuffix(".dist-info").partition("-")]
        },
        outside=tuple(found for site in sites for found in _outside(site)),
        sites=tuple(sites),
    )


def _outside(site: Path) -> list[tuple[str, Path]]:
    """Folders that editable installs and other `.pth` files of a site add, or map packages to."""
    found = [
        (name, Path(line.strip()))
        for name in matches_below(site, "*.pth")
        for line in _text(site, name).splitlines()
        if line.startswith("/")
    ]
    finders = matches_below(site, "__editable__*finder.py")
    return found + [(name, Path(at).parent) for name in finders for at in _FINDER_FOLDER.findall(_text(site, name))]


def _text(folder: Path, name: str) -> str:
    try:
        return read_below(folder, name, _MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""  # the most environments do not have every kind of file


def installed_modules(python: str) -> frozenset[str]:
    """Top-level modules that an interpreter's environment has, by the names of files and folders."""
    environment = read_environment(python)
    folders = [*environment.sites, *(at for _, at in environment.outside)]
    names = (entry.name.partition(".")[0] for folder in folders if folder.is_dir() for entry in folder.iterdir())
    return frozenset(name for name in names if name.isidentifier())
