"""What a patch changes, file by file: lines on either side, executable lines, touched functions. Reads syntax alone.

Not promised: that a function behaves as before because none of its lines changed.
"""

import ast
import re
import textwrap
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from localagent.code.source_text import parse_or_none
from localagent.code.spans import Definition, all_blocks, head_end, last_line
from localagent.domain.paths import RepoPath
from localagent.verify.worker import function_regions
from localagent.verify.worker.function_regions import FunctionRegion

_OVERLOAD = re.compile(r"\boverload\b")
_MOST_LINES = 20_000
_MOST_PAIRS = 2_000_000
_KEPT = 64  # files, of which every test of a suite asks the same


def _first_run(node: ast.stmt) -> int:
    """The line at which a statement begins to run: the word of one that decides, as `if (`, is none of its own."""
    asks = getattr(node, "test", None) or getattr(node, "subject", None)
    return asks.lineno if isinstance(asks, ast.expr) else node.lineno


def _alike_pairs(old: list[bytes], new: list[bytes]) -> int:
    """How many pairs of equal lines there are, which is what comparing takes: a table has millions."""
    counts = Counter(new)
    return sum(counts[line] for line in old)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedFile:
    """A Python file before and after, under both its names. An empty text stands for no file."""

    path: RepoPath
    source: RepoPath
    before: bytes
    after: bytes

    def lines(self) -> tuple[frozenset[int], frozenset[int]]:
        """The lines that differ, of the text before and of that after; where lines only went or came, none."""
        return _lines(self)

    def alike(self) -> bool:
        """Whether both texts are the same to a running Python: only comments and layout differ, or it is a stub."""
        if self.path.endswith(".pyi") and self.source.endswith(".pyi"):
            return True
        old, new = parse_or_none(self.before), parse_or_none(self.after)
        standing = bool(self.before) and bool(self.after) and self.path == self.source
        return standing and old is not None and new is not None and ast.dump(old) == ast.dump(new)

    def described(self) -> bool:
        """Whether both texts differ in comments, layout and docstrings alone."""
        return _described(self)

    def executable(self) -> frozenset[int]:
        """Where the changed statements of the text after begin to run, without definitions' heads and docstrings.

        Where a head alone was mended in a text that did not parse, the statements of its definition: none ever ran.
        """
        tree = parse_or_none(self.after)
        if tree is None:
            return frozenset()
        changed = self.lines()[1]
        found = self._begun(tree, changed)
        if not found and changed and self.before and parse_or_none(self.before) is None:
            found = self._begun(tree, _innermost(tree, changed))
        return found

    def changed_in(self, begun: frozenset[int]) -> frozenset[int]:
        """The changed lines of the statements of the text after that begin at some lines; of one without, its first."""
        tree, changed = parse_or_none(self.after), self.lines()[1]
        extents = {n.lineno: head_end(n) for n in _statements(tree.body)} if tree is not None else {}
        found: set[int] = set()
        for first in begun:
            found |= changed.intersection(range(first, extents.get(first, first) + 1)) or {first}
        return frozenset(found)

    @staticmethod
    def _begun(tree: ast.Module, changed: frozenset[int]) -> frozenset[int]:
        """The lines at which the statements begin to run of which a line changed."""
        lines = sorted(changed)
        statements = {n.lineno: n for n in sorted(_statements(tree.body), key=lambda n: -n.lineno)}
        found = set()
        for node in statements.values():
            at = bisect_left(lines, node.lineno)
            if at < len(lines) and lines[at] <= head_end(node):
                found.add(_first_run(node))
        return frozenset(found)

    def touched(self) -> tuple[tuple[FunctionRegion, FunctionRegion], ...]:
        """The outermost functions that stand on both sides and differ, as pairs."""
        return _touched(self)

    def fresh(self) -> tuple[FunctionRegion, ...]:
        """The outermost functions that stand after alone."""
        old, new = function_regions.regions(self.before), function_regions.regions(self.after)
        if new is None:
            return ()
        before = _named(old.functions) if old is not None and self.before else {}
        return tuple(f for name, f in _named(new.functions).items() if name not in before)

    def functions(self) -> tuple[FunctionRegion, ...] | None:
        """The outermost functions that stand after; None where nobody can tell."""
        new = function_regions.regions(self.after)
        return new.functions if new is not None else None

    def differing(self) -> tuple[tuple[FunctionRegion, bool], ...]:
        """The outermost functions that stand after and differ by more than docstrings and annotations; True: new."""
        stood = [b for a, b in self.touched() if _behaviour(self.before, a) != _behaviour(self.after, b)]
        return (*((f, False) for f in stood), *((f, True) for f in self.fresh()))

    def around(self) -> bool:
        """Whether anything outside functions that stand on both sides differs, or nobody can tell."""
        return _around(self)

    def reached_by(self, lines: frozenset[int]) -> bool:
        """Whether lines of the text before, as a test ran them, have to do with the change."""
        if not lines or self.described():
            return False
        if self.around():
            return True
        return any(a.line <= n <= a.last_line for a, _ in self.touched() for n in lines)


def _in_function(text: bytes, line: int) -> bool:
    """Whether lines that only went away, before line `line + 1`, stood in a function that still stands."""
    found = function_regions.regions(text)
    return found is not None and any(f.line <= line < f.last_line for f in found.functions)


@lru_cache(maxsize=_KEPT)
def _lines(file: ChangedFile) -> tuple[frozenset[int], frozenset[int]]:
    old, new = file.before.split(b"\n"), file.after.split(b"\n")
    front, behind = _alike_at_both_ends(old, new)
    stood, stands = range(front + 1, len(old) - behind + 1), range(front + 1, len(new) - behind + 1)
    went, came = old[front : len(old) - behind], new[front : len(new) - behind]
    if max(len(went), len(came)) > _MOST_LINES or _alike_pairs(went, came) > _MOST_PAIRS:
        return frozenset(stood), frozenset(stands)
    matcher = SequenceMatcher(None, went, came, autojunk=False)
    gone: set[int] = set()
    come: set[int] = set()
    for tag, *places in matcher.get_opcodes():
        a, b, c, d = (place + front for place in places)
        if tag != "equal":
            gone |= set(range(a + 1, b + 1))
            come |= set(range(c + 1, d + 1)) or ({c, c + 1} if _in_function(file.after, c) else set())
    return frozenset(gone), frozenset(come)


@lru_cache(maxsize=_KEPT)
def _described(file: ChangedFile) -> bool:
    old, new = parse_or_none(file.before), parse_or_none(file.after)
    standing = bool(file.before) and bool(file.after) and file.path == file.source
    return standing and old is not None and new is not None and _undescribed(old) == _undescribed(new)


@lru_cache(maxsize=_KEPT)
def _touched(file: ChangedFile) -> tuple[tuple[FunctionRegion, FunctionRegion], ...]:
    old, new = function_regions.regions(file.before), function_regions.regions(file.after)
    if old is None or new is None:
        return ()
    before, after = _named(old.functions), _named(new.functions)
    return tuple(
        (a, after[name])
        for name, a in before.items()
        if name in after and file.before[a.start : a.end] != file.after[after[name].start : after[name].end]
    )


@lru_cache(maxsize=_KEPT)
def _around(file: ChangedFile) -> bool:
    old, new = function_regions.regions(file.before), function_regions.regions(file.after)
    if old is None or new is None or not file.before or not file.after:
        return True
    gone = _named(old.functions).keys() - _named(new.functions).keys()
    return bool(gone) or _outline(old.outline) != _outline(new.outline)


class _Unannotated(ast.NodeTransformer):
    """Takes away docstrings, and annotations of functions and of their variables."""

    def __init__(self) -> None:
        self._inside = False

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if not self._inside:  # a field of a class may be made of its annotation
            return node
        plain = ast.Assign(targets=[node.target], value=node.value) if node.value is not None else ast.Pass()
        return ast.copy_location(plain, node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._plain(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._plain(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._within(node, inside=False)

    def _plain(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        return self._within(node, inside=True)

    def _within(self, node: ast.AST, *, inside: bool) -> ast.AST:
        was, self._inside = self._inside, inside
        try:
            return self.generic_visit(node)
        finally:
            self._inside = was


def unannotated(tree: ast.Module) -> ast.Module:
    """A tree, which is altered, without what people and type checkers alone read in functions."""
    _Unannotated().visit(tree)
    return tree


def _undescribed(tree: ast.Module) -> str:
    """The syntax of a module without its docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | Definition) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)


def _behaviour(text: bytes, function: FunctionRegion) -> str:
    """A function's syntax without what people and type checkers read."""
    source = textwrap.dedent(text[function.start : function.end].decode("utf-8", "replace"))
    tree = parse_or_none(source)
    return source if tree is None else ast.dump(unannotated(tree))


def _outline(text: bytes) -> list[bytes]:
    """What stands around functions, line by line, without blank ones."""
    return [line for line in text.replace(b"\0", b"\n").split(b"\n") if line.strip()]


def _named(functions: Sequence[FunctionRegion]) -> dict[tuple[str | None, str, int], FunctionRegion]:
    """By class, name and how often that came before; declarations by `@overload`, which are never called, left out."""
    found: dict[tuple[str | None, str, int], FunctionRegion] = {}
    came: Counter[tuple[str | None, str]] = Counter()
    last = {(function.class_name, function.name): function for function in functions}
    for function in functions:
        named = function.class_name, function.name
        if function is not last[named] and _OVERLOAD.search(function.kept):
            continue
        found[(*named, came[named])] = function
        came[named] += 1
    return found


def _alike_at_both_ends(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int]:
    """How many lines are the same in front, and how many of the others behind."""
    front = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    most = min(len(old), len(new)) - front
    behind = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    return front, behind


def _innermost(tree: ast.Module, lines: frozenset[int]) -> frozenset[int]:
    """The lines of the smallest definition that holds all of some lines."""
    spans = [(n.lineno, last_line(n)) for n in ast.walk(tree) if isinstance(n, Definition)]
    holding = [(last - first, first, last) for first, last in spans if first <= min(lines) and max(lines) <= last]
    if not holding:
        return frozenset()
    _, first, last = min(holding)
    return frozenset(range(first, last + 1))


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run as such: definitions only lead to those inside."""
    for n, node in enumerate(body):
        docstring = n == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        plain = not isinstance(node, Definition)
        if plain and not docstring and not isinstance(node, ast.Global | ast.Nonlocal | ast.Pass):
            yield node
        for block in all_blocks(node):
            yield from _statements(block)
