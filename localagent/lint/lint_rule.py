"""What a rule of the hook is: an id, a reason, examples that are its tests and its page, and a function that finds.

A finding may carry a repair, graded `safe` or `suggestion`. Safe: every sane program behaves as before, apart from the
mistake itself. A suggestion is shown, never applied by itself. Offsets are of the file's UTF-8 text.
"""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localagent.lint.file_view import FileView

Cut = tuple[int, int, str]


class FixGrade(StrEnum):
    """What may be done with a repair."""

    SAFE = "safe"
    SUGGESTION = "suggestion"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reliance:
    """A name that a repair relies on: where it stands (UTF-8 offsets) and what it was resolved to."""

    start: int
    end: int
    qualified: str


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule's function says: the place, the message, the repair (None where only a person can), its grade.

    `anchor` is the syntax element that holds all cuts and whose place stays when they are made; the place by default.
    """

    node: ast.AST
    message: str
    cuts: tuple[Cut, ...] | None = None
    grade: FixGrade | None = None
    anchor: ast.AST | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Bad:
    """Code that a rule fires on. `fixed` is the code after its repair; None where there is none."""

    code: str
    fixed: str | None = None
    grade: FixGrade | None = None


Find = Callable[["FileView", ast.AST], Iterable[Hit]]


@dataclass(frozen=True, kw_only=True, slots=True)
class LintRule:
    """One known mistake. `grade` is its repairs' best; `words` are bytes one of which a file must hold.

    `standard` rules run unless `--select` names others; the rest report what is a matter of a project's taste.
    """

    id: str
    on: tuple[type[ast.AST], ...]
    grade: FixGrade
    why: str
    bad: tuple[Bad, ...]
    good: tuple[str, ...]
    words: tuple[bytes, ...]
    standard: bool
    find: Find

    @property
    def text(self) -> str:
        """The rule's own description: its function's docstring, on one line."""
        return " ".join((self.find.__doc__ or "").split())

    @property
    def best_repair(self) -> str:
        """`safe`, `suggestion`, or `by hand` for a rule that offers no repair."""
        return str(self.grade) if any(b.fixed is not None for b in self.bad) else "by hand"


def bad(code: str, fixed: str | None = None, grade: FixGrade | None = None) -> Bad:
    """An example that a rule fires on."""
    return Bad(code=code, fixed=fixed, grade=grade)


def rule(
    name: str,
    *on: type[ast.AST],
    why: str,
    bad: Iterable[Bad],
    good: Iterable[str],
    words: Iterable[bytes] = (),
    grade: FixGrade = FixGrade.SUGGESTION,
    standard: bool = True,
) -> Callable[[Callable[["FileView", ast.AST], Iterable[Hit]]], LintRule]:
    """Makes a rule of a function that looks at one syntax element."""

    def made(find: Callable[["FileView", ast.AST], Iterable[Hit]]) -> LintRule:
        return LintRule(
            id=name,
            on=on,
            grade=grade,
            why=why,
            bad=tuple(bad),
            good=tuple(good),
            words=tuple(words),
            standard=standard,
            find=find,
        )

    return made
