"""What the model said of the edits of a program holds for the same edits of a program that is almost the same.

A kept candidate's program differs from the snapshot, and from other candidates', in a line or two. On all other lines
its edits are theirs, moved: the model has read them, and asking it once more would take longer than running them. Only
what stands on changed lines is new. Not promised: that the model, shown the change, would say the same again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from localagent.domain.edit import Edit, Splice
from localagent.domain.paths import RepoPath
from localagent.repair.opened import Open

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
        likest = sorted(self._known.get(path, ()), key=lambda known: -sum(alike(known.source, source)))
        out: list[Open | None] = [None] * len(edits)
        for known in likest:
            before, behind = alike(known.source, source)
            grown = len(source) - len(known.source)
            for at, edit in enumerate(edits):
                if out[at] is None:
                    there = moved(edit.splices, before, len(source) - behind if behind else len(source) + 1, -grown)
                    out[at] = None if there is None else known.opened.get(there)
        return out


def alike(one: bytes, other: bytes) -> tuple[int, int]:
    """How many bytes of whole lines two texts have in common where they begin, and where they end; never both."""
    before = _common(one, other)
    before = before if before == len(one) == len(other) else one.rfind(b"\n", 0, before) + 1
    most = min(len(one), len(other)) - before
    behind = _common(one[before:][::-1][:most], other[before:][::-1][:most])
    if not all(
        len(text) == behind or text[len(text) - behind - 1 : len(text) - behind] == b"\n" for text in (one, other)
    ):
        line = one.find(b"\n", len(one) - behind) + 1
        behind = len(one) - line if line else 0
    return before, behind


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two texts have in common where they begin."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


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
