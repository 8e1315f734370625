"""A change to a tree as demands look at it: the lines that came, in code, in tests and elsewhere, and the sources.

A line came where it stands more often than before. All by words: what a name stands for is not known.
"""

import ast
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from localagent.code.source_text import parse_or_none
from localagent.code.spans import Definition, lines_of
from localagent.domain.paths import RepoPath

_DEFINES = re.compile(rb"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_NOTHING = ast.Module([], [])


class ChangedSource(NamedTuple):
    """A Python file of a change, before (empty where it is new) and after, and its new lines, by number from 1."""

    path: RepoPath
    before: ast.Module
    after: ast.Module
    new_lines: frozenset[int]


class ChangedTree:
    """`after` are the files that are new or differ, `before` the same and those that are gone, `rest` all others."""

    def __init__(
        self,
        before: Mapping[RepoPath, bytes | None],
        after: Mapping[RepoPath, bytes],
        rest: Iterable[RepoPath],
        read: Callable[[RepoPath], bytes | None],
        is_test: Callable[[RepoPath], bool],
    ) -> None:
        self.before, self.after, self.is_test = before, after, is_test
        self._parsed: dict[str, list[Definition]] = {}
        self._rest, self._read = tuple(rest), read

    def rest(self) -> Iterator[bytes]:
        """What the change leaves as it was, file by file."""
        return (self._read(path) or b"" for path in self._rest)

    def has(self, name: str) -> bool:
        """Whether a file of such a name, or path, stood before."""
        stood = (*(p for p, text in self.before.items() if text is not None), *self._rest)
        return any(f"/{path}".endswith(f"/{name}") for path in stood)

    @property
    def paths(self) -> tuple[RepoPath, ...]:
        """Of every file that came, went or differs."""
        return tuple({**self.before, **self.after})

    @cached_property
    def code(self) -> str:
        """The new lines of sources that are no tests."""
        return self._came(lambda path: path.is_python and not self.is_test(path))

    @cached_property
    def texts(self) -> str:
        """The new lines of documentation, settings and data."""
        return self._came(lambda path: not path.is_python and not self.is_test(path))

    @cached_property
    def all_lines(self) -> str:
        """Every new line, those of tests too."""
        return self._came(lambda _: True)

    @cached_property
    def all_text(self) -> str:
        """The changed files, whole, as they are now."""
        return b"\n".join(self.after.values()).decode("utf-8", "replace")

    @cached_property
    def all_sources(self) -> tuple[ChangedSource, ...]:
        """The Python files that can be read, tests too."""
        found = []
        for path, text in self.after.items():
            tree = parse_or_none(text) if path.is_python else None
            if tree is not None:
                before = parse_or_none(self.before.get(path) or b"")
                found.append(ChangedSource(path, before or _NOTHING, tree, self._new_lines(path)))
        return tuple(found)

    @cached_property
    def sources(self) -> tuple[ChangedSource, ...]:
        """Those that are no tests."""
        return tuple(s for s in self.all_sources if not self.is_test(s.path))

    def stood(self, text: str) -> bool:
        """Whether a text stood anywhere before the change."""
        return any(text.encode() in (old or b"") for old in itertools.chain(self.before.values(), self.rest()))

    def definitions(self, name: str) -> list[Definition]:
        """The functions and classes of a name in the files that the change leaves as they were."""
        if name not in self._parsed:
            texts = (self._read(path) or b"" for path in self._defining.get(name, ()))
            trees = [tree for text in texts if (tree := parse_or_none(text)) is not None]
            nodes = (n for tree in trees for n in ast.walk(tree) if isinstance(n, Definition))
            self._parsed[name] = [n for n in nodes if n.name == name]
        return self._parsed[name]

    @cached_property
    def _defining(self) -> dict[str, list[RepoPath]]:
        """Which of those files define a name, as their text says."""
        found: dict[str, list[RepoPath]] = {}
        for path in (p for p in self._rest if p.is_python):
            for name in {*_DEFINES.findall(self._read(path) or b"")}:
                found.setdefault(name.decode("utf-8", "replace"), []).append(path)
        return found

    def new_texts(self) -> Iterator[str]:
        """Each string on a new line of code or of a test, docstrings left out."""
        for source in self.all_sources:
            plain = {id(n.value) for n in ast.walk(source.after) if isinstance(n, ast.Expr)}
            for node in ast.walk(source.after):
                if not isinstance(node, ast.Constant) or id(node) in plain:
                    continue
                if isinstance(node.value, str) and source.new_lines.intersection(lines_of(node)):
                    yield node.value

    def code_strings(self) -> Iterator[str]:
        """Each string of the sources as they are now, and the names of keywords: `dict(total=1)` makes a key."""
        for node in (n for source in self.sources for n in ast.walk(source.after)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.keyword) and node.arg:
                yield node.arg

    def _new_lines(self, path: RepoPath) -> frozenset[int]:
        left, found = Counter(_lines(self.before.get(path))), []
        for number, line in enumerate(_lines(self.after[path]), 1):
            left[line] -= 1
            if left[line] < 0:
                found.append(number)
        return frozenset(found)

    def _came(self, counts: Callable[[RepoPath], bool]) -> str:
        found: list[str] = []
        for path in filter(counts, self.after):
            lines = _lines(self.after[path])
            found += (lines[number - 1] for number in sorted(self._new_lines(path)))
        return "\n".join(found)


def _lines(text: bytes | None) -> list[str]:
    return (text or b"").decode("utf-8", "replace").split("\n")
