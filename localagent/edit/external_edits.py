"""Edits that somebody else writes as text: where they may be made, and what becomes of a text put there.

A `Page` is one file. Its places are lines of code; a text in the place of a stretch of such a line (or before it, with
lines of its own) becomes an edit when it parses, is not what stood there, and brings no name that does not exist.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from localagent.code.known_names import KnownIdentifiers
from localagent.code.source_text import read_source
from localagent.code.symbols import FactIndex, FileFacts, UnitSpan
from localagent.domain.edit import SPAN, Edit, EditEffect
from localagent.domain.paths import RepoPath
from localagent.edit import edit_check
from localagent.edit.incremental_check import exists, may_continue, scan
from localagent.edit.operator_context import Change
from localagent.edit.space import made_edit, unit_scope
from localagent.edit.unit import Stmt, Unit
from localagent.edit.unit_builder import build
from localagent.ports import Sources
from localagent.text.visible_text import shortened

_MAX_KNOWN_FILES = 30
_MAX_KNOWN_BYTES = 600_000
_MAX_NOTE = 90
_MAX_LINES_WRITTEN = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeLine:
    """A line of code. `start` and `end` are UTF-8 offsets in the file: from its first to after its last character.

    `head` is the text of the statement before `start`: not empty for further lines of one statement.
    """

    line: int
    start: int
    end: int
    indent: str
    head: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StatementSpan:
    """A statement (or its header) or a function: UTF-8 offsets from its first character to after its last."""

    line: int
    start: int
    end: int
    indent: str


class Page:
    """One file in which edits are written. `usable` is False where it cannot be read, parsed or spliced exactly."""

    def __init__(self, path: RepoPath, sources: Sources, index: FactIndex) -> None:
        self.path = path
        self._source = read_source(sources[path])
        self._facts = index.of(sources[path]) if self._source is not None else None
        self._units: dict[UnitSpan, Unit | None] = {}
        self._seen: set[tuple[UnitSpan, int]] = set()
        self._known: KnownIdentifiers | None = None
        self._sources, self._index = sources, index

    @property
    def usable(self) -> bool:
        """Whether anything can be written here."""
        return self._source is not None and self._facts is not None

    @property
    def text(self) -> bytes:
        """The file in UTF-8; offsets of places are into it."""
        return self._source.utf8 if self._source is not None else b""

    def offset(self, line: int, column: int) -> int:
        """Offset of a 1-based line and a 0-based byte column."""
        assert self._source is not None
        return self._source.offset(line, column)

    def code_lines(self, lines: Iterable[int]) -> list[CodeLine]:
        """The lines of code among some lines, in the order given."""
        return [place for place in map(self._code_line, lines) if place is not None]

    def viable(self, place: CodeLine, start: int, text: str) -> bool:
        """Whether the line up to `start`, and then `text`, may go on to something that parses and whose names exist."""
        before = place.head + self.text[place.start : start].decode("utf-8", "replace")
        whole = before + text
        found = scan(whole)
        if not found.sound or found.comment >= 0 or text.count("\n") > _MAX_LINES_WRITTEN:
            return False
        last = found.words[-1].end if found.words else -1
        unfinished = last if last == len(whole) else -1
        if exists(found.words, len(before), self.known, unfinished_at=unfinished):
            return False
        return may_continue(whole, place.indent)

    @property
    def known(self) -> KnownIdentifiers:
        """Names of this file and of others of the repository, tests among them."""
        if self._known is None:
            files: list[FileFacts] = []
            spent = 0
            others = sorted(
                (p for p in self._sources if p != self.path and p.endswith(".py")), key=_far_from(self.path)
            )
            for path in (self.path, *others[:_MAX_KNOWN_FILES]):
                spent += len(self._sources[path])
                if spent > _MAX_KNOWN_BYTES and files:
                    break
                facts = self._index.of(self._sources[path])
                files += [facts] if facts is not None else []
            self._known = KnownIdentifiers(files)
        return self._known

    def edit(self, place: CodeLine, start: int, end: int, text: str, *, prior: float) -> Edit | None:
        """The edit that puts `text` in the place of [start, end); None where it is none, or was made before."""
        found = self.put(place.line, start, end, text, prior=prior)
        return None if isinstance(found, str) else found

    def put(
        self, line: int, start: int, end: int, text: str, *, prior: float, operator: str = SPAN, known: bool = True
    ) -> Edit | str:
        """The same, or why it is none. `known`: only names that exist may come in."""
        spot = self._unit(line)
        if spot is None or self._source is None:
            return f"line {line} is in no statement or function that can be edited"
        span, unit = spot
        old = self.text[start:end].decode("utf-8")
        start, end, old, text = _trimmed(start, old, text)
        if old == text:
            return "it changes nothing"
        if start < unit.base or end > unit.base + len(unit.text):
            return f"it leaves the function around line {line}"
        if known and not self._names_exist(start, end, text):
            return "it names what does not exist"
        text = text.replace("\n", self._source.newline)
        splices = ((start - unit.base, end - unit.base, text),)
        try:
            digest = edit_check.tree_digest(unit, splices)
        except (ValueError, UnicodeDecodeError):
            digest = None
        if digest is None or not edit_check.compiles(unit, splices):
            return "the result is not valid Python"
        if digest == unit.suite_digest(unit.root):
            return "it changes nothing"
        if (span, digest) in self._seen:
            return "it was tried before"
        self._seen.add((span, digest))
        last = self._source.line_of(max(start, end - 1))
        note = f"{_shown(old)} -> {_shown(text)}" if old.strip() else f"{_shown(text)} added"
        change = Change(splices, 0.0, min(line, last), max(line, last), note, _flat(old), _flat(text))
        made = made_edit(
            unit,
            unit_scope(unit, span),
            change,
            path=self.path,
            operator=operator,
            prior=prior,
            effects=frozenset({EditEffect.WRITTEN_BY_MODEL}),
        )
        return made or "the file's encoding cannot say it"

    def statement(self, line: int) -> StatementSpan | None:
        """The innermost statement (or its header) with code on a line; None between statements and in docstrings."""
        place, spot = self._code_line(line), self._unit(line)
        if place is None or spot is None:
            return None
        unit = spot[1]
        holder = _holder(unit, place.start - unit.base)
        if holder is None:
            return None
        end = holder.head_end if holder.compound else holder.end
        return StatementSpan(
            line=unit.line(holder.start),
            start=unit.base + holder.start,
            end=unit.base + len(unit.text[:end].rstrip()),
            indent=holder.indent,
        )

    def function(self, line: int) -> StatementSpan | None:
        """The outermost function around a line, decorators included."""
        spot = self._unit(line)
        if spot is None or not spot[0].is_function or len(spot[1].root.statements) != 1:
            return None
        span, unit = spot
        definition = unit.root.statements[0]
        end = unit.base + len(unit.text[: definition.end].rstrip())
        return StatementSpan(
            line=span.first_line, start=unit.base + definition.start, end=end, indent=definition.indent
        )

    def lines(self, line: int) -> range | None:
        """The lines of the function, or run of statements, that a line is in."""
        spot = self._unit(line)
        return None if spot is None else range(spot[0].first_line, spot[0].last_line + 1)

    def line_span(self, line: int) -> tuple[int, int]:
        """Offsets of a line's first character and of its end."""
        assert self._source is not None
        starts = self._source.line_starts
        end = starts[line] if line < len(starts) else len(self.text)
        return starts[line - 1], starts[line - 1] + len(self.text[starts[line - 1] : end].rstrip(b"\r\n"))

    def line_text(self, line: int) -> str:
        """One line of the file, without its end."""
        start, end = self.line_span(line)
        return self.text[start:end].decode("utf-8")

    def _names_exist(self, start: int, end: int, text: str) -> bool:
        line_start = self.text.rfind(b"\n", 0, start) + 1
        line_end = self.text.find(b"\n", end)
        before = self.text[line_start:start].decode("utf-8")
        after = self.text[end : line_end if line_end >= 0 else len(self.text)].decode("utf-8")
        found = scan(before + text + after)
        if len(before) <= found.comment < len(before) + len(text):
            return False  # what follows would be lost in a comment
        new = tuple(w for w in found.words if w.start < len(before) + len(text))
        return not exists(new, len(before), self.known)

    def _code_line(self, line: int) -> CodeLine | None:
        spot = self._unit(line)
        if spot is None or self._source is None:
            return None
        _, unit = spot
        start = self._source.line_starts[line - 1]
        end = self._source.line_starts[line] if line < len(self._source.line_starts) else len(self.text)
        raw = self.text[start:end]
        code = raw.strip()
        if not code or code.startswith((b"#", b"@")):
            return None
        first = start + len(raw) - len(raw.lstrip())
        holder = _holder(unit, first - unit.base)
        if holder is None:
            return None
        head = unit.slice(holder.start, first - unit.base) if holder.start < first - unit.base else ""
        indent = raw[: first - start].decode("utf-8") if not head else holder.indent
        return CodeLine(line=line, start=first, end=start + len(raw.rstrip()), indent=indent, head=head)

    def _unit(self, line: int) -> tuple[UnitSpan, Unit] | None:
        if self._source is None or self._facts is None:
            return None
        span = next((s for s in self._facts.units if s.first_line <= line <= s.last_line), None)
        if span is None:
            return None
        if span not in self._units:
            self._units[span] = build(self._source, span.first_line, span.last_line)
        unit = self._units[span]
        return None if unit is None else (span, unit)


def _holder(unit: Unit, offset: int) -> Stmt | None:
    """The innermost statement, or header of one, that holds an offset; None between statements and in docstrings."""
    found: Stmt | None = None
    for statement in unit.statements:
        end = statement.head_end if statement.compound else statement.end
        if statement.start <= offset < end and (found is None or statement.start >= found.start):
            found = statement
    if found is None or found.compound:
        return found
    text = unit.slice(found.start, found.end).lstrip("rRbBuU")
    return None if text.startswith(('"""', "'''")) else found


def _trimmed(start: int, old: str, new: str) -> tuple[int, int, str, str]:
    """Without what both begin and end with."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    start += len(old[:head].encode("utf-8"))
    old, new = old[head:], new[head:]
    tail = 0
    while tail < min(len(old), len(new)) and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old, new = old[: len(old) - tail], new[: len(new) - tail]
    return start, start + len(old.encode("utf-8")), old, new


def _far_from(path: RepoPath) -> "_Distance":
    return _Distance(path.parts[:-1])


class _Distance:
    """How far a path lies from a folder; tests, which name what is wanted, count as near."""

    def __init__(self, folder: Sequence[str]) -> None:
        self._folder = tuple(folder)

    def __call__(self, path: RepoPath) -> tuple[int, str]:
        parts = path.parts[:-1]
        shared = sum(a == b for a, b in zip(self._folder, parts, strict=False))
        is_test = path.parts[-1].startswith("test_") or path.parts[-1].endswith("_test.py")
        return (0 if is_test else len(self._folder) + len(parts) - 2 * shared), str(path)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _shown(text: str) -> str:
    return shortened(_flat(text), _MAX_NOTE)
