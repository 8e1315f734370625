"""What a recipe is asked and answers, and the files that it looks at."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.collect_facts import collect_facts
from localagent.code.graph.facts import ModuleFacts
from localagent.code.graph.references import qualified_name
from localagent.code.graph.values import Symbol
from localagent.code.source_text import SourceText, parse_or_none, read_source
from localagent.domain.claim import Claim
from localagent.domain.paths import RepoPath

_SHOWN = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A place in a file; the line begins at 1."""

    path: RepoPath
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class SourceSplice:
    """Bytes [start, end) of a file's UTF-8 form that become `text`."""

    path: RepoPath
    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeChange:
    """What a recipe makes of the tree. `understood` is for a person; `left` are places that may belong to it."""

    understood: str
    writes: Mapping[RepoPath, str]
    claim: Claim
    left: tuple[Place, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """Why a recipe is not carried out, and what to say instead. `unknown`: nothing has the name that it is about."""

    text: str
    remedy: str
    unknown: bool = False


class RecipeQuestionError(Exception):
    """Ends a recipe with a question; nothing was changed."""

    def __init__(self, text: str, remedy: str, *, unknown: bool = False) -> None:
        super().__init__(text)
        self.question = Question(text=text, remedy=remedy, unknown=unknown)


class RecipeSources:
    """The files of a tree: Python by its code graph, configuration as text."""

    def __init__(self, python: Mapping[RepoPath, bytes], configuration: Mapping[RepoPath, bytes]) -> None:
        self.python = python
        self.configuration = configuration
        found = {path: collect_facts(data) for path, data in python.items()}
        self.graph = CodeGraph({path: facts for path, facts in found.items() if isinstance(facts, ModuleFacts)})
        self.unread = sorted(path for path, facts in found.items() if not isinstance(facts, ModuleFacts))
        self._texts: dict[RepoPath, SourceText] = {}

    def text(self, path: str) -> SourceText:
        """A file of the graph; RecipeQuestionError where it cannot be changed exactly."""
        at = RepoPath(path)
        if at not in self._texts:
            made = read_source(self.python[at])
            if made is None or made.encoding not in ("utf-8", "ascii"):
                raise RecipeQuestionError(f"{at} is not UTF-8, and would have to change", "convert it to UTF-8 first")
            self._texts[at] = made
        return self._texts[at]

    def after(self, splices: Sequence[SourceSplice]) -> dict[RepoPath, str]:
        """The files that splices change, as they become. RecipeQuestionError where one no longer parses."""
        found = {}
        for path in sorted({s.path for s in splices}):
            text, data = self.text(path), self.python[path]
            for splice in sorted({s for s in splices if s.path == path}, reverse=True):
                start, end = text.raw_offset(splice.start), text.raw_offset(splice.end)
                data = data[:start] + splice.text.encode() + data[end:]
            if parse_or_none(data) is None:
                raise RecipeQuestionError(f"{path} would no longer parse", "change it by hand")
            found[path] = data.decode("utf-8")
        return found

    def with_writes(self, writes: Mapping[RepoPath, str]) -> CodeGraph:
        """The graph of the tree as it becomes."""
        facts = dict(self.graph.facts)
        for path, text in writes.items():
            made = collect_facts(text.encode())
            if isinstance(made, ModuleFacts):
                facts[path] = made
        return CodeGraph(facts)

    def unread_with(self, name: str) -> list[RepoPath]:
        """Python files that cannot be read and hold a word."""
        word = re.compile(rb"(?<![\w])" + re.escape(name.encode()) + rb"(?![\w])")
        return [path for path in self.unread if word.search(self.python[path])]

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name of every file."""
        return frozenset(name for facts in self.graph.facts.values() for name in facts.names)


def listed(items: Sequence[object]) -> str:
    """Some things in a row, the first few."""
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(str(i) for i in items[:_SHOWN]) + more


def counted(number: int, what: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def symbol_text(graph: CodeGraph, symbol: Symbol) -> str:
    """A symbol's qualified name and file, to choose it by."""
    return f"{qualified_name(graph, symbol)} ({symbol.path})"
