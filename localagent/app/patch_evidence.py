"""The evidence for a patch that broke nothing: which changed lines tests run, old against new, mutants, the grade."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from localagent.app.prior import load_prior
from localagent.app.settings import Settings
from localagent.domain.outcome import Baseline, FullResult, Outcome
from localagent.domain.paths import RepoPath
from localagent.domain.strength import Share, Strength, graded
from localagent.domain.task import Snapshot
from localagent.domain.verification import Differential, Mutants
from localagent.edit.space import open_edit_space
from localagent.errors import AnswerIsNo
from localagent.repair.identity import behaviour_key
from localagent.tree.snapshot import SourceMap
from localagent.verify.changed import ChangedFile
from localagent.verify.differential import Differ
from localagent.verify.mutants import mutants_of, try_mutants
from localagent.verify.patches import PatchVerifier

_MISSING = 10


class Timer(Protocol):
    """Who keeps the time of stages."""

    def timed(self, stage: str) -> AbstractContextManager[None]:
        """Counts the time of a block."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What was measured. `ran`: a test that counts ran a changed line. `around`: code outside functions changed."""

    differential: Differential | None = None
    mutants: Mutants | None = None
    strength: Strength | None = None
    ran: bool = False
    around: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Covered:
    """Changed statements that tests which count ran, by file, and the tests."""

    lines: Mapping[RepoPath, frozenset[int]]
    share: Share
    tests: tuple[str, ...]
    after: Baseline | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What evidence is gathered of, and with what. `files` are the changed sources whose syntax differs."""

    verifier: PatchVerifier
    files: tuple[ChangedFile, ...]
    settings: Settings
    timer: Timer
    after: Snapshot
    scratch: Path
    seed: int
    jobs: int


def gather(subject: Subject, baseline: Baseline | None, full: FullResult) -> Evidence:
    """All evidence there is for a patch that broke nothing. Without a baseline there are no tests."""
    verifier, files, timer, seed = subject.verifier, subject.files, subject.timer, subject.seed
    if not files:
        return Evidence(notes=("no strength was measured: there is nothing that it could be the strength of",))
    notes: list[str] = []
    with timer.timed("coverage"):
        covered = _covered(verifier, files, baseline, full, notes)
    with timer.timed("differential"):
        home = subject.scratch / "hypothesis"
        differ = Differ(verifier.before, verifier.after, verifier.request, files, seed=seed, home=home)
        turned = [i for i in full.fail_to_pass if not i.startswith(("check:", "collect:"))]
        near = differ.compare(baseline, covered.tests, turned)
    unknown: dict[str, str] = {}
    mutants: Mutants | None = None
    if covered.after is not None and covered.share.part:
        with timer.timed("mutants"):
            mutants = _mutants(subject, covered)
    else:
        unknown["mutants"] = "no test that counts runs a changed line"
    strength = graded(lines=covered.share, mutants=_share_of(mutants), functions=_functions(near), unknown=unknown)
    return Evidence(
        differential=near,
        mutants=mutants,
        strength=strength,
        ran=covered.share.part > 0,
        around=any(f.around() or f.fresh() for f in files),
        notes=tuple(notes),
    )


def _covered(
    verifier: PatchVerifier,
    files: Sequence[ChangedFile],
    baseline: Baseline | None,
    full: FullResult,
    notes: list[str],
) -> _Covered:
    wanted = {f.path: f.executable() for f in files}
    whole = sum(len(lines) for lines in wanted.values())
    if baseline is None or (not baseline.tests and not baseline.collect_failures):
        return _Covered(lines={}, share=Share(part=0, whole=whole, note="there are no tests"), tests=(), after=None)
    try:
        after = verifier.after_baseline()
    except AnswerIsNo as no:
        notes.append(f"what the tests cover could not be told: {no}")
        return _Covered(lines={}, share=Share(part=0, whole=whole, note=str(no)), tests=(), after=None)
    counting = {*full.fail_to_pass, *full.pass_to_pass} | ({t.id for t in after.tests} - {t.id for t in baseline.tests})
    ran: dict[RepoPath, set[int]] = {path: set() for path in wanted}
    tests: list[tuple[float, str]] = []
    for test in after.tests:
        if test.id not in counting or test.outcome is not Outcome.PASSED or test.lines is None:
            continue
        hits = {path: test.lines.get(path, frozenset()) & lines for path, lines in wanted.items()}
        for path, lines in hits.items():
            ran[path] |= lines
        if any(hits.values()):
            tests.append((test.seconds, test.id))
    for path, lines in wanted.items():
        if any(t.lines and t.lines.get(path) for t in after.tests if t.id in counting):
            ran[path] |= after.import_lines.get(path, frozenset()) & lines
    missing = [f"{path}:{n}" for path in sorted(wanted) for n in sorted(wanted[path] - ran[path])]
    share = Share(part=whole - len(missing), whole=whole, missing=tuple(missing[:_MISSING]))
    covered = {path: frozenset(lines) for path, lines in ran.items() if lines}
    return _Covered(lines=covered, share=share, tests=tuple(i for _, i in sorted(tests)), after=after)


def _mutants(subject: Subject, covered: _Covered) -> Mutants:
    assert covered.after is not None
    space = open_edit_space(load_prior(subject.settings.models_dir / "prior.json"))
    chosen, total = mutants_of(space, SourceMap(subject.after), covered.lines, behaviour_key, seed=subject.seed)
    if not chosen:
        return Mutants(tried=0, killed=0, space=0, note="the edit space has none for these lines")
    ground = replace(covered.after, failing=(), checks=(), collect_failures={})
    check = subject.verifier.quick(ground, jobs=subject.jobs)
    try:
        return try_mutants(check, chosen, total, jobs=subject.jobs)
    finally:
        check.close()


def _share_of(mutants: Mutants | None) -> Share | None:
    if mutants is None:
        return None
    return Share(part=mutants.killed, whole=mutants.tried, missing=mutants.alive[:_MISSING], note=mutants.note)


def _functions(near: Differential) -> Share:
    if not near.functions:
        return Share(part=0, whole=0, note="no function that is touched stands in both trees")
    missed = [f"{f.path}: {f.function} ({f.why})" for f in near.functions if not f.reached]
    return Share(
        part=sum(f.reached for f in near.functions), whole=len(near.functions), missing=tuple(missed[:_MISSING])
    )
