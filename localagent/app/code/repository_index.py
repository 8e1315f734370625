"""The index of a repository, brought up to date and asked: the one way to it for verbs, agent and localization.

`open_index` lists the tree, extracts what changed in confined children, and keeps the result in one SQLite file below
the state directory, which branches and worktrees of a repository share. Nothing is written into the repository and
nothing prints.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from os import fsencode
from pathlib import Path

from localagent.app.settings import Settings
from localagent.code.graph.facts import ModuleFacts, decoded
from localagent.code.index.build import Extracted, Progress, TreeListing, UpdateReport, update
from localagent.code.index.extract import StoredChunk
from localagent.code.index.history import Commit, History, packed, unpacked
from localagent.code.index.languages import grammar_folders, is_installed, language_of
from localagent.code.index.search import HitKind, SearchResult, search
from localagent.code.index.store import DatabaseError, OperationalError, Store
from localagent.domain.paths import RepoPath
from localagent.jail.compute.compute_pool import ComputePool, Job, JobAnswer
from localagent.repo.discover import GitKind, git_kind, repository_root
from localagent.repo.git import Git
from localagent.repo.git_history import changed_paths, head_of, last_commit_of, recent_commits
from localagent.repo.source_files import SourceFiles, list_source_files

WORKERS = 2
_EXTRACT = "localagent.code.index.extract:extract"
_EXTRACT_TEXT = "localagent.code.index.extract:extract_text"
_SCAN = "localagent.code.index.scan:scan"
_KEPT_HISTORIES = 4
_FAILED_AT_ONCE = 16  # files that wait for their second reading


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexStatus:
    """Where the index lies and what it holds of this tree.

    `as_text` counts, by language, the files whose symbols would be known if the extra [languages] were installed.
    """

    path: Path
    bytes: int
    files: int
    chunks: int
    lines: int
    unreadable: Mapping[str, str]
    as_text: Mapping[str, int]
    seconds: float
    updated: int
    removed: int
    outdated: int
    rebuilt: str


class RepositoryIndex:
    """The index of one working tree, as it was when it was opened. Not for several threads at once."""

    def __init__(self, root: Path, store: Store, tree: SourceFiles, report: UpdateReport, git: Git | None) -> None:
        self.root = root
        self._store, self._tree, self._report, self._git = store, tree, report, git
        self._number = store.tree(str(root))
        self._history: History | None = None

    def search(self, text: str, *, kind: HitKind | None = None, limit: int = 10) -> SearchResult:
        """The best hits for words, identifiers or a sentence."""
        try:
            return search(self._store.connection, self._number, text, kind=kind, limit=limit, history=self.history())
        except DatabaseError as error:
            self._begin_anew(error)
            return search(self._store.connection, self._number, text, kind=kind, limit=limit, history=self.history())

    def files(self) -> list[str]:
        """The paths of all files that are indexed, sorted."""
        return sorted(self._store.members(self._number))

    def stored_facts(self) -> dict[RepoPath, bytes]:
        """The encoded facts of all Python files that have any, by path."""
        return {RepoPath(path): data for path, _, data in self._store.facts(self._number, None)}

    def facts(self, paths: Iterable[str] | None = None) -> Iterator[tuple[str, bytes, ModuleFacts]]:
        """(path, digest, facts) of the Python files that have any, of these paths or of all, in their order."""
        for path, digest, data in self._store.facts(self._number, paths):
            yield path, digest, decoded(data)

    def scan(self, expression: str) -> Iterator[tuple[str, list[tuple[int, int, str]]]]:
        """(path, [(line, column, text)]) of the files with lines that match, in any order; see `index.scan`."""
        jobs = (Job(path=path, argument=expression, read=partial(self.read, path)) for path in self.files())
        for answer in ComputePool(_SCAN, workers=WORKERS).answers(jobs):
            if answer.failed:
                self._report.unreadable[answer.path] = answer.failed
            elif isinstance(answer.value, list) and answer.value:
                yield answer.path, [(int(line), int(column), str(text)) for line, column, text in answer.value]

    def symbol_at(self, path: str, line: int) -> tuple[str, str, str] | None:
        """(kind, qualified name, signature) of the innermost function or class around a line."""
        return self._store.symbol_at(self._number, path, line)

    def definitions(self, name: str) -> list[tuple[str, StoredChunk]]:
        """(path, definition) of the functions and classes, in all languages, that a name is the end of."""
        return self._store.definitions(self._number, name)

    def read(self, path: str) -> bytes:
        """A file of the tree as it stands; OSError where it is gone, or no regular file."""
        return self._tree.read(path)

    def history(self) -> History:
        """What the commits before HEAD say; empty outside git."""
        if self._history is None:
            self._history = History(self._commits())
        return self._history

    def last_commit(self, path: str, first: int, last: int) -> str:
        """The newest commit that touched lines of a file, of a changed file the file itself; "" where there is none."""
        if self._git is None:
            return ""
        lines = None if path in self.changed() else (first, last)
        return last_commit_of(self._git, path, lines)

    def changed(self) -> list[str]:
        """The tracked paths that differ from HEAD; [] outside git."""
        return changed_paths(self._git) if self._git is not None else []

    def status(self) -> IndexStatus:
        """Where it lies, how much it holds, what it could not read."""
        counts = self._store.counts(self._number)
        report = self._report
        return IndexStatus(
            path=self._store.path, bytes=self._store.bytes_on_disk(), files=report.files, chunks=counts[0],
            lines=counts[1], unreadable=dict(sorted(report.unreadable.items())), as_text=self._as_text(),
            seconds=report.seconds, updated=report.added, removed=report.removed, outdated=0, rebuilt=report.rebuilt,
        )  # fmt: skip

    def _as_text(self) -> dict[str, int]:
        languages = (language_of(path) for path in self.files())
        return dict(Counter(one.name for one in languages if one is not None and not is_installed(one)))

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def _begin_anew(self, error: DatabaseError) -> None:
        """Build it from nothing where it turned out to be damaged; raises what only was busy."""
        if isinstance(error, OperationalError):
            raise error
        self._store.begin_anew(str(error))
        self._report = _updated(self._store, self._tree, lambda _done, _all: None)
        self._number = self._store.tree(str(self.root))

    def _commits(self) -> Sequence[Commit]:
        head = head_of(self._git) if self._git is not None else ""
        if self._git is None or not head:
            return []
        kept = self._store.history(head)
        if kept is not None:
            return unpacked(kept)
        commits = [Commit(subject=subject, paths=paths) for subject, paths in recent_commits(self._git, head)]
        self._store.keep_history(head, packed(commits), _KEPT_HISTORIES)
        return commits


def open_index(
    repo: Path, settings: Settings, *, progress: Progress = lambda _done, _all: None, rebuild: bool = False
) -> RepositoryIndex:
    """The index of the working tree that holds `repo`, up to date. AnswerIsNo where the tree cannot be entered."""
    root = repository_root(repo)
    tree = list_source_files(root)
    git = _git(root)
    store = Store(index_path(root, git, settings.state_dir))
    if rebuild:
        store.begin_anew("asked for")
    try:
        report = _updated(store, tree, progress)
    except DatabaseError as error:
        if isinstance(error, OperationalError):
            raise
        store.begin_anew(str(error))
        report = _updated(store, tree, progress)
    return RepositoryIndex(root, store, tree, report, git)


def index_status(repo: Path, settings: Settings) -> IndexStatus | None:
    """What the index holds now, nothing brought up to date; None where there is none of this tree."""
    root = repository_root(repo)
    path = index_path(root, _git(root), settings.state_dir)
    if not path.exists():
        return None
    store = Store(path)
    number = store.tree(str(root))
    members = store.members(number)
    if not members:
        return None
    tree = list_source_files(root)
    report = UpdateReport(files=len(members), unreadable={**tree.left_out, **store.failures(number)})
    index = RepositoryIndex(root, store, tree, report, None)
    changed = sum(path not in members or members[path].stamp not in ("", s) for path, s in tree.stamps.items() if s)
    return replace(index.status(), outdated=changed + sum(path not in tree.stamps for path in members))


def indexed_facts(repo: Path, settings: Settings) -> dict[RepoPath, tuple[bytes, bytes]]:
    """(SHA-256, encoded facts) by path as an index holds them, not brought up to date; {} where it cannot be read."""
    root = repository_root(repo)
    path = index_path(root, _git(root), settings.state_dir)
    if not path.exists():
        return {}
    store = Store(path)
    try:
        rows = store.facts(store.tree(str(root)), None)
        return {RepoPath(name): (digest, data) for name, digest, data in rows}
    except DatabaseError:  # busy or damaged: the next `localagent index` mends it
        return {}
    finally:
        store.close()


def index_path(root: Path, git: Git | None, state_dir: Path) -> Path:
    """Where the index of a repository lies: one for all of its worktrees."""
    common = git.path("--git-common-dir") if git is not None else None
    return state_dir / "index" / f"{sha256(fsencode(common or root)).hexdigest()[:32]}.sqlite"


def _git(root: Path) -> Git | None:
    return Git(root, {}) if git_kind(root) is not GitKind.NONE else None


def _updated(store: Store, tree: SourceFiles, progress: Progress) -> UpdateReport:
    listing = TreeListing(root=tree.root, stamps=tree.stamps, left_out=tree.left_out)
    return update(store, listing, tree.read, _extract, progress)


def _extract(files: Iterable[tuple[str, bytes]]) -> Iterator[Extracted]:
    """Every file's extraction, in confined children; as text, of those at which a parser failed."""
    jobs = (Job(path=path, argument=path, read=partial(bytes, data)) for path, data in files)
    failed: list[JobAnswer] = []
    for answer in ComputePool(_EXTRACT, workers=WORKERS, packages=grammar_folders()).answers(jobs):
        if answer.failed and answer.data:
            failed.append(answer)
        else:
            yield _extracted(answer)
        if len(failed) >= _FAILED_AT_ONCE:
            yield from _as_text(failed)
            failed = []
    yield from _as_text(failed)


def _as_text(failed: Sequence[JobAnswer]) -> Iterator[Extracted]:
    reasons = {one.path: one.failed for one in failed}
    jobs = (Job(path=one.path, argument=one.path, read=partial(bytes, one.data)) for one in failed)
    for answer in ComputePool(_EXTRACT_TEXT, workers=1).answers(jobs):
        if isinstance(answer.value, dict):
            answer.value["note"] = f"{reasons[answer.path]}: searched as text"
        yield _extracted(answer)


def _extracted(answer: JobAnswer) -> Extracted:
    return Extracted(path=answer.path, data=answer.data, value=answer.value, failed=answer.failed)


__all__ = ["HitKind", "IndexStatus", "RepositoryIndex", "index_path", "index_status", "indexed_facts", "open_index"]
