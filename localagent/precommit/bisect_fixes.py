"""Which repairs of several files stand together: those that a gate or the tests refuse are found by halving.

Not promised: the fewest trials, or the largest set that stands.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.lint.engine import LintFinding
from localagent.lint.file_view import FileView
from localagent.lint.selected_fixes import repair_targets
from localagent.precommit.fix_files import Gates

if TYPE_CHECKING:
    from localagent.app.review.patch_tests import Vouching


@dataclass(slots=True)
class FoundIn:
    """A file with the findings of ours that answer for reported ones; these by their place in the log's order."""

    path: RepoPath
    view: FileView
    targets: dict[int, list[int]] = field(default_factory=dict)  # number of a finding of `found` -> reported ones
    found: list[LintFinding] = field(default_factory=list)


Target = tuple[RepoPath, int]


class Built:
    """Files after some of their repairs, each set computed once."""

    def __init__(self, files: Mapping[RepoPath, FoundIn]) -> None:
        self._files = files
        self._known: dict[tuple[RepoPath, tuple[int, ...]], tuple[bytes, dict[Target, str]]] = {}

    def patch(self, targets: Iterable[Target]) -> tuple[Patch, dict[Target, str]]:
        """The patch of some repairs, and those of them that cannot be made, with the reason."""
        chosen: dict[RepoPath, list[int]] = {}
        for path, k in targets:
            chosen.setdefault(path, []).append(k)
        changes, withheld = [], {}
        for path in sorted(chosen):
            after, reasons = self._one(path, tuple(sorted(chosen[path])))
            withheld.update(reasons)
            before = self._files[path].view.source.raw
            if after != before:
                changes.append(FileChange(path=path, before=before, after=after))
        return Patch(changes=tuple(changes)), withheld

    def _one(self, path: RepoPath, numbers: tuple[int, ...]) -> tuple[bytes, dict[Target, str]]:
        key = path, numbers
        if key not in self._known:
            file = self._files[path]
            done = repair_targets(file.view, [file.found[k] for k in numbers])
            self._known[key] = done.after, {(path, numbers[n]): why for n, why in done.withheld.items()}
        return self._known[key]


class Trial:
    """Which repairs stand together before the gates and the tests."""

    def __init__(self, built: Built, gates: Gates, prover: "Vouching | None") -> None:
        self._built = built
        self._gates = gates
        self._prover = prover

    def keep(self, targets: Sequence[Target], refused: dict[Target, str]) -> list[Target]:
        """Repairs that stand together; why the others do not is added to `refused`."""
        kept: list[Target] = []
        waiting = [list(targets)] if targets else []
        while waiting:
            group = waiting.pop()
            why = self._against([*kept, *group])
            if not why:
                kept += group
            elif len(group) == 1:
                refused[group[0]] = why
            else:
                half = len(group) // 2
                waiting += [group[half:], group[:half]]
        return sorted(kept)

    def _against(self, targets: Sequence[Target]) -> str:
        patch, withheld = self._built.patch(targets)
        if withheld:
            return "; ".join(sorted(set(withheld.values())))
        if patch.changes and (found := self._gates.review(*patch.changes)):
            return "; ".join(f"gate {f.rule}: {f.message}" for f in found)
        return self._prover.against(patch) if self._prover is not None and patch.changes else ""
