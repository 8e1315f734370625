"""How far a candidate that is not plausible got: what the beam keeps.

Two kinds of progress: failing tests turned without breaking others; or, for programs with several faults, a failure
that moved on (a file that now parses, a crash replaced by a later crash or by a plain assertion).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from localagent.domain.edit import Edit
from localagent.domain.outcome import Baseline, Failure, Frame, QuickResult
from localagent.domain.paths import RepoPath

_STAGE = {"SyntaxError": 0, "IndentationError": 0, "TabError": 0, "ImportError": 1, "ModuleNotFoundError": 1}
_CRASH = 2
_LATE = 3
_MISSING = re.compile(r"name '(\w+)'|(?:local|free) variable '(\w+)'|has no attribute '(\w+)'")
_OWNER, _OWNER_CHARACTERS = re.compile(r"(?:\w+|\S)\Z"), 120
_OWN = frozenset({"self", "cls"})
_NAMES = frozenset({"NameError", "UnboundLocalError", "AttributeError", "TypeError"})


def stage_of(failure: Failure) -> int:
    """0 does not parse, 1 does not import, 2 crashes, 3 answers wrongly."""
    if failure.exception in _STAGE:
        return _STAGE[failure.exception]
    return _LATE if failure.exception in ("AssertionError", "Failed") else _CRASH


def progress_of(
    before: Sequence[Failure],
    baseline: Baseline,
    result: QuickResult,
    path: RepoPath,
    written: "WrittenLines",
) -> float:
    """0 none, (0, 1) the failure moved on, >= 1 the share of failing tests turned plus 1.

    `path` and `written` are the file and the lines the last edit wrote: a crash there is the edit's own and no
    progress, unless it names something that stood there before: two faults may share a line.
    """
    lines = written.lines
    if result.broken:
        return 0.0
    if result.turned:
        return 1.0 + len(result.turned) / max(1, len(baseline.failing))
    new = list(result.failures.values())
    if not new or not before or any(_crashes_in(f, path, lines) and not _of_before(f, written) for f in new):
        return 0.0
    old_stage = min(stage_of(f) for f in before)
    new_stage = min(stage_of(f) for f in new)
    if new_stage > old_stage:
        return 0.6 + 0.1 * (new_stage - old_stage)
    if new_stage == old_stage == _CRASH and before[0].exception in _NAMES:
        later = _alone_at(before[0], path, lines) and new[0].exception != "RecursionError"
        gone = later and _stands_in(_named(before[0]), written.before)
        return 0.5 if _moved_on(before[0], new[0], later=later, gone=gone) else 0.0
    return 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplacedLines:
    """Lines that one splice replaces: [old_first, old_end) by [new_first, new_end); only blanks or not."""

    old_first: int
    old_end: int
    new_first: int
    new_end: int
    blank: bool

    @property
    def grown(self) -> int:
        """By how many lines the text became longer."""
        return (self.new_end - self.new_first) - (self.old_end - self.old_first)


def stretches(edit: Edit, before: bytes) -> list[ReplacedLines]:
    """One for each splice. A line put whole before or after another one leaves that one alone."""
    out: list[ReplacedLines] = []
    grown = 0
    for splice in edit.splices:
        old, new = before[splice.start : splice.end], splice.text
        first = 1 + before.count(b"\n", 0, splice.start)
        at_line = before[splice.start - 1 : splice.start] in (b"\n", b"")
        whole = before[splice.end - 1 : splice.end] in (b"\n", b"") and (new.endswith(b"\n") or (not new and at_line))
        appended = new.startswith(b"\n") and not old and before[splice.start : splice.start + 1] == b"\n"
        stretch = ReplacedLines(
            old_first=first + appended,
            old_end=first + old.count(b"\n") + (not whole),
            new_first=first + appended + grown,
            new_end=first + new.count(b"\n") + (not whole) + grown,
            blank=not old.strip() and not new.strip(),
        )
        grown += stretch.grown
        out.append(stretch)
    return out


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenLines:
    """Lines of a text that an edit wrote, what stood in their place, and what stands there now."""

    lines: frozenset[int]
    before: str = ""
    after: str = ""


def written_lines(edit: Edit, before: bytes) -> WrittenLines:
    """What an edit wrote: blanks that moved are no writing."""
    told = [s for s in stretches(edit, before) if not s.blank]
    old, new = before.split(b"\n"), edit.apply(before).split(b"\n")
    return WrittenLines(
        lines=frozenset(k for s in told for k in range(s.new_first, s.new_end)),
        before=_text(row for s in told for row in old[s.old_first - 1 : s.old_end - 1]),
        after=_text(row for s in told for row in new[s.new_first - 1 : s.new_end - 1]),
    )


def _text(rows: Iterable[bytes]) -> str:
    return b"\n".join(rows).decode("utf-8", "replace")


def _inner(failure: Failure) -> Frame | None:
    return next((f for f in reversed(failure.frames) if f.path is not None), None)


def _crashes_in(failure: Failure, path: RepoPath, written: frozenset[int]) -> bool:
    frame = _inner(failure)
    return stage_of(failure) < _LATE and frame is not None and frame.path == path and frame.line in written


def _named(failure: Failure) -> str:
    """The name a failure misses, or ""."""
    found = _MISSING.search(failure.message) if failure.exception in _NAMES else None
    return next((g for g in found.groups() if g), "") if found else ""


def _stands_in(name: str, text: str) -> bool:
    return bool(name) and re.search(rf"\b{re.escape(name)}\b", text) is not None


def _of_before(failure: Failure, written: WrittenLines) -> bool:
    """Whether what a failure misses stood there before the edit; an attribute of the same object, or now of one's own.

    With `new` undefined, `p.append(x)` in the place of `new.append(x)` crashes anew, and nothing has moved on.
    """
    name = _named(failure)
    if failure.exception != "AttributeError":
        return _stands_in(name, written.before)
    owners = _owners(name, written.before)
    return bool(owners) and not _owners(name, written.after).isdisjoint(owners | _OWN)


def _owners(name: str, text: str) -> frozenset[str]:
    """What stands before the dot of an attribute: a name (its end, of a long one), or how an expression ends."""
    dots = (m.start() for m in re.finditer(rf"\.\s*{re.escape(name)}\b", text) if name)
    heads = (_OWNER.search(text[max(0, at - _OWNER_CHARACTERS) : at].rstrip()) for at in dots)
    return frozenset(head[0] for head in heads if head)


def _alone_at(failure: Failure, path: RepoPath, written: frozenset[int]) -> bool:
    """Whether an edit wrote the line that crashed and no other: what crashes now crashes later, wherever it stands."""
    frame = _inner(failure)
    return frame is not None and frame.path == path and written == {frame.line}


def _moved_on(old: Failure, new: Failure, *, later: bool, gone: bool) -> bool:
    """The first crash is gone and another one came, further down the same function or in another function.

    In a loop the next crash may stand further up: it counts where it is known to come `later`. One that misses the same
    name elsewhere counts where the edit replaced its use that crashed (`gone`): a line put in front only moves it.
    """
    a, b = _inner(old), _inner(new)
    if a is None or b is None:
        return False
    if (old.exception, old.steady) == (new.exception, new.steady):
        return gone and (a.path, a.line) != (b.path, b.line)
    return (
        b.function != a.function
        or b.path != a.path
        or b.line > a.line
        or (later and b.line < a.line)
        or (b.line == a.line and _named(old) != _named(new))
    )


def baseline_failures(baseline: Baseline) -> tuple[Failure, ...]:
    """The failures to explain, in the order of the failing ids."""
    by_id: Mapping[str, Failure] = {
        **{t.id: t.failure for t in baseline.tests if t.failure is not None},
        **{f"check:{c.command}": c.failure for c in baseline.checks if c.failure is not None},
        **{k if k.startswith("collect:") else f"collect:{k}": v for k, v in baseline.collect_failures.items()},
    }
    return tuple(by_id[i] for i in baseline.failing if i in by_id)
