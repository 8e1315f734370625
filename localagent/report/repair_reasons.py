"""What a repair says to people: why it ended as it did, and what to know of a patch that was taken."""

import shlex
from collections.abc import Collection, Sequence

from localagent.domain.behaviour import Crash
from localagent.domain.edit import Candidate, Edit
from localagent.domain.outcome import CauseOrigin, FailureCause, FullResult
from localagent.domain.task import Ambiguity

NOTHING_TO_FIX = "nothing to fix: every test and check passes"
ALL_DENIED = "every candidate was refused by a gate"
ASSUMED = (
    "the tests are too few to tell this patch from others or to prove it; taken because of --assume, where a person "
    "would have been asked"
)
FIRST = "the first patch that passes every check was taken (--first): it was compared with no other"
_SHOWN = 5
_SHOWN_PATCHES = 4


def accepted(candidate: Candidate) -> str:
    """What the accepted patch does."""
    return "accepted: " + "; ".join(e.description for e in candidate.edits)


def tried(edit: Edit) -> str:
    """An edit with its operator, as the journal keeps it."""
    return f"{edit.path}:{edit.line} {edit.operator} {edit.note}"


def most_natural(candidates: int) -> str:
    """Why one of several was taken: the model read them."""
    return (
        f"{candidates} candidates pass the few tests and do not all behave alike; this one was taken because to the "
        "model it reads most naturally"
    )


def sturdier(crash: Crash, edit: Edit) -> str:
    """What one more edit ended."""
    return (
        f"a patch that passed the tests crashed on inputs near theirs ({_crash(crash)}); "
        f"one more edit ends that and changes no other answer: {edit.description}"
    )


def assumed(doubt: str) -> str:
    """A doubt that a person would have been asked about."""
    return f"{doubt}; taken because of --assume, where a person would have been asked"


def nowhere(protected: Collection[str], test_files: Collection[str] = ()) -> str:
    """Why there is no place to repair; `protected`: why the gates let none of each linked file be edited.

    `test_files`: those of the failing tests, which may hold the code as well.
    """
    if not protected:
        held = ", ".join(sorted(test_files)[:3]) + (f" and {len(test_files) - 3} more" if len(test_files) > 3 else "")
        apart = f"; code in the files of the tests is never edited: {held}" if held else ""
        return f"no source line of this repository could be linked to the failing tests{apart}"
    shown = "; ".join(list(protected)[:3])
    return f"every source line that could be linked to the failing tests may not be repaired: {shown}"


def progress(full: FullResult, apart: Collection[str], *, named: bool) -> str:
    """What a patch turns, and what still fails with it; `apart` are those that do not run what it changes."""
    turned, still = full.fail_to_pass, full.still_failing
    asked = "tests and checks that were asked for" if named else "failing tests"
    others = len(still) - len(apart)
    parts = [f"turns {len(turned)} of {len(turned) + len(still)} {asked}"]
    if apart:
        one = len(apart) == 1
        parts.append(f"{len(apart)} {'does' if one else 'do'} not run what it changes and still fail{'s' * one}")
    if others:
        parts.append(f"{others}{' more' * bool(apart)} still fail{'s' * (others == 1)}")
    shown = ", ".join(still[:_SHOWN]) + (f" and {len(still) - _SHOWN} more" if len(still) > _SHOWN else "")
    return f"{'; '.join(parts)}: {shown}"


def doubtful(patches: Sequence[Candidate], doubts: Sequence[str]) -> str:
    """A patch that passes every check and is doubted all the same."""
    return f"a patch passes every check, but {'; '.join(doubts)}: {_patches(patches)}"


def crashing(patches: Sequence[Candidate], crash: Crash) -> str:
    """A patch that crashes near the tests."""
    return (
        f"a patch passes the few tests but crashes on inputs near theirs ({_crash(crash)}): {_patches(patches)}; "
        "add a test for such inputs, or judge it yourself"
    )


def unproven(patches: Sequence[Candidate]) -> str:
    """A patch that the tests cannot prove."""
    return (
        f"a patch passes the few tests but rests on a guess that they cannot prove: {_patches(patches)}; "
        "add tests, or judge it yourself"
    )


def ambiguous(patches: Sequence[Candidate], found: Ambiguity) -> str:
    """Patches that differ on a call that no test makes."""
    answers = "; ".join(f"{number} answers {answer}" for number, answer in found.answers.items())
    return (
        f"ambiguous: {len(patches)} patches pass the few tests, and nothing tells which is right: "
        f"{_patches(patches)}; of those to choose from, on {found.call}: {answers}"
    )


def undecided(patches: Sequence[Candidate], *, proposed: bool) -> str:
    """Patches that nobody could compare."""
    remedy = "choose" if proposed else "judge them yourself"
    return (
        f"{len(patches)} patches pass the few tests, are not known to behave alike, and nothing tells which is "
        f"right: {_patches(patches)}; add a test that tells them apart, or {remedy}"
    )


def not_all_run(ran: int, not_run: int) -> str:
    """No test failed, but there was no time for all."""
    tests = "test that" if ran == 1 else "tests that"
    return (
        f"no failure among the {ran} {tests} ran in the time, but {not_run} did not run: "
        "give it more time (--max-seconds) or fewer tests (--test)"
    )


def gave_up(
    used_up: str, verified: int, rejected: int, unchecked: int = 0, *, failing: str, baseline_seconds: float = 0.0
) -> str:
    """What is used up, what came of it, and how to look on at `failing`, an id of the baseline.

    `rejected` and `unchecked`: how many plausible ones failed the full check, and for how many it came too late.
    `baseline_seconds`: where running the tests took most of the time.
    """
    tail = f"; {rejected} plausible ones failed the full check" if rejected else ""
    if unchecked:
        tail += f"; {unchecked} pass the failing tests, but there was no time for the full check: give it more"
        tail += " (--max-seconds)"
    if baseline_seconds:
        tail += f"; running the tests without a patch took {baseline_seconds:.0f} s, so give it more (--max-seconds)"
    look = f"{_debug_command(failing)} shows where to look and what experiments say"
    return f"gave up: {used_up} is used up after {verified} candidates{tail}; {look}"


def _debug_command(failing: str) -> str:
    kind, _, rest = failing.partition(":")
    if kind == "check":
        return f"`localagent debug --check {shlex.quote(rest)}`"
    return f"`localagent debug {shlex.quote(rest if kind == 'collect' else failing)}`"


def _patches(patches: Sequence[Candidate]) -> str:
    return " | ".join("; ".join(e.summary for e in c.edits) for c in patches[:_SHOWN_PATCHES])


def _crash(crash: Crash) -> str:
    return f"{crash.failure.exception} in {crash.call}"


def not_searched(causes: Sequence[FailureCause]) -> str:
    """Why nothing was searched although tests fail."""
    ours = all(cause.kind.origin is CauseOrigin.ENVIRONMENT for cause in causes)
    head = "the environment is not complete" if ours else "no edit of the sources can mend this"
    return f"{head}, so nothing was searched: {'; '.join(cause.sentence for cause in causes)}"


def checks_pass(causes: Sequence[FailureCause]) -> str:
    """Why nothing was searched where the named checks pass and tests that were not named cannot be run."""
    return (
        f"nothing to fix: the named checks pass; tests beside them do not run: {'; '.join(c.sentence for c in causes)}"
    )


def causes_remedy(causes: Sequence[FailureCause]) -> str:
    """What to do about causes, each thing once."""
    return "; ".join(dict.fromkeys(cause.remedy for cause in causes if cause.remedy))
