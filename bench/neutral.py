"""Neutral names: the same sources with every identifier that they define themselves replaced, in all files alike.

One spelling becomes one other spelling wherever it means something of the project's own; what could also be an
attribute of Python's or of an imported module's types keeps its name, for spelling alone cannot tell the two apart.
Comments and texts stay. Not promised: that the result behaves the same (keywords gathered by `**`, names in texts);
whoever uses it runs the tests. Nothing of the sources is imported or run; modules of Python that they name are.
"""

import builtins
import difflib
import importlib
import keyword
import re
import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

import libcst as cst
import pytest

# ruff: noqa: N802 - libcst calls visitors so
from bench.own_names import KINDS, NameReader, Names, words_of

_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
# not asked for attributes: importing some of them does something, objects of the others are hardly met
_NOT_ASKED = frozenset(
    {"this", "antigravity", "idlelib", "turtle", "turtledemo", "__main__", "__future__", "dataclasses", "typing", "abc"}
)
_FIXTURES = (
    "cache capfd capfdbinary caplog capsys capsysbinary capteesys doctest_namespace monkeypatch pytestconfig pytester "
    "record_property record_testsuite_property record_xml_attribute recwarn request subtests testdir tmp_path "
    "tmp_path_factory tmpdir tmpdir_factory"
)
_KEPT = frozenset({"self", "cls", "_", "tests", "test", "conftest"}) | {*_FIXTURES.split(), *keyword.softkwlist}

_OF_PYTEST = re.compile(r"pytest_.*|(setup|teardown)_(module|class|method|function)")
_OURS_ALL_THE_SAME = frozenset({"replace", "_replace", "partial", "__init__", "__new__", "__replace__"})
_NAMED_IN_TEXT = {"getattr": 1, "setattr": 1, "hasattr": 1, "delattr": 1, "parametrize": 0, "usefixtures": 0}


class Renaming:
    """New names for one project, given as path -> every text that stands there in some version of it."""

    def __init__(self, files: Mapping[str, Iterable[str]], kinds: Sequence[str] = KINDS) -> None:
        """`kinds` says of what. SyntaxError where no version of a file parses."""
        self._names = names = Names()
        names.modules.update(name for path in files for name in _own_modules(path))
        self._whole: dict[str, str] = {}  # by path a version that parses
        texts: list[str] = []
        for path, versions in sorted((p, tuple(v)) for p, v in files.items() if p.endswith(".py")):
            texts += versions
            whole = [(text, tree) for text in versions if (tree := _parsed(text)) is not None]
            if not whole:
                raise SyntaxError(f"no version of {path} parses")
            self._whole[path] = whole[0][0]
            for _, tree in whole:
                tree.visit(NameReader(names))
        for name in sorted(names.modules):
            names.define(name, "module")
        for name in names.read:
            if name not in names.kinds:
                names.define(name, "value")  # variables, and what a bug calls them
        self.table: dict[str, str] = {}
        self.left = 0  # names of the project's own that stay as they are
        self._name(kinds, {word for part in (*texts, *files) for word in _WORD.findall(part)})

    def _name(self, kinds: Sequence[str], taken: set[str]) -> None:
        """New spellings, none of which is taken, in the order in which the old ones were met."""
        names = self._names
        elsewhere = names.attributes & _attributes_elsewhere(names.imported)
        counts = dict.fromkeys(KINDS, 0)
        for name, kind in names.kinds.items():
            if name in names.foreign or _fixed(name):
                continue
            if kind not in kinds or name in elsewhere:
                self.left += 1
                continue
            while (new := _spelled(name, kind, counts)) in taken:
                pass
            self.table[name] = new
            taken.add(new)

    def source(self, path: str, text: str) -> str:
        """One of the texts with the new names; one that does not parse, as far as it is like one that does."""
        tree = _parsed(text)
        if tree is not None:
            return tree.visit(_Writer(self.table, self._names)).code
        whole = self._whole[path]
        old, lines, new = whole.split("\n"), text.split("\n"), self.source(path, whole).split("\n")
        out: list[str] = []
        for what, first, end, start, stop in difflib.SequenceMatcher(None, old, lines, autojunk=False).get_opcodes():
            out += new[first:end] if what == "equal" else map(self._in_line, lines[start:stop])
        return "\n".join(out)

    def _in_line(self, line: str) -> str:
        return _WORD.sub(lambda word: self.table.get(word.group(), word.group()), line)

    def path(self, path: str) -> str:
        """Where a file lies when the modules it is made of are called otherwise."""
        parts, table = PurePosixPath(path), self.table
        if parts.suffix != ".py":
            return path
        folders = (table.get(part, part) for part in parts.parent.parts)
        return PurePosixPath(*folders, f"{table.get(parts.stem, parts.stem)}.py").as_posix()


def _parsed(source: str) -> cst.Module | None:
    """None for what is no program."""
    try:
        return cst.parse_module(source)
    except cst.ParserSyntaxError:
        return None


def _own_modules(path: str) -> list[str]:
    parts = PurePosixPath(path)
    return [] if parts.suffix != ".py" else [p for p in (*parts.parent.parts, parts.stem) if p.isidentifier()]


def _fixed(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__")
    return dunder or name in _KEPT or hasattr(builtins, name) or bool(_OF_PYTEST.fullmatch(name))


def _spelled(name: str, kind: str, counts: dict[str, int]) -> str:
    """The next name of a kind; what pytest finds by its name is found by the new one, private ones stay private."""
    counts[kind] += 1
    front, number = name[: len(name) - len(name.lstrip("_"))][:2], counts[kind]
    if kind == "class":
        return f"{front}{'Test' if name.startswith('Test') else 'Class'}{number}"
    if name.startswith("test") and kind != "value":
        return f"test_module_{number}" if kind == "module" else f"test_{number}"
    word = {"attribute": "field"}.get(kind, kind)
    return f"{front}{word.upper() if len(name) > 1 and name.isupper() else word}_{number}"


def _attributes_elsewhere(imported: Iterable[str]) -> set[str]:
    """Attributes of Python's types, and of the modules of the standard library and pytest that were imported."""
    places: list[object] = [value for value in vars(builtins).values() if isinstance(value, type)]
    places += [types.GeneratorType, types.FunctionType, types.CoroutineType, types.ModuleType, types.TracebackType]
    modules = [pytest]
    for name in imported:
        if (root := name.partition(".")[0]) in sys.stdlib_module_names and root not in _NOT_ASKED:
            try:
                modules.append(importlib.import_module(name))
            except ImportError:
                continue  # a name of the module, not a module of its own
    for module in modules:
        places += [module, *(value for value in vars(module).values() if isinstance(value, type))]
    return {name for place in places for name in dir(place)}


class _Writer(cst.CSTTransformer):
    """Puts new names where the old ones mean something of the project's own."""

    def __init__(self, table: Mapping[str, str], names: Names) -> None:
        super().__init__()
        self._table, self._names = table, names
        self._stay: set[cst.CSTNode] = set()
        self._texts: set[cst.CSTNode] = set()

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        new = None if original_node in self._stay else self._table.get(original_node.value)
        return updated_node.with_changes(value=new) if new else updated_node

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        if original_node not in self._texts:
            return updated_node
        prefix, quote = updated_node.prefix, updated_node.quote
        inner = _WORD.sub(lambda word: self._table.get(word.group(), word.group()), updated_node.raw_value)
        return updated_node.with_changes(value=f"{prefix}{quote}{inner}{quote}")

    def visit_Attribute(self, node: cst.Attribute) -> None:
        of_module = (words_of(node.value) or [""])[-1] in self._names.modules
        if not of_module and node.attr.value not in self._names.attributes:
            self._stay.add(node.attr)

    def visit_MatchKeywordElement(self, node: cst.MatchKeywordElement) -> None:
        if node.key.value not in self._names.attributes:
            self._stay.add(node.key)

    def visit_Import(self, node: cst.Import) -> bool:
        return any(words_of(alias.name)[0] in self._names.modules for alias in node.names)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return bool(node.relative) or words_of(node.module)[0] in self._names.modules

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._stay.update(arg.keyword for arg in node.keywords if arg.keyword)

    def visit_Annotation(self, node: cst.Annotation) -> None:
        self._mark(node.annotation)

    def visit_Assign(self, node: cst.Assign) -> None:
        if {word for target in node.targets for word in words_of(target.target)} & {"__all__", "__slots__"}:
            self._mark(node.value)

    def visit_Call(self, node: cst.Call) -> None:
        callee = (words_of(node.func) or [""])[-1]
        if not self._ours(node.func, callee):
            self._stay.update(arg.keyword for arg in node.args if arg.keyword)
        place = _NAMED_IN_TEXT.get(callee)
        if place is not None and len(node.args) > place:
            self._mark(node.args[place].value)
        for arg in node.args:
            if arg.keyword and arg.keyword.value in ("indirect", "argnames"):
                self._mark(arg.value)

    def _ours(self, func: cst.BaseExpression, callee: str) -> bool:
        """Whether keywords of a call are parameters of the project's own."""
        if callee in _OURS_ALL_THE_SAME:
            return True
        if isinstance(func, cst.Attribute):
            return callee in self._table
        return callee not in self._names.foreign and not hasattr(builtins, callee)

    def _mark(self, node: cst.CSTNode) -> None:
        found = [node] if isinstance(node, cst.SimpleString) else []
        self._texts.update(found)
        for child in node.children:
            self._mark(child)
