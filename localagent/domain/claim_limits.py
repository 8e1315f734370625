"""What speaks against a claim, and what grade that leaves: limits on the strength of evidence.

Limitations: a limit rests on the inputs that were tried and on the tests that ran; that there is none is no proof.
"""

from collections.abc import Iterator, Sequence

from localagent.domain.claim import Claim, DifferenceKind, FunctionEffect
from localagent.domain.strength import Grade, Limit
from localagent.domain.verification import Differential, Mutants, Necessity

MANY_SHARE, MANY = 0.25, 10  # so large a share of the inputs, and so many, are no side effect any more
_TOLD = {
    DifferenceKind.CRASH: "crash with it and did not before",
    DifferenceKind.TESTED: "of passing tests answer otherwise",
    DifferenceKind.REFUSAL: "are refused with it and were answered before",
    DifferenceKind.STATE: "leave their arguments otherwise than before",
    DifferenceKind.ANSWER: "answer otherwise, and are not explained by what the turned tests ask for",
}
_ONE = {
    DifferenceKind.CRASH: "crashes with it and did not before",
    DifferenceKind.TESTED: "of a passing test answers otherwise",
    DifferenceKind.REFUSAL: "is refused with it and was answered before",
    DifferenceKind.STATE: "leaves its arguments otherwise than before",
    DifferenceKind.ANSWER: "answers otherwise, and is not explained by what the turned tests ask for",
}


def claim_limits(
    claim: Claim,
    near: Differential | None,
    necessity: Necessity | None = None,
    *,
    mutants: Mutants | None = None,
    fails_on: Sequence[str] = (),
    undecided: Sequence[str] = (),
    by_checks: bool = False,
    new_tests_ran: bool = True,
) -> tuple[Limit, ...]:
    """Limits for a claim. `by_checks`: no test turned, only checks did, and no mutant was put to these.

    `fails_on`: tests that run a changed line and fail as before. `undecided`: tests of the guard that fail with the
    patch, and nobody saw them without it. `new_tests_ran`: a test that the patch brings, or that
    it turns, ran a changed line; what is added must be run.
    """
    found = list(_limits(claim, near, necessity, by_checks=by_checks, new_tests_ran=new_tests_ran))
    if claim in (Claim.FIXES, Claim.ADDS) and mutants is not None and mutants.constant:
        reason = f"all tests pass also where it returns the same whatever it is given: {mutants.constant[0]}"
        found.append(Limit(most=Grade.C, reason=reason))
    if claim in (Claim.FIXES, Claim.ADDS) and mutants is not None and mutants.wider:
        reason = f"all tests pass also where it raises a base of what it raises: {mutants.wider[0]}"
        found.append(Limit(most=Grade.C, reason=reason))
    if claim in (Claim.FIXES, Claim.ADDS) and fails_on:
        reason = f"still failing, as before, and it runs what changes: {_first_of(fails_on)}"
        found.append(Limit(most=Grade.C, reason=reason))
    if undecided:
        reason = f"fails outside --test, and no time was left to see whether it did before: {_first_of(undecided)}"
        found.append(Limit(most=Grade.C, reason=reason))
    return tuple(found)


def nothing_kept(claim: Claim) -> tuple[Limit, ...]:
    """The limit where no test that passed before runs a touched function; what is added has none."""
    reason = "no test that passed before runs what is touched: nothing shows what is to stay"
    return (Limit(most=Grade.C, reason=reason),) if claim is Claim.FIXES else ()


def _first_of(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def _limits(
    claim: Claim, near: Differential | None, necessity: Necessity | None, *, by_checks: bool, new_tests_ran: bool
) -> Iterator[Limit]:
    if claim is Claim.UNKNOWN:
        if near is not None and near.others:
            yield Limit(
                most=Grade.D, reason=f"{near.others} of {near.inputs} inputs answer otherwise, for no known end"
            )
        return
    if claim is Claim.PRESERVES:
        if near is not None and near.others + near.demanded:
            yield Limit(most=Grade.E, reason=f"{near.others + near.demanded} of {near.inputs} inputs answer otherwise")
        yield from _compared_where_tests_call(near)
        return
    if by_checks:
        yield Limit(most=Grade.C, reason="only checks turned, and no mutant was put to them")
    if claim is Claim.ADDS and not new_tests_ran:  # what mends something shows it by turning: it may run on import
        yield Limit(most=Grade.C, reason="no test that turned, or came with it, runs a changed line")
    if near is not None:
        yield from _of_differences(near)
    if necessity is not None:
        yield from _of_parts(necessity)


def _of_differences(near: Differential) -> Iterator[Limit]:
    counted = {effect: many for effect, many in near.unexplained.items() if effect in _TOLD}
    for effect, many in counted.items():
        reason = f"{many} inputs {_TOLD[effect]}" if many != 1 else f"1 input {_ONE[effect]}"
        yield Limit(most=Grade.C, reason=reason)
    total = sum(counted.values())
    if total >= MANY and total > MANY_SHARE * near.inputs:
        yield Limit(most=Grade.D, reason=f"{total} of {near.inputs} inputs answer otherwise, unexplained")
    yield from _compared_where_tests_call(near)
    for broken in near.broken_properties:
        if broken.unasked:
            held = f"held on {broken.held} inputs before, and no turned test asks for less: {broken.call}"
            yield Limit(most=Grade.C, reason=f"{broken.function}: {broken.name} {held}")
    for change in near.function_changes:
        yield Limit(most=Grade.D if change.effect is FunctionEffect.CONSTANT else Grade.C, reason=str(change))


def _compared_where_tests_call(near: Differential | None) -> Iterator[Limit]:
    for function in near.functions if near is not None else ():
        if function.reached and function.in_place:
            yield Limit(most=Grade.B, reason=f"{function.function} was compared on calls of tests alone")


def _of_parts(necessity: Necessity) -> Iterator[Limit]:
    """A part that no test needs is one for which no test speaks, whether or not an input shows what it does."""
    if necessity.alternatives:
        told = ", ".join(f"{part.path}:{part.line} ({part.text})" for part in necessity.alternatives[:2])
        yield Limit(most=Grade.B, reason=f"the tests need only one of several parts of a statement: {told}")
    if necessity.parts and not necessity.asked:
        yield Limit(most=Grade.C, reason="which of its parts the tests need could not be asked")
    if not necessity.unneeded:
        return
    many = len(necessity.unneeded)
    first = necessity.unneeded[0]
    where = f"{first.path}:{first.line} ({first.text})" + (f" and {many - 1} more" if many > 1 else "")
    does = "what it does could not be compared"
    if necessity.differences is not None:
        many_inputs = f"{necessity.differences} input{'s' * (necessity.differences != 1)}"
        answers = "answers" if necessity.differences == 1 else "answer"
        does = f"{many_inputs} {answers} otherwise because of it"
    if necessity.differences == 0:
        does = "no input that was tried shows what it does"
    yield Limit(most=Grade.C, reason=f"every test passes without a part of it: {where}; {does}")
