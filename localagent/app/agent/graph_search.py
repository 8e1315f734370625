"""`CodeSearch` by the code graph where an index has read the very text of a file; plain for every other file.

Nothing is parsed here for the graph: its facts come from confined children. Without an index all of it is plain.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from hashlib import sha256

from localagent.agent.tools.text_search import TextSearch
from localagent.agent.tools.working_copy import WorkingCopy
from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.find_symbols import definitions_of, find_symbols
from localagent.code.graph.references import Certainty, Reference, find_references
from localagent.code.graph.stored_facts import stored_graph
from localagent.domain.paths import RepoPath
from localagent.text.visible_text import one_line

Facts = Mapping[RepoPath, tuple[bytes, bytes]]
_LINE = 160


class GraphSearch:
    """`facts` gives, by path, the SHA-256 of a file and its encoded facts; it is called once, when first needed."""

    def __init__(self, copy: WorkingCopy, facts: Callable[[], Facts]) -> None:
        self._copy, self._plain, self._read_facts = copy, TextSearch(copy), facts
        self._graph = CodeGraph({})

    def search(self, query: str) -> list[str]:
        """As `TextSearch`."""
        return self._plain.search(query)

    def symbol(self, name: str) -> list[str]:
        """Definitions, by the graph first."""
        graph = self._current()
        functions = [f for symbol in find_symbols(graph, name.strip()) for f in definitions_of(graph, symbol)]
        found = [self._line(f.path, graph.view(f.path).facts.definitions[f.index].line) for f in functions]
        return found + self._elsewhere(self._plain.symbol(name), graph, all_files=not found)

    def references(self, name: str) -> list[str]:
        """Sure uses, then possible ones, then lines of other files in which the name stands as a word."""
        graph = self._current()
        found = find_references(graph, find_symbols(graph, name.strip()))
        shown = [self._shown(one) for one in sorted(found, key=lambda one: one.certainty != Certainty.CERTAIN)]
        return list(dict.fromkeys(shown + self._elsewhere(self._plain.references(name), graph, all_files=not shown)))

    @cached_property
    def _facts(self) -> Facts:
        return self._read_facts()

    def _current(self) -> CodeGraph:
        """The graph of the files that are as the index read them; the last one while these are the same."""
        known = {path: facts for path, (digest, facts) in self._facts.items() if self._is(path, digest)}
        if known.keys() != self._graph.facts.keys():
            self._graph = stored_graph(known)
        return self._graph

    def _is(self, path: RepoPath, digest: bytes) -> bool:
        text = self._copy.get(path)
        return text is not None and sha256(text.encode("utf-8", "surrogatepass")).digest() == digest

    def _elsewhere(self, lines: list[str], graph: CodeGraph, *, all_files: bool) -> list[str]:
        return [line for line in lines if all_files or line.partition(":")[0] not in graph.facts]

    def _shown(self, one: Reference) -> str:
        return self._line(one.path, one.line) + ("" if one.certainty == Certainty.CERTAIN else "  [possible]")

    def _line(self, path: RepoPath, number: int) -> str:
        lines = (self._copy.get(path) or "").splitlines()
        return f"{path}:{number}: {one_line(lines[number - 1].strip() if number <= len(lines) else '', _LINE)}"
