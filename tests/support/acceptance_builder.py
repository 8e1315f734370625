"""Patches of one file, for tests of what speaks for and against them."""

from textwrap import dedent

from localagent.domain.edit import FileChange, Patch
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.repair.acceptance.contradictions import PatchContext, contradictions, supports

M = RepoPath("src/m.py")


def one_file(before: str, after: str, path: str = M) -> Patch:
    change = FileChange(path=RepoPath(path), before=dedent(before).encode(), after=dedent(after).encode())
    return Patch(changes=(change,))


def swapped(before: str, old: str, new: str) -> Patch:
    """A patch that puts `new` for the one `old` in a source."""
    source = dedent(before)
    assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times"
    return one_file(source, source.replace(old, new))


def against(patch: Patch, *failures: Failure) -> set[str]:
    return {c.kind.value for c in contradictions(patch, PatchContext(failures=failures))}


def reasons(patch: Patch, *failures: Failure) -> str:
    return "\n".join(c.why for c in contradictions(patch, PatchContext(failures=failures)))


def speaking_for(patch: Patch, *failures: Failure) -> set[str]:
    return {s.kind.value for s in supports(patch, PatchContext(failures=failures))}
