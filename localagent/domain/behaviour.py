"""What programs do on inputs near those of the tests: evidence for the choice, never a verdict."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from localagent.domain.collateral import Collateral
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath

Row = tuple[str, ...]

_KEPT_LEAST = 8


def crash_digest(exception: str) -> str:
    """The cell of a row for a call that crashed with an exception of this type, as the worker in the jail makes it."""
    return f"raised:{hashlib.sha256(f'raised {exception}'.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


BAD_INPUT = frozenset(map(crash_digest, ("AttributeError", "KeyError", "TypeError", "ValueError")))
"""How code answers values that it was never meant for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Crash:
    """A call that crashed a program, as text, and how. Both are sanitized and bounded."""

    call: str
    failure: Failure


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedFunction:
    """A function to which its qualified name leads, in the module as which the tests imported its file.

    As the jail says: neither is known to be a name.
    """

    path: RepoPath
    module: str
    qualname: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DistinguishingCall:
    """A call on which programs differ, as text, with their answers by candidate number; where one has none, nothing.

    `column` is its place in the rows. Texts are sanitized and bounded; those of different answers may be equal.
    `function` is None where no name leads to what was called; `exact`: whose answer is, like the call, told whole in
    literals, or the name of a builtin exception.
    """

    column: int
    call: str
    answers: Mapping[int, str]
    function: NamedFunction | None = None
    exact: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Behaviours:
    """A row of digests per candidate number (0: the unpatched program), all of one length, a column per call.

    A digest begins with `ok:`, `late:`, `refused:` (raised on purpose) or `raised:`. `kept` are columns whose inputs
    keep the relations of a test's own; `seen` those the tests themselves ask for; `crashes` a few for each candidate;
    `shown` some columns in which they differ, in words, the most telling first. `collateral`: by candidate number what
    becomes of the calls that passing tests make; of those that could be asked.
    """

    rows: Mapping[int, Row] = field(default_factory=dict)
    kept: tuple[bool, ...] = ()
    seen: tuple[bool, ...] = ()
    crashes: Mapping[int, tuple[Crash, ...]] = field(default_factory=dict)
    shown: tuple[DistinguishingCall, ...] = ()
    collateral: Mapping[int, Collateral] = field(default_factory=dict)

    def crashed(self, number: int) -> frozenset[int]:
        """The kept columns in which a program crashed, but for crashes that the tests themselves ask for.

        Where the unpatched program turns an input down alike for what it is (`BAD_INPUT`), and no test fails so, nobody
        means such an input.
        """
        row, old = self.rows.get(number, ()), self.rows.get(0, ())
        wanted = {cell for cell, seen in zip(row, self.seen, strict=True) if seen} if row else set()
        symptoms = {cell for cell, seen in zip(old, self.seen, strict=True) if seen} if old else set()
        kept = self.kept if row else ()
        return frozenset(
            n
            for n, (cell, keeps) in enumerate(zip(row, kept, strict=True))
            if keeps
            and cell.startswith("raised:")
            and cell not in wanted
            and not (old and old[n] == cell and cell in BAD_INPUT and cell not in symptoms)
        )

    def distinguishing(self, numbers: Collection[int]) -> DistinguishingCall | None:
        """The first shown call that tells at least two of these programs apart, on an input that counts.

        One that tells most of them apart, of those one on which the most answer, of those one of which most answers
        can be written as a test. None where nothing can be shown.
        """
        strict = sum(self.kept) >= _KEPT_LEAST
        best: tuple[tuple[int, int, int], DistinguishingCall] | None = None
        for one in self.shown:
            if strict and not (self.kept[one.column] or self.seen[one.column]):
                continue
            told = {n: one.answers[n] for n in numbers if one.answers.get(n) and n in self.rows}
            kinds = {self.rows[n][one.column] for n in told}
            worded = {(self.rows[n][one.column], text) for n, text in told.items()}
            if len(kinds) < 2 or len({text for _, text in worded}) < len(worded):
                continue  # two answers that read alike tell a reader nothing
            answered = sum(self.rows[n][one.column].startswith("ok") for n in told)
            merit = (len(kinds), answered, len(one.exact & told.keys()) if one.function is not None else 0)
            if best is None or merit > best[0]:
                best = merit, replace(one, answers=told, exact=one.exact & told.keys())
        return None if best is None else best[1]

    def telling(self) -> dict[int, Row]:
        """The rows without the columns of careless inputs, where enough others are left."""
        if sum(self.kept) < _KEPT_LEAST:
            return dict(self.rows)
        use = [kept or seen for kept, seen in zip(self.kept, self.seen, strict=True)]
        return {n: tuple(c for c, used in zip(row, use, strict=True) if used) for n, row in self.rows.items()}
