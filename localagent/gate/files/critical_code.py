"""Code that is critical by what it is: by the names of what is changed, and by what that uses. Wherever its file lies.

Judges the functions and classes around a change, and the variables that changed lines set. Not seen: critical code
whose names say nothing and that uses nothing but what every code uses.
"""

import ast
import fnmatch
import re
from collections.abc import Iterator

from localagent.code.bindings import Bindings
from localagent.code.name_uses import find_uses, module_bindings
from localagent.code.names import last_name
from localagent.code.regions import DoesNotParse, SourceFile, decode_source, parse, walk
from localagent.code.spans import Definition, first_line, last_line
from localagent.domain.edit import FileChange
from localagent.domain.policy import PatchRules
from localagent.gate.core.gate_input import ReplacedBytes
from localagent.gate.security.forbidden_apis import Matcher


class CriticalCode:
    """What a policy calls critical code."""

    def __init__(self, rules: PatchRules) -> None:
        self._names = re.compile("|".join(map(fnmatch.translate, rules.critical_names)) or r"(?!)", re.IGNORECASE)
        self._uses = Matcher(rules.critical_uses)

    def touched(self, file: FileChange, spans: list[ReplacedBytes]) -> Iterator[tuple[int, str]]:
        """(line, why) for each critical part that changed, before or after; a source that does not parse has none."""
        grown = 0
        told: set[str] = set()
        ranges: list[tuple[bytes, int, int]] = []
        for span in spans:
            ranges.append((file.before, span.start, span.end))
            ranges.append((file.after, span.start + grown, span.start + grown + len(span.text)))
            grown += len(span.text) - (span.end - span.start)
        for data, start, end in ranges:
            first = data.count(b"\n", 0, start) + 1
            last = first + data.count(b"\n", start, max(start, end - 1))
            for line, why in self._within(data, first, last):
                if why not in told:
                    told.add(why)
                    yield line, why

    def _within(self, data: bytes, first: int, last: int) -> Iterator[tuple[int, str]]:
        try:
            tree = parse(decode_source(data))
        except DoesNotParse:
            return
        outer: Bindings | None = None
        for statement in _statements(tree.body, first, last):
            for name in _named(statement, first, last):
                if self._names.match(name):
                    yield first, f"{name} is critical by its name"
            part = ast.Module(body=[statement], type_ignores=[])
            outer = outer or module_bindings(SourceFile(data))
            for use, _ in find_uses(part, outer):
                if use.kind in ("name", "call", "import") and self._uses.covers(use.name):
                    yield first, f"what is changed uses {use.name}"


def _statements(body: list[ast.stmt], first: int, last: int) -> Iterator[ast.stmt]:
    """The functions, and the statements outside of functions, that some lines lie in."""
    for node in body:
        if first_line(node) > last or last_line(node) < first:
            continue
        if isinstance(node, ast.ClassDef):
            head = ast.ClassDef(
                name=node.name, bases=node.bases, keywords=node.keywords, body=[], decorator_list=node.decorator_list,
                lineno=node.lineno, col_offset=0, end_lineno=last_line(node),
            )  # fmt: skip
            yield head
            yield from _statements(node.body, first, last)
        else:
            yield node


def _named(node: ast.AST, first: int, last: int) -> Iterator[str]:
    """The scopes of a statement that some lines lie in, and what is bound in these lines outside of functions."""
    for inner in walk(node):
        if isinstance(inner, Definition):
            if inner.lineno <= last and last_line(inner) >= first:
                yield inner.name
        elif isinstance(inner, ast.Assign | ast.AnnAssign | ast.AugAssign) and first <= inner.lineno <= last:
            targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
            for target in targets:
                yield last_name(target)
