"""What speaks against a patch, and for it, without a reference: the kinds, and what they may be told besides the patch.

Limitations: a contradiction is a reason for doubt and no proof; a patch without one may be as wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.repair.acceptance.changed_functions import FunctionPair, TouchedFile


class ContradictionWeight(StrEnum):
    """How much a contradiction weighs by itself."""

    HARD = "hard"  # never accepted with this alone
    SOFT = "soft"  # speaks against


class ContradictionKind(StrEnum):
    """What an edit contradicts."""

    MESSAGE_ONLY = "message-only"
    DOCSTRING = "docstring"
    COMMENT = "comment"
    ANNOTATION = "annotation"
    NAME = "name"
    ERROR_TEXT = "error-text"
    UNREACHABLE = "unreachable"
    LOOP_ENDS_EARLY = "loop-ends-early"
    LOOP_BODY_LEFT = "loop-body-left"
    OPTION_LOST = "option-lost"
    VALUE_UNUSED = "value-unused"
    STATE_EMPTIED = "state-emptied"
    CONSTANT_ANSWER = "constant-answer"
    CONSTANT_CONDITION = "constant-condition"
    NO_ANSWER = "no-answer"
    BRANCH_NEGATED = "branch-negated"
    SIBLINGS = "siblings"
    NO_FAILING_BEHAVIOUR = "no-failing-behaviour"
    TESTING_SUPPORT = "testing-support"
    ASSIGNMENT_REVERSED = "assignment-reversed"
    SYMMETRY_LOST = "symmetry-lost"
    ROUNDING = "rounding"
    DEGENERATE = "degenerate"
    UNDEFINED_NAME = "undefined-name"
    VALUE_KIND = "value-kind"
    ORDER_LOST = "order-lost"


class SupportKind(StrEnum):
    """What an edit agrees with."""

    SIBLINGS_AGREE = "siblings-agree"
    DOCSTRING_AGREES = "docstring-agrees"
    ERROR_NAMES_IT = "error-names-it"
    ERROR_TEXT_AGREES = "error-text-agrees"
    NAME_AGREES = "name-agrees"


@dataclass(frozen=True, kw_only=True, slots=True)
class Contradiction:
    """One reason against a patch. `line` is 1-based in the file before; `why` is one sentence for people."""

    kind: ContradictionKind
    severity: ContradictionWeight
    path: RepoPath
    line: int
    function: str
    why: str


def against(
    file: TouchedFile,
    pair: FunctionPair,
    kind: ContradictionKind,
    severity: ContradictionWeight,
    why: str,
    line: int = 0,
) -> Contradiction:
    """A reason against what an edit makes of a function; where no line is given, at the first thing that it changes."""
    return Contradiction(
        kind=kind,
        severity=severity,
        path=file.path,
        line=line or pair.effects[0].line,
        function=pair.qualname,
        why=why,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Support:
    """One reason for a patch; as Contradiction."""

    kind: SupportKind
    path: RepoPath
    line: int
    function: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchContext:
    """What is known besides the patch: other files, how the failing tests failed, and the lines each of them ran.

    `covered` is empty where no test was traced. `expected` are keys of the literals that the failing tests expect.
    """

    sources: Mapping[RepoPath, bytes] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    covered: Mapping[str, Mapping[RepoPath, frozenset[int]]] = field(default_factory=dict)
    expected: frozenset[str] = frozenset()
