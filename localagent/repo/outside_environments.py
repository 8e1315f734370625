"""Environments that tools keep for a project: found by the rules of their names; nothing of them is run.

A file of the project says which tool it uses, and for conda and pyenv a bare name; where the environments lie is said
by the user's own surroundings alone. So a repository can name no folder, only one of the environments of the user.
"""

import base64
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.fs.bounded_read import read_below
from localagent.repo.discover import repository_root
from localagent.text.visible_text import shortened

_MOST_BYTES = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*")
_RUNS_TESTS = re.compile(r"py\d|pypy|tests?\b", re.IGNORECASE)
_CONDA_ROOTS = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda", "opt/miniconda3")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolEnvironments:
    """What a tool's environments of a project were looked for as: `found` are interpreters, the best first."""

    tool: str
    searched: str
    found: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Surroundings:
    repo: Path
    home: Path
    variables: Mapping[str, str]

    def folder(self, variable: str, *otherwise: str) -> Path:
        """What a variable names, or a folder below the home."""
        return self.named(variable) or self.home.joinpath(*otherwise)

    def named(self, variable: str) -> Path | None:
        """The folder that a variable names."""
        value = Path(self.variables.get(variable, ""))
        return value if value.is_absolute() else None

    def text(self, name: str) -> str:
        """A file of the repository; "" where there is none."""
        try:
            return read_below(self.repo, name, _MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""

    def has(self, *names: str) -> bool:
        """Whether one of some files lies at the top of the repository."""
        return any((self.repo / name).is_file() for name in names)

    def workspaces(self) -> Iterator[Path]:
        """Folders above, in the same git repository, that are roots of a workspace of uv's: it has one environment."""
        top = repository_root(self.repo)
        for up in self.repo.parents:
            if not up.is_relative_to(top):
                return
            if _Surroundings(repo=up, home=self.home, variables=self.variables).uses(r"uv\.workspace"):
                yield up

    def uses(self, tool: str) -> bool:
        """Whether pyproject.toml has a table of a tool."""
        return re.search(rf"^\[+tool\.{tool}[].]", self.text("pyproject.toml"), re.MULTILINE) is not None


def outside_environments(repo: Path, home: Path, variables: Mapping[str, str]) -> tuple[ToolEnvironments, ...]:
    """What each tool that a project uses keeps for it outside its tree."""
    here = _Surroundings(repo=Path(os.path.realpath(repo)), home=home, variables=variables)
    return tuple(looked for tool in _TOOLS if (looked := tool(here)) is not None)


def outside_python(repo: Path, home: Path, variables: Mapping[str, str]) -> tuple[str, str] | None:
    """The interpreter that a tool keeps outside the tree for a project, and the tool's name."""
    looked = outside_environments(repo, home, variables)
    return next(((str(one.found[0]), one.tool) for one in looked if one.found), None)


def shim_target(python: Path, repo: Path, home: Path, variables: Mapping[str, str]) -> Path:
    """The interpreter behind one of pyenv's shims, by the versions that the project, or else the user, names."""
    here = _Surroundings(repo=repo, home=home, variables=variables)
    root = here.folder("PYENV_ROOT", ".pyenv")
    if python.parent != root / "shims":
        return python
    try:
        wanted = here.text(".python-version") or read_below(root, "version", _MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return python
    return next(_pyenv_versions(root, wanted), python)


def _uv(here: _Surroundings) -> ToolEnvironments | None:
    root = next(here.workspaces(), None)
    named = here.variables.get("UV_PROJECT_ENVIRONMENT", "" if root is None else ".venv")
    if not named or (root is None and not (here.has("uv.lock") or here.uses("uv"))):
        return None
    folder = (root or here.repo) / named
    return ToolEnvironments(tool="uv", searched=str(folder), found=_pythons([folder]))


def _poetry(here: _Surroundings) -> ToolEnvironments | None:
    if not (here.has("poetry.lock", "poetry.toml") or here.uses("poetry")):
        return None
    cache = here.folder("POETRY_CACHE_DIR", *_cache(here), "pypoetry")
    folder = here.folder("POETRY_VIRTUALENVS_PATH", str(cache / "virtualenvs"))
    digest = _digest(hashlib.sha256(os.path.normcase(here.repo).encode()).digest())
    return _matching("poetry", folder, f"*-{digest}-py*")


def _pdm(here: _Surroundings) -> ToolEnvironments | None:
    if not (here.has("pdm.lock", "pdm.toml") or here.uses("pdm")):
        return None
    folder = here.folder("PDM_VENV_LOCATION", *_data(here), "pdm", "venvs")
    digest = _digest(hashlib.md5(here.repo.as_posix().encode(), usedforsecurity=False).digest())
    return _matching("pdm", folder, f"{_literal(here.repo.name)}-{digest}-*")


def _hatch(here: _Surroundings) -> ToolEnvironments | None:
    if not (here.has("hatch.toml") or here.uses("hatch")):
        return None
    folder = here.folder("HATCH_DATA_DIR", *_data(here), "hatch") / "env" / "virtual"
    return _matching("hatch", folder, f"*/{_digest(hashlib.sha256(str(here.repo).encode()).digest())}/*")


def _pipenv(here: _Surroundings) -> ToolEnvironments | None:
    if not here.has("Pipfile"):
        return None
    folder = here.folder("WORKON_HOME", *_data(here), "virtualenvs")
    return _matching("pipenv", folder, f"*-{_digest(hashlib.sha256(str(here.repo / 'Pipfile').encode()).digest())}")


def _pixi(here: _Surroundings) -> ToolEnvironments | None:
    if not (here.has("pixi.toml", "pixi.lock") or here.uses("pixi")):
        return None
    return _matching("pixi", here.repo / ".pixi" / "envs", "*")


def _tox(here: _Surroundings) -> ToolEnvironments | None:
    if not (here.has("tox.ini", "tox.toml") or here.uses("tox") or "[tox:tox]" in here.text("setup.cfg")):
        return None
    return _of_test_runs("tox", here.folder("TOX_WORK_DIR", str(here.repo / ".tox")))


def _nox(here: _Surroundings) -> ToolEnvironments | None:
    return _of_test_runs("nox", here.folder("NOXENVDIR", str(here.repo / ".nox"))) if here.has("noxfile.py") else None


def _of_test_runs(tool: str, folder: Path) -> ToolEnvironments:
    """The environments in which tests run, by what they hold or are called; linters and documentation have theirs."""
    looked = _matching(tool, folder, "[!.]*")
    able = (one for one in looked.found if _has_pytest(one) or _RUNS_TESTS.match(one.parent.parent.name))
    return replace(looked, found=tuple(able))


def _conda(here: _Surroundings) -> ToolEnvironments | None:
    text = here.text("environment.yml") or here.text("environment.yaml")
    if not text:
        return None
    active = here.named("CONDA_PREFIX")
    named = re.search(r"^name:\s*[\"']?([^\s\"'#]+)", text, re.MULTILINE)
    if named is None or not _NAME.fullmatch(named[1]):
        return ToolEnvironments(
            tool="conda", searched=str(active or "$CONDA_PREFIX"), found=_pythons([active] if active else [])
        )
    roots = [here.home / root for root in _CONDA_ROOTS]
    roots += filter(None, (here.named("MAMBA_ROOT_PREFIX"), here.named("CONDA_ROOT")))
    roots += [active, active.parent.parent] if active else []
    folders = [root / "envs" / named[1] for root in roots]
    searched = f"{named[1]} in {', '.join(f'~/{root}/envs' for root in _CONDA_ROOTS[:3])} and the like"
    return ToolEnvironments(tool="conda", searched=searched, found=_pythons(folders))


def _pyenv(here: _Surroundings) -> ToolEnvironments | None:
    wanted = here.text(".python-version")
    if not wanted:
        return None
    root = here.folder("PYENV_ROOT", ".pyenv")
    able = tuple(python for python in _pyenv_versions(root, wanted) if _has_pytest(python))
    searched = f"{shortened(' '.join(wanted.split()), 40)} with pytest in {root / 'versions'}"
    return ToolEnvironments(tool="pyenv", searched=searched, found=able)


def _pyenv_versions(root: Path, wanted: str) -> Iterator[Path]:
    """The interpreters of versions, or environments, that are named one a line; of `3.12` the newest."""
    for name in wanted.split():
        if _NAME.fullmatch(name):
            folders = [root / "versions" / name, *_newest((root / "versions").glob(f"{name}.*"))]
            yield from _pythons(folders)


def _matching(tool: str, folder: Path, pattern: str) -> ToolEnvironments:
    """The environments of a folder: those that have pytest first, then by the newest Python."""
    return ToolEnvironments(tool=tool, searched=str(folder / pattern), found=_pythons(_newest(_below(folder, pattern))))


def _below(folder: Path, pattern: str) -> list[Path]:
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []  # where the user may not look there is nothing to be found


def _newest(folders: "Iterator[Path] | list[Path]") -> list[Path]:
    return sorted(folders, key=lambda one: [int(n) for n in re.findall(r"\d+", one.name)], reverse=True)


def _pythons(folders: list[Path]) -> tuple[Path, ...]:
    found = [one / "bin" / "python" for one in folders]
    able = dict.fromkeys(one for one in found if one.is_file() and os.access(one, os.X_OK))
    return tuple(sorted(able, key=lambda one: not _has_pytest(one)))


def _has_pytest(python: Path) -> bool:
    return any(python.parent.parent.glob("lib/python3*/site-packages/_pytest"))


def _digest(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode()[:8]


def _literal(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def _cache(here: _Surroundings) -> tuple[str, ...]:
    return (str(here.folder("XDG_CACHE_HOME", ".cache")),)


def _data(here: _Surroundings) -> tuple[str, ...]:
    return (str(here.folder("XDG_DATA_HOME", ".local", "share")),)


_TOOLS: tuple[Callable[[_Surroundings], ToolEnvironments | None], ...] = (
    _uv, _poetry, _pdm, _hatch, _pipenv, _pixi, _conda, _tox, _nox, _pyenv,
)  # fmt: skip
