"""What a patch is claimed to do, and the kinds of effect that speak against the claim. Enumerations only."""

from enum import StrEnum


class Claim(StrEnum):
    """What a patch is for. Every grade of evidence is a grade of evidence for one of these.

    FIXES: tests or checks that failed pass, and nothing else changed. PRESERVES: a refactoring, no answer differs.
    ADDS: new behaviour that new tests ask for, and old inputs answer as before. UNKNOWN: nobody said, and nothing
    that was measured says it.
    """

    FIXES = "fixes"
    PRESERVES = "preserves"
    ADDS = "adds"
    UNKNOWN = "unknown"


class DifferenceKind(StrEnum):
    """The kind of a difference between old and new.

    CRASH: new raises, or never ends, where old answered; on an input of a test, or one that keeps the relations
    between the arguments of a test's call. TESTED: an input of a passing test answers otherwise. REFUSAL: new raises on
    purpose where old answered. STATE: both answer alike, and what became of the arguments differs. ANSWER: any other.
    CARELESS: new raises, on an input that keeps no such relation: it may well be one that nobody means.
    """

    CRASH = "crash"
    TESTED = "tested-input"
    REFUSAL = "refusal"
    STATE = "argument-state"
    ANSWER = "answer"
    CARELESS = "careless-input"


class FunctionEffect(StrEnum):
    """What differences say of a whole function. LOST_PARAMETER: an argument mattered, and no longer does.

    CONSTANT: it answered this and that, and answers the same to every input now. ONE_CHANGE: that is so of the inputs
    to which it answers otherwise than before, and turned tests ask for that answer to fewer than three of them.
    MOST_CHANGED: it answers most inputs otherwise than before, turned tests ask for that of fewer than three, and no
    test makes a call that is answered as before.
    """

    LOST_PARAMETER = "lost-parameter"
    CONSTANT = "constant-answer"
    ONE_CHANGE = "one-changed-answer"
    MOST_CHANGED = "most-answers-changed"
