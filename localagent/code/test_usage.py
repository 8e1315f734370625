"""How tests use what does not exist yet: modules, functions, classes, exceptions and constants.

Read from syntax alone; nothing is imported. A name counts for missing where its module is a file of the project that
does not bind it, or where no file, standard library or installed package has the module.
Limitations: names that a test makes at run time (`getattr`, `importlib`, parametrized text) are not seen; an object
that a helper of another file makes is not followed.
"""

import ast
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from localagent.code.bindings import own_names
from localagent.code.names import ASSIGNING, bound_name, dotted_name, imports_of, last_name
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function
from localagent.domain.paths import RepoPath


@dataclass(frozen=True, kw_only=True, slots=True)
class CallShape:
    """One call as a test writes it: a name for each positional argument ("" where the test has none), and keywords."""

    positional: tuple[str, ...]
    keywords: tuple[str, ...]


@dataclass(kw_only=True, slots=True)
class Usage:
    """What tests do with one missing name, and with what a call of it returns (`made`)."""

    calls: list[CallShape] = field(default_factory=list)
    awaited: bool = False
    raised: bool = False
    subclassed: bool = False
    constant: bool = False
    decorates: bool = False
    attributes: dict[str, "Usage"] = field(default_factory=dict)  # `name.attribute`
    made: dict[str, "Usage"] = field(default_factory=dict)  # `name(...).attribute`
    operations: set[str] = field(default_factory=set)  # special methods that what a call returns must have
    bases: list[str] = field(default_factory=list)  # missing names that it is said to be a kind of
    as_record: bool = False  # `dataclasses` is asked about what a call returns

    def attribute(self, name: str, *, made: bool) -> "Usage":
        """The usage of an attribute, made where it is new."""
        return (self.made if made else self.attributes).setdefault(name, Usage())


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingModule:
    """A module that tests import, with the names that it lacks. `path` is None where no file of it is there."""

    name: str
    path: RepoPath | None
    names: Mapping[str, Usage]


def missing_names(
    tests: Mapping[RepoPath, bytes], sources: Mapping[RepoPath, bytes], *, installed: Collection[str]
) -> tuple[MissingModule, ...]:
    """What the tests import and nothing has. `installed`: top-level modules that the project's Python has."""
    found: dict[str, dict[str, Usage]] = {}
    elsewhere = {*installed, *sys.stdlib_module_names}
    modules = {name: path for path in sorted(sources, reverse=True) for name in module_names(path)}
    bound: dict[str, set[str]] = {}
    for path in sorted(tests):
        tree = parse_or_none(tests[path])
        if tree is None:
            continue
        reader = _TestReader(tree)
        for name, usage in reader.used.items():
            module, item = reader.origin(name, modules)
            top = module.partition(".")[0]
            if not module or module.startswith(".") or (top in elsewhere and module not in modules):
                continue
            if module in modules and module not in bound:
                bound[module] = bound_in(sources[modules[module]])
            there = item in bound.get(module, ()) or f"{module}.{item}" in modules
            if item and not there:
                found.setdefault(module, {})[item] = usage
            elif not item and module not in modules:
                found.setdefault(module, {})
            elif not item:
                missing = {n: u for n, u in usage.attributes.items() if n not in bound[module]}
                missing = {n: u for n, u in missing.items() if f"{module}.{n}" not in modules}
                found.setdefault(module, {}).update(missing)
            if not item and module not in modules:
                found[module].update(usage.attributes)
    return tuple(
        MissingModule(name=name, path=modules.get(name), names=names)
        for name, names in sorted(found.items())
        if names or name not in modules
    )


def module_names(path: RepoPath) -> Iterator[str]:
    """The dotted names that a file is imported by: from the root, and from `src` or `lib`."""
    if not path.endswith(".py"):
        return
    parts = path.removesuffix(".py").split("/")
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    if parts:
        yield ".".join(parts)
    if len(parts) > 1 and parts[0] in ("src", "lib"):
        yield ".".join(parts[1:])


def bound_in(source: bytes) -> set[str]:
    """Every name that a source binds anywhere; none where it does not parse."""
    tree = parse_or_none(source)
    if tree is None:
        return set()
    names = {bound_name(node) for node in ast.walk(tree) if isinstance(node, ASSIGNING)}
    return names | {i.bound for node in ast.walk(tree) for i in imports_of(node)}


class _TestReader:
    """Uses of imported names in one test file; variables and fixtures that hold what a call returns are followed."""

    def __init__(self, tree: ast.Module) -> None:
        imports = [i for node in ast.walk(tree) for i in imports_of(node)]
        self.imports = {i.module if i.origin == i.bound else i.bound: (i.module, i.item) for i in imports}
        self.used: dict[str, Usage] = {name: Usage() for name in self.imports}
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.fixtures = self._fixtures(tree)
        self._scope(tree, {})

    def origin(self, name: str, modules: Collection[str]) -> tuple[str, str]:
        """The module and the name in it that an imported name stands for; no name for a module."""
        module, item = self.imports[name]
        return (f"{module}.{item}", "") if f"{module}.{item}" in modules else (module, item)

    def _fixtures(self, tree: ast.Module) -> dict[str, ast.expr]:
        """What fixtures return, by their names."""
        found = {}
        for node in ast.walk(tree):
            if isinstance(node, Function) and any("fixture" in ast.unparse(d) for d in node.decorator_list):
                ends = [n.value for n in ast.walk(node) if isinstance(n, ast.Return | ast.Yield) and n.value]
                found.update({node.name: ends[-1]} if ends else {})
        return found

    def _scope(self, scope: ast.AST, outer: Mapping[str, Usage]) -> None:
        """Reads a module or function with the variables that hold something that a missing name made."""
        known = dict(outer)
        if isinstance(scope, ast.ClassDef):
            known |= self._on_self(scope, known)
        if isinstance(scope, Function):
            for name in own_names(scope):
                known.pop(name, None)
            for arg in scope.args.args:
                made = self._made(self.fixtures[arg.arg], known) if arg.arg in self.fixtures else None
                known.update({arg.arg: made} if made is not None else {})
        for node in _own_nodes(scope):
            for target, value in _assigned(node):
                made = self._made(value, known)
                if made is not None and isinstance(target, ast.Name):
                    known[target.id] = made
            if isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
                known |= self._entered(node.context_expr, node.optional_vars.id, known)
            if isinstance(node, ast.ExceptHandler) and node.name and node.type is not None:
                caught = self._of(node.type, known)
                known |= {node.name: caught} if caught is not None else {}
        for node in _own_nodes(scope):
            if isinstance(node, ast.expr):
                self._read(node, known)
            if isinstance(node, Function | ast.ClassDef | ast.Lambda):
                self._scope(node, known)

    def _on_self(self, scope: ast.ClassDef, known: Mapping[str, Usage]) -> dict[str, Usage]:
        """What the methods of a test class keep, by `self.name`."""
        found = {}
        for function in scope.body:
            for node in ast.walk(function) if isinstance(function, Function) else ():
                for target, value in _assigned(node):
                    made = self._made(value, known)
                    if made is not None and isinstance(target, ast.Attribute):
                        found[dotted_name(target)] = made
        return found

    def _entered(self, value: ast.expr, name: str, known: Mapping[str, Usage]) -> dict[str, Usage]:
        """What `with value as name` gives: what a call makes, or `name.value`, an exception that is caught."""
        if isinstance(value, ast.Call) and last_name(value.func) in _CATCH and value.args:
            caught = self._of(value.args[0], known)
            attribute = "exception" if last_name(value.func) == "assertRaises" else "value"
            return {f"{name}.{attribute}": caught} if caught is not None else {}
        made = self._made(value, known)
        return {name: made} if made is not None else {}

    def _made(self, value: ast.expr, known: Mapping[str, Usage]) -> "Usage | None":
        """The usage of the name whose call makes a value; that of a variable for a copy of it."""
        if isinstance(value, ast.Await):
            value = value.value
        if isinstance(value, ast.Name | ast.Attribute) and isinstance(value.ctx, ast.Load):
            return known.get(dotted_name(value))
        return self._of(value.func, known) if isinstance(value, ast.Call) else None

    def _of(self, node: ast.expr, known: Mapping[str, Usage]) -> "Usage | None":
        """The usage of what an expression names: an imported name, an attribute of it, a method of what it made."""
        if isinstance(node, ast.Name):
            return self.used.get(node.id) if node.id not in known else None
        if isinstance(node, ast.Attribute):
            dotted = dotted_name(node)
            if dotted in self.used:
                return self.used[dotted]
            owner = self._of(node.value, known)
            if owner is not None:
                return owner.attribute(node.attr, made=False)
            made = self._made(node.value, known)
            return None if made is None else made.attribute(node.attr, made=True)
        return None

    def _read(self, node: ast.expr, known: Mapping[str, Usage]) -> None:
        parent = self.parents.get(node)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            usage = self._of(node, known)
            if usage is not None:
                self._use(usage, node, parent)
        if isinstance(node, ast.Call | ast.Name | ast.Attribute):
            made = self._made(node, known)
            if made is not None and parent is not None:
                made.operations.update(_operations(node, parent))
                made.as_record |= isinstance(parent, ast.Call) and last_name(parent.func) in _OF_RECORDS

    def _use(self, usage: Usage, node: ast.expr, parent: ast.AST | None) -> None:
        if isinstance(parent, ast.Call) and parent.func is node:
            if not any(isinstance(a, ast.Starred) for a in parent.args):
                usage.calls.append(_shape(parent))
            usage.awaited |= isinstance(self.parents.get(parent), ast.Await)
            usage.raised |= isinstance(self.parents.get(parent), ast.Raise)
            return
        call = parent if not isinstance(parent, ast.Tuple) else self.parents.get(parent)
        called = dotted_name(call.func) if isinstance(call, ast.Call) else ""
        caught = called.rpartition(".")[2] in _CATCH
        if called == "issubclass" and isinstance(call, ast.Call) and node is call.args[0]:
            usage.bases += [base for base in map(dotted_name, call.args[1:]) if base in self.used]
        if caught or isinstance(parent, ast.Raise | ast.ExceptHandler):
            usage.raised = True
        elif called in ("isinstance", "issubclass") or (isinstance(parent, ast.ClassDef) and node in parent.bases):
            usage.subclassed = True
        elif isinstance(parent, Function) and node in parent.decorator_list:
            usage.decorates = True
        elif not isinstance(parent, ast.Attribute):
            usage.constant = True


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes below a scope that are in no function or class inside it; those themselves, and what decorates them."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, Function | ast.ClassDef):
            waiting = [*node.decorator_list, *getattr(node, "bases", ()), *waiting]
        elif not isinstance(node, ast.Lambda):
            waiting = [*ast.iter_child_nodes(node), *waiting]


def _assigned(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """(target, value) of an assignment, one by one for tuples of the same length."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return []
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


_CATCH = ("raises", "assertRaises")
_OF_RECORDS = ("asdict", "astuple", "fields", "replace", "is_dataclass")
_COMPARED = {
    ast.In: "__contains__",
    ast.NotIn: "__contains__",
    ast.Eq: "__eq__",
    ast.NotEq: "__eq__",
    ast.Lt: "__lt__",
    ast.Gt: "__lt__",
    ast.LtE: "__le__",
    ast.GtE: "__le__",
}
_COMPUTED = {
    ast.Add: "__add__",
    ast.Sub: "__sub__",
    ast.Mult: "__mul__",
    ast.Div: "__truediv__",
    ast.Mod: "__mod__",
}
_ITERATES = ("iter", "list", "sorted", "tuple", "set", "sum")
_ASKED = {name: f"__{name}__" for name in ("len", "str", "repr", "next", "bool", "int", "float", "abs", "reversed")} | {
    **dict.fromkeys(_ITERATES, "__iter__")
}


def _operations(node: ast.expr, parent: ast.AST) -> Iterator[str]:
    """The special methods that an object has to have by what is done with it."""
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and node in parent.args:
        if parent.func.id in _ASKED:
            yield _ASKED[parent.func.id]
    elif isinstance(parent, ast.Subscript) and parent.value is node:
        yield "__getitem__" if isinstance(parent.ctx, ast.Load) else "__setitem__"
    elif isinstance(parent, ast.For | ast.comprehension) and parent.iter is node:
        yield "__iter__"
    elif isinstance(parent, ast.withitem):
        yield from ("__enter__", "__exit__")
    elif isinstance(parent, ast.BinOp) and parent.left is node:
        yield from filter(None, [_COMPUTED.get(type(parent.op))])
    elif isinstance(parent, ast.Compare):
        for op, right in zip(parent.ops, parent.comparators, strict=True):
            name = _COMPARED.get(type(op), "")
            if name and (right is node if name == "__contains__" else parent.left is node):
                yield name


def _shape(call: ast.Call) -> CallShape:
    return CallShape(
        positional=tuple(last_name(a) or _kind_of_literal(a) for a in call.args),
        keywords=tuple(k.arg for k in call.keywords if k.arg),
    )


def _kind_of_literal(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return {str: "text", bytes: "data", int: "number", float: "number", bool: "flag"}.get(type(node.value), "")
    return {ast.List: "items", ast.Tuple: "items", ast.Dict: "mapping", ast.Set: "items"}.get(type(node), "")
