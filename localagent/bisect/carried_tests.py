"""Tests carried back in time: the files that name the fault as of the bad commit, laid over older trees.

A test that is not committed yet is taken from the working tree. Everything else of an older tree stays as it is.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.paths import RepoPath
from localagent.domain.task import FileKind, Snapshot
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.bounded_read import read_below
from localagent.repo.patched_snapshot import patched

_MOST_BYTES = 2 << 20
_MOST_FILES = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class CarriedTests:
    """Files by path, in order. `uncommitted` are those of them that only the working tree holds."""

    files: Mapping[RepoPath, bytes]
    uncommitted: tuple[RepoPath, ...] = ()

    @property
    def digest(self) -> str:
        """Of names and contents."""
        hashed = hashlib.sha256()
        for path, data in self.files.items():
            for part in (path.encode("utf-8", "surrogateescape"), data):
                hashed.update(len(part).to_bytes(8, "big") + part)
        return hashed.hexdigest()

    def laid_over(self, tree: Snapshot, store: Path) -> Snapshot:
        """A tree with these files in it, in `store`, which must not exist yet. AnswerIsNo where they have no place."""
        changes = [
            TreeChange(
                path=path,
                source=path,
                kind=ChangeKind.ADDED,
                before=b"",
                after=data,
                before_mode=None,
                after_mode=FileMode.REGULAR,
            )
            for path, data in self.files.items()
        ]
        return patched(tree, store, changes)

    def same_in(self, tree: Snapshot) -> bool:
        """Whether a tree holds all of them already."""
        return all(path in tree.entries and _bytes(tree, path) == data for path, data in self.files.items())


def spec_paths(specs: Sequence[str]) -> tuple[RepoPath, ...]:
    """The files and folders that pytest arguments name."""
    found = []
    for spec in specs:
        name = spec.split("::", 1)[0].removeprefix("./").rstrip("/")
        if name and not spec.startswith("-") and not name.startswith("/"):
            try:
                found.append(RepoPath(name))
            except UsageFault:
                continue
    return tuple(dict.fromkeys(found))


def renamed_specs(specs: Sequence[str], names: Mapping[RepoPath, RepoPath]) -> tuple[str, ...]:
    """The same arguments where files have other names."""
    found = []
    for spec in specs:
        paths = [path for path in spec_paths([spec]) if path in names]
        found.append(names[paths[0]] + spec.removeprefix("./")[len(paths[0]) :] if paths else spec)
    return tuple(found)


def carried_tests(specs: Sequence[str], more: Sequence[RepoPath], bad: Snapshot, repo: Path) -> CarriedTests:
    """What to lay over older trees: the test files that `specs` name, and the files `more`.

    UsageFault for a name that neither the bad commit nor the working tree holds.
    """
    files: dict[RepoPath, bytes] = {}
    uncommitted: list[RepoPath] = []
    faults = []
    for path, explicit in (*((p, False) for p in spec_paths(specs)), *((p, True) for p in more)):
        if path in bad.entries and bad.entries[path].kind is FileKind.REGULAR:
            files[path] = _bytes(bad, path)
        elif found := {name: _bytes(bad, name) for name in _below(bad, path, tests_only=not explicit)}:
            files.update(found)
        elif (data := _working(repo, path)) is not None:
            files[path] = data
            uncommitted.append(path)
        elif not any(name.startswith(f"{path}/") for name in bad.entries):
            option = "--carry" if explicit else "--test"
            faults.append(f"{option}: {path} is neither in the bad commit nor in the working tree")
    if faults:
        raise UsageFault(faults, remedy="name a file, a folder or a test as pytest does: tests/test_x.py::test_y")
    return CarriedTests(files=files, uncommitted=tuple(uncommitted))


def _below(tree: Snapshot, folder: RepoPath, *, tests_only: bool) -> Iterator[RepoPath]:
    found = 0
    for path, entry in tree.entries.items():
        if path.startswith(f"{folder}/") and entry.kind is FileKind.REGULAR and entry.size <= _MOST_BYTES:
            is_test = path.name.startswith("test_") or path.name.endswith("_test.py")
            if (is_test and path.name.endswith(".py")) or not tests_only:
                found += 1
                if found > _MOST_FILES:
                    raise AnswerIsNo(f"{folder} holds more than {_MOST_FILES} files to carry", remedy="name fewer")
                yield path


def _bytes(tree: Snapshot, path: RepoPath) -> bytes:
    return read_below(Path(tree.store), path, tree.entries[path].size)


def _working(repo: Path, path: RepoPath) -> bytes | None:
    try:
        return read_below(repo, path, _MOST_BYTES)
    except OSError:
        return None
