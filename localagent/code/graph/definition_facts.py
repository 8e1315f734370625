"""Rows of functions, classes and lambdas, and of the parameters that they have."""

import ast
import re
from collections.abc import Iterator

from localagent.code.graph.fact_rows import FactRows
from localagent.code.graph.facts import (
    DefinitionKind,
    ExpressionKind,
    FunctionOrClass,
    ParameterFact,
    ParameterKind,
    Use,
    UseKind,
)
from localagent.code.names import callee_name
from localagent.code.spans import first_line, last_line

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_IDENTIFIER = re.compile(rb"[A-Za-z0-9_\x80-\xff]+")
_DEFINING = re.compile(rb"(?:async(?:\s|\\\r?\n)+)?(?:def|class)(?:\s|\\\r?\n)+")
_LONGEST_SIGNATURE = 400
_LONGEST_DOC = 200


def definition(rows: FactRows, node: ast.AST) -> FunctionOrClass:
    """The row of a function, class or lambda."""
    own = rows.walk.own[node]
    line, column, _ = rows.defined_at[node]
    kind, name, decorators, bases = DefinitionKind.LAMBDA, "<lambda>", [], []
    if isinstance(node, ast.ClassDef):
        kind, name, decorators = DefinitionKind.CLASS, node.name, node.decorator_list
        bases = [rows.of(base) for base in node.bases]
    elif isinstance(node, _FUNCTIONS):
        asynchronous = isinstance(node, ast.AsyncFunctionDef)
        kind = DefinitionKind.ASYNC_FUNCTION if asynchronous else DefinitionKind.FUNCTION
        name, decorators = node.name, node.decorator_list
    returned, yielded = rows.results.get(node, ([], []))
    return FunctionOrClass(
        kind=int(kind),
        name=name,
        scope=rows.scope_of(node),
        own_scope=rows.scope_index[own],
        first_line=first_line(node),  # type: ignore[arg-type]
        line=line,
        column=column,
        end_line=last_line(node),  # type: ignore[arg-type]
        end_column=node.end_col_offset or 0,  # type: ignore[attr-defined]
        signature=_signature(node),
        doc=_doc(node),
        decorators=tuple(rows.of(d) for d in decorators),
        bases=tuple(bases),
        parameters=tuple(_parameters(rows, node)),
        annotation=rows.of(getattr(node, "returns", None)),
        returned=rows.of(node.body) if isinstance(node, ast.Lambda) else rows.union(returned),
        yielded=rows.union(yielded),
        fixture=_fixture(decorators, name),
    )


def _parameters(rows: FactRows, node: ast.AST) -> Iterator[ParameterFact]:
    arguments = getattr(node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return
    for kind, argument, default in _arguments(arguments):
        yield ParameterFact(argument.arg, int(kind), rows.of(argument.annotation), rows.of(default))


def defines(rows: FactRows, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
    """The name that a statement defines, and its decorators."""
    found = _DEFINING.match(rows.text.utf8, rows.text.offset(node.lineno, node.col_offset))
    offset = found.end() if found else rows.text.offset(node.lineno, node.col_offset)
    scope = rows.walk.scope[node]
    target = rows.name_in(scope, node.name)
    rows.use_at(UseKind.DEFINE, offset, node, target)
    rows.defined_at[node] = rows.uses[-1][1:4]
    rows.bind(target, rows.row(ExpressionKind.DEFINED, rows.definition_index[node]), node.lineno)
    for decorator in node.decorator_list:
        rows.decorating.add(decorator.func if isinstance(decorator, ast.Call) else decorator)
    if not isinstance(node, ast.ClassDef):
        parameters_of(rows, node)


def parameters_of(rows: FactRows, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
    """What a function's parameters bind."""
    inner = rows.walk.own[node]
    at = rows.scope_index[inner]
    for _, argument, default in _arguments(node.args):
        target = rows.name_in(inner, argument.arg)
        found = _IDENTIFIER.match(rows.text.utf8, rows.text.offset(argument.lineno, argument.col_offset))
        length = len(found.group()) if found else -1
        rows.uses.append(Use(int(UseKind.DEFINE), argument.lineno, argument.col_offset, length, at, target))
        value = rows.of(argument.annotation)
        typed = rows.row(ExpressionKind.INSTANCE, value) if value >= 0 else -1
        rows.bind(target, rows.union((typed, rows.of(default))), argument.lineno)


def lambdas(rows: FactRows, node: ast.Lambda) -> None:
    """Where a lambda stands, and its parameters."""
    rows.defined_at[node] = (node.lineno, node.col_offset, 0)
    parameters_of(rows, node)


def _arguments(arguments: ast.arguments) -> Iterator[tuple[ParameterKind, ast.arg, ast.expr | None]]:
    """Every parameter with its kind and default, in order."""
    positional = [*arguments.posonlyargs, *arguments.args]
    without = len(positional) - len(arguments.defaults)
    defaults = [None] * without + arguments.defaults
    for at, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        only = at < len(arguments.posonlyargs)
        yield ParameterKind.POSITIONAL_ONLY if only else ParameterKind.POSITIONAL_OR_KEYWORD, argument, default
    if arguments.vararg is not None:
        yield ParameterKind.VAR_POSITIONAL, arguments.vararg, None
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield ParameterKind.KEYWORD_ONLY, argument, default
    if arguments.kwarg is not None:
        yield ParameterKind.VAR_KEYWORD, arguments.kwarg, None


def _signature(node: ast.AST) -> str:
    """`name(a, b=1) -> int`, `name(Base)`; cut where it is long, without what nests too deeply to be written."""
    if isinstance(node, ast.Lambda):
        return ""
    try:
        if isinstance(node, ast.ClassDef):
            inner = ", ".join(ast.unparse(part) for part in (*node.bases, *node.keywords))
            text = f"{node.name}({inner})" if inner else node.name
        elif isinstance(node, _FUNCTIONS):
            returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
            text = f"{node.name}({ast.unparse(node.args)}){returns}"
        else:
            return ""
    except (RecursionError, ValueError):  # ValueError: a number with more digits than Python writes
        text = f"{getattr(node, 'name', '')}(...)"
    return text if len(text) <= _LONGEST_SIGNATURE else text[: _LONGEST_SIGNATURE - 3] + "..."


def _doc(node: ast.AST) -> str:
    """The first line of a docstring that is not empty."""
    body = getattr(node, "body", None)
    first = body[0] if isinstance(body, list) and body else None
    value = first.value if isinstance(first, ast.Expr) else None
    if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
        return ""
    line = value.value.strip().partition("\n")[0].strip()[:_LONGEST_DOC]
    return line.encode("utf-8", "replace").decode()


def _fixture(decorators: list[ast.expr], name: str) -> str:
    """The name under which a function is a pytest fixture, "" where it is none."""
    for decorator in decorators:
        if callee_name(decorator) in ("fixture", "yield_fixture"):
            keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
            named = [k.value for k in keywords if k.arg == "name"]
            return str(named[0].value) if named and isinstance(named[0], ast.Constant) else name
    return ""
