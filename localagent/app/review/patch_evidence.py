"""The evidence for a patch that broke nothing: which changed lines tests run, old against new, mutants, needed parts.

The grade that follows here is one of how well tests watch the change; `verify_verdict` makes it one of a claim.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from localagent.app.fix.prior import load_prior
from localagent.app.settings import Settings
from localagent.domain.claim import DifferenceKind
from localagent.domain.edit import Candidate
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.strength import Strength, graded
from localagent.domain.task import Snapshot
from localagent.domain.verification import (
    Contracts,
    Differential,
    Mutants,
    Necessity,
    Symbolic,
    UnrunCode,
    compared_share,
    mutants_share,
)
from localagent.edit.space import open_edit_space
from localagent.errors import AnswerIsNo
from localagent.repair.search.code_equivalence import behaviour_key
from localagent.repo.source_map import SourceMap
from localagent.verify.checks.patch_guard import PatchGuard
from localagent.verify.checks.test_selection import CHECK_PREFIX, COLLECT_PREFIX
from localagent.verify.evidence.behaviour_diff import DIFFERENCES_SHOWN
from localagent.verify.evidence.candidate_behaviour import behaviours
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.crosshair_contracts import ask_contracts
from localagent.verify.evidence.crosshair_equivalence import ask_crosshair
from localagent.verify.evidence.differential import Differ
from localagent.verify.evidence.mutants import MutantFate, mutants_of, try_mutants
from localagent.verify.evidence.necessity import (
    PatchPart,
    outermost,
    parts_of,
    same_statement,
    together,
    try_parts,
    without,
)
from localagent.verify.evidence.patch_coverage import (
    Covered,
    changed_lines,
    covered,
    not_measured,
    nothing_covered,
    unrun,
)
from localagent.verify.patch_verifier import PatchVerifier

LEAST_STEADY = 2  # results: of one, many a wrong repair is true
_TURNED_SECONDS, _TURNED_MOST = 1.0, 20  # of turned tests, to which every mutant and every part taken back is put


class Timer(Protocol):
    """Who keeps the time of stages."""

    def timed(self, stage: str) -> AbstractContextManager[None]:
        """Counts the time of a block."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What was measured. `turned` are tests that failed before and pass, `new` those that only the patched tree has.

    `ran`: a test that counts ran a changed line; `new_ran`: one that turned, or is new, did. `kept`: a test that passed
    before runs a touched function, one that turned makes calls of it that stay as they were, or there is none.
    `around`: code outside functions changed. `unrun`: what no test that counts runs.
    """

    differential: Differential | None = None
    symbolic: tuple[Symbolic, ...] | None = None
    contracts: tuple[Contracts, ...] | None = None
    mutants: Mutants | None = None
    necessity: Necessity | None = None
    strength: Strength | None = None
    turned: tuple[str, ...] = ()
    new: frozenset[str] = frozenset()
    ran: bool = False
    new_ran: bool = False
    kept: bool = True
    around: bool = False
    unrun: tuple[UnrunCode, ...] = ()
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


def gather(subject: Subject, baseline: Baseline | None, full: FullResult, guard: PatchGuard | None = None) -> Evidence:
    """All evidence there is for a patch that broke nothing. Without a baseline there are no tests.

    What passes in the `guard` and runs a touched function counts as the named tests do.
    """
    verifier, files, timer, seed = subject.verifier, subject.files, subject.timer, subject.seed
    if not files:
        return Evidence(
            turned=tuple(turned_tests(full, None)),
            notes=("no strength was measured: there is nothing that it could be the strength of",),
        )
    notes: list[str] = []
    with timer.timed("coverage"):
        seen, after, missed = _covered(verifier, files, baseline, full, guard, notes)
    turned = turned_tests(full, after)
    with timer.timed("differential"):
        home = subject.settings.state_dir / "hypothesis"
        differ = Differ(verifier.before, verifier.after, verifier.request, files, seed=seed, home=home)
        near = differ.compare(baseline, seen.callers, [*turned, *(guard.turned if guard is not None else ())])
    symbolic: tuple[Symbolic, ...] | None = None
    contracts: tuple[Contracts, ...] | None = None
    if subject.crosshair:
        with timer.timed("crosshair"):
            symbolic = ask_crosshair(verifier.after, files)
            contracts = ask_contracts(verifier.before, verifier.after, files)
        near = _joined(near, symbolic)
    new = _new(baseline, after) - frozenset(t.id for t in (guard.witnesses if guard is not None else ()))
    unknown = {"lines": seen.unknown} if seen.unknown else {}
    mutants: Mutants | None = None
    necessity: Necessity | None = None
    if after is not None and seen.share.part:
        mutants, necessity = _noticed(subject, seen, after, turned)
    else:
        unseen = "it is not known which tests run the changed lines"
        unknown["mutants"] = unseen if seen.unknown else "no test that counts runs a changed line"
    strength = graded(
        lines=seen.measured, mutants=mutants_share(mutants), functions=compared_share(near), unknown=unknown
    )
    return Evidence(
        differential=near,
        symbolic=symbolic,
        contracts=contracts,
        mutants=mutants,
        necessity=necessity,
        strength=strength,
        turned=tuple(turned),
        new=frozenset(new),
        ran=seen.share.part > 0,
        new_ran=not {*turned, *new}.isdisjoint(seen.tests),
        kept=bool(seen.unknown)
        or not any(file.touched() for file in files)
        or near.steady >= LEAST_STEADY
        or not {*seen.callers} <= {*turned, *new, *(guard.turned if guard is not None else ())},
        around=any(f.around() or f.fresh() for f in files),
        unrun=missed,
        notes=tuple(notes),
    )


def _joined(near: Differential, symbolic: Sequence[Symbolic]) -> Differential:
    """The table with what CrossHair found, smallest first; an input that stands there already is not told twice."""
    known = {d.call for d in near.differences}
    more = [d for answer in symbolic for d in answer.differences if d.call not in known]
    found = sorted((*near.differences, *more), key=lambda d: (d.explained, len(d.call), d.call, d.function))
    left_out = near.differences_left_out + max(0, len(found) - DIFFERENCES_SHOWN)
    unexplained = {**near.unexplained}
    if more:
        unexplained[DifferenceKind.ANSWER] = unexplained.get(DifferenceKind.ANSWER, 0) + len(more)
    return replace(
        near,
        differences=tuple(found[:DIFFERENCES_SHOWN]),
        differences_left_out=left_out,
        unexplained={effect: unexplained[effect] for effect in DifferenceKind if effect in unexplained},
    )


def _covered(
    verifier: PatchVerifier,
    files: Sequence[ChangedFile],
    baseline: Baseline | None,
    full: FullResult,
    guard: PatchGuard | None,
    notes: list[str],
) -> tuple[Covered, Baseline | None, tuple[UnrunCode, ...]]:
    if baseline is None or (not baseline.tests and not baseline.collect_failures):
        return nothing_covered(files, "there are no tests"), None, unrun(files, (), {})
    try:
        after = verifier.after_baseline(turned_tests(full, None))
    except AnswerIsNo as no:
        notes.append(f"what the tests cover could not be told: {no}")
        return not_measured(files, str(no)), None, unrun(files, (), {})
    counting = {*full.fail_to_pass, *full.pass_to_pass} | ({t.id for t in after.tests} - {t.id for t in baseline.tests})
    if guard is not None:
        names = tuple(t.id for t in guard.witnesses)
        after = replace(after, tests=(*after.tests, *guard.witnesses), passing=(*after.passing, *names))
        counting |= {*names}
    tests = [t for t in after.tests if t.id in counting]
    seen = covered(files, tests, after.import_lines)
    unseen = [t.id for t in tests if t.id in full.fail_to_pass and t.lines is None]
    if unseen and seen.share.part < seen.share.whole:
        seen = replace(seen, unknown=f"there was no time to see what {len(unseen)} of the tests that turn run")
    return seen, after, unrun(files, tests, after.import_lines)


def turned_tests(full: FullResult, after: Baseline | None) -> list[str]:
    """Tests that failed before and pass: by name, and those of files that were not even collected before."""
    found = [i for i in full.fail_to_pass if not i.startswith((CHECK_PREFIX, COLLECT_PREFIX))]
    files = {i.removeprefix(COLLECT_PREFIX) for i in full.fail_to_pass if i.startswith(COLLECT_PREFIX)}
    found += [t.id for t in (after.tests if after is not None else ()) if str(t.path) in files]
    return list(dict.fromkeys(found))


def _new(baseline: Baseline | None, after: Baseline | None) -> set[str]:
    """Tests that only the patched tree has."""
    if baseline is None or after is None:
        return set()
    return {t.id for t in after.tests} - {t.id for t in baseline.tests}


def _always(after: Baseline, turned: Sequence[str]) -> list[str]:
    """The quickest of the turned tests, one at least."""
    known = sorted((t for t in after.tests if t.id in turned and t.outcome.good), key=lambda t: t.seconds)
    found: list[str] = []
    left = _TURNED_SECONDS
    for test in known[:_TURNED_MOST]:
        left -= test.seconds
        if found and left < 0:
            break
        found.append(test.id)
    return found


def _noticed(
    subject: Subject, seen: Covered, after: Baseline, turned: Sequence[str]
) -> tuple[Mutants, Necessity | None]:
    """What the tests notice: other changes of the same lines, and parts that are taken back."""
    with subject.timer.timed("mutants"):
        mutants = _mutants(subject, seen, after, turned)
    if not turned:
        return mutants, None
    with subject.timer.timed("needed parts"):
        return mutants, _necessity(subject, seen, after, turned)


def _mutants(subject: Subject, seen: Covered, after: Baseline, turned: Sequence[str]) -> Mutants:
    space = open_edit_space(load_prior(subject.settings.models_dir / "prior.json"))
    lines = changed_lines(subject.files, seen)
    sources = SourceMap(subject.after)
    chosen, total = mutants_of(space, sources, lines, behaviour_key, seed=subject.seed, instead=seen.lines)
    if not chosen:
        return Mutants(tried=0, killed=0, space=0, note="the edit space has none for these lines")
    ground = replace(after, failing=(), checks=(), collect_failures={})
    check = subject.verifier.quick(ground, jobs=subject.jobs, always=_always(after, turned))

    def answers(alive: Sequence[Candidate]) -> Mapping[int, Sequence[str]]:
        verifier = subject.verifier
        return behaviours(verifier.after, ground, verifier.request, alive, seed=subject.seed).rows

    try:
        return try_mutants(check, chosen, total, jobs=subject.jobs, answers=answers)
    finally:
        check.close()


def _necessity(subject: Subject, seen: Covered, after: Baseline, turned: Sequence[str]) -> Necessity:
    parts = parts_of(subject.files)
    if not parts:
        return Necessity(parts=0, asked=0, note="no part of it can be taken back")
    ground = replace(after, failing=(), checks=(), collect_failures={})
    check = subject.verifier.quick(ground, jobs=subject.jobs, always=_always(after, turned))
    try:
        said = try_parts(check, parts, jobs=subject.jobs)
        asked = [(part, fate) for part, fate in said if fate is not None]
        alive = outermost([part for part, fate in asked if fate is MutantFate.ALIVE])
        pairs = same_statement(alive)
        both = try_parts(check, [together(*pair) for pair in pairs], jobs=subject.jobs) if pairs else []
    finally:
        check.close()
    needed = [pair for pair, (_, fate) in zip(pairs, both, strict=False) if fate is MutantFate.KILLED]
    either = [p for p in alive if any(p in pair for pair in needed) and _changes_nothing(subject, seen, after, p)]
    alive = [part for part in alive if part not in either]
    note = "" if said else "the tests do not pass in a warm worker, so no part was taken back"
    found = Necessity(
        parts=len(parts),
        asked=len(asked),
        unneeded=tuple(part.unneeded() for part in alive),
        alternatives=tuple(part.unneeded() for part in either),
        note=note,
    )
    return _with_differences(subject, seen, after, alive, found) if alive else found


def _changes_nothing(subject: Subject, seen: Covered, after: Baseline, part: PatchPart) -> bool:
    """Whether all that the patch touches could be compared with and without a part, and no input answers otherwise."""
    near = _without_parts(subject, seen, after, [part])
    told = all(f.reached_by_inputs and f.answered >= f.least for f in near.functions)
    return bool(near.functions) and told and not near.others


def _without_parts(subject: Subject, seen: Covered, after: Baseline, parts: Sequence[PatchPart]) -> Differential:
    """The patched tree with and without some parts."""
    verifier = subject.verifier
    files = [without(file, parts) for file in dict.fromkeys(part.file for part in parts)]
    home = subject.settings.state_dir / "hypothesis"
    differ = Differ(verifier.after, verifier.after, verifier.request, files, seed=subject.seed, home=home, share=True)
    return differ.compare(after, seen.callers, ())


def _with_differences(
    subject: Subject, seen: Covered, after: Baseline, alive: Sequence[PatchPart], found: Necessity
) -> Necessity:
    """What the parts that no test needs change in answers: the patched tree with and without all of them."""
    near = _without_parts(subject, seen, after, alive)
    example = (
        f"{near.differences[0].call}: {near.differences[0].old} -> {near.differences[0].new}" if near.others else ""
    )
    told = bool(near.functions) and all(f.reached_by_inputs for f in near.functions)
    around = any(without(part.file, alive).around() for part in alive)
    return replace(found, differences=near.others if near.others or (told and not around) else None, example=example)
