"""The map ranks what is used, not what bears the name of something that is used."""

from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.collect_facts import collect_facts
from localagent.code.graph.facts import ModuleFacts
from localagent.code.index.repo_map import rank_definitions
from localagent.domain.paths import RepoPath

FILES = {
    "store.py": "class Store:\n    def list(self): ...\n\ndef load(): ...\n\ndef other(): ...\n",
    **{
        f"user{n}.py": f"from store import load as get\n\ndef use{n}(x):\n    x.other()\n    return list(get())\n"
        for n in range(4)
    },
}


def test_a_name_that_a_builtin_or_something_unknown_bears_ranks_nothing() -> None:
    facts = {RepoPath(path): collect_facts(text.encode()) for path, text in FILES.items()}
    graph = CodeGraph({path: one for path, one in facts.items() if isinstance(one, ModuleFacts)})
    found = rank_definitions(graph, graph.facts, {})
    ranks = {entry.name: round(entry.rank, 6) for entry in found}
    assert found[0].name == "load"
    assert ranks["Store.list"] == ranks["other"] == ranks["Store"] < ranks["load"]
    seeded = rank_definitions(graph, graph.facts, {"user3.py": 50.0})
    assert {entry.name for entry in seeded[:2]} == {"load", "use3"}
