"""What a piece of source mentions, calls, writes and imports, by resolved name.

Aliases are followed through imports, simple assignments, `getattr` with constant names, `__import__`, `sys.modules`,
`globals()` and `__dict__`, without regard to order: a name that may stand for several things stands for all of them.
What cannot be followed is marked where it sets out: a look-up by a computed name is `:dynamic`, a module of the
standard library that is put into a container, an attribute, a call or an answer is `:handed`, for nobody knows who
asks it for what. Not followed: functions and values that are handed on so, and star imports of modules whose names
are not the standard library's.
"""

import ast
import builtins
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from localagent.gate.bindings import Bindings, assignments, bound_anew, own_names, settings, target_name
from localagent.gate.source import OPERATORS, Snippet, SourceFile, walk
from localagent.gate.texts import Values, texts_of, values_of

_BUILTINS = frozenset(dir(builtins)) | {"__builtins__", "__loader__", "__spec__"}
_GLOBALS = "<globals>"
_GETTERS = {"builtins.getattr", "builtins.setattr", "builtins.delattr", "builtins.hasattr", "inspect.getattr_static"}
_WRITERS = {"builtins.setattr", "builtins.delattr"}
_NAMESPACES = {"builtins.globals", "builtins.locals", "builtins.vars"}
_IMPORTERS = {"builtins.__import__", "importlib.import_module", "importlib.__import__"}
_PARTIALS = {"functools.partial", "functools.partialmethod"}
_PICKERS = {"operator.attrgetter", "operator.methodcaller", "_operator.attrgetter", "_operator.methodcaller"}
_MODE_CHARACTERS = frozenset("rwxabtU+:|gz")
_MODE_AT = {"os.fdopen": 1, "io.FileIO": 1, "tempfile.NamedTemporaryFile": 0, "tempfile.TemporaryFile": 0}
_OPENERS = {
    "builtins.open", "io.open", "codecs.open", "os.open", "os.fdopen", "io.FileIO", "gzip.open", "bz2.open",
    "lzma.open", "zipfile.ZipFile", "tarfile.open", "tempfile.NamedTemporaryFile", "_io.open", "_io.FileIO",
}  # fmt: skip


class Use(NamedTuple):
    """One mention: `kind` is name, call, write, method, attribute, import, indirect, string or setting."""

    kind: str
    name: str


def module_bindings(file: SourceFile) -> Bindings:
    """What a file's module level binds; kept with it."""
    if "bindings" not in file.memo:
        file.memo["bindings"] = _collect(file.bindings, None)
    kept: Bindings = file.memo["bindings"]
    return kept


def find_uses(tree: ast.Module, outer: Bindings) -> Iterator[tuple[Use, ast.AST]]:
    """Every use in a tree, with its node."""
    return _Finder(tree, outer).find()


class Within:
    """What names stand for inside a unit, so that a part of it can be judged by itself.

    `by_text` says that constants elsewhere in the unit decide what it reaches: then a part does not tell enough.
    """

    def __init__(self, file: SourceFile, snippet: Snippet) -> None:
        finder = _Finder(snippet.tree, module_bindings(file))
        self.uses = Counter(use for use, _ in finder.find())
        self._finder = finder
        self.by_text = finder.by_text

    def find_uses(self, tree: ast.Module) -> Iterator[tuple[Use, ast.AST]]:
        """Every use in a part of the unit that may have been changed."""
        part = _Finder(tree, self._finder.outer, self._finder.local)
        part.own = set(self._finder.own)
        part.inner.origins = dict(self._finder.inner.origins)
        part.inner.values = dict(self._finder.inner.values)
        part.inner.stars = list(self._finder.inner.stars)
        return part.find()


def within(file: SourceFile, snippet: Snippet) -> Within:
    """The unit that `snippet` is, as it stood; kept with it."""
    if "within" not in snippet.memo:
        snippet.memo["within"] = Within(file, snippet)
    kept: Within = snippet.memo["within"]
    return kept


def _collect(statements: Iterable[ast.AST], resolver: "_Finder | None") -> Bindings:
    """Bindings made by statements, followed to the end of every chain of aliases."""
    found = resolver.inner if resolver else Bindings()
    finder = resolver or _Finder(ast.Module(body=[], type_ignores=[]), found)
    assigned: list[tuple[ast.expr | ast.arg, ast.expr]] = []
    stored: set[ast.expr | ast.arg] = set()
    for node in statements:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound, origin = (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
                found.origins.setdefault(bound or "", set()).add(origin or "")
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "*":
                    found.stars.append(module)
                else:
                    found.origins.setdefault(alias.asname or alias.name, set()).add(f"{module}.{alias.name}")
        elif isinstance(node, ast.ClassDef) and not node.body:
            found.shadowed.add(node.name)
        elif isinstance(node, ast.arg) or (isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)):
            stored.add(node)
        else:
            assigned += assignments(node)
    for target, value in assigned:
        name, values = target_name(target), None if isinstance(target, ast.arg) else values_of(value)
        known = found.values.get(name, ())
        found.values[name] = None if values is None or known is None else (*known, *values)
    found.values.update(dict.fromkeys((target_name(t) for t in stored - {t for t, _ in assigned}), None))
    for _ in range(6):
        grown = False
        for target, value in assigned:
            name = target_name(target)
            origins = finder.resolve(value)
            have = found.origins.get(name, set())
            if not origins <= have:
                found.origins[name] = have | origins
                grown = True
        if not grown:
            break
    return found


def bindings_with(file: SourceFile, snippets: Iterable[Snippet]) -> Bindings:
    """Module bindings of a file together with those that changed snippets of it add."""
    added = (node for snippet in snippets for node in snippet.nodes if isinstance(node, ast.stmt))
    return _collect((*file.bindings, *added), None)


_HANDED_ON = frozenset({"builtins.getattr", "builtins.setattr", "builtins.delattr"})
_MODULES = frozenset(sys.stdlib_module_names)
_ASKED = _GETTERS | _NAMESPACES | {"importlib.reload", "builtins.dir", "builtins.id", "inspect.getsource"}
_ROOTS = frozenset({"sys", "builtins", "importlib", "operator", "_operator", "inspect", "io", "_io"})
_WHOLE = frozenset({"items", "values", "copy", "popitem", "keys"})
_ONE_ARGUMENT = frozenset({"replace", "rename", "touch", "chmod"})  # those of paths; a text's take another number
_CHANGES = frozenset({"update", "setdefault", "pop", "popitem", "clear", "__setitem__", "__delitem__", "__ior__"})


class _Finder:
    """Resolves expressions of one tree and lists its uses."""

    def __init__(self, tree: ast.Module, outer: Bindings, local: set[str] | None = None) -> None:
        self._tree = tree
        self.outer = outer
        self.inner = Bindings()
        self.by_text = False
        self._called_ids: set[int] = set()
        self._followed: set[int] = set()
        self._in_class: set[int] = set()
        self.own: set[str] = set()  # never from a star import
        body = tree.body[0].body if _is_wrapper(tree) else tree.body  # type: ignore[attr-defined]
        self.local = local if local is not None else own_names(body[0]) if len(body) == 1 else set()

    def find(self) -> Iterator[tuple[Use, ast.AST]]:
        """Every use of the tree."""
        nodes = walk(self._tree)
        if self.outer.stars or any(isinstance(n, ast.ImportFrom) for n in nodes):
            self.own |= bound_anew(nodes)
        _collect(nodes, self)
        chained: set[int] = set()
        for node in nodes:
            if type(node) not in OPERATORS:
                for use in self._uses(node, chained):
                    yield use, node

    def resolve(self, node: ast.expr) -> set[str]:
        """Every dotted name that an expression may stand for."""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            return {_short(f"{origin}.{node.attr}") for origin in self.resolve(node.value)}
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Subscript):
            return self._item(node.value, node.slice)
        if isinstance(node, ast.NamedExpr | ast.Await | ast.Starred):
            return self.resolve(node.value)
        if isinstance(node, ast.IfExp):
            return self.resolve(node.body) | self.resolve(node.orelse)
        if isinstance(node, ast.BoolOp):
            return set().union(*(self.resolve(v) for v in node.values))
        return set()

    def _name(self, name: str) -> set[str]:
        found = self.inner.origins.get(name)
        if name in self.local:
            return found or set()
        found = (found or set()) | self.outer.origins.get(name, set())
        if found:
            return found
        if name in self.outer.shadowed:
            return set()
        if name == "__builtins__":
            return {"builtins"}
        stars = () if name in self.own else (*self.outer.stars, *self.inner.stars)
        found = {f"{module}.{name}" for module in stars}
        return found | ({f"builtins.{name}"} if name in _BUILTINS else set())

    def _text(self, node: ast.expr) -> set[str] | None:
        return texts_of(node, self._look)

    def _look(self, name: str) -> Values | None:
        self.by_text = True
        return self.inner.values[name] if name in self.inner.values else self.outer.values.get(name)

    def _item(self, value: ast.expr, key: ast.expr) -> set[str]:
        """What `value[text]` may stand for where value is a namespace."""
        if isinstance(value, ast.Tuple | ast.List):
            return set().union(*(self.resolve(item) for item in value.elts)) if value.elts else set()
        found: set[str] = set()
        bases = self.resolve(value)
        texts = self._text(key) if bases else None
        for base in bases:
            for text in texts or ():
                if base == "sys.modules":
                    found.add(text)
                elif base == _GLOBALS:
                    found |= self._name(text) | ({"builtins.__builtins__"} if text == "__builtins__" else set())
                elif base.endswith(".__dict__"):
                    found.add(_short(f"{base.removesuffix('.__dict__')}.{text}"))
                elif base == "builtins":
                    found.add(f"builtins.{text}")
        return found

    def _called(self, node: ast.Call) -> set[str]:
        """What the answer of a call may stand for."""
        func, args = node.func, node.args
        if isinstance(func, ast.Attribute) and func.attr in ("get", "pop", "setdefault", "__getitem__") and args:
            return self._item(func.value, args[0])
        if isinstance(func, ast.Attribute) and func.attr in ("__getattribute__", "__getattr__") and args:
            return {f"{o}.{t}" for o in self.resolve(func.value) for t in self._text(args[-1]) or ()}
        if isinstance(func, ast.Call) and args:
            asked = self.resolve(func.func)
            picked = self._text(func.args[0]) if func.args and asked & _PICKERS else None
            found: set[str] = {f"{origin}.{text}" for origin in self.resolve(args[0]) for text in picked or ()}
            if asked & _PARTIALS and func.args:  # partial(getattr, os)("system")
                whole = ast.Call(func=func.args[0], args=[*func.args[1:], *args], keywords=node.keywords)
                return found | self._called(whole)
            return found
        if not isinstance(func, ast.Name | ast.Attribute):
            return set()
        found = set()
        for name in self.resolve(func):
            if name in _GETTERS and len(args) > 1:
                found |= {f"{o}.{t}" for o in self.resolve(args[0]) for t in self._text(args[1]) or ()}
            elif name in _IMPORTERS and args:
                texts = self._text(args[0]) or set()
                found |= {t if name.endswith("import_module") else t.split(".")[0] for t in texts}
            elif name in _NAMESPACES:
                found |= {f"{o}.__dict__" for o in self.resolve(args[0])} if args else {_GLOBALS}
        return found

    def _uses(self, node: ast.AST, chained: set[int]) -> Iterator[Use]:
        yield from self._settings(node)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield Use("string", node.value)
            return
        if isinstance(node, ast.BinOp | ast.JoinedStr | ast.Call | ast.Subscript):
            yield from (Use("string", text) for text in texts_of(node) or ())
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
                yield from (Use("name", name) for name in names)
                if id(node) not in self._followed:
                    yield from (Use("call", f"{name}:handed") for name in _whole_modules(names))
            yield from self._call(node)
        elif isinstance(node, ast.MatchClass):  # a pattern's keywords read attributes
            for name in node.kwd_attrs:
                yield from (Use("attribute", name), Use("indirect", name))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("__reduce"):  # what it answers is called when the object is unpickled
                yield Use("attribute", node.name)
        elif isinstance(node, ast.Import):
            yield from (Use("import", alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (
                Use("import" if a.name == "*" else "name", module if a.name == "*" else f"{module}.{a.name}")
                for a in node.names
            )

    def _settings(self, node: ast.AST) -> Iterator[Use]:
        """`name=value` for what is set to a constant or a name, in whatever way."""
        for name, value in settings(node):
            if isinstance(value, ast.Constant | ast.UnaryOp | ast.List | ast.Tuple):
                yield Use("setting", f"{name}={ast.unparse(value)[:80]}")
            elif isinstance(value, ast.Name | ast.Attribute):
                found = self.resolve(value) or {value.attr if isinstance(value, ast.Attribute) else value.id}
                yield from (Use("setting", f"{name}={one}") for one in found)

    def _mention(self, node: ast.Name | ast.Attribute | ast.Subscript, chained: set[int]) -> Iterator[Use]:
        if isinstance(node, ast.Attribute):
            yield Use("attribute", node.attr)
        if isinstance(node, ast.Name) and node.id == "__builtins__":
            yield Use("name", "builtins.__builtins__")
        if not isinstance(node.ctx, ast.Load):
            if not isinstance(node, ast.Name):
                names = self.resolve(node) if isinstance(node, ast.Attribute) else self.resolve(node.value)
                yield from (Use("write", name) for name in names)
                chained.add(id(node.value))
            return
        if not isinstance(node, ast.Name):
            chained.add(id(node.value))  # part of a longer chain, which is what counts
        if isinstance(node, ast.Subscript):
            bases = self.resolve(node.value)
            if bases & {"sys.modules", _GLOBALS} and self._text(node.slice) is None:
                yield Use("call", "sys.modules:dynamic" if "sys.modules" in bases else "builtins.globals:dynamic")
            yield from (Use("name", name) for name in self._item(node.value, node.slice) or bases)
        elif id(node) not in chained:
            names = self.resolve(node)
            yield from (Use("name", name) for name in names)
            if id(node) not in self._followed and not isinstance(node, ast.Subscript):
                yield from (Use("call", f"{name}:handed") for name in _whole_modules(names))
            if id(node) not in self._called_ids:  # handed on, so that nobody knows what it is asked for
                yield from (Use("call", f"{name}:dynamic") for name in names & _HANDED_ON)

    def _call(self, node: ast.Call) -> Iterator[Use]:
        names = (
            self.resolve(node.func)
            if isinstance(node.func, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
            else set()
        )
        for name in names:
            yield Use("call", name)
            space, _, asked = name.rpartition(".")
            if asked in _WHOLE and space.endswith(".__dict__"):
                yield from (Use("call", f"{module}:handed") for module in _whole_modules({space}))
            if name in _OPENERS and self._writes(node, _MODE_AT.get(name, 1)):
                yield Use("call", f"{name}:write")
            if name in _GETTERS | _IMPORTERS | _PICKERS:
                yield from self._lookup(node, name)
        if isinstance(node.func, ast.Attribute):
            yield Use("method", node.func.attr)
            if node.func.attr in _CHANGES:
                spaces = (b for b in self.resolve(node.func.value) if b.endswith(".__dict__"))
                yield from (Use("write", f"{space.removesuffix('.__dict__')}.{node.func.attr}") for space in spaces)
            if node.func.attr in ("format", "format_map") and not self._known_text(node.func.value):
                yield Use("method", "format:dynamic")
            if len(node.args) == 1 and not node.keywords and node.func.attr in _ONE_ARGUMENT:
                yield Use("method", f"{node.func.attr}:one")
            if node.func.attr == "open" and not names and self._method_writes(node):
                yield Use("method", "open:write")
            if node.func.attr == "get" and node.args:
                bases = self.resolve(node.func.value)
                if bases & {"sys.modules", _GLOBALS} and self._text(node.args[0]) is None:
                    yield Use("call", "sys.modules:dynamic" if "sys.modules" in bases else "builtins.globals:dynamic")

    def _follow(self, node: ast.AST) -> None:
        """Values whose way through names is known: what a class keeps, others reach by the class."""
        if id(node) not in self._in_class:
            self._followed.update(id(value) for _, value in assignments(node))

    def _known_text(self, node: ast.expr) -> bool:
        """Whether what is formatted is written in the source, maybe translated on the way."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            return all(self._text(a) is not None for a in node.args[:1])
        return self._text(node) is not None

    def _lookup(self, node: ast.Call, name: str) -> Iterator[Use]:
        """A look-up by name: what it reaches if the name is constant, else `:dynamic`."""
        at = 1 if name in _GETTERS else 0
        short = name.replace("_operator.", "operator.")
        if len(node.args) <= at or any(isinstance(a, ast.Starred) for a in node.args[: at + 1]):
            yield Use("call", f"{short}:dynamic")
            return
        texts = self._text(node.args[at])
        if texts is None:
            if name != "builtins.hasattr":
                yield Use("call", f"{short}:dynamic")
            return
        for text in texts:
            if name in _PICKERS:
                yield from (Use("indirect", part) for part in text.split("."))
            if name not in _IMPORTERS:
                yield from (Use("attribute", part) for part in text.split("."))
            if name in _WRITERS:
                yield from (Use("write", f"{origin}.{text}") for origin in self.resolve(node.args[0]))

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

    def _method_writes(self, node: ast.Call) -> bool:
        """A method `open` of an unknown receiver: the mode may be its first argument or its second."""
        for at in (0, 1):
            mode = self._mode(node, at)
            texts = self._text(mode) if mode is not None else None
            if texts and any(set(t) <= _MODE_CHARACTERS and set(t) & set("wax+") and len(t) <= 4 for t in texts):
                return True
        return any(k.arg == "mode" and self._text(k.value) is None for k in node.keywords)


def _is_wrapper(tree: ast.Module) -> bool:
    return len(tree.body) == 1 and isinstance(tree.body[0], ast.ClassDef)


def _whole_modules(names: Iterable[str]) -> Iterator[str]:
    """Modules of the standard library among some names, reached from wherever; a module's namespace is all of it."""
    for name in names:
        first, last = name.split(".", 1)[0], name.removesuffix(".__dict__").rpartition(".")[2]
        if first in _MODULES and last in _MODULES:
            yield last


def _short(name: str) -> str:
    """The way to a module by another is as good as its own: `csv.re.sys.modules` is `sys.modules`."""
    parts = name.split(".")
    for at in range(len(parts) - 2, 0, -1):
        if parts[at] in _ROOTS and parts[0] in _MODULES and parts[0] != "importlib":
            return ".".join(parts[at:])
    return name
