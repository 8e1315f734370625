"""Kept programs as ground to stand on: hot sessions collected on a candidate, for the candidates built upon it.

A program whose snapshot does not import (a syntax error, a missing name at module level) cannot be swapped into the
snapshot's session, so each of its variants would be collected anew. Its parent does import: collected once with the
parent's files in place, it takes the variants by swaps like any other.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from localagent.domain.edit import Candidate, FileChange
from localagent.domain.paths import RepoPath
from localagent.verify.worker import function_regions
from localagent.verify.worker.worker_messages import Collected, CollectionRefused

OPEN_AT_ONCE = 3
WORTH_AFTER = 2  # candidates of one parent seen by a worker before it is worth a session


@dataclass(frozen=True, kw_only=True, slots=True)
class ParentSession:
    """An open session, collected with a kept candidate's files in place."""

    session: str
    answer: Collected


Opener = Callable[[str, Sequence[FileChange]], Collected | CollectionRefused]


class Grounds:
    """The grounds of one worker. `opener` collects a session of a given name on some files; `closer` ends one."""

    def __init__(self, opener: Opener, closer: Callable[[str], None]) -> None:
        self._opener, self._closer = opener, closer
        self._seen: Counter[int] = Counter()
        self._grounds: OrderedDict[int, ParentSession] = OrderedDict()
        self._barren: set[int] = set()

    def below(self, candidate: Candidate) -> tuple[ParentSession, list[dict[str, Any]]] | None:
        """The ground of a candidate's parent and the swaps that lead from there to the candidate, if there are."""
        parent = candidate.parent
        if parent is None or parent in self._barren or len(candidate.edits) < 2:
            return None
        self._seen[parent] += 1
        if parent not in self._grounds and self._seen[parent] < WORTH_AFTER:
            return None
        files = _program(candidate)
        if files is None:
            return None
        parents = {c.path: c.after for c in files}
        before = {c.path: parents.get(c.path, c.before) for c in candidate.patch.changes}
        after = {c.path: c.after for c in candidate.patch.changes}
        ground = self._grounds.get(parent)
        if ground is None:
            if function_regions.changed(before, after, {}) is None:
                return None
            ground = self._open(parent, files)
            if ground is None:
                return None
        self._grounds.move_to_end(parent)
        orders = function_regions.changed(before, after, ground.answer.import_lines)
        return None if orders is None else (ground, orders)

    def drop(self, ground: ParentSession) -> None:
        """Forget a session that ended."""
        for parent in [p for p, g in self._grounds.items() if g is ground]:
            del self._grounds[parent]
            self._barren.add(parent)

    def _open(self, parent: int, files: Sequence[FileChange]) -> ParentSession | None:
        while len(self._grounds) >= OPEN_AT_ONCE:
            _, old = self._grounds.popitem(last=False)
            self._closer(old.session)
        name = f"ground-{parent}"
        answer = self._opener(name, files)
        if isinstance(answer, CollectionRefused) or answer.errors:
            if not isinstance(answer, CollectionRefused):
                self._closer(name)
            self._barren.add(parent)
            return None
        ground = ParentSession(session=name, answer=answer)
        self._grounds[parent] = ground
        return ground


def _program(candidate: Candidate) -> list[FileChange] | None:
    """The parent's files; None when the candidate takes one of them back to the snapshot."""
    before = {c.path: c.before for c in candidate.patch.changes}
    files: dict[RepoPath, bytes] = {}
    for edit in candidate.edits[:-1]:
        if edit.path not in before:
            return None
        files[edit.path] = edit.apply(files.get(edit.path, before[edit.path]))
    return [FileChange(path=p, before=before[p], after=text) for p, text in files.items()]
