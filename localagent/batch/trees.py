"""Where a repository's tree comes from in a run: the working tree itself, or a revision made in a private folder."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from localagent.app.settings import Settings
from localagent.batch.fleet import FleetMember
from localagent.batch.runs import RunRecord
from localagent.domain.task import Snapshot
from localagent.jail.api import scratch_folder
from localagent.repo.bare_checkout import materialise, open_mirror, resolve_commit
from localagent.repo.snapshot import take_snapshot


def tree_of(run: RunRecord, member: FleetMember, number: int, scratch: Path) -> tuple[Path, str, dict[str, str]]:
    """The folder to look at, the commit where it is a revision's, and what was left out of it, with the reason."""
    source = member.source
    if not source.revision:
        return source.folder.resolve(), "", {}
    git = open_mirror(source.folder)
    commit = run.pinned(number)
    if not commit:
        commit = resolve_commit(git, source.revision)
        run.pin(number, commit)
    folder = scratch / "tree"
    return folder, commit, materialise(git, commit, folder)


@contextlib.contextmanager
def seen_tree(run: RunRecord, member: FleetMember, number: int, settings: Settings) -> Iterator[tuple[Snapshot, str]]:
    """A snapshot of a repository, there while inside, and the commit. AnswerIsNo where there is no such tree."""
    with scratch_folder(settings.scratch_dir) as scratch:
        folder, commit, _ = tree_of(run, member, number, scratch)
        yield take_snapshot(folder, scratch / "seen"), commit
