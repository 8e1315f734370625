"""What the model said of the edits of a program holds for the same edits of a program that is almost the same.

A kept candidate's program differs from the snapshot, and from other candidates', in a line or two. On all other lines
its edits are theirs, moved: the model has read them, and asking it once more would take longer than running them. Only
what stands on changed lines is new. Not promised: that the model, shown the change, would say the same again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from localagent.domain.edit import Edit, Splice
from localagent.domain.paths import RepoPath
from localagent.repair.ordering.scored_edit import Open
from localagent.text.byte_diff import changed_span

_Splices = tuple[Splice, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    source: bytes
    opened: Mapping[_Splices, Open]


class Heritage:
    """Edits of programs that the model has spoken of, or will. One task's."""

    def __init__(self) -> None:
        self._known: dict[RepoPath, list[_Known]] = {}

    def note(self, path: RepoPath, source: bytes, edits: Sequence[Open]) -> None:
        """Edits of a file as it stands in some program."""
        opened = {each.step.edit.splices: each for each in edits}
        self._known.setdefault(path, []).append(_Known(source=source, opened=opened))

    def of(self, path: RepoPath, source: bytes, edits: Sequence[Edit]) -> list[Open | None]:
        """For each edit of a file the same edit of the likest text of that file of which it was noted, if any."""
        shared = [(alike(known.source, source), known) for known in self._known.get(path, ())]
        out: list[Open | None] = [None] * len(edits)
        for (before, behind), known in sorted(shared, key=lambda each: -sum(each[0])):
            grown = len(source) - len(known.source)
            for at, edit in enumerate(edits):
                if out[at] is None:
                    there = moved(edit.splices, before, len(source) - behind if behind else len(source) + 1, -grown)
                    out[at] = None if there is None else known.opened.get(there)
        return out


def alike(one: bytes, other: bytes) -> tuple[int, int]:
    """How many bytes of whole lines two texts have in common where they begin, and where they end; never both."""
    start, end, new_end = changed_span(one, other)
    if start == len(one) == len(other):
        return start, 0
    before = one.rfind(b"\n", 0, start) + 1
    if all(at == 0 or text[at - 1 : at] == b"\n" for text, at in ((one, end), (other, new_end))):
        return before, len(one) - end
    line = one.find(b"\n", end) + 1
    return before, len(one) - line if line else 0


def moved(splices: _Splices, before: int, behind: int, grown: int) -> _Splices | None:
    """Splices that lie in front of byte `before`, or from `behind` on, where they stand `grown` bytes further on.

    None where one lies between, or touches what does.
    """
    out = []
    for splice in splices:
        if splice.start < before and splice.end <= before:
            out.append(splice)
        elif splice.start >= behind:
            out.append(Splice(start=splice.start + grown, end=splice.end + grown, text=splice.text))
        else:
            return None
    return tuple(out)
