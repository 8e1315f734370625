"""Facts of many files as an index stores them: a file's are decoded when they are first asked for, its names apart."""

from collections.abc import Iterator, Mapping

from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.facts import ModuleFacts, decoded, encoded_names
from localagent.domain.paths import RepoPath


class StoredFacts(Mapping[RepoPath, ModuleFacts]):
    """`stored` are `encoded` facts. FactsFormatError when damaged ones are asked for."""

    def __init__(self, stored: Mapping[RepoPath, bytes]) -> None:
        self._stored = stored
        self._decoded: dict[RepoPath, ModuleFacts] = {}

    def __getitem__(self, path: RepoPath) -> ModuleFacts:
        if path not in self._decoded:
            self._decoded[path] = decoded(self._stored[path])
        return self._decoded[path]

    def __contains__(self, path: object) -> bool:
        return path in self._stored

    def __iter__(self) -> Iterator[RepoPath]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def names(self, path: RepoPath) -> tuple[str, ...]:
        """Every name in a file's facts."""
        return encoded_names(self._stored[path])


def stored_graph(stored: Mapping[RepoPath, bytes]) -> CodeGraph:
    """The graph over encoded facts, which decodes those that a question needs."""
    facts = StoredFacts(stored)
    return CodeGraph(facts, facts.names)
