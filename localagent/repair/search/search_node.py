"""A program on the way to a repair: the snapshot plus the edits made so far, and what the tests said of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from localagent.domain.edit import Edit, FileChange, Patch
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.ports import Sources
from localagent.repair.search.code_equivalence import scope_of
from localagent.repair.search.partial_progress import stretches

Identity = frozenset[tuple[tuple[str, str], bytes]]
LineScores = Mapping[RepoPath, Mapping[int, float]]

_WRITTEN = 0.3  # the least suspicion of a line that an edit wrote


class Overlay(Mapping[RepoPath, bytes]):
    """The snapshot's sources with some files replaced."""

    def __init__(self, base: Sources, changed: Mapping[RepoPath, bytes]) -> None:
        self._base, self._changed = base, changed

    def __getitem__(self, path: RepoPath) -> bytes:
        return self._changed[path] if path in self._changed else self._base[path]

    def __iter__(self) -> Iterator[RepoPath]:
        return iter(self._base)

    def __len__(self) -> int:
        return len(self._base)

    def __contains__(self, path: object) -> bool:
        return path in self._base


@dataclass(frozen=True, kw_only=True, slots=True)
class Lineage:
    """A node of the beam. The root has no edits and number None.

    `lines` are suspicion scores by line of this program's own text; `identity` the behaviour keys of changed functions.
    """

    number: int | None
    edits: tuple[Edit, ...]
    changed: Mapping[RepoPath, bytes]
    identity: Identity
    cost: float
    round: int
    failures: tuple[Failure, ...]
    lines: LineScores
    progress: float = 0.0

    def sources(self, base: Sources) -> Sources:
        """The program's files."""
        return Overlay(base, self.changed) if self.changed else base


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchStep:
    """A lineage and one more edit: a candidate not yet built.

    With `joins` it unites two candidates that turned different tests, whether the parent keeps its place or not.
    """

    parent: Lineage
    edit: Edit
    cost: float
    model_score: float | None = field(default=None)
    joins: bool = False

    def patch(self, base: Sources) -> Patch:
        """The whole change against the snapshot."""
        path = self.edit.path
        after = self.edit.apply(self.parent.sources(base)[path])
        changed = {**self.parent.changed, path: after}
        return Patch(
            changes=tuple(
                FileChange(path=p, before=base[p], after=b) for p, b in sorted(changed.items()) if b != base[p]
            )
        )

    def identity(self, key: bytes, original: bytes | None) -> Identity:
        """The behaviour keys after this step; empty when it takes the program back to the snapshot's behaviour."""
        where = scope_of(self.edit)
        kept = {k: v for k, v in self.parent.identity if k != where}
        if key != original:
            kept[where] = key
        return frozenset(kept.items())


def shifted_lines(lines: LineScores, edit: Edit, before: bytes) -> dict[RepoPath, dict[int, float]]:
    """Line scores of the program after `edit`: lines below a splice move, lines that it wrote keep their best score."""
    out = {p: dict(scores) for p, scores in lines.items()}
    old = lines.get(edit.path, {})
    told = [s for s in stretches(edit, before) if not s.blank or s.grown]  # blanks that split or join lines count too
    replaced = {k for s in told for k in range(s.old_first, s.old_end)}
    best = max((v for k, v in old.items() if k in replaced or edit.line <= k <= edit.end_line), default=0.0)
    moved = {k + sum(s.grown for s in told if s.old_end <= k): v for k, v in old.items() if k not in replaced}
    for s in told:
        moved.update(dict.fromkeys(range(s.new_first, s.new_end), max(best, _WRITTEN)))
    out[edit.path] = moved
    return out
