"""The samples that repositories yield, on disk: found once, kept whole, gone on with after an interruption.

A folder a repository: one file a sample, named by its origin and by the digest of its content, and the list of what was
looked at. They hold the repository's sources and leave the data directory by nobody's hand but the user's; sources in
which anything looks like a secret are not kept.
"""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from localagent.domain.paths import RepoPath
from localagent.errors import LocalagentError, UsageFault
from localagent.gate.content.secrets import holds_secret
from localagent.ports import EditSpace
from localagent.repo.git import Git
from localagent.training.ranker_history import BYTES, HistoryFix, commits_of, fixes, is_code
from localagent.training.ranker_injection import injected
from localagent.training.ranker_samples import Read, Sample, load, sample_of, save, worth_a_look

_COMMITS = 6_000
_TOGETHER = 40
_PLAIN = re.compile(r"[^A-Za-z0-9_.]")
_INJECTED_EACH = 2  # bugs put in for so many real fixes found: one


@dataclass(slots=True)
class Corpus:
    """One repository's samples. `counts`: what was looked at and what came of it, this time."""

    repo: Path
    folder: Path
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        """What samples of it are called: no two repositories alike, whatever their folders are called."""
        return self.folder.name

    def samples(self) -> Iterator[tuple[str, Sample]]:
        """What is kept, with the digest of each; a file that is not what its name says is passed over and counted."""
        yield from ((digest, sample) for _, digest, sample in self._intact_samples())

    def _intact_samples(self) -> Iterator[tuple[Path, str, Sample]]:
        for file in sorted(self.folder.glob("*.json.gz")):
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            if digest[:16] == file.name.removesuffix(".json.gz").rpartition("-")[2]:
                yield file, digest, load(file)
            else:
                self.counts["damaged"] += 1

    def reread(self, read: Read, reader: str, more: Callable[[], bool]) -> None:
        """Have what is kept read by this model where another one, or nobody, has read it, while `more` says so."""
        for file, _, sample in self._intact_samples():
            if sample.reader == reader:
                continue
            if not more():
                return
            readings = tuple(read(sample.source, sample.path, sample.edits))
            if any(r is not None for r in readings):
                if save(replace(sample, readings=readings, reader=reader), self.folder) != file:
                    file.unlink()
                self.counts["read anew"] += 1

    def collect(
        self, space: Callable[[], EditSpace], read: Read, more: Callable[[], bool], *, reader: str = ""
    ) -> None:
        """Look through the history, newest first, and put a bug in now and then, while `more` says so.

        `reader` names who reads.
        """
        git = Git(self.repo, {})
        commits = commits_of(git, _COMMITS)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        seen_file = self.folder / "seen"
        seen = set(seen_file.read_text("utf-8").split("\n")) if seen_file.is_file() else set()
        draw = random.Random(f"{self.name} {len(seen)}")  # noqa: S311 - a draw, not a secret
        files = self.files(git)
        for at in range(0, len(commits), _TOGETHER):
            block = [c for c in commits[at : at + _TOGETHER] if c not in seen]
            for fix in fixes(git, self.name, block):
                if not more():
                    return
                if self._try(fix, "real", space, read, reader) and self.counts["real"] % _INJECTED_EACH == 0 and files:
                    self._inject(git, draw.choice(files), draw, space, read, reader)
            with seen_file.open("a", encoding="utf-8") as out:
                out.writelines(f"{c}\n" for c in block)
            if not more():
                return

    def files(self, git: Git) -> list[tuple[str, str]]:
        """Blob and path of the code at the newest commit."""
        listed = git.run("ls-tree", "-r", "-z", "HEAD").split(b"\0")
        rows = (row.split(b"\t", 1) for row in listed if row)
        named = ((head.split()[2].decode(), path.decode("utf-8", "replace")) for head, path in rows)
        return [(blob, path) for blob, path in named if is_code(path)]

    def _inject(
        self,
        git: Git,
        file: tuple[str, str],
        draw: random.Random,
        space: Callable[[], EditSpace],
        read: Read,
        reader: str,
    ) -> None:
        blob, path = file
        source = git.run("cat-file", "blob", blob)
        fix = injected(self.name, path, source, draw) if len(source) <= BYTES else None
        if fix is not None:
            self._try(fix, "injected", space, read, reader)

    def _try(self, fix: HistoryFix, kind: str, space: Callable[[], EditSpace], read: Read, reader: str) -> bool:
        self.counts["looked"] += 1
        if not worth_a_look(fix):
            return False
        if holds_secret(fix.before) or holds_secret(fix.after):
            self.counts["secret"] += 1
            return False
        try:
            RepoPath(fix.path)
            sample = sample_of(fix, kind, space(), read, reader=reader)
        except (UsageFault, ValueError, RecursionError):
            self.counts["unreadable"] += 1
            return False
        if sample is None:
            self.counts["no edit makes it"] += 1
            return False
        save(sample, self.folder)
        self.counts[kind] += 1
        return True


def data_digest(digests: list[str]) -> str:
    """Of all samples of a run, whatever their order."""
    return "sha256:" + hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()


def opened(repos: list[Path], folder: Path) -> list[Corpus]:
    """A corpus a repository. Every one that git cannot read is named in one UsageFault."""
    faults, found = [], []
    for repo in repos:
        place = repo.resolve()
        try:
            Git(place, {}).run("rev-parse", "--verify", "HEAD^{commit}")
        except (LocalagentError, OSError) as fault:
            faults.append(f"--from {repo}: {fault}")
            continue
        key = hashlib.sha256(str(place).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        found.append(Corpus(repo=place, folder=folder / f"{_PLAIN.sub('_', place.name)}-{key}"))
    if faults:
        raise UsageFault(faults, remedy="name folders of git repositories with at least one commit")
    return found
