"""The agent's search by an index's facts: another thing of the same name is told apart, and an edited file is plain."""

from hashlib import sha256

from support.agent_builder import MemoryTree

from localagent.agent.tools.working_copy import WorkingCopy
from localagent.app.agent.graph_search import GraphSearch
from localagent.code.graph.collect_facts import collect_facts
from localagent.code.graph.facts import ModuleFacts, encoded
from localagent.domain.paths import RepoPath

FILES = {
    "shop/__init__.py": "",
    "shop/labels.py": "def label(name):\n    return name.strip()\n",
    "shop/forms.py": "def label(form):\n    return form\n\n\nFORM = label(1)\n",
    "shop/app.py": "from shop.labels import label\n\nX = label('a')\n\n\ndef other(label):\n    return label\n",
    "README.md": "The label is stripped.\n",
}


def _facts() -> dict[RepoPath, tuple[bytes, bytes]]:
    found = {}
    for path, text in FILES.items():
        facts = collect_facts(text.encode())
        if path.endswith(".py") and isinstance(facts, ModuleFacts):
            found[RepoPath(path)] = (sha256(text.encode()).digest(), encoded(facts))
    return found


def test_uses_are_those_of_the_thing_that_is_meant_and_an_edited_file_is_searched_plainly() -> None:
    writes: dict[RepoPath, str | None] = {}
    search = GraphSearch(WorkingCopy(MemoryTree(FILES), lambda: writes), _facts)
    assert search.symbol("labels.label") == ["shop/labels.py:1: def label(name):"]
    assert search.references("labels.label") == [
        "shop/app.py:1: from shop.labels import label",
        "shop/app.py:3: X = label('a')",
        "shop/labels.py:1: def label(name):",
        "README.md:1: The label is stripped.",
    ]
    writes[RepoPath("shop/app.py")] = "import shop.labels\n\nY = shop.labels.label('b')\n"
    assert "shop/app.py:3: Y = shop.labels.label('b')" in search.references("labels.label")
    assert not any("shop/forms.py" in line for line in search.references("labels.label"))


def test_without_facts_words_are_found() -> None:
    search = GraphSearch(WorkingCopy(MemoryTree(FILES), dict), dict)
    assert "shop/forms.py:5: FORM = label(1)" in search.references("labels.label")
    assert search.symbol("nothing") == []
