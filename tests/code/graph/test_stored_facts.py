"""Facts that are decoded when they are needed answer as facts of all files do."""

import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from localagent.code.graph import facts as facts_format
from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.collect_facts import collect_facts
from localagent.code.graph.facts import FactsFormatError, ModuleFacts, encoded, encoded_names
from localagent.code.graph.find_symbols import find_symbols
from localagent.code.graph.references import find_references, module_name
from localagent.code.graph.stored_facts import StoredFacts, stored_graph
from localagent.domain.paths import RepoPath

ROOT = Path(__file__).parents[3]
ODD = {
    RepoPath("odd.py"): "import \u212bb.c\nimport a.b, \u2460 if False else 0\n",  # does not parse
    RepoPath("kelvin.py"): "import pkg.\u212aelvin\nprint(pkg)\n",  # NFKC: K
    RepoPath("pkg/Kelvin.py"): "def f(): ...\n",
    RepoPath("long.py"): "import pkg . Kelvin\nlen(pkg.Kelvin.f)\n",
}


class EveryFile(CodeGraph):
    """Asks every file, whatever names it holds."""

    def files_naming(self, names: Iterable[str]) -> list[RepoPath]:
        del names
        return sorted(self.facts)


@pytest.mark.long
def test_answers_are_those_of_a_graph_that_asks_every_file() -> None:
    files = sorted(ROOT.glob("localagent/code/graph/*.py"))
    sources = {RepoPath(str(p.relative_to(ROOT))): p.read_bytes() for p in files}
    sources |= {path: text.encode() for path, text in ODD.items()}
    facts = {p: made for p, data in sources.items() if isinstance(made := collect_facts(data), ModuleFacts)}
    stored = {path: encoded(made) for path, made in facts.items()}
    every = EveryFile(facts)
    chosen = random.Random(7)
    names = chosen.sample(sorted({n for made in facts.values() for n in made.names}), 40)
    names += [*chosen.sample([module_name(path) for path in facts], 8), "Kelvin.f", "pkg.Kelvin", "__len__", "no_such"]
    found = 0
    for name in names:
        lazy = stored_graph(stored)
        expected = find_references(every, find_symbols(every, name))
        assert find_references(lazy, find_symbols(lazy, name)) == expected, name
        found += bool(expected)
    assert found > len(names) // 4


def test_only_files_with_the_name_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {
        RepoPath("m.py"): "def wanted(): ...\n",
        RepoPath("n.py"): "from m import wanted as other\nother()\n",
        RepoPath("z.py"): "print(1)\n",
    }
    facts = {path: collect_facts(text.encode()) for path, text in made.items()}
    stored = {path: encoded(one) for path, one in facts.items() if isinstance(one, ModuleFacts)}
    read: list[RepoPath] = []
    get = StoredFacts.__getitem__

    def noted(self: StoredFacts, path: RepoPath) -> ModuleFacts:
        read.append(path)
        return get(self, path)

    monkeypatch.setattr(StoredFacts, "__getitem__", noted)
    graph = stored_graph(stored)
    assert [r.line for r in find_references(graph, find_symbols(graph, "wanted"))] == [1, 1, 1, 2]
    assert set(read) == {"m.py", "n.py"}


@pytest.mark.parametrize("cut", [0, 3, 5, 20])
def test_damaged_names_are_named_so(cut: int) -> None:
    made = collect_facts(b"def f(): ...\n")
    assert isinstance(made, ModuleFacts)
    assert encoded_names(encoded(made)) == made.names
    with pytest.raises(FactsFormatError):
        encoded_names(encoded(made)[:cut])
    with pytest.raises(FactsFormatError):
        facts_format.decoded(encoded(made)[:cut])
