"""Which parts of a patch do the turned tests need? Each part is taken back alone, and the tests run on what is left.

A part is the smallest that can be told: a run of changed tokens (a bracket goes with its partner), an inserted
statement, a removed run of lines. One
without which all tests pass is not explained by them; whether it does anything shows when old against new is asked of
the tree with and without all such parts. Limitations: of two parts that do the same, each is unneeded; what stands
inside one inserted statement is one part; a part that leaves no program when it is taken back is not asked.
"""

import ast
import concurrent.futures as cf
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise

from localagent.code.source_text import line_starts, parse_or_none
from localagent.code.spans import all_blocks, byte_span, last_line
from localagent.domain.edit import Candidate, Edit, FileChange, Patch, Scope, Splice
from localagent.domain.verification import UnneededPart
from localagent.ports import QuickCheck
from localagent.verify.evidence.changed_lines import ChangedFile, unannotated
from localagent.verify.evidence.mutants import CPU_SECONDS, MutantFate, fate_of
from localagent.verify.worker.function_regions import regions

MOST_PARTS = 24
MOST_PAIRS = 6
MOST_TOKENS = 400  # of both texts of a hunk: a longer one is one part
SECONDS = 40.0
_SHOWN = 120
_LEAST_MOVED = 12  # letters and signs
_HEADER = re.compile(rb"(?:^|\n)[ \t]*\w[^\n]*:[ \t]*(?:#[^\n]*)?\n|^[ \t]*(?:else|try|finally):\s")
_TOKEN = re.compile(rb"\s+|\w+|[^\w\s]", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchPart:
    """Bytes [start, end) of the patched file that stand for `before` in the old one.

    `rest` are further stretches that make no sense without the first, such as the bracket that closes another one.
    """

    file: ChangedFile
    start: int
    end: int
    before: bytes
    rest: tuple[tuple[int, int, bytes], ...] = ()

    @property
    def stretches(self) -> tuple[tuple[int, int, bytes], ...]:
        """All of it, in order."""
        return ((self.start, self.end, self.before), *self.rest)

    @property
    def line(self) -> int:
        """The line of the patched file where it begins."""
        return self.file.after.count(b"\n", 0, self.start) + 1

    @property
    def text(self) -> str:
        """For a person: what stood there, and what stands there."""
        first, last = self.start, self.stretches[-1][1]
        stands = self.file.after[first:last]
        stood = _put_back(self.file.after, self.stretches)[first : last + len(self.reverted()) - len(self.file.after)]
        sides = [" ".join(t.decode("utf-8", "replace").split()) for t in (stood, stands)]
        return " -> ".join(side[:_SHOWN] if side else "nothing" for side in sides)

    @property
    def inserted(self) -> bytes:
        """The bytes that stand in the patched file."""
        return self.file.after[self.start : self.end]

    def reverted(self) -> bytes:
        """The patched file without it."""
        return _put_back(self.file.after, self.stretches)

    def unneeded(self) -> UnneededPart:
        """As it is told."""
        return UnneededPart(path=self.file.path, line=self.line, text=self.text)

    def candidate(self, number: int) -> Candidate:
        """The patched tree without it, for a quick check."""
        after = self.file.after
        edit = Edit(
            path=self.file.path,
            splices=tuple(Splice(start=start, end=end, text=before) for start, end, before in self.stretches),
            operator="take-back",
            line=self.line,
            end_line=self.line + after.count(b"\n", self.start, self.stretches[-1][1]),
            prior=0.0,
            note=self.text,
            scope=_scope(after, self.start, self.stretches[-1][1]),
        )
        change = FileChange(path=self.file.path, before=after, after=self.reverted())
        return Candidate(number=number, patch=Patch(changes=(change,)), edits=(edit,), cost=0.0)


def _put_back(text: bytes, stretches: Iterable[tuple[int, int, bytes]]) -> bytes:
    for start, end, before in sorted(stretches, reverse=True):
        text = text[:start] + before + text[end:]
    return text


def parts_of(files: Sequence[ChangedFile]) -> list[PatchPart]:
    """The parts of a patch that can be taken back and leave another program, in order.

    Of code that moved inside a function it is the arrival alone: without the departure it would stand there twice,
    which nobody means.
    """
    found = []
    for file in files:
        every = list(changed_parts(file)) if file.before and file.after else []
        arrived = list(_arrivals(every))
        found += [p for p in every if not (_departs(p) and _moved(p) in arrived) and _is_program(p)]
        known = {_texture(p) for p in found if p.file == file}
        found += [p for p in _new_steps(file) if _texture(p) not in known and _is_program(p)]
    return found


def _texture(part: PatchPart) -> bytes:
    """What is left without a part, blanks aside."""
    return b"".join(part.reverted().split())


def outermost(parts: Sequence[PatchPart]) -> list[PatchPart]:
    """Without those that stand inside another one."""
    return [p for p in parts if not any(q != p and q.file == p.file and _inside(p, q) for q in parts)]


def _inside(part: PatchPart, other: PatchPart) -> bool:
    return all(any(a <= start and end <= b for a, b, _ in other.stretches) for start, end, _ in part.stretches)


def same_statement(parts: Sequence[PatchPart]) -> list[tuple[PatchPart, PatchPart]]:
    """Pairs of parts that stand in one statement without statements inside, and do not overlap."""
    found = []
    for n, one in enumerate(parts):
        for other in parts[n + 1 :]:
            if one.file == other.file and not one.rest and not other.rest and one.end <= other.start:
                tree = parse_or_none(one.file.after)
                lines = (one.line, other.file.after.count(b"\n", 0, other.end) + 1)
                if tree is not None and any(_holds(node, *lines) for node in ast.walk(tree)):
                    found.append((one, other))
    return found[:MOST_PAIRS]


def _holds(node: ast.AST, first: int, last: int) -> bool:
    if not isinstance(node, ast.stmt) or hasattr(node, "body"):
        return False
    return node.lineno <= first and last <= last_line(node)


def together(one: PatchPart, other: PatchPart) -> PatchPart:
    """Both taken back at once."""
    return replace(one, rest=other.stretches)


def _new_steps(file: ChangedFile) -> Iterator[PatchPart]:
    """Numbers that the patch adds to something or takes from it, in lines that changed: `+ 1` inside a larger part."""
    old, new = parse_or_none(file.before), parse_or_none(file.after)
    lines, starts = file.lines()[1], line_starts(file.after)
    had = Counter(ast.unparse(n) for n in ast.walk(old) if isinstance(n, ast.BinOp)) if old is not None else Counter()
    for node in ast.walk(new) if old is not None and new is not None else ():
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(value=int())) if node.lineno in lines:
                (start, end), (first, last) = byte_span(node, starts), byte_span(node.left, starts)
                if not had[ast.unparse(node)] and file.after.isascii():  # else offsets may be those of another encoding
                    yield PatchPart(file=file, start=start, end=end, before=file.after[first:last])


_Moved = tuple[Scope | None, list[bytes]]


def _arrivals(parts: Sequence[PatchPart]) -> Iterator[_Moved]:
    """Inserted hunks, whose statements are parts of their own."""
    for n, part in enumerate(parts):
        if not part.before and (not n or parts[n - 1].before or parts[n - 1].end != part.start):
            end = part.end
            for other in parts[n + 1 :]:
                if other.before or other.start != end:
                    break
                end = other.end
            yield _moved(replace(part, end=end, before=part.file.after[part.start : end]))


def _departs(part: PatchPart) -> bool:
    """Whether it only takes code away, and more of it than a word that stands everywhere."""
    return not part.inserted and len(b"".join(part.before.split())) >= _LEAST_MOVED


def _moved(part: PatchPart) -> _Moved:
    """The function where code stands or stood, and its lines without what stands around each."""
    lines = [line.strip() for line in part.before.split(b"\n") if line.strip()]
    return _scope(part.file.after, part.start, part.end), lines


def _is_program(part: PatchPart) -> bool:
    made, stands = parse_or_none(part.reverted()), parse_or_none(part.file.after)
    return made is not None and stands is not None and _behaviour(made) != _behaviour(stands)


def _behaviour(tree: ast.Module) -> str:
    """The syntax tree without docstrings, and without what people and type checkers read in functions and of globals.

    Of what a class declares they are not the only readers: data classes, and models of settings.
    """
    for declared in tree.body:
        if isinstance(declared, ast.AnnAssign) and declared.value is not None:
            declared.annotation = ast.Constant(None)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.Module) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(unannotated(tree))


def changed_parts(file: ChangedFile) -> Iterator[PatchPart]:
    """The smallest parts of a file's change that can be told, in order; what is left without one may be no program."""
    old, new = file.before.splitlines(keepends=True), file.after.splitlines(keepends=True)
    olds, news = _offsets(old), _offsets(new)
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        part = PatchPart(file=file, start=news[c], end=news[d], before=file.before[olds[a] : olds[b]])
        if tag == "replace":
            yield from _in_tokens(part)
        elif tag == "insert":
            yield from _in_statements(part)
        else:
            yield part


def _offsets(lines: Sequence[bytes]) -> list[int]:
    found = [0]
    for line in lines:
        found.append(found[-1] + len(line))
    return found


def _in_tokens(part: PatchPart) -> Iterator[PatchPart]:
    """A replaced hunk by the runs of tokens that differ; whole where these are too many, or tell nothing."""
    old, new = _TOKEN.findall(part.before), _TOKEN.findall(part.file.after[part.start : part.end])
    if len(old) + len(new) > MOST_TOKENS:
        yield part
        return
    olds, news = _offsets(old), _offsets(new)
    runs = [
        PatchPart(
            file=part.file,
            start=part.start + news[c],
            end=part.start + news[d],
            before=part.before[olds[a] : olds[b]],
        )
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if tag != "equal"
    ]
    yield from sorted(_with_their_blocks(list(_with_their_brackets(runs))), key=lambda p: p.start)


def _with_their_blocks(runs: list[PatchPart]) -> Iterator[PatchPart]:
    """A line that begins a block (`else:`) and came or went is one part with all that follows it in the hunk."""
    runs.sort(key=lambda p: p.start)
    for n, run in enumerate(runs):
        if any(_HEADER.search(side) for side in (run.before, run.inserted)):
            stretches = [stretch for later in runs[n:] for stretch in later.stretches]
            (start, end, before), *rest = sorted(stretches)
            yield replace(run, start=start, end=end, before=before, rest=tuple(rest))
            return
        yield run


def _with_their_brackets(runs: Sequence[PatchPart]) -> Iterator[PatchPart]:
    """Runs that open brackets and those that close these are one part; what stands between is not of it.

    Without its partner a bracket is no program, and in a pattern or a text nothing that anybody means.
    """
    waiting: list[PatchPart] = []
    for run in (piece for whole in runs for piece in _at_brackets(whole)):
        alone = _unclosed(run.before) == _unclosed(run.inserted) == ("", "")
        if alone:
            yield run
            continue
        waiting.append(run)
        sides = (b"".join(r.before for r in waiting), b"".join(r.inserted for r in waiting))
        if all(_unclosed(side) == ("", "") for side in sides):
            yield replace(waiting[0], rest=tuple((r.start, r.end, r.before) for r in waiting[1:]))
            waiting = []
    yield from waiting


def _at_brackets(run: PatchPart) -> Iterator[PatchPart]:
    """An inserted run, cut behind what it opens and before what it closes of the text around it."""
    text, cuts, opened = run.inserted, {0, len(run.inserted)}, list[int]()
    for at, sign in enumerate(text.decode("latin-1")):
        if sign in "([{":
            opened.append(at)
        elif sign in ")]}":
            if opened:
                opened.pop()
            else:
                cuts.add(at)
    cuts |= {at + 1 for at in opened}
    if run.before or len(cuts) <= 2:
        yield run
        return
    for start, end in pairwise(sorted(cuts)):
        if text[start:end].strip():
            yield replace(run, start=run.start + start, end=run.start + end)


def _unclosed(text: bytes) -> tuple[str, str]:
    """Brackets that close nothing, and brackets that nothing closes."""
    closing, opening = "", ""
    for sign in text.decode("latin-1"):
        if sign in "([{":
            opening += sign
        elif opening and opening[-1] + sign in ("()", "[]", "{}"):
            opening = opening[:-1]
        elif sign in ")]}":
            closing += sign
    return closing, opening


def _in_statements(part: PatchPart) -> Iterator[PatchPart]:
    """An inserted hunk by the statements that stand in it whole; whole where it holds but one."""
    tree = parse_or_none(part.file.after)
    first, last = part.line, part.file.after.count(b"\n", 0, part.end)
    inside = list(_outermost(tree.body, first, last)) if tree is not None else []
    starts = [first, *(node.lineno for node in inside[1:]), last + 1]
    lines = _offsets(part.file.after.splitlines(keepends=True))
    if len(inside) < 2 or any(a >= b for a, b in pairwise(starts)):
        yield part
        return
    for begin, end in pairwise(starts):
        yield PatchPart(file=part.file, start=lines[begin - 1], end=lines[end - 1], before=b"")


def _outermost(body: Sequence[ast.stmt], first: int, last: int) -> Iterator[ast.stmt]:
    for node in body:
        if first <= node.lineno and last_line(node) <= last:
            yield node
        elif node.lineno <= last and last_line(node) >= first:
            for block in all_blocks(node):
                yield from _outermost(block, first, last)


def _scope(text: bytes, start: int, end: int) -> Scope | None:
    """The outermost function around some bytes."""
    known = regions(text)
    for f in known.functions if known is not None else ():
        if f.start <= start and end <= f.end:
            return Scope(
                name=f.name,
                qualname=f"{f.class_name}.{f.name}" if f.class_name else f.name,
                class_name=f.class_name,
                first_line=f.line,
                last_line=f.last_line,
                start=f.start,
                body_start=f.body_start,
                end=f.end,
            )
    return None


def try_parts(
    check: QuickCheck, parts: Sequence[PatchPart], *, jobs: int, seconds: float = SECONDS
) -> list[tuple[PatchPart, MutantFate | None]]:
    """What becomes of the tests without each part; None where that was not asked, or did not come to an end.

    Nothing where they do not even pass with a part put in the place of itself: what they say then means nothing.
    """
    if not parts:
        return []
    same = replace(parts[0], before=parts[0].inserted, rest=())
    if fate_of(check.check(same.candidate(0), cpu_seconds=CPU_SECONDS, stop_early=True)) is not MutantFate.ALIVE:
        return []
    until = time.monotonic() + seconds

    def fate(numbered: tuple[int, PatchPart]) -> MutantFate | None:
        if time.monotonic() > until:
            return None
        number, part = numbered
        return fate_of(check.check(part.candidate(number), cpu_seconds=CPU_SECONDS, stop_early=True))

    with cf.ThreadPoolExecutor(max(1, jobs), thread_name_prefix="part") as pool:
        said = list(pool.map(fate, enumerate(parts[:MOST_PARTS], 1)))
    return list(zip(parts, said, strict=False))


def without(file: ChangedFile, parts: Sequence[PatchPart]) -> ChangedFile:
    """From the patched file without some parts of it to the patched file."""
    stretches = (stretch for part in parts if part.file == file for stretch in part.stretches)
    return ChangedFile(path=file.path, source=file.path, before=_put_back(file.after, stretches), after=file.after)
