"""What a piece of source mentions, calls, writes and imports, by resolved name.

Aliases are followed through imports, simple assignments, `getattr` with constant names, `__import__`, `sys.modules`,
`globals()` and `__dict__`, without regard to order: a name that may stand for several things stands for all of them.
What cannot be followed is marked where it sets out: a look-up by a computed name is `:dynamic`, a module of the
standard library that is put into a container, an attribute, a call or an answer is `:handed`, for nobody knows who
asks it for what. Not followed: functions and values that are handed on so, and star imports of modules whose names
are not the standard library's.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from localagent.code.bindings import ASKING, Bindings, assignments, bound_anew, own_names, rebound_in, settings
from localagent.code.name_resolver import (
    GETTERS,
    GLOBALS,
    IMPORTERS,
    MODULES,
    NAMESPACES,
    PICKERS,
    Resolver,
    bindings_with,
    collect,
    module_bindings,
)
from localagent.code.names import imports_of, last_name
from localagent.code.regions import OPERATORS, SourceFile, UnitSource, walk
from localagent.code.string_folding import texts_of
from localagent.text.visible_text import shortened

_WRITERS = {"builtins.setattr", "builtins.delattr"}
_MODE_CHARACTERS = frozenset("rwxabtU+:|gz")
_MODE_AT = {"os.fdopen": 1, "io.FileIO": 1, "tempfile.NamedTemporaryFile": 0, "tempfile.TemporaryFile": 0}
_OPENERS = {
    "builtins.open", "io.open", "codecs.open", "os.open", "os.fdopen", "io.FileIO", "gzip.open", "bz2.open",
    "lzma.open", "zipfile.ZipFile", "tarfile.open", "tempfile.NamedTemporaryFile", "_io.open", "_io.FileIO",
}  # fmt: skip

__all__ = ["NameUse", "Within", "bindings_with", "find_uses", "module_bindings", "within"]


class NameUse(NamedTuple):
    """One mention: `kind` is name, call, write, method, attribute, import, indirect, string, setting or asked.

    `asked`: a name that only says which class a value is of (`isinstance`), or is held against None.
    """

    kind: str
    name: str


def find_uses(tree: ast.Module, outer: Bindings) -> Iterator[tuple[NameUse, ast.AST]]:
    """Every use in a tree, with its node."""
    return _Finder(tree, outer).find()


class Within:
    """What names stand for inside a unit, so that a part of it can be judged by itself.

    `by_text` says that constants elsewhere in the unit decide what it reaches: then a part does not tell enough.
    """

    def __init__(self, file: SourceFile, snippet: UnitSource) -> None:
        finder = _Finder(snippet.tree, module_bindings(file))
        self.uses = Counter(use for use, _ in finder.find())
        self._finder = finder
        self.by_text = finder.by_text

    def find_uses(self, tree: ast.Module) -> Iterator[tuple[NameUse, ast.AST]]:
        """Every use in a part of the unit that may have been changed."""
        part = _Finder(tree, self._finder.outer, self._finder.local)
        part.own = set(self._finder.own)
        part.inner.origins = dict(self._finder.inner.origins)
        part.inner.values = dict(self._finder.inner.values)
        part.inner.stars = list(self._finder.inner.stars)
        return part.find()


def within(file: SourceFile, snippet: UnitSource) -> Within:
    """The unit that `snippet` is, as it stood; kept with it."""
    if "within" not in snippet.memo:
        snippet.memo["within"] = Within(file, snippet)
    kept: Within = snippet.memo["within"]
    return kept


_HOOK = "__getattribute__"
_HANDED_ON = frozenset({"builtins.getattr", "builtins.setattr", "builtins.delattr"})
_ASKED = GETTERS | NAMESPACES | {"importlib.reload", "builtins.dir", "builtins.id", "inspect.getsource"}
_WHOLE = frozenset({"items", "values", "copy", "popitem", "keys"})
_ONE_ARGUMENT = frozenset({"replace", "rename", "touch", "chmod"})  # those of paths; a text's take another number
_CHANGES = frozenset({"update", "setdefault", "pop", "popitem", "clear", "__setitem__", "__delitem__", "__ior__"})


class _Finder(Resolver):
    """Lists the uses of one tree."""

    def __init__(self, tree: ast.Module, outer: Bindings, local: set[str] | None = None) -> None:
        super().__init__(tree, outer)
        self._called_ids: set[int] = set()
        self._followed: set[int] = set()
        self._in_class: set[int] = set()
        self._spoken: set[int] = set()
        self._only_asked: set[int] = set()
        self._reads_docs = False
        self._rebound: bool | None = outer.rebound or None  # None: not asked yet
        body = tree.body[0].body if _is_wrapper(tree) else tree.body  # type: ignore[attr-defined]
        self.local = local if local is not None else own_names(body[0]) if len(body) == 1 else set()

    def find(self) -> Iterator[tuple[NameUse, ast.AST]]:
        """Every use of the tree."""
        nodes = walk(self._tree)
        if self.outer.stars or any(isinstance(n, ast.ImportFrom) for n in nodes):
            self.own |= bound_anew(nodes)
        collect(nodes, self)
        self._reads_docs = any(last_name(n) == "__doc__" for n in nodes)
        chained: set[int] = set()
        for node in nodes:
            if type(node) not in OPERATORS:
                for use in self._uses(node, chained):
                    yield use, node

    def _uses(self, node: ast.AST, chained: set[int]) -> Iterator[NameUse]:
        yield from self._settings(node)
        self._only_asked.update(map(id, self._tested_names(node)))
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and id(node) not in self._spoken:
                yield from _texts(node.value)
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and not self._reads_docs:
            self._spoken.add(id(node.value))  # a docstring is said to people
            return
        if isinstance(node, ast.BinOp | ast.JoinedStr | ast.Call | ast.Subscript):
            yield from (use for text in texts_of(node) or () for use in _texts(text))
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            yield from self._mention(node, chained)
        elif isinstance(node, ast.ClassDef):
            self._in_class.update(id(statement) for statement in node.body)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.comprehension):
            self._follow(node)
        elif isinstance(node, ast.Call):
            self._called_ids.add(id(node.func))
            if node.args and isinstance(node.func, ast.Name | ast.Attribute) and self.resolve(node.func) & _ASKED:
                self._followed.add(id(node.args[0]))
            if id(node) not in chained:
                names = self.resolve(node)
                yield from (NameUse("name", name) for name in names)
                if id(node) not in self._followed:
                    yield from (NameUse("call", f"{name}:handed") for name in _whole_modules(names))
            yield from self._call(node)
        elif isinstance(node, ast.MatchClass):  # a pattern's keywords read attributes
            for name in node.kwd_attrs:
                yield from (NameUse("attribute", name), NameUse("indirect", name))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("__reduce"):  # what it answers is called when the object is unpickled
                yield NameUse("attribute", node.name)
            if node.name == _HOOK:
                yield NameUse("attribute", f"{_HOOK}:defined")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for brought in imports_of(node):
                whole = brought.item in ("", "*")
                yield NameUse("import" if whole else "name", brought.module if whole else brought.origin)

    def _is_rebound(self) -> bool:
        if self._rebound is None:
            self._rebound = rebound_in(walk(self._tree))
        return self._rebound

    def _tested_names(self, node: ast.AST) -> list[ast.expr]:
        """Names that are held against None, and classes that a value is asked to be of by Python's own functions."""
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot) and len(node.ops) == 1:
            nothing = isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None
            return [node.left] if nothing else []
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or len(node.args) != 2:
            return []
        name = node.func.id
        if name not in ASKING or self.resolve(node.func) != {f"builtins.{name}"} or self._is_rebound():
            return []
        classes = node.args[1]
        return list(classes.elts) if isinstance(classes, ast.Tuple) else [classes]

    def _settings(self, node: ast.AST) -> Iterator[NameUse]:
        """`name=value` for what is set to a constant or a name, in whatever way."""
        for name, value in settings(node):
            if name.startswith("__reduce"):  # set in a class body, or in the namespace that `type` is given
                yield NameUse("attribute", name)
            if name == _HOOK:
                yield NameUse("attribute", f"{_HOOK}:defined")
            if isinstance(value, ast.Constant | ast.UnaryOp | ast.List | ast.Tuple):
                yield NameUse("setting", f"{name}={shortened(ast.unparse(value), 80)}")
            elif isinstance(value, ast.Name | ast.Attribute):
                found = self.resolve(value) or {last_name(value)}
                yield from (NameUse("setting", f"{name}={one}") for one in found)

    def _mention(self, node: ast.Name | ast.Attribute | ast.Subscript, chained: set[int]) -> Iterator[NameUse]:
        if isinstance(node, ast.Attribute):
            yield NameUse("attribute", node.attr)
        if isinstance(node, ast.Name) and node.id == "__builtins__":
            yield NameUse("name", "builtins.__builtins__")
        if not isinstance(node.ctx, ast.Load):
            if not isinstance(node, ast.Name):
                names = self.resolve(node) if isinstance(node, ast.Attribute) else self.resolve(node.value)
                yield from (
                    NameUse("call", "builtins.globals:write") if name == GLOBALS else NameUse("write", name)
                    for name in names
                )
                chained.add(id(node.value))
            return
        if not isinstance(node, ast.Name):
            chained.add(id(node.value))  # part of a longer chain, which is what counts
        if isinstance(node, ast.Subscript):
            bases = self.resolve(node.value)
            yield from self._unknown_entry(bases, node.slice)
            yield from (NameUse("name", name) for name in self._item(node.value, node.slice) or bases)
        elif id(node) not in chained:
            names = self.resolve(node)
            kind = "asked" if id(node) in self._only_asked else "name"
            yield from (NameUse(kind, name) for name in names)
            if id(node) not in self._followed and not isinstance(node, ast.Subscript):
                yield from (NameUse("call", f"{name}:handed") for name in _whole_modules(names))
            if id(node) not in self._called_ids:  # handed on, so that nobody knows what it is asked for
                yield from (NameUse("call", f"{name}:dynamic") for name in names & _HANDED_ON)

    def _call(self, node: ast.Call) -> Iterator[NameUse]:
        names = (
            self.resolve(node.func)
            if isinstance(node.func, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
            else set()
        )
        for name in names:
            yield NameUse("call", name)
            space, _, asked = name.rpartition(".")
            if asked in _WHOLE and space.endswith(".__dict__"):
                yield from (NameUse("call", f"{module}:handed") for module in _whole_modules({space}))
            if name in _OPENERS and self._writes(node, _MODE_AT.get(name, 1)):
                yield NameUse("call", f"{name}:write")
                if self._overwrites(node):
                    yield NameUse("method", "open:overwrite")
            if name in GETTERS | IMPORTERS | PICKERS:
                yield from self._lookup(node, name)
        if isinstance(node.func, ast.Attribute):
            yield NameUse("method", node.func.attr)
            if node.func.attr in _CHANGES:
                spaces = (b for b in self.resolve(node.func.value) if b.endswith(".__dict__"))
                yield from (NameUse("write", f"{space.removesuffix('.__dict__')}.{node.func.attr}") for space in spaces)
            if node.func.attr in ("format", "format_map") and not self._known_text(node.func.value):
                yield NameUse("method", "format:dynamic")
            if len(node.args) == 1 and not node.keywords and node.func.attr in _ONE_ARGUMENT:
                yield NameUse("method", f"{node.func.attr}:one")
            if node.func.attr == "open" and not names and self._method_writes(node):
                yield NameUse("method", "open:write")
                if self._overwrites(node):
                    yield NameUse("method", "open:overwrite")
            if node.func.attr == "get" and node.args:
                yield from self._unknown_entry(self.resolve(node.func.value), node.args[0])
            if node.func.attr == "update" and node.args and last_name(node.func.value) == "__dict__":
                yield NameUse("method", "__dict__.update")
            if node.func.attr == "__setattr__" and len(node.args) > 2:
                yield from self._set(node.args[0], node.args[1])
        elif _is_entry_of_namespace(node.func):
            yield NameUse("call", "vars:dynamic")

    def _unknown_entry(self, bases: set[str], key: ast.expr) -> Iterator[NameUse]:
        """What is looked up in the namespace of a module by a name that nobody knows."""
        spaces = {b for b in bases if b in ("sys.modules", GLOBALS) or b.endswith(".__dict__")}
        if spaces and self._text(key) is None:
            yield NameUse("call", "sys.modules:dynamic" if "sys.modules" in bases else "builtins.globals:dynamic")

    def _set(self, target: ast.expr, name: ast.expr) -> Iterator[NameUse]:
        for origin in self.resolve(target):
            yield from (NameUse("write", f"{origin}.{text}") for text in self._text(name) or ("*",))

    def _follow(self, node: ast.AST) -> None:
        """Values whose way through names is known: what a class keeps, others reach by the class."""
        if id(node) not in self._in_class:
            self._followed.update(id(value) for _, value in assignments(node))

    def _known_text(self, node: ast.expr) -> bool:
        """Whether what is formatted is written in the source, maybe translated on the way."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            return all(self._text(a) is not None for a in node.args[:1])
        return self._text(node) is not None

    def _lookup(self, node: ast.Call, name: str) -> Iterator[NameUse]:
        """A look-up by name: what it reaches if the name is constant, else `:dynamic`."""
        at = 1 if name in GETTERS else 0
        short = name.replace("_operator.", "operator.")
        if len(node.args) <= at or any(isinstance(a, ast.Starred) for a in node.args[: at + 1]):
            yield NameUse("call", f"{short}:dynamic")
            return
        texts = self._text(node.args[at])
        if texts is None:
            if name != "builtins.hasattr":
                yield NameUse("call", f"{short}:dynamic")
            return
        for text in texts:
            if name in PICKERS:
                yield from (NameUse("indirect", part) for part in text.split("."))
            if name not in IMPORTERS:
                yield from (NameUse("attribute", part) for part in text.split("."))
            if name in _WRITERS:
                yield from (NameUse("write", f"{origin}.{text}") for origin in self.resolve(node.args[0]))

    def _mode(self, node: ast.Call, at: int) -> ast.expr | None:
        keyword = next((k.value for k in node.keywords if k.arg == "mode"), None)
        return keyword or (node.args[at] if len(node.args) > at else None)

    def _writes(self, node: ast.Call, at: int) -> bool:
        """True unless the mode is known to be for reading."""
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            return True
        mode = self._mode(node, at)
        if mode is None:
            return at == 0  # tempfile opens for writing unless told otherwise
        texts = self._text(mode)
        return texts is None or any(set(text) & set("wax+") for text in texts)

    def _overwrites(self, node: ast.Call) -> bool:
        """Whether what stands there already would be lost."""
        modes = [self._text(mode) for at in (0, 1) if (mode := self._mode(node, at)) is not None]
        return any(set(t) <= _MODE_CHARACTERS and "w" in t for texts in modes for t in texts or ())

    def _method_writes(self, node: ast.Call) -> bool:
        """A method `open` of an unknown receiver: the mode may be its first argument or its second."""
        for at in (0, 1):
            mode = self._mode(node, at)
            texts = self._text(mode) if mode is not None else None
            if texts and any(set(t) <= _MODE_CHARACTERS and set(t) & set("wax+") and len(t) <= 4 for t in texts):
                return True
        return any(k.arg == "mode" and self._text(k.value) is None for k in node.keywords)


def _texts(text: str) -> Iterator[NameUse]:
    """A text, and once more as `word:` where it has no blanks, as addresses have none."""
    yield NameUse("string", text)
    if 3 < len(text) < 400 and "." in text and not text.isspace() and len(text.split(None, 1)) == 1:
        yield NameUse("string", f"word:{text}")


def _is_entry_of_namespace(node: ast.expr) -> bool:
    """`vars(x)[key]` and `x.__dict__[key]`, whatever x is, by a key that is no constant."""
    if not isinstance(node, ast.Subscript) or texts_of(node.slice) is not None:
        return False
    space = node.value
    return last_name(space) == "__dict__" or (isinstance(space, ast.Call) and last_name(space.func) == "vars")


def _is_wrapper(tree: ast.Module) -> bool:
    return len(tree.body) == 1 and isinstance(tree.body[0], ast.ClassDef)


def _whole_modules(names: Iterable[str]) -> Iterator[str]:
    """Modules of the standard library among some names, reached from wherever; a module's namespace is all of it."""
    for name in names:
        first, last = name.split(".", 1)[0], name.removesuffix(".__dict__").rpartition(".")[2]
        if first in MODULES and last in MODULES:
            yield last
