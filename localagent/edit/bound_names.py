"""Which names are bound where in a unit, and what kind of value they probably hold.

Kinds are guesses from literals, calls, annotations and use; `""` means unknown. Guesses only order edits.
"""

import libcst as cst

from localagent.edit.unit import Unit, children

_CALL_KINDS = {
    "list": "list",
    "sorted": "list",
    "dict": "dict",
    "set": "set",
    "frozenset": "set",
    "tuple": "tuple",
    "str": "str",
    "repr": "str",
    "input": "str",
    "chr": "str",
    "int": "int",
    "len": "int",
    "ord": "int",
    "sum": "int",
    "abs": "int",
    "round": "int",
    "float": "float",
    "bool": "bool",
    "deque": "deque",
    "defaultdict": "dict",
    "Counter": "Counter",
    "OrderedDict": "dict",
    "bytes": "bytes",
    "open": "file",
    "isinstance": "bool",
    "hasattr": "bool",
    "any": "bool",
    "all": "bool",
    "bytearray": "bytes",
}
_METHOD_KINDS = {
    "split": "list",
    "splitlines": "list",
    "join": "str",
    "strip": "str",
    "lower": "str",
    "upper": "str",
    "replace": "str",
    "format": "str",
    "lstrip": "str",
    "rstrip": "str",
    "title": "str",
    "encode": "bytes",
    "decode": "str",
    "find": "int",
    "index": "int",
    "count": "int",
    "startswith": "bool",
    "endswith": "bool",
    "isdigit": "bool",
    "isalpha": "bool",
    "keys": "dict",
    "values": "list",
    "items": "list",
}
_USE_KINDS = {
    "append": "list",
    "extend": "list",
    "insert": "list",
    "sort": "list",
    "appendleft": "deque",
    "popleft": "deque",
    "add": "set",
    "discard": "set",
    "items": "dict",
    "keys": "dict",
    "values": "dict",
    "setdefault": "dict",
    "lower": "str",
    "upper": "str",
    "split": "str",
    "strip": "str",
    "startswith": "str",
    "endswith": "str",
    "isdigit": "str",
    "isalpha": "str",
    "most_common": "Counter",
}
_ANNOTATION_KINDS = {
    "int": "int",
    "str": "str",
    "float": "float",
    "bool": "bool",
    "list": "list",
    "List": "list",
    "dict": "dict",
    "Dict": "dict",
    "set": "set",
    "Set": "set",
    "tuple": "tuple",
    "Tuple": "tuple",
    "bytes": "bytes",
    "Sequence": "list",
    "Iterable": "list",
    "Mapping": "dict",
    "Deque": "deque",
    "deque": "deque",
}
_LITERAL_KINDS: dict[type, str] = {
    cst.List: "list",
    cst.ListComp: "list",
    cst.Dict: "dict",
    cst.DictComp: "dict",
    cst.Set: "set",
    cst.SetComp: "set",
    cst.Tuple: "tuple",
    cst.Integer: "int",
    cst.Float: "float",
    cst.SimpleString: "str",
    cst.FormattedString: "str",
    cst.ConcatenatedString: "str",
    cst.Comparison: "bool",
    cst.Lambda: "func",
}
_ARITHMETIC = (cst.Subtract, cst.FloorDivide, cst.Modulo, cst.Power, cst.LeftShift, cst.RightShift)


class Names:
    """Bindings and kinds of one unit."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.bound: dict[cst.CSTNode | None, dict[str, int]] = {None: {}}
        self.parent: dict[cst.CSTNode, cst.CSTNode | None] = {}
        self.params: dict[cst.CSTNode, list[str]] = {}
        self.comprehension: dict[int, dict[str, None]] = {}  # in the order met: a set's would differ by run
        self.kinds: dict[str, str] = {}
        for statement in unit.statements:
            self._statement(statement.node, statement.scope)
        self._expressions()

    def _bind(self, scope: cst.CSTNode | None, name: str, line: int) -> None:
        self.bound.setdefault(scope, {}).setdefault(name, line)

    def _statement(self, node: cst.CSTNode, scope: cst.CSTNode | None) -> None:
        if isinstance(node, cst.FunctionDef):
            line = self.unit.line(self.unit.span(node.name)[0])
            self._bind(scope, node.name.value, line)
            self.parent[node] = scope
            self.kinds.setdefault(node.name.value, "func")
            self.params[node] = []
            for param in _parameters(node.params):
                self._bind(node, param.name.value, line)
                self.params[node].append(param.name.value)
                kind = _annotation_kind(param.annotation)
                if not kind and param.default is not None:
                    kind = self.kind(param.default)
                if kind:
                    self.kinds.setdefault(param.name.value, kind)
        elif isinstance(node, cst.ClassDef):
            self.parent[node] = scope
            self._bind(scope, node.name.value, self.unit.line(self.unit.span(node)[0]))
        elif isinstance(node, (cst.Import, cst.ImportFrom)) and not isinstance(node.names, cst.ImportStar):
            for alias in node.names:
                name = alias.asname.name if alias.asname else alias.name
                text = self.unit.code(name).split(".")[0]
                self._bind(scope, text, self.unit.line(self.unit.span(node)[0]))
        elif isinstance(node, (cst.Try, cst.TryStar)):
            for handler in node.handlers:
                if handler.name is not None and isinstance(handler.name.name, cst.Name):
                    self._bind(scope, handler.name.name.value, self.unit.line(self.unit.span(handler)[0]))
        elif isinstance(node, cst.With):
            for item in node.items:
                if item.asname is not None:
                    self._store(item.asname.name, scope)

    def _store(self, target: cst.CSTNode, scope: cst.CSTNode | None) -> None:
        if isinstance(target, cst.Name):
            self._bind(scope, target.value, self.unit.line(self.unit.span(target)[0]))
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._store(element.value, scope)

    def _expressions(self) -> None:
        for expr in self.unit.exprs:
            node, parent = expr.node, expr.parent
            if expr.store:
                if isinstance(parent, cst.CompFor):
                    names = self.comprehension.setdefault(id(expr.statement), {})
                    names.update(dict.fromkeys(n.value for n in _names_in(node)))
                else:
                    self._store(node, expr.scope)
                self._assigned(node, parent)
            elif isinstance(parent, cst.Attribute) and isinstance(node, cst.Name):
                kind = _USE_KINDS.get(parent.attr.value)
                if kind:
                    self.kinds.setdefault(node.value, kind)
            elif isinstance(node, cst.Lambda):
                names = self.comprehension.setdefault(id(expr.statement), {})
                names.update(dict.fromkeys(p.name.value for p in _parameters(node.params)))

    def _assigned(self, target: cst.CSTNode, parent: cst.CSTNode) -> None:
        if isinstance(parent, cst.For) and isinstance(target, cst.Name):
            kind = "int" if _called(parent.iter) in ("range",) else ""
            if kind:
                self.kinds.setdefault(target.value, kind)
            return
        assign = self._assign_of.get(parent) if isinstance(parent, cst.AssignTarget) else None
        value = assign.value if assign is not None else getattr(parent, "value", None)
        if value is None:
            return
        if isinstance(target, cst.Name):
            kind = self.kind(value)
            if kind:
                self.kinds.setdefault(target.value, kind)
        elif isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
            for t, v in zip(target.elements, value.elements, strict=False):
                if isinstance(t.value, cst.Name) and self.kind(v.value):
                    self.kinds.setdefault(t.value.value, self.kind(v.value))

    @property
    def _assign_of(self) -> dict[cst.CSTNode, cst.Assign]:
        if not hasattr(self, "_assigns"):
            self._assigns: dict[cst.CSTNode, cst.Assign] = {
                target: s.node
                for s in self.unit.statements
                if isinstance(s.node, cst.Assign)
                for target in s.node.targets
            }
        return self._assigns

    def kind(self, node: cst.CSTNode) -> str:
        """The probable kind of an expression's value."""
        literal = _LITERAL_KINDS.get(type(node))
        if literal:
            return literal
        if isinstance(node, cst.Name):
            if node.value in ("True", "False"):
                return "bool"
            return "none" if node.value == "None" else self.kinds.get(node.value, "")
        if isinstance(node, cst.Call):
            if isinstance(node.func, cst.Attribute):
                return _METHOD_KINDS.get(node.func.attr.value, _CALL_KINDS.get(node.func.attr.value, ""))
            return _CALL_KINDS.get(_called(node), "")
        if isinstance(node, cst.BinaryOperation):
            if isinstance(node.operator, _ARITHMETIC):
                return self.kind(node.left) or "int"
            return self.kind(node.left) or self.kind(node.right)
        if isinstance(node, cst.UnaryOperation):
            return "bool" if isinstance(node.operator, cst.Not) else self.kind(node.expression) or "int"
        if isinstance(node, cst.Subscript) and node.slice and isinstance(node.slice[0].slice, cst.Slice):
            return self.kind(node.value)
        if isinstance(node, cst.Subscript) and self.kind(node.value) == "str":
            return "str"
        return ""

    def visible(self, scope: cst.CSTNode | None) -> dict[str, int]:
        """Names bound in a scope and around it inside the unit, with the line that binds them first."""
        found: dict[str, int] = {}
        at: cst.CSTNode | None = scope
        while at is not None:
            for name, line in self.bound.get(at, {}).items():
                found.setdefault(name, line)
            at = self.parent.get(at)
        for name, line in self.bound[None].items():
            found.setdefault(name, line)
        return found


def _parameters(params: cst.Parameters) -> list[cst.Param]:
    out = [*params.posonly_params, *params.params]
    if isinstance(params.star_arg, cst.Param):
        out.append(params.star_arg)
    out += params.kwonly_params
    if params.star_kwarg is not None:
        out.append(params.star_kwarg)
    return out


def _names_in(node: cst.CSTNode) -> list[cst.Name]:
    if isinstance(node, cst.Name):
        return [node]
    return [n for child in children(node) for n in _names_in(child)]


def _called(node: cst.CSTNode) -> str:
    return node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) else ""


def _annotation_kind(annotation: cst.Annotation | None) -> str:
    node = annotation.annotation if annotation is not None else None
    if isinstance(node, cst.Subscript):
        node = node.value
    if isinstance(node, cst.Attribute):
        node = node.attr
    return _ANNOTATION_KINDS.get(node.value, "") if isinstance(node, cst.Name) else ""
