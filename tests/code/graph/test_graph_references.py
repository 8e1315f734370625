"""What references mean over files, a kind of resolution at a time."""

import random

import pytest

from localagent.code.graph.calls import CallGraph
from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.collect_facts import collect_facts
from localagent.code.graph.facts import ModuleFacts
from localagent.code.graph.find_symbols import definitions_of, find_symbols
from localagent.code.graph.impact import reached_from
from localagent.code.graph.references import find_references
from localagent.domain.paths import RepoPath


def graph_of(files: dict[str, str]) -> CodeGraph:
    facts = {RepoPath(path): collect_facts(text.encode()) for path, text in files.items()}
    return CodeGraph({path: one for path, one in facts.items() if isinstance(one, ModuleFacts)})


def references(files: dict[str, str], name: str) -> list[str]:
    graph = graph_of(files)
    found = find_references(graph, find_symbols(graph, name))
    return [f"{r.path}:{r.line} {r.kind}{'' if r.certainty == 'certain' else '?'}" for r in found]


CLASS = "class A:\n    def run(self): ...\n    def go(self):\n        self.run()\n"
CASES: dict[str, tuple[dict[str, str], str, list[str]]] = {
    "an alias of an import": (
        {"m.py": "def f(): ...\n", "n.py": "from m import f as g\ng()\n"},
        "m.f",
        ["m.py:1 definition", "n.py:1 import", "n.py:1 write", "n.py:2 call"],
    ),
    "through a package that exports it again": (
        {"p/__init__.py": "from .m import f\n__all__ = ['f']\n", "p/m.py": "def f(): ...\n", "n.py": "import p\np.f\n"},
        "p.m.f",
        ["n.py:2 read", "p/__init__.py:1 import", "p/__init__.py:2 __all__", "p/m.py:1 definition"],
    ),
    "a star import": (
        {"m.py": "def f(): ...\n", "n.py": "from m import *\nf()\n"},
        "m.f",
        ["m.py:1 definition", "n.py:2 call"],
    ),
    "a src layout and a namespace package": (
        {"src/ns/m.py": "X = 1\n", "tests/test_m.py": "from ns.m import X\nprint(X)\n"},
        "ns.m.X",
        ["src/ns/m.py:1 write", "tests/test_m.py:1 import", "tests/test_m.py:2 read"],
    ),
    "two packages of one name each mean their own": (
        {"a/u.py": "def f(): ...\n", "a/m.py": "import u\nu.f()\n", "b/u.py": "def f(): ...\n", "b/m.py": "import u\nu.f()\n"},  # noqa: E501
        "a/u.py:f",
        ["a/m.py:2 call", "a/u.py:1 definition"],
    ),
    "self, a constructor and an annotation": (
        {"m.py": CLASS, "n.py": "from m import A\nA().run()\ndef f(a: 'A | None'):\n    a.run()\n"},
        "A.run",
        ["m.py:2 definition", "m.py:4 call", "n.py:2 call", "n.py:4 call"],
    ),
    "an attribute that a method sets, read through a subclass": (
        {"m.py": "class A:\n    def __init__(self):\n        self.x = 1\nclass B(A):\n    def f(self):\n        return self.x\n"},  # noqa: E501
        "A.x",
        ["m.py:3 write", "m.py:6 read"],
    ),
    "super": (
        {"m.py": CLASS + "class B(A):\n    def run(self):\n        super().run()\n"},
        "A.run",
        ["m.py:2 definition", "m.py:4 call", "m.py:7 call"],
    ),
    "what a function returns, loops and contexts give": (
        {"m.py": CLASS + "def make(): return A()\nmake().run()\nfor a in [A()]:\n    a.run()\ndef f(d: dict[str, A]):\n    d['x'].run()\n"},  # noqa: E501
        "A.run",
        ["m.py:2 definition", "m.py:4 call", "m.py:6 call", "m.py:8 call", "m.py:10 call"],
    ),
    "isinstance": (
        {"m.py": CLASS + "def f(x):\n    if isinstance(x, A):\n        x.run()\n"},
        "A.run",
        ["m.py:2 definition", "m.py:4 call", "m.py:7 call"],
    ),
    "what is unknown is possible, what is something else is not": (
        {"m.py": CLASS, "n.py": "class Z:\n    def run(self): ...\nZ().run()\n''.run\ndef f(x):\n    x.run()\n    getattr(x, 'run')\n"},  # noqa: E501
        "A.run",
        ["m.py:2 definition", "m.py:4 call", "n.py:6 call?", "n.py:7 string?"],
    ),
    "a text that monkeypatching names": (
        {"p/m.py": "def f(): ...\n", "t.py": "patch('p.m.f')\npatch('q.m.f')\n"},
        "p.m.f",
        ["p/m.py:1 definition", "t.py:1 string?"],
    ),
    "a keyword for a field of a dataclass": (
        {"m.py": "@dataclass\nclass A:\n    x: int\nA(x=1).x\n"},
        "A.x",
        ["m.py:3 write", "m.py:4 keyword", "m.py:4 read"],
    ),
    "a fixture": (
        {"conftest.py": "import pytest\n@pytest.fixture\ndef db(): return 1\n", "t/test_a.py": "def test_a(db): ...\n", "m.py": "def f(db): ...\n"},  # noqa: E501
        "conftest.db",
        ["conftest.py:3 definition", "t/test_a.py:1 fixture"],
    ),
    "a stub beside the file": (
        {"m.py": "def f(): ...\n", "m.pyi": "def f() -> int: ...\n"},
        "m.py:f",
        ["m.py:1 definition", "m.pyi:1 definition"],
    ),
    "an import that may fail": (
        {"a.py": "def f(): ...\n", "m.py": "try:\n    from a import f\nexcept ImportError:\n    f = None\nf()\n"},
        "a.f",
        ["a.py:1 definition", "m.py:2 import", "m.py:4 write", "m.py:5 call"],
    ),
}  # fmt: skip


def _by_place(found: list[str]) -> list[str]:
    return sorted(found, key=lambda text: (text.split(":")[0], int(text.split(":")[1].split(" ")[0]), text))


@pytest.mark.parametrize(("files", "name", "expected"), CASES.values(), ids=CASES)
def test_references(files: dict[str, str], name: str, expected: list[str]) -> None:
    assert _by_place(references(files, name)) == _by_place(expected)


def test_the_order_of_files_and_of_questions_changes_nothing() -> None:
    files: dict[str, str] = {}
    for at, (case, _, _) in enumerate(CASES.values()):
        files |= {f"c{at}/{path}": text for path, text in case.items()}
    names = ["A.run", "f", "A.x", "db", "X"]
    expected = {name: references(files, name) for name in names}
    for seed in range(3):
        paths = sorted(files)
        random.Random(seed).shuffle(paths)
        graph = graph_of({path: files[path] for path in paths})
        random.Random(seed).shuffle(names)
        for name in names:
            found = find_references(graph, find_symbols(graph, name))
            assert [f"{r.path}:{r.line} {r.kind}{'' if r.certainty == 'certain' else '?'}" for r in found] == expected[
                name
            ]


@pytest.mark.parametrize(("files", "name", "expected"), CASES.values(), ids=CASES)
def test_the_name_of_something_else_changes_nothing(files: dict[str, str], name: str, expected: list[str]) -> None:
    other = {path: text + "\ndef unrelated(): return 1\nunrelated()\n" for path, text in files.items()}
    assert references(other, name) == references(files, name)


def test_cycles_of_imports_bases_and_values_end() -> None:
    files = {
        "a.py": "from b import x\nfrom b import *\nclass A(B): ...\nclass B(A): ...\ny = y.z\n",
        "b.py": "from a import x\nfrom a import *\ndef f(): return f()\nf().g\n",
    }
    graph = graph_of(files)
    for name in ("x", "A", "B", "y", "f", "g"):
        find_references(graph, find_symbols(graph, name))
    assert CallGraph(graph).in_file("b.py")


def test_calls_go_over_files_properties_and_overrides_to_the_tests() -> None:
    files = {
        "m.py": "class A:\n    @property\n    def p(self): return leaf()\n    def run(self): ...\n"
        "class B(A):\n    def run(self): ...\ndef leaf(): ...\ndef use(a: A):\n    a.p\n    a.run()\n",
        "test_m.py": "from m import A, use\ndef test_use(): use(A())\n",
    }
    graph = graph_of(files)
    calls = CallGraph(graph)

    def called(name: str) -> dict[str, str]:
        (function,) = definitions_of(graph, find_symbols(graph, name)[0])
        edges = calls.callees(function)
        return {graph.view(e.callee.path).facts.qualified_name(e.callee.index): e.certainty for e in edges}

    assert called("use") == {"A.p": "certain", "A.run": "certain", "B.run": "possible"}
    (leaf,) = definitions_of(graph, find_symbols(graph, "leaf")[0])
    reached = [
        (r.distance, graph.view(r.function.path).facts.qualified_name(r.function.index))
        for r in reached_from(calls, [leaf])
    ]
    assert reached == [(0, "leaf"), (1, "A.p"), (2, "use"), (3, "test_use")]


CALLS: dict[str, tuple[str, list[str]]] = {
    "of the signatures of an overloaded function none runs": (
        "from typing import overload\n@overload\ndef f(x: int) -> int: ...\n@overload\ndef f(x: str) -> str: ...\n"
        "def f(x): return x\nf(1)\n",
        ["7 <module> -> f@6"],
    ),
    "a written __init__ is no dataclass's, which calls __post_init__": (
        "class A:\n    def __init__(self): ...\n    def __post_init__(self): ...\nclass B:\n"
        "    def __post_init__(self): ...\nA()\nB()\n",
        ["6 <module> -> A.__init__@2", "7 <module> -> B.__post_init__@5"],
    ),
    "what a call passes as the first argument is what its parameter calls": (
        "def apply(function, x):\n    return function(x)\ndef double(x): ...\nclass Twice:\n"
        "    def __init__(self, x): ...\ndef other(x): ...\napply(double, other)\napply(Twice, 1)\n",
        ["2 apply -> Twice.__init__@5", "2 apply -> double@3", "7 <module> -> apply@1", "8 <module> -> apply@1"],
    ),
    "a decorator that a call makes is called with what it is put on": (
        "from typing import Callable\ndef tag(name) -> Callable[[object], object]:\n    def decorate(function):\n"
        "        def inner(): return function()\n        return inner\n    return decorate\n@tag('a')\n"
        "def task(): ...\n",
        ["4 tag.decorate.inner -> task@7", "7 <module> -> tag.decorate@3", "7 <module> -> tag@2"],
    ),
}


@pytest.mark.parametrize(("source", "expected"), CALLS.values(), ids=CALLS.keys())
def test_certain_calls(source: str, expected: list[str]) -> None:
    graph = graph_of({"m.py": source})
    facts = graph.facts[RepoPath("m.py")]

    def name(at: int) -> str:
        return facts.qualified_name(at) if at >= 0 else "<module>"

    edges = [e for e in CallGraph(graph).in_file("m.py") if e.certainty == "certain"]
    found = {
        f"{e.line} {name(e.caller.index)} -> {name(e.callee.index)}@{facts.definitions[e.callee.index].first_line}"
        for e in edges
    }
    assert sorted(found) == expected
