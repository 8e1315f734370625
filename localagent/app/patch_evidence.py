"""The evidence for a patch that broke nothing: which changed lines tests run, old against new, mutants, the grade."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from localagent.app.prior import load_prior
from localagent.app.settings import Settings
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.strength import Strength, graded
from localagent.domain.task import Snapshot
from localagent.domain.verification import Contracts, Differential, Mutants, Symbolic, compared_share, mutants_share
from localagent.edit.space import open_edit_space
from localagent.errors import AnswerIsNo
from localagent.repair.identity import behaviour_key
from localagent.tree.sources import SourceMap
from localagent.verify.changed import ChangedFile
from localagent.verify.contracts import ask_contracts
from localagent.verify.covering import Covered, covered, nothing_covered
from localagent.verify.differential import Differ
from localagent.verify.disagreement import DIFFERENCES_SHOWN
from localagent.verify.mutants import mutants_of, try_mutants
from localagent.verify.patches import PatchVerifier
from localagent.verify.symbolic import ask_crosshair


class Timer(Protocol):
    """Who keeps the time of stages."""

    def timed(self, stage: str) -> AbstractContextManager[None]:
        """Counts the time of a block."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What was measured. `ran`: a test that counts ran a changed line. `around`: code outside functions changed."""

    differential: Differential | None = None
    symbolic: tuple[Symbolic, ...] | None = None
    contracts: tuple[Contracts, ...] | None = None
    mutants: Mutants | None = None
    strength: Strength | None = None
    ran: bool = False
    around: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What evidence is gathered of, and with what. `files` are the changed sources whose syntax differs."""

    verifier: PatchVerifier
    files: tuple[ChangedFile, ...]
    settings: Settings
    timer: Timer
    after: Snapshot
    seed: int
    jobs: int
    crosshair: bool = False


def gather(subject: Subject, baseline: Baseline | None, full: FullResult) -> Evidence:
    """All evidence there is for a patch that broke nothing. Without a baseline there are no tests."""
    verifier, files, timer, seed = subject.verifier, subject.files, subject.timer, subject.seed
    if not files:
        return Evidence(notes=("no strength was measured: there is nothing that it could be the strength of",))
    notes: list[str] = []
    with timer.timed("coverage"):
        seen, after = _covered(verifier, files, baseline, full, notes)
    with timer.timed("differential"):
        home = subject.settings.state_dir / "hypothesis"
        differ = Differ(verifier.before, verifier.after, verifier.request, files, seed=seed, home=home)
        turned = [i for i in full.fail_to_pass if not i.startswith(("check:", "collect:"))]
        near = differ.compare(baseline, seen.tests, turned)
    symbolic: tuple[Symbolic, ...] | None = None
    contracts: tuple[Contracts, ...] | None = None
    if subject.crosshair:
        with timer.timed("crosshair"):
            symbolic = ask_crosshair(verifier.after, files)
            contracts = ask_contracts(verifier.before, verifier.after, files)
        near = _joined(near, symbolic)
    unknown: dict[str, str] = {}
    mutants: Mutants | None = None
    if after is not None and seen.share.part:
        with timer.timed("mutants"):
            mutants = _mutants(subject, seen, after)
    else:
        unknown["mutants"] = "no test that counts runs a changed line"
    strength = graded(lines=seen.share, mutants=mutants_share(mutants), functions=compared_share(near), unknown=unknown)
    return Evidence(
        differential=near,
        symbolic=symbolic,
        contracts=contracts,
        mutants=mutants,
        strength=strength,
        ran=seen.share.part > 0,
        around=any(f.around() or f.fresh() for f in files),
        notes=tuple(notes),
    )


def _joined(near: Differential, symbolic: Sequence[Symbolic]) -> Differential:
    """The table with what CrossHair found, smallest first; an input that stands there already is not told twice."""
    known = {d.call for d in near.differences}
    more = [d for answer in symbolic for d in answer.differences if d.call not in known]
    found = sorted((*near.differences, *more), key=lambda d: (len(d.call), d.call, d.function))
    left_out = near.differences_left_out + max(0, len(found) - DIFFERENCES_SHOWN)
    return replace(near, differences=tuple(found[:DIFFERENCES_SHOWN]), differences_left_out=left_out)


def _covered(
    verifier: PatchVerifier,
    files: Sequence[ChangedFile],
    baseline: Baseline | None,
    full: FullResult,
    notes: list[str],
) -> tuple[Covered, Baseline | None]:
    if baseline is None or (not baseline.tests and not baseline.collect_failures):
        return nothing_covered(files, "there are no tests"), None
    try:
        after = verifier.after_baseline()
    except AnswerIsNo as no:
        notes.append(f"what the tests cover could not be told: {no}")
        return nothing_covered(files, str(no)), None
    counting = {*full.fail_to_pass, *full.pass_to_pass} | ({t.id for t in after.tests} - {t.id for t in baseline.tests})
    return covered(files, [t for t in after.tests if t.id in counting], after.import_lines), after


def _mutants(subject: Subject, seen: Covered, after: Baseline) -> Mutants:
    space = open_edit_space(load_prior(subject.settings.models_dir / "prior.json"))
    chosen, total = mutants_of(space, SourceMap(subject.after), seen.lines, behaviour_key, seed=subject.seed)
    if not chosen:
        return Mutants(tried=0, killed=0, space=0, note="the edit space has none for these lines")
    ground = replace(after, failing=(), checks=(), collect_failures={})
    check = subject.verifier.quick(ground, jobs=subject.jobs)
    try:
        return try_mutants(check, chosen, total, jobs=subject.jobs)
    finally:
        check.close()
