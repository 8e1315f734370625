"""What the verbs do with files: look, repair, ask the gates, write. Files come as bytes, by name or from the index.

Nothing of the repository runs. A file is written whole, with its mode, or not at all.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs import openat
from localagent.lint.engine import NEWER_PYTHON, UNREADABLE, LintFinding, find
from localagent.lint.file_view import MAX_BYTES, CannotReadError, NewerPythonError, view_of
from localagent.lint.fixer import after_repairs, lengthened, repair
from localagent.lint.lint_rule import FixGrade, LintRule
from localagent.repo.diff.write_diff import unified_diff

if TYPE_CHECKING:
    from localagent.domain.gate import Finding as GateFinding
    from localagent.domain.policy import Policy
    from localagent.gate.core.chain import Chain
    from localagent.repo.git import Git
    from localagent.repo.staged_index import StagedFile


Around = Callable[[Path, Patch, Sequence[str]], AbstractContextManager[Mapping[str, str]]]
"""What stands around a patch that is written: repository, patch, rules; it says what the entries say besides."""
UNDO = "hook"  # below the state directory: what an unfinished repair needs to be taken back


@dataclass(frozen=True, kw_only=True, slots=True)
class FileReport:
    """One file: what was found (or is left), what was repaired, and why something was not.

    `after` is None where nothing changed. `refused` says why the repairs of the whole file were not written.
    `suggestions` are unified diffs, each of one repair that was not made.
    """

    path: RepoPath
    findings: tuple[LintFinding, ...]
    before: bytes = b""
    after: bytes | None = None
    applied: tuple[LintFinding, ...] = ()
    withheld: tuple[tuple[LintFinding, str], ...] = ()
    refused: str = ""
    suggestions: tuple[str, ...] = ()


def unreadable(path: RepoPath, reason: str) -> FileReport:
    """The report on a file that is not looked at."""
    return _remarked(path, UNREADABLE, reason)


def _not_read(path: RepoPath, error: CannotReadError) -> FileReport:
    rule = NEWER_PYTHON if isinstance(error, NewerPythonError) else UNREADABLE
    return _remarked(path, rule, str(error), line=error.line)


def _remarked(path: RepoPath, rule: str, message: str, *, line: int = 1) -> FileReport:
    finding = LintFinding(rule=rule, line=line, column=0, message=message, grade=FixGrade.SUGGESTION)
    return FileReport(path=path, findings=(finding,))


def check(path: RepoPath, raw: bytes, rules: Sequence[LintRule]) -> FileReport:
    """What is found in a file; nothing is repaired."""
    try:
        return FileReport(path=path, findings=tuple(find(view_of(raw, path.name), rules)), before=raw)
    except CannotReadError as error:
        return _not_read(path, error)


def fix(
    path: RepoPath,
    raw: bytes,
    rules: Sequence[LintRule],
    gates: "Gates",
    *,
    suggestions: bool,
    longest_line: int = 0,
) -> FileReport:
    """A file repaired in memory, and judged by the gates. `suggestions` asks for the diffs of the others.

    A repair that makes a line longer than `longest_line` characters is withheld (0: as long as it likes).
    """
    try:
        view = view_of(raw, path.name)
    except CannotReadError as error:
        return _not_read(path, error)
    found = find(view, rules)
    done = repair(view, rules, found, longest_line) if any(f.repairable for f in found) else None
    after, refused = None, ""
    if done is not None and done.after != raw:
        after = done.after
        if refused := "; ".join(
            f"{f.rule}: {f.message}" for f in gates.review(FileChange(path=path, before=raw, after=after))
        ):
            after, done = None, None
    left = tuple(found) if done is None else done.left
    report = FileReport(
        path=path,
        findings=left,
        before=raw,
        after=after,
        applied=done.applied if done else (),
        withheld=done.withheld if done else (),
        refused=refused,
    )
    return replace(report, suggestions=tuple(_diffs(report, rules, longest_line))) if suggestions else report


def _diffs(report: FileReport, rules: Sequence[LintRule], longest_line: int) -> list[str]:
    """Each repair that was not made, as a diff on its own against the file as it will be."""
    view = view_of(report.before if report.after is None else report.after, report.path.name)
    diffs = []
    for finding in find(view, rules):
        after = after_repairs(view, [finding]) if finding.cuts and finding.grade is FixGrade.SUGGESTION else None
        if after is not None and not lengthened(view, after, longest_line):
            change = FileChange(path=report.path, before=view.source.raw, after=after.source.raw)
            diffs.append(unified_diff(Patch(changes=(change,))).decode("utf-8", "surrogateescape"))
    return diffs


class Gates:
    """The gates that judge a repair's content (sizes, dangers). Loaded when first asked: most runs repair nothing.

    `whole`: the changes are one patch, whose size is judged as any patch's is, instead of repairs of one file.
    """

    def __init__(self, load: "Callable[[], Policy]", *, whole: bool = False) -> None:
        self._load = load
        self._whole = whole

    @cached_property
    def _chain(self) -> "Chain":
        from localagent.gate.core.chain import Chain  # noqa: PLC0415 - see the class
        from localagent.gate.files.size import Size  # noqa: PLC0415
        from localagent.gate.security.forbidden_apis import Dangerous  # noqa: PLC0415

        policy = self._load()
        sized = replace(policy, size=policy.patches.size) if self._whole else policy
        return Chain((Size(sized), Dangerous(policy)))

    def review(self, *changes: FileChange) -> "tuple[GateFinding, ...]":
        """What the gates have against changes; nothing where all allow."""
        candidate = Candidate(number=1, patch=Patch(changes=changes), edits=(), cost=0.0)
        decisions = self._chain.review(candidate, Baseline(tests=()), {c.path: c.before for c in changes})
        return tuple(finding for decision in decisions for finding in decision.findings)


def read_named(root: Path, folder: Path, names: Sequence[str]) -> list[tuple[RepoPath, bytes | str]]:
    """Named files below the root with their bytes, or the reason why not. UsageFault lists every wrong name."""
    found: list[tuple[RepoPath, bytes | str]] = []
    faults = []
    with openat.root_directory(root) as top:
        for name in names:
            place = Path(os.path.realpath((folder / name).parent)) / Path(name).name
            if not place.is_relative_to(root) or place == root:
                faults.append(f"{name}: not below {root}")
                continue
            path = RepoPath(place.relative_to(root).as_posix())
            try:
                with openat.parent_directory(top, path.parts) as parent:
                    found.append((path, openat.read_regular(path.name, parent, MAX_BYTES)[0]))
            except FileNotFoundError:
                faults.append(f"{name}: no such file")
            except IsADirectoryError:
                faults.append(f"{name}: a folder; name files")
            except OSError as error:
                found.append((path, error.strerror or "not a regular file"))
    if faults:
        raise UsageFault(faults, remedy="name files of the repository, or none for what is staged")
    return found


def write_named(root: Path, reports: Sequence[FileReport], state_dir: Path, around: Around) -> None:
    """Write repaired files into the working tree, all or none, on the record.

    AnswerIsNo when one was changed meanwhile, or when the audit journal takes no entry.
    """
    changes = _changes(reports)
    if changes:
        with _recorded(root, changes, reports, state_dir, around):
            _land(root, changes, state_dir / UNDO)


def write_index(
    git: "Git",
    root: Path,
    files: Mapping[RepoPath, "StagedFile"],
    reports: Sequence[FileReport],
    state_dir: Path,
    around: Around,
) -> list[FileReport]:
    """Write repaired staged files into the index and, where the same lines stand there, into the working tree.

    On the record as `write_named` is. A file for which both cannot be done is left alone in both; its report says why.
    """
    from localagent.precommit.crash_recovery import keep, undo_folder  # noqa: PLC0415 - most runs write nothing
    from localagent.repo.staged_index import attribute_conflicts, keep_blobs, temporary_index, write_staged  # noqa: PLC0415

    changed = [r.path for r in reports if r.after is not None]
    if not changed:
        return list(reports)
    reasons = attribute_conflicts(git, changed)
    if temporary_index(git):
        reasons = dict.fromkeys(
            changed, "git commits named paths from an index of its own; `git add` and commit without paths"
        )
    answered, staged, working = [], [], []
    for report in reports:
        reason, change = ("", None) if report.after is None else _carried(root, report, reasons.get(report.path, ""))
        if reason:
            answered.append(_not_written(report, reason))
            continue
        if report.after is not None:
            staged.append((files[report.path], report.after))
            working += [change] if change is not None and change.before != change.after else []
        answered.append(report)
    if staged:
        with _recorded(root, _changes(answered), answered, state_dir, around):
            folder = undo_folder(state_dir / UNDO, root)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            blobs = keep_blobs(git, staged, folder)
            keep(folder, blobs)
            _land(root, working, state_dir / UNDO, lambda: write_staged(git, [file for file, _ in staged], blobs))
    return answered


def _changes(reports: Sequence[FileReport]) -> list[FileChange]:
    return [FileChange(path=r.path, before=r.before, after=r.after) for r in reports if r.after is not None]


@contextmanager
def _recorded(
    root: Path, changes: Sequence[FileChange], reports: Sequence[FileReport], state_dir: Path, around: Around
) -> Iterator[None]:
    """The audit journal's entries around a repair: digest, and which rules; without them nothing is written.

    What `around` opens stands around both, and what it says is said by both.
    """
    from localagent.record.audit.entry import AuditKind  # noqa: PLC0415
    from localagent.record.audit.intent_and_outcome import recorded  # noqa: PLC0415 - most runs write nothing
    from localagent.record.audit.log import AuditLog  # noqa: PLC0415

    patch = Patch(changes=tuple(sorted(changes, key=lambda c: c.path)))
    rules = sorted({f.rule for report in reports if report.after is not None for f in report.applied})
    data = {"hook": "fix", "repo": str(root), "patch": patch.digest, "rules": rules}
    log = AuditLog(state_dir)
    with around(root, patch, rules) as more, recorded(log, AuditKind.APPLYING, AuditKind.APPLIED, {**data, **more}):
        yield


def settled(root: Path, environ: Mapping[str, str], undo_root: Path) -> str:
    """Finish or take back what a killed run left, before anything is read; a remark, or ""."""
    if not undo_root.is_dir():
        return ""
    from localagent.precommit.crash_recovery import settle, undo_folder  # noqa: PLC0415 - most runs find nothing
    from localagent.repo.git import Git  # noqa: PLC0415

    return settle(Git(root, environ), root, undo_folder(undo_root, root))


def _not_written(report: FileReport, reason: str) -> FileReport:
    return replace(
        report,
        after=None,
        refused=reason,
        applied=(),
        withheld=(),
        findings=tuple(sorted((*report.applied, *report.findings), key=lambda f: f.line)),
    )


def _carried(root: Path, report: FileReport, reason: str) -> tuple[str, FileChange | None]:
    """The same change for the working file, or why there is none."""
    from localagent.repo.staged_index import carried_over  # noqa: PLC0415

    if reason:
        return reason, None
    try:
        with openat.root_directory(root) as top, openat.parent_directory(top, report.path.parts) as parent:
            present, _ = openat.read_regular(report.path.name, parent, MAX_BYTES)
    except OSError as error:
        return f"its working file cannot be read ({error.strerror or 'not a regular file'})", None
    carried = carried_over(report.before, report.after or b"", present)
    if carried is None:
        return "unstaged changes, or other line ends, stand in the working file at the same place", None
    if carried not in (present, report.after):  # what was proven already is not read again
        try:
            view_of(carried)
        except CannotReadError as error:
            return f"its working file {error}", None
    return "", FileChange(path=report.path, before=present, after=carried)


def _land(root: Path, changes: Sequence[FileChange], undo_root: Path, then: Callable[[], None] | None = None) -> None:
    """Land changes, do the rest, and take the changes back if the rest fails.

    Where that fails as well, what stood before stays below `undo_root`: the next run goes on with it.
    """
    from localagent.precommit.crash_recovery import undo_folder  # noqa: PLC0415 - most runs write nothing
    from localagent.repo.apply_patch import land, undo  # noqa: PLC0415

    undo_dir = undo_folder(undo_root, root)
    patch = Patch(changes=tuple(sorted(changes, key=lambda c: c.path)))
    if patch.changes:
        land(patch, root, undo_dir)
    try:
        if then is not None:
            then()
    except BaseException:
        if patch.changes:
            undo(root, undo_dir)
        shutil.rmtree(undo_dir, ignore_errors=True)
        raise
    shutil.rmtree(undo_dir, ignore_errors=True)


def refuse_outside(root: Path, folder: Path) -> None:
    """AnswerIsNo where git's working tree (`core.worktree`, GIT_WORK_TREE) is not around the folder."""
    if not folder.resolve().is_relative_to(root.resolve()):
        raise AnswerIsNo(f"git's working tree {root} is not around {folder}", remedy="run it inside the working tree")
