"""The project whose tests fail, as the rules that look for a cause see it, and what such a rule finds."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from localagent.domain.outcome import Baseline, CauseKind, Failure
from localagent.domain.paths import RepoPath
from localagent.fs.bounded_read import read_below
from localagent.repo.declared_dependencies import DeclaredDependency, DeclaredProject, declared_project
from localagent.repo.python_environment import PythonEnvironment, read_environment
from localagent.verify.baseline.test_discovery import python_files

_MOST_BYTES = 1 << 20
_POINTER = "version https://git-lfs.github.com/spec/"
_POINTER_BYTES = 1024  # by its specification


NO_MODULE = re.compile(r"No module named '([^']+)'")


NO_NAME = re.compile(r"cannot import name '([^']+)' from '([^']+)' \((.+)\)")


NO_ATTRIBUTE = re.compile(r"module '([^']+)' has no attribute '([^']+)'")


@dataclass(frozen=True, kw_only=True)
class Project:
    """What the rules look at: the copy of the tree, where it stands, what it declares, what it runs on."""

    store: Path
    repo: str
    declared: DeclaredProject
    environment: PythonEnvironment
    python: str
    test_files: frozenset[RepoPath] = frozenset()
    tests: tuple[str, ...] = ()
    _texts: dict[str, str] = field(default_factory=dict)
    _parts: dict[str, DeclaredProject] = field(default_factory=dict)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Every Python file of the tree."""
        return tuple(python_files(self.store))

    @cached_property
    def pointers(self) -> tuple[str, ...]:
        """The files that Git LFS left as pointers to what they stand for."""
        if "filter=lfs" not in self.text(".gitattributes"):
            return ()
        places = (Path(folder) / name for folder, _, names in os.walk(self.store) for name in names)
        small = (p.relative_to(self.store).as_posix() for p in places if p.lstat().st_size <= _POINTER_BYTES)
        return tuple(path for path in small if self.text(path).startswith(_POINTER))

    @cached_property
    def submodules(self) -> tuple[str, ...]:
        """The folders that .gitmodules names."""
        return tuple(re.findall(r"^\s*path\s*=\s*(\S+)", self.text(".gitmodules"), re.MULTILINE))

    def text(self, path: str) -> str:
        """A file of the copy; "" where it is none or is too large."""
        if path not in self._texts:
            try:
                self._texts[path] = read_below(self.store, path, _MOST_BYTES).decode("utf-8", "replace")
            except OSError:
                self._texts[path] = ""
        return self._texts[path]

    def is_test(self, path: str | None) -> bool:
        """Whether a file holds tests or fixtures."""
        return path in self.test_files or (path or "").rsplit("/", 1)[-1] == "conftest.py"

    def sources(self) -> Iterator[str]:
        """The texts of the files that are no tests."""
        return (self.text(path) for path in self.files if not self.is_test(path))

    def homes(self, module: str) -> tuple[str, ...]:
        """The folders of the tree that hold a module or package of this name, "" for the top."""
        found: dict[str, None] = {}
        for path in self.files:
            parts = path.split("/")
            for at, part in enumerate(parts):
                if part == (f"{module}.py" if at == len(parts) - 1 else module):
                    found["/".join(parts[:at])] = None
        return tuple(found)

    def has_module(self, dotted: str) -> bool:
        """Whether some folder of the tree holds the module of this dotted name."""
        inner = "/".join(dotted.split("."))
        return any(f"/{path}".endswith(f"/{inner}.py") or f"/{inner}/" in f"/{path}" for path in self.files)

    def declaration(self, distribution: str, near: str = "") -> DeclaredDependency | None:
        """Where a distribution is declared: at the top, else in a folder above a file `near`, the inner one first."""
        name = canonicalize_name(distribution)
        if name in self.declared.dependencies:
            return self.declared.dependencies[name]
        folders = (parent.as_posix() for parent in PurePosixPath(near).parents if parent.name)
        for folder in (f for f in folders if any(path.startswith(f"{f}/") for path in self.files)):  # no links
            if folder not in self._parts:
                self._parts[folder] = declared_project(self.store / folder)
            if (found := self._parts[folder].dependencies.get(name)) is not None:
                return _below(found, folder)
        return None


def _below(declared: DeclaredDependency, folder: str) -> DeclaredDependency:
    """A declaration of a part of the project, as it is told and installed from the top."""
    match declared.install:
        case ("-r", path):
            install: tuple[str, ...] = ("-r", f"{folder}/{path}")
        case ("-e", place):
            install = ("-e", f"./{folder}{place.removeprefix('.')}")
        case _:
            install = ()
    return replace(declared, source=f"{folder}/{declared.source}", install=install)


def project_of(store: Path, repo: str, executable: str, baseline: Baseline, tests: Sequence[str]) -> Project:
    """The project that a baseline is of."""
    return Project(
        store=store,
        repo=repo,
        declared=declared_project(store),
        environment=read_environment(executable),
        python=baseline.python,
        test_files=baseline.test_files,
        tests=tuple(tests),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundCause:
    """The cause of one failure. `install`: arguments of pip; `remedy`: what to do where pip is not enough."""

    kind: CauseKind
    subject: str
    sentence: str
    install: tuple[str, ...] = ()
    remedy: str = ""


def not_written(subject: str, failure: Failure, what: str) -> FoundCause:
    """The cause of a failure for want of what the tests ask to be written."""
    return FoundCause(
        kind=CauseKind.NOT_WRITTEN,
        subject=subject,
        sentence=f"{what} does not exist yet, and {importer(failure)} uses it: it must be written",
        remedy=f"write {what}; localagent repairs code and writes none",
    )


def pip_argument(declared: DeclaredDependency) -> str:
    """The requirement as one argument of pip, without its marker."""
    return declared.requirement.partition(";")[0].replace(" ", "")


def in_test(failure: Failure, project: Project) -> bool:
    """Whether the innermost frame in the repository is a test's."""
    return bool(failure.frames) and project.is_test(failure.frames[-1].path)


def importer(failure: Failure) -> str:
    """Where a failure happened in the repository, for a sentence."""
    return f"{failure.frames[-1].path}:{failure.frames[-1].line}" if failure.frames else "a test"
