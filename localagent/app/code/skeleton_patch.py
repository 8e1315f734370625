"""The patch that gives tests what they import and nothing has: skeletons, with bodies left open."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.app.fix.environment import interpreter_of
from localagent.code.skeleton import skeletons
from localagent.code.test_usage import MissingModule, missing_names
from localagent.domain.edit import FileChange, FileFate, Patch
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task
from localagent.errors import UsageFault
from localagent.repo.discover import repository_root
from localagent.repo.python_environment import installed_modules
from localagent.repo.source_files import list_source_files


@dataclass(frozen=True, kw_only=True, slots=True)
class SkeletonPatch:
    """What is missing, the patch that adds it, and files that could not be read, with the reason for each."""

    missing: tuple[MissingModule, ...]
    patch: Patch
    left_out: tuple[tuple[str, str], ...]


def skeleton_patch(repo: Path, tests: list[str], *, python: str) -> SkeletonPatch:
    """Reads the working tree; writes and runs nothing. `tests` are files or folders, relative to the repository.

    UsageFault where one of them is no Python file and no folder that holds one.
    """
    root = repository_root(repo)
    files = list_source_files(root)
    sources = {RepoPath(path): files.read(path) for path in sorted(files.stamps) if path.endswith(".py")}
    named = {wanted: files_named([wanted], sources) for wanted in tests}
    faults = [f"{wanted}: no Python file, and no folder that holds one" for wanted, paths in named.items() if not paths]
    if faults:
        raise UsageFault(faults, remedy=f"name files or folders below {root}")
    specification = {path: sources[path] for paths in named.values() for path in sorted(paths)}
    others = {path: text for path, text in sources.items() if path not in specification}
    interpreter = interpreter_of(Task(id="skeleton", repo=str(root), python=python))
    missing = missing_names(specification, others, installed=installed_modules(interpreter))
    changes = (
        FileChange(
            path=path,
            before=sources.get(path, b""),
            after=after,
            fate=FileFate.CHANGED if path in sources else FileFate.CREATED,
        )
        for path, after in sorted(skeletons(missing, others).items())
    )
    return SkeletonPatch(missing=missing, patch=Patch(changes=tuple(changes)), left_out=tuple(files.left_out.items()))


def files_named(wanted: Sequence[str], paths: Iterable[RepoPath]) -> frozenset[RepoPath]:
    """The Python files that some pytest arguments name: files or folders, what follows `::` left out."""
    named = [spec.partition("::")[0].removeprefix("./").rstrip("/") for spec in wanted]
    everything = any(name in ("", ".") for name in named)
    return frozenset(
        path
        for path in paths
        if path.is_python and (everything or any(path == name or path.startswith(f"{name}/") for name in named))
    )
