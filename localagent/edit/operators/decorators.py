"""Decorators and factories that a class forgot, as a failure tells: `@property`, `@classmethod`, `default_factory`.

These operators see the whole file as one unit: a method that is read like an attribute never runs, so no line of it is
suspicious.
"""

import re
from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.domain.outcome import Failure
from localagent.edit.layout import before, movable
from localagent.edit.operator_context import Change, OperatorContext, Splice3
from localagent.edit.operator_registry import operator
from localagent.edit.unit import Stmt
from localagent.edit.whole_file_failures import MUTABLE_FIELD

_BOUND = re.compile(r"<bound method (?:\w+\.)*(\w+)\.(\w+) of")
_AS_A_VALUE = re.compile(r"'method'|method object")
_ARITY = re.compile(
    r"(?:(\w+)\.)?(\w+)\(\) (?:missing \d+ required positional|takes \d+ positional arguments? but \d+)"
)
_FACTORIES = {"[]": "list", "list()": "list", "{}": "dict", "dict()": "dict", "set()": "set"}
_MUTABLE = (cst.List, cst.Dict, cst.Set, cst.ListComp, cst.DictComp, cst.SetComp)


@operator("missing-decorator", prior=1.6, wide=True, effects={EditEffect.EXPLAINED})
def missing_decorator(ctx: OperatorContext) -> Iterator[Change]:
    """A method that is used like an attribute gets `@property`, one called on its class `@classmethod`."""
    for failure in ctx.failures:
        for owner, s, node in _methods(ctx):
            if node.decorators or not movable(s):
                continue
            name = _decorator(ctx, failure, owner, node)
            if name:
                splice = before(ctx, s, f"@{name}")
                yield Change((splice,), 0.2, s.line, s.line, f"@{name} for {node.name.value}")


@operator("factory-default", prior=2.4, wide=True, effects={EditEffect.EXPLAINED})
def factory_default(ctx: OperatorContext) -> Iterator[Change]:
    """A mutable default of a dataclass becomes `field(default_factory=...)`, in the whole class."""
    for failure in ctx.failures:
        told = MUTABLE_FIELD.search(failure.message)
        if told is None:
            continue
        for owner in ctx.unit.statements:
            rows = owner.suites[0].statements if isinstance(owner.node, cst.ClassDef) else []
            defaults = [
                (row.node.target, row.node.value)
                for row in rows
                if isinstance(row.node, cst.AnnAssign) and row.node.value is not None
            ]
            if not any(ctx.unit.code(target) == told.group(1) for target, _ in defaults):
                continue
            called, imported = _field(ctx)
            made = [
                (*ctx.unit.outer(value), f"{called}(default_factory={_factory(ctx, value)})")
                for _, value in defaults
                if isinstance(value, _MUTABLE) or ctx.unit.code(value) in _FACTORIES
            ]
            if called and made:
                splices = tuple(sorted([*imported, *made]))
                line = ctx.unit.line(made[0][0])
                yield Change(splices, 0.2, line, line, f"default_factory for {told.group(1)}")


def _methods(ctx: OperatorContext) -> Iterator[tuple[Stmt, Stmt, cst.FunctionDef]]:
    """The functions of classes, each with its class."""
    for s in ctx.unit.statements:
        owner = s.suite.owner
        if isinstance(s.node, cst.FunctionDef) and owner is not None and isinstance(owner.node, cst.ClassDef):
            yield owner, s, s.node


def _decorator(ctx: OperatorContext, failure: Failure, owner: Stmt, node: cst.FunctionDef) -> str:
    """What a failure says that a method lacks; "" where it says nothing of it."""
    name, params = node.name.value, [p.name.value for p in node.params.params]
    class_name = owner.node.name.value if isinstance(owner.node, cst.ClassDef) else ""
    said = f"{failure.message}\n{failure.left}\n{failure.right}"
    if len(params) == 1 and params[0] == "self":
        bound = _BOUND.search(said)
        if bound is not None:
            return "property" if bound.group(2) == name else ""
        read = failure.exception == "TypeError" and _AS_A_VALUE.search(failure.message) is not None
        return "property" if read and _read_on(ctx, failure, name) else ""
    arity = _ARITY.search(failure.message) if failure.exception == "TypeError" else None
    if arity is None or arity.group(2) != name or arity.group(1) not in (class_name, None):
        return ""
    first = params[0] if params else ""
    return "classmethod" if first == "cls" else "staticmethod" if first != "self" else ""


def _read_on(ctx: OperatorContext, failure: Failure, name: str) -> bool:
    """Whether a line of the failure's traceback reads this attribute without calling it."""
    lines = ctx.lines_of(failure)
    return any(
        isinstance(e.node, cst.Attribute)
        and e.node.attr.value == name
        and e.line in lines
        and not (isinstance(e.parent, cst.Call) and e.parent.func is e.node)
        for e in ctx.unit.exprs
    )


def _factory(ctx: OperatorContext, value: cst.BaseExpression) -> str:
    text = ctx.unit.code(value)
    return _FACTORIES.get(text, f"lambda: {text}")


def _field(ctx: OperatorContext) -> tuple[str, list[Splice3]]:
    """How the file calls `dataclasses.field`, and the import that this takes; "" where it imports nothing of it."""
    for bound, origin in ctx.facts.imports.items():
        if origin == "dataclasses:field":
            return bound, []
    for bound, origin in ctx.facts.imports.items():
        if origin == "dataclasses":
            return f"{bound}.field", []
    for s in ctx.unit.statements:
        names = s.node.names if isinstance(s.node, cst.ImportFrom) else ()
        if ctx.facts.imports and not isinstance(names, cst.ImportStar):
            for alias in names:
                if ctx.facts.imports.get(str(alias.evaluated_alias or alias.evaluated_name)) == "dataclasses:dataclass":
                    end = ctx.unit.span(alias)[1]
                    return "field", [(end, end, ", field")]
    return "", []
