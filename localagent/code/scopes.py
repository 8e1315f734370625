"""Names and what they stand for: Python's scoping rules over a syntax tree, built in the one walk over the file.

Not promised: names made by `exec`, `globals()[...]`, or put into the builtins by another module. A file with
`from x import *` resolves no builtin: what it brought may hide any.
"""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from localagent.code.names import bound_name, imports_of

_BUILTINS = frozenset(dir(builtins))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPED = frozenset((*_FUNCTIONS, ast.ClassDef, *_COMPREHENSIONS, ast.comprehension))
_BINDING = frozenset(
    {
        ast.Name, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.ExceptHandler,
        ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.Global, ast.Nonlocal,
    }
)  # fmt: skip
_LEAVES = frozenset((ast.Name, ast.Constant))
_CONTEXTS = frozenset((ast.Load, ast.Store, ast.Del))


class ScopeKind(Enum):
    """What opens a scope."""

    MODULE = "module"
    CLASS = "class"
    FUNCTION = "function"
    COMPREHENSION = "comprehension"


@dataclass(slots=True, eq=False)
class Binding:
    """One place that binds a name; `qualified` is the dotted name where it is an import."""

    node: ast.AST
    qualified: str | None = None


@dataclass(slots=True, eq=False)
class LexicalScope:
    """One scope, the names bound in it, and those it declares to be elsewhere."""

    kind: ScopeKind
    node: ast.AST
    parent: "LexicalScope | None"
    names: dict[str, list[Binding]] = field(default_factory=dict)
    module_names: set[str] = field(default_factory=set)
    outer_names: set[str] = field(default_factory=set)

    def owner(self, name: str) -> "LexicalScope | None":
        """The scope that a name used here belongs to; None for builtins and unknown names."""
        scope: LexicalScope | None = self
        first = True
        while scope is not None:
            if name in scope.module_names:
                scope = scope.root
                return scope if name in scope.names else None
            here = scope.kind is not ScopeKind.CLASS or first
            if here and name in scope.names and name not in scope.outer_names:
                return scope
            first = False
            scope = scope.parent
        return None

    @property
    def root(self) -> "LexicalScope":
        """The module's scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    @property
    def function(self) -> "LexicalScope":
        """The nearest scope that is no comprehension: where `:=` binds."""
        scope = self
        while scope.kind is ScopeKind.COMPREHENSION and scope.parent is not None:
            scope = scope.parent
        return scope


class Walk:
    """Every node in source order, but for expression contexts, with parent and scope. `quoted`: inside f-strings."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes: list[ast.AST] = []
        self.parent: dict[ast.AST, ast.AST] = {}
        self.scope: dict[ast.AST, LexicalScope] = {}
        self.own: dict[ast.AST, LexicalScope] = {}
        self.quoted: set[ast.AST] = set()
        self.star = False
        self.root = LexicalScope(ScopeKind.MODULE, tree, None)
        self._bound: list[tuple[LexicalScope, str, Binding]] = []
        self._go(tree)
        for scope, name, binding in self._bound:
            self._bind(scope, name, binding)

    def _go(self, tree: ast.Module) -> None:
        stack: list[tuple[ast.AST, LexicalScope, bool]] = [(tree, self.root, False)]
        nodes, parent, scopes = self.nodes, self.parent, self.scope
        while stack:
            node, scope, quoted = stack.pop()
            nodes.append(node)
            scopes[node] = scope
            if quoted:
                self.quoted.add(node)
            cls = node.__class__
            if cls in _BINDING:
                self._names(node, scope)
            if cls in _LEAVES:
                continue
            inside = quoted or cls is ast.JoinedStr
            at = len(stack)
            if cls in _SCOPED:
                for child, where in self._children(node, scope):
                    parent[child] = node
                    stack.append((child, where, inside))
            else:
                for name in cls._fields:
                    value = getattr(node, name, None)
                    if value.__class__ is list:
                        for item in value:
                            if isinstance(item, ast.AST):
                                parent[item] = node
                                stack.append((item, scope, inside))
                    elif isinstance(value, ast.AST) and value.__class__ not in _CONTEXTS:
                        parent[value] = node
                        stack.append((value, scope, inside))
            stack[at:] = stack[at:][::-1]

    def _children(self, node: ast.AST, scope: LexicalScope) -> Iterator[tuple[ast.AST, LexicalScope]]:
        if isinstance(node, _FUNCTIONS):
            inner = self.own[node] = LexicalScope(ScopeKind.FUNCTION, node, scope)
            yield from self._function(node, scope, inner)
        elif isinstance(node, ast.ClassDef):
            inner = self.own[node] = LexicalScope(ScopeKind.CLASS, node, scope)
            for child in ast.iter_child_nodes(node):
                yield child, inner if isinstance(child, ast.stmt) else scope
        elif isinstance(node, _COMPREHENSIONS):
            inner = self.own[node] = LexicalScope(ScopeKind.COMPREHENSION, node, scope)
            for child in ast.iter_child_nodes(node):
                yield child, inner
        elif isinstance(node, ast.comprehension):
            outermost = self.parent[node].generators[0] is node  # type: ignore[attr-defined]
            for child in ast.iter_child_nodes(node):
                yield child, scope.parent if outermost and child is node.iter and scope.parent else scope

    @staticmethod
    def _function(
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: LexicalScope, inner: LexicalScope
    ) -> Iterator[tuple[ast.AST, LexicalScope]]:
        if not isinstance(node, ast.Lambda):
            for decorator in node.decorator_list:
                yield decorator, scope
        arguments = node.args
        yield arguments, scope  # its defaults and annotations are evaluated outside; its names are bound by _names
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            inner.names.setdefault(argument.arg, []).append(Binding(argument))
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                inner.names.setdefault(extra.arg, []).append(Binding(extra))
        if isinstance(node, ast.Lambda):
            yield node.body, inner
            return
        if node.returns is not None:
            yield node.returns, scope
        for statement in node.body:
            yield statement, inner

    def _names(self, node: ast.AST, scope: LexicalScope) -> None:
        cls = node.__class__
        if cls is ast.Name:
            if not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                walrus = isinstance(self.parent[node], ast.NamedExpr)
                self._bound.append((scope.function if walrus else scope, node.id, Binding(node)))  # type: ignore[attr-defined]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for found in imports_of(node):
                if found.item == "*":
                    self.star = True
                    continue
                relative = found.module.startswith(".")
                self._bound.append((scope, found.bound, Binding(node, None if relative else found.origin)))
        elif isinstance(node, ast.Global):
            scope.module_names.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            scope.outer_names.update(node.names)
        elif name := bound_name(node):
            self._bound.append((scope, name, Binding(node)))

    def _bind(self, scope: LexicalScope, name: str, binding: Binding) -> None:
        if name in scope.module_names:
            scope = self.root
        elif name in scope.outer_names and scope.parent is not None:
            around = scope.parent.owner(name)
            scope = around or scope
        scope.names.setdefault(name, []).append(binding)

    def bindings(self, name: ast.Name) -> list[Binding]:
        """Every place that binds what a name means; empty for builtins and unknown names."""
        owner = self.scope[name].owner(name.id)
        return owner.names[name.id] if owner is not None else []

    def qualified(self, node: ast.AST) -> str | None:
        """The dotted name of an import or builtin that an expression is; None where it may be anything else."""
        if isinstance(node, ast.Attribute):
            base = self.qualified(node.value)
            return f"{base}.{node.attr}" if base is not None else None
        if not isinstance(node, ast.Name):
            return None
        found = self.bindings(node)
        if not found:
            return f"builtins.{node.id}" if node.id in _BUILTINS and not self.star else None
        names = {b.qualified for b in found if not _is_none(b.node, self.parent)}
        return names.pop() if len(names) == 1 else None


def _is_none(node: ast.AST, parent: dict[ast.AST, ast.AST]) -> bool:
    """Whether a binding is `name = None`, the usual stand-in where an import failed."""
    statement = parent.get(node)
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is None
        and node in statement.targets
    )
