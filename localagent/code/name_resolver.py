"""What a name may stand for: followed through imports, assignments, look-ups by text, and namespaces.

Without regard to order: a name that may stand for several things stands for all of them. What is followed, and what
not, is told by `names`.
"""

import ast
import builtins
import sys
from collections.abc import Collection, Iterable

from localagent.code.bindings import Bindings, assignments, rebinds, target_name
from localagent.code.names import imports_of
from localagent.code.regions import DoesNotParse, SourceFile, UnitSource
from localagent.code.string_folding import Values, texts_of, values_of

GLOBALS = "<globals>"
GETTERS = {"builtins.getattr", "builtins.setattr", "builtins.delattr", "builtins.hasattr", "inspect.getattr_static"}
NAMESPACES = {"builtins.globals", "builtins.locals", "builtins.vars"}
IMPORTERS = {"builtins.__import__", "importlib.import_module", "importlib.__import__"}
PICKERS = {"operator.attrgetter", "operator.methodcaller", "_operator.attrgetter", "_operator.methodcaller"}
MODULES = frozenset(sys.stdlib_module_names)
_BUILTINS = frozenset(dir(builtins)) | {"__builtins__", "__loader__", "__spec__"}
_PARTIALS = {"functools.partial", "functools.partialmethod"}
_ROOTS = frozenset({"sys", "builtins", "importlib", "operator", "_operator", "inspect", "io", "_io"})


def module_bindings(file: SourceFile) -> Bindings:
    """What a file's module level binds; kept with it."""
    if "bindings" not in file.memo:
        file.memo["bindings"] = found = collect(file.bindings, None)
        found.rebound = _rebound(file)
    kept: Bindings = file.memo["bindings"]
    return kept


def collect(statements: Iterable[ast.AST], resolver: "Resolver | None") -> Bindings:
    """Bindings made by statements, followed to the end of every chain of aliases."""
    found = resolver.inner if resolver else Bindings()
    finder = resolver or Resolver(ast.Module(body=[], type_ignores=[]), found)
    assigned: list[tuple[ast.expr | ast.arg, ast.expr]] = []
    stored: set[ast.expr | ast.arg] = set()
    for node in statements:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for brought in imports_of(node):
                if brought.item == "*":
                    found.stars.append(brought.module)
                else:
                    found.origins.setdefault(brought.bound, set()).add(brought.origin)
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
                finder.forget()
                grown = True
        if not grown:
            break
    return found


def bindings_with(file: SourceFile, snippets: Collection[UnitSource]) -> Bindings:
    """Module bindings of a file together with those that changed snippets of it add."""
    added = (node for snippet in snippets for node in snippet.nodes if isinstance(node, ast.stmt))
    found = collect((*file.bindings, *added), None)
    found.rebound = module_bindings(file).rebound or any(rebinds(s.text) for s in snippets)
    return found


def _rebound(file: SourceFile) -> bool:
    try:
        return rebinds(file.decode(file.source))
    except DoesNotParse:
        return True


class Resolver:
    """Resolves expressions of one tree, whose own bindings are `inner`, inside what `outer` binds."""

    def __init__(self, tree: ast.Module, outer: Bindings) -> None:
        self._tree = tree
        self.outer = outer
        self.inner = Bindings()
        self.by_text = False
        self.own: set[str] = set()  # never from a star import
        self.local: set[str] = set()
        self._resolved: dict[int, tuple[ast.expr, set[str]]] = {}

    def forget(self) -> None:
        """Names stand for more than they did: what was found out is asked again."""
        self._resolved.clear()

    def resolve(self, node: ast.expr) -> set[str]:
        """Every dotted name that an expression may stand for; looked into once, however often it is asked for."""
        known = self._resolved.get(id(node))
        if known is None:
            known = self._resolved[id(node)] = (node, self._looked_into(node))
        return known[1]

    def _looked_into(self, node: ast.expr) -> set[str]:
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
                elif base == GLOBALS:
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
            picked = self._text(func.args[0]) if func.args and asked & PICKERS else None
            found: set[str] = {f"{origin}.{text}" for origin in self.resolve(args[0]) for text in picked or ()}
            if asked & _PARTIALS and func.args:  # partial(getattr, os)("system")
                whole = ast.Call(func=func.args[0], args=[*func.args[1:], *args], keywords=node.keywords)
                return found | self._called(whole)
            return found
        if not isinstance(func, ast.Name | ast.Attribute):
            return set()
        found = set()
        for name in self.resolve(func):
            if name in GETTERS and len(args) > 1:
                found |= {f"{o}.{t}" for o in self.resolve(args[0]) for t in self._text(args[1]) or ()}
            elif name in IMPORTERS and args:
                texts = self._text(args[0]) or set()
                found |= {t if name.endswith("import_module") else t.split(".")[0] for t in texts}
            elif name in NAMESPACES:
                found |= {f"{o}.__dict__" for o in self.resolve(args[0])} if args else {GLOBALS}
        return found


def _short(name: str) -> str:
    """The way to a module by another is as good as its own: `csv.re.sys.modules` is `sys.modules`."""
    parts = name.split(".")
    for at in range(len(parts) - 2, 0, -1):
        if parts[at] in _ROOTS and parts[0] in MODULES and parts[0] != "importlib":
            return ".".join(parts[at:])
    return name
