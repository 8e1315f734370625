"""Findings of other tools, repaired by our rules: each is fixed, skipped, failed or won't be, with the reason.

A finding is believed only where a rule of ours finds the same mistake at the same place; the repair is that rule's. It
is proven as `hook fix` proves its own, judged by the gates and, where tests are named, by the tests in the jail. Not
promised: that a tool agrees that its finding is gone; it was not run again.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.fs import openat
from localagent.lint.engine import LintFinding, find_all, find_despite_other_tools
from localagent.lint.equivalents import PERSON, rules_for
from localagent.lint.file_view import MAX_BYTES, CannotReadError, FileView, view_of
from localagent.lint.fixer import after_repairs, lengthened, too_long
from localagent.lint.lint_rule import FixGrade
from localagent.lint.rules import BY_ID
from localagent.lint.selected_fixes import repair_targets
from localagent.precommit.fix_files import Gates
from localagent.report.sarif_input import Replaced, Reported, ResultUpdate

if TYPE_CHECKING:
    from localagent.app.review.patch_tests import Vouching


# Which repairs of several files stand together: those that a gate or the tests refuse are found by halving.
#
# Not promised: the fewest trials, or the largest set that stands.


@dataclass(slots=True)
class FoundIn:
    """A file with the findings of ours that answer for reported ones; these by their place in the log's order."""

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


class RepairTrial:
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


class FindingState(StrEnum):
    """What became of a finding."""

    FIXED = "fixed"
    SKIPPED = "skipped"
    FAILED = "failed"
    WONT_FIX = "won't-fix"


class FixProof(StrEnum):
    """What vouches for a repair: the rule's promise and the file's structure, tests that run the lines, or nobody."""

    STRUCTURE = "structure"
    TESTS = "tests"
    ASKED = "asked"


@dataclass(frozen=True, kw_only=True, slots=True)
class Remediated:
    """One finding's answer. `settled`: nothing was to be done about it."""

    reported: Reported
    state: FindingState
    why: str
    proof: FixProof | None = None
    settled: bool = False
    fix: Replaced | None = None

    @property
    def answer(self) -> ResultUpdate:
        """What goes into the log."""
        return ResultUpdate(state=self.state.value, why=self.why, proof=self.proof or "", fix=self.fix)


@dataclass(frozen=True, kw_only=True, slots=True)
class Remediation:
    """Every finding's answer, in the log's order, and the one patch."""

    findings: tuple[Remediated, ...]
    patch: Patch

    @property
    def remain(self) -> int:
        """Findings that are neither fixed nor settled."""
        return sum(f.state is not FindingState.FIXED and not f.settled for f in self.findings)


Read = Callable[[RepoPath], bytes]
Open = Callable[[], contextlib.AbstractContextManager["Vouching | None"]]


@contextlib.contextmanager
def reading(root: Path) -> Iterator[Read]:
    """Reads files below a root, never through a link; OSError where that cannot be."""

    def read(path: RepoPath) -> bytes:
        with openat.parent_directory(top, path.parts) as parent:
            return openat.read_regular(path.name, parent, MAX_BYTES)[0]

    with openat.root_directory(root) as top:
        yield read


class RemediationWork:
    """Findings and the files they lie in. `prover` is opened only if there is something to prove.

    A repair that makes a line longer than `longest_line` characters is left out (0: as long as it likes).
    """

    def __init__(self, read: Read, gates: Gates, prover: Open, *, suggestions: bool, longest_line: int = 0) -> None:
        self._read = read
        self._gates = gates
        self._open = prover
        self._suggestions = suggestions
        self._longest_line = longest_line
        self._answers: dict[int, Remediated] = {}
        self._reported: Sequence[Reported] = ()
        self._files: dict[RepoPath, FoundIn] = {}

    def remediate(self, reported: Sequence[Reported]) -> Remediation:
        """Answer for every finding; nothing is written."""
        self._reported = reported
        by_path: dict[RepoPath, list[int]] = {}
        for n, item in enumerate(reported):
            if item.settled:
                self._say(n, FindingState.SKIPPED, item.settled, settled=True)
            elif item.unreadable:
                self._say(n, FindingState.WONT_FIX, f"not readable: {item.unreadable}")
            elif item.path is None or not item.line:
                self._say(n, FindingState.WONT_FIX, "the log names no line for it")
            elif self._known(n):
                by_path.setdefault(item.path, []).append(n)
        for path, numbers in sorted(by_path.items()):
            self._look(path, numbers)
        with self._open() if self._files else contextlib.nullcontext() as prover:
            patch = self._proven(prover)
        return Remediation(findings=tuple(self._answers[n] for n in range(len(reported))), patch=patch)

    def _say(self, n: int, state: FindingState, why: str, *, settled: bool = False) -> None:
        self._answers[n] = Remediated(reported=self._reported[n], state=state, why=why, settled=settled)

    # ---- looking --------------------------------------------------------------------------------------------------

    def _known(self, n: int) -> bool:
        """Whether rules of ours repair what a tool's rule finds."""
        item = self._reported[n]
        rules = rules_for(item.tool, item.rule)
        if rules is None:
            self._say(n, FindingState.WONT_FIX, f"findings of {item.tool!r} are not known here")
        elif not rules:
            self._say(n, FindingState.WONT_FIX, f"there is no repair for {item.rule or 'a finding without a rule'}")
        elif persons := [PERSON[name] for name in rules if name in PERSON]:
            self._say(n, FindingState.WONT_FIX, persons[0])
        else:
            return True
        return False

    def _look(self, path: RepoPath, numbers: Sequence[int]) -> None:
        """Find the same mistakes in a file, or say why not."""
        try:
            data = self._read(path)
            view = view_of(data, path.name)
        except FileNotFoundError:
            reason = "the file is gone"
        except OSError as error:
            reason = f"the file cannot be read: {error.strerror or 'not a regular file'}"
        except CannotReadError as error:
            reason = f"the file {error}"
        else:
            fresh = [n for n in numbers if self._reported[n].digest in ("", sha256(data).hexdigest())]
            for n in set(numbers) - set(fresh):
                self._say(n, FindingState.FAILED, "the file is not the one that was analysed: make the log anew")
            file = FoundIn(view=view)
            self._match(file, fresh)
            if file.targets:
                self._files[path] = file
            return
        for n in numbers:
            self._say(n, FindingState.FAILED, reason)

    def _match(self, file: FoundIn, numbers: Sequence[int]) -> None:
        """Give each reported finding one of ours in its lines, the nearest by column that is still free."""
        wanted = {name for n in numbers for name in self._rules(n)}
        file.found = find_despite_other_tools(file.view, [BY_ID[name] for name in sorted(wanted)])
        for n in sorted(numbers, key=lambda n: (self._reported[n].line, self._reported[n].column, n)):
            item = self._reported[n]
            mine = [
                k
                for k, f in enumerate(file.found)
                if f.rule in self._rules(n) and item.line <= f.line <= max(item.line, item.end_line)
            ]
            if not mine:
                self._say(n, *self._not_found(file, n))
                continue
            free = [k for k in mine if k not in file.targets] or mine
            taken = min(free, key=lambda k: (file.found[k].line, abs(file.found[k].column + 1 - item.column)))
            if file.found[taken].cuts:
                file.targets.setdefault(taken, []).append(n)
            else:
                self._say(n, FindingState.WONT_FIX, f"{file.found[taken].message}: only a person can repair it here")

    def _not_found(self, file: FoundIn, n: int) -> tuple[FindingState, str]:
        """Why no finding of ours answers for a reported one."""
        item, lines = self._reported[n], len(file.view.source.utf8.splitlines())
        if item.line > lines + 1:  # one more is the end of the file
            return FindingState.FAILED, f"the file changed: it has {lines} lines, and the log names line {item.line}"
        where = f"line {item.line}" if item.end_line <= item.line else f"lines {item.line} to {item.end_line}"
        names = " or ".join(self._rules(n))
        rules = [BY_ID[name] for name in self._rules(n)]
        if any(item.line <= f.line <= max(item.line, item.end_line) for f in find_all(file.view, rules)):
            return FindingState.FAILED, f"a comment at {where} suppresses our rule {names}"
        return FindingState.WONT_FIX, f"not found by our rule {names} at {where}"

    def _rules(self, n: int) -> tuple[str, ...]:
        return rules_for(self._reported[n].tool, self._reported[n].rule) or ()

    # ---- proving --------------------------------------------------------------------------------------------------

    def _proven(self, prover: "Vouching | None") -> Patch:
        """The patch of every repair that stands; says of the others why not."""
        wanted = [t for t in self._targets() if self._may(t, prover)]
        refused: dict[Target, str] = {}
        built = Built(self._files)
        for target, why in built.patch(wanted)[1].items():
            refused[target] = why
        trial = RepairTrial(built, self._gates, prover)
        kept = trial.keep([t for t in wanted if t not in refused], refused)
        for target, why in refused.items():
            self._tell(target, FindingState.FAILED, why)
        for path, k in kept:
            file = self._files[path]
            fix, finding = _standing_alone(file.view, file.found[k]), file.found[k]
            for n in file.targets[k]:
                self._answers[n] = Remediated(
                    reported=self._reported[n],
                    state=FindingState.FIXED,
                    why=f"{finding.message} [{finding.rule}]",
                    proof=self._proof((path, k), prover),
                    fix=fix,
                )
        return built.patch(kept)[0]

    def _targets(self) -> Iterator[Target]:
        return ((path, k) for path, file in sorted(self._files.items()) for k in sorted(file.targets))

    def _may(self, target: Target, prover: "Vouching | None") -> bool:
        """Whether a repair may be tried: a safe one always, another where a test would tell, or where it was asked."""
        path, _ = target
        file = self._files[path]
        if prover is not None and not prover.same(path, file.view.source.raw):
            self._tell(target, FindingState.FAILED, "the file was changed meanwhile")
            return False
        if self._longest_line:
            after = after_repairs(file.view, [file.found[target[1]]])
            if after is not None and lengthened(file.view, after, self._longest_line):
                self._tell(target, FindingState.SKIPPED, too_long(self._longest_line))
                return False
        if self._suggestions or self._proof(target, prover) is not FixProof.ASKED:
            return True
        why = "no passing test runs it" if prover is not None else "no test was named with --test"
        self._tell(
            target,
            FindingState.SKIPPED,
            f"its repair may change behaviour, and {why}; --suggestions makes it anyway",
        )
        return False

    def _proof(self, target: Target, prover: "Vouching | None") -> FixProof:
        path, k = target
        view, finding = self._files[path].view, self._files[path].found[k]
        last = view.source.line_of(max(cut[1] for cut in finding.cuts or ((0, 0, ""),)))
        if prover is not None and prover.runs(path, finding.line, last):
            return FixProof.TESTS
        return FixProof.STRUCTURE if finding.grade is FixGrade.SAFE else FixProof.ASKED

    def _tell(self, target: Target, state: FindingState, why: str) -> None:
        for n in self._files[target[0]].targets[target[1]]:
            self._say(n, state, why)


def _standing_alone(view: FileView, finding: LintFinding) -> Replaced | None:
    """One repair by itself, as whole lines of the file that was analysed; None where it cannot stand alone."""
    after = after_repairs(view, [finding])
    if after is None:
        return None
    old, new = (v.source.utf8.splitlines(keepends=True) for v in (view, after))
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if head + tail in (len(old), len(new)):  # lines only came, or went: one that stays goes with them
        head, tail = (head - 1, tail) if head else (head, tail - 1)
    text = b"".join(new[head : len(new) - tail]).decode()
    return Replaced(first=head + 1, last=len(old) - tail, text=text.removesuffix("\n").removesuffix("\r"))
