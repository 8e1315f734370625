"""Edits, patches, candidates.

Offsets are byte offsets into the file's bytes as they stand in the snapshot (or, in later rounds of the beam, into
the bytes the parent candidate produced). Lines are 1-based.
"""

import hashlib
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from localagent.domain.paths import RepoPath

SPAN = "span"  # the operator of spans that the model searched, and all of edits that it wrote
WRITTEN = frozenset({SPAN, "search", "function", "continue", "fim", "line", "skeleton"})  # the last four: older records


def digest_of(data: bytes) -> str:
    """`sha256:<hex>` of some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


class EditEffect(StrEnum):
    """What an edit does, and what it rests on, as the operator that makes it knows."""

    # what goes
    DELETES = "deletes"  # a statement; of a file that does not parse, tokens or a line
    DELETES_LINE = "deletes-line"
    COMMENTS_OUT = "comments-out"  # a whole statement becomes a comment
    DROPS_UNDEFINED = "drops-undefined"  # what holds an undefined name
    DROPS_CALL = "drops-call"  # a call of what does not exist becomes something that is no call
    DROPS_ONE = "drops-one"  # a `+ 1` or `- 1`
    UNWRAPS_BLOCK = "unwraps-block"  # only one block of a statement stays
    SHORTENS_TO_WORD = "shortens-to-word"  # a bare word for a call with arguments or a long expression
    # what comes
    ADDS_GUARD = "adds-guard"  # `if`: return, raise, assign, continue or break
    LEAVES_EARLY = "leaves-early"  # by such a guard, without an exception
    GUARDS_BOUNDS = "guards-bounds"  # against the crash that a failure reports
    WRAPS = "wraps"  # in a call or an operation, or takes such a wrap away
    REUSES_EXPRESSION = "reuses-expression"  # an expression of the function in another place
    REUSES_CALL = "reuses-call"  # a call that the file makes elsewhere
    CALLS_WITH_ARGUMENTS = "calls-with-arguments"  # for a call of what does not exist
    # what changes
    CHANGES_CONDITION = "changes-condition"
    NEGATES_EQUALITY = "negates-equality"  # `==` and `!=`, `is` and `is not`
    NEGATES_ORDER = "negates-order"  # `<` and `>=`, `>` and `<=`
    NEGATES_SEVERAL = "negates-several"  # a condition of several parts, as a whole
    CHANGES_ARITHMETIC = "changes-arithmetic"  # an operator becomes one of another kind
    MOVES_BOUNDARY = "moves-boundary"  # a comparison, bound or index
    SHIFTS_NUMBER = "shifts-number"  # a number or an index, by a step
    RENAMES_PARAMETER = "renames-parameter"
    REPLACES_CALL = "replaces-call"  # a call of what does not exist
    REPLACES_LEXEME = "replaces-lexeme"  # of a file that does not parse
    COMPARES = "compares"  # where a condition assigned, in one place and nothing else
    # what it rests on
    MENDS_NAME = "mends-name"  # a failure reports a name, attribute or method that does not exist
    FOLLOWS_MOVE = "follows-move"  # an import of a name from the one place where it lies now
    MENDS_SYNTAX = "mends-syntax"  # the file does not parse
    SEVERAL_FIXES = "several-fixes"  # of different kinds, that make a file parse together
    EXPLAINED = "explained"  # what a failure reports asks for just this
    RESEMBLES = "resembles"  # a new name is like the old one
    INVENTS = "invents"  # code that nobody wrote
    INVENTS_LITERAL = "invents-literal"  # a literal other than None, True and False for a name that nobody defined
    RETURNS_LITERAL = "returns-literal"  # at the end of a function that returned nothing
    STARTS_FROM_EXPRESSION = "starts-from-expression"  # a name gets its first value from others, or from a call
    WRITTEN_BY_MODEL = "written-by-model"


@dataclass(frozen=True, kw_only=True, slots=True)
class Splice:
    """Replace bytes [start, end) by `text`. start == end inserts; empty text deletes."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """The outermost function around an edit (module-level function or method), whose code object can be swapped.

    `first_line` is the first decorator's line if there are decorators, else the `def` line (co_firstlineno).
    `start`/`end` are the byte span of the whole definition including decorators; `body_start` is where its body begins:
    an edit that lies wholly in [body_start, end) leaves signature, defaults and decorators alone.
    `class_name` is the innermost class for methods (name mangling, `__class__`), else None.
    """

    name: str
    qualname: str
    class_name: str | None
    first_line: int
    last_line: int
    start: int
    body_start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """One structured change at a syntax element of one file.

    `splices` are sorted and do not overlap. `prior` is a log-scale preference of the operator and arguments (0 is the
    most likely, more negative is less). `line`/`end_line` is the range of base lines the edit touches.
    `operator` is the registered operator's name: learned weights are kept under it, nothing else hangs on it. `note` is
    a short description (`< -> <=`), for people alone; what a program may know of an edit are its `effects`.
    """

    path: RepoPath
    splices: tuple[Splice, ...]
    operator: str
    line: int
    end_line: int
    prior: float
    note: str = ""
    scope: Scope | None = None
    effects: frozenset[EditEffect] = frozenset()

    @property
    def description(self) -> str:
        """What it does, for people."""
        return self.note or self.operator

    @property
    def summary(self) -> str:
        """Where it is and what it does, for people."""
        return f"{self.path}:{self.line} {self.description}"

    def is_like(self, other: "Edit") -> bool:
        """Whether the same operator makes both, in one file."""
        return (self.path, self.operator) == (other.path, other.operator)

    def apply(self, source: bytes) -> bytes:
        """The file's bytes after the edit."""
        out: list[bytes] = []
        at = 0
        for s in self.splices:
            out += (source[at : s.start], s.text)
            at = s.end
        out.append(source[at:])
        return b"".join(out)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What the model says of an edit where it first departs; nats.

    `ratio`: log P(new token) - log P(token that stood there); `stood`: log P(token that stood there).
    """

    ratio: float
    stood: float

    @property
    def score(self) -> float:
        """The ratio capped at 0: a likelier token earns nothing, an unlikelier one costs."""
        return min(0.0, self.ratio)


class FileFate(Enum):
    """Whether a file stands before and after a change. A repair only changes files."""

    CHANGED = "changed"
    CREATED = "created"
    DELETED = "deleted"


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """Whole-file before and after, from memory; never read back from a workspace. What is not there is empty."""

    path: RepoPath
    before: bytes
    after: bytes
    fate: FileFate = FileFate.CHANGED

    @property
    def is_change(self) -> bool:
        """Whether anything differs."""
        return self.before != self.after or self.fate is not FileFate.CHANGED


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """What a candidate changes, against the snapshot. At most one change per path, sorted by path."""

    changes: tuple[FileChange, ...]

    @property
    def digest(self) -> str:
        """Digest over paths and resulting bytes; equal patches have equal digests."""
        h = hashlib.sha256()
        for c in self.changes:
            name = c.path.encode("utf-8", "surrogateescape")
            h.update(len(name).to_bytes(8, "big") + name + len(c.after).to_bytes(8, "big") + c.after)
            if c.fate is not FileFate.CHANGED:
                h.update(c.fate.value.encode())
        return "sha256:" + h.hexdigest()

    def after(self, path: RepoPath) -> bytes | None:
        """Resulting bytes of a path, or None if the patch leaves it alone."""
        for c in self.changes:
            if c.path == path:
                return c.after
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A patch plus where it came from. `edits` in the order applied (one for round 1, more after beam rounds)."""

    number: int
    patch: Patch
    edits: tuple[Edit, ...]
    cost: float
    round: int = 1
    parent: int | None = None
    model_score: float | None = field(default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """An edit that the model wrote and its score: the log-probability of the span against what stood there, <= 0."""

    edit: Edit
    score: float
