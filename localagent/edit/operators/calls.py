"""Calls: their callee and their arguments."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

import libcst as cst

from localagent.code.builtin_types import CALLEES, KEYWORDS
from localagent.code.symbols import SymbolSignature
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.variables import names_for
from localagent.edit.precedence import ATOM

_HANDED_ON = 5  # names in scope that the file gives to some call as a keyword of that name
_GIVEN = 3  # literals of other calls that a keyword is tried with
_USUAL_VALUES = ("True", "False", "None", "0", "1", "''")
_PAIRED: dict[str, list[str]] = {}
for _group in CALLEES:
    for _name in _group:
        _PAIRED.setdefault(_name, []).extend(n for n in _group if n != _name)


def callee_name(node: cst.Call) -> str:
    """The last name of what is called, or an empty text."""
    if isinstance(node.func, cst.Name):
        return node.func.value
    return node.func.attr.value if isinstance(node.func, cst.Attribute) else ""


@operator("callee-swap", prior=0.0)
def callee_swap(ctx: OperatorContext) -> Iterator[Change]:
    """Another callable of the usual pairs: `max` for `min`, `all` for `any`, `list` for `set`."""
    for expr, node in ctx.of(cst.Call):
        if isinstance(node.func, cst.Name):
            span = ctx.unit.span(node.func)
            for place, new in enumerate(_PAIRED.get(node.func.value, ())):
                if new.isidentifier() and new != "return":
                    yield ctx.splice(expr, (*span, new), delta=-0.1 * place, note=f"{node.func.value} -> {new}")


@operator("callee-known", prior=-1.0)
def callee_known(ctx: OperatorContext) -> Iterator[Change]:
    """Another function or class of this file with a fitting number of parameters."""
    for expr, node in ctx.of(cst.Call):
        if not isinstance(node.func, cst.Name):
            continue
        span, count = ctx.unit.span(node.func), len(node.args)
        for name, signatures in ctx.facts.functions.items():
            if name != node.func.value and name in ctx.facts.module_names:
                fits = any(s.required <= count <= len(s.params) for s in signatures)
                yield ctx.splice(expr, (*span, name), delta=0.0 if fits else -1.0, note=f"{node.func.value} -> {name}")


@operator("argument-swap", prior=0.0)
def argument_swap(ctx: OperatorContext) -> Iterator[Change]:
    """Two positional arguments of a call change places."""
    for expr, node in ctx.of(cst.Call):
        args = [a for a in node.args if a.keyword is None and not a.star]
        for i, first in enumerate(args):
            for second in args[i + 1 :]:
                left, right = ctx.unit.outer(first.value), ctx.unit.outer(second.value)
                a, b = ctx.unit.slice(*left), ctx.unit.slice(*right)
                if a != b:
                    near = 0.0 if args.index(second) == i + 1 else -0.5
                    yield ctx.splice(expr, (*left, b), (*right, a), delta=near, note=f"{a}, {b} -> {b}, {a}")


@operator("element-swap", prior=-0.4)
def element_swap(ctx: OperatorContext) -> Iterator[Change]:
    """Two elements of a tuple or list change places."""
    for expr, node in ctx.of_any(cst.Tuple, cst.List):
        if len(node.elements) > 6:
            continue
        values = [e.value for e in node.elements if isinstance(e, cst.Element)]
        for i, first in enumerate(values):
            for second in values[i + 1 :]:
                left, right = ctx.unit.outer(first), ctx.unit.outer(second)
                a, b = ctx.unit.slice(*left), ctx.unit.slice(*right)
                if a != b:
                    yield ctx.splice(expr, (*left, b), (*right, a), note=f"{a}, {b} -> {b}, {a}")


@operator("argument-drop", prior=0.0)
def argument_drop(ctx: OperatorContext) -> Iterator[Change]:
    """One argument of a call is dropped."""
    for expr, node in ctx.of(cst.Call):
        spans = [_argument_span(ctx, a) for a in node.args]
        for i, (start, end) in enumerate(spans):
            low, high = (start, spans[i + 1][0]) if i + 1 < len(spans) else (spans[i - 1][1] if i else start, end)
            yield ctx.splice(expr, (low, high, ""), delta=0.0 if len(spans) > 1 else -1.0, note="argument dropped")


def _argument_span(ctx: OperatorContext, arg: cst.Arg) -> tuple[int, int]:
    start, end = ctx.unit.span(arg)
    value_end = ctx.unit.outer(arg.value)[1]
    return start, min(end, value_end) if value_end > start else end


def _closing(ctx: OperatorContext, node: cst.Call) -> tuple[int, str]:
    """Where a further argument goes, and what separates it from those before."""
    if not node.args:
        end = ctx.unit.span(node)[1]
        return end - 1, ""
    return _argument_span(ctx, node.args[-1])[1], ", "


def signatures_of(ctx: OperatorContext, node: cst.Call) -> list[SymbolSignature]:
    """Signatures of functions of this name in this file and in files nearby (constructors under the class's name)."""
    name = callee_name(node)
    found: list[SymbolSignature] = []
    for facts in (ctx.facts, *ctx.nearby):
        found += facts.functions.get(name, [])
        if name in facts.classes and "__init__" in facts.classes[name].methods:
            found += [s for s in facts.functions.get("__init__", []) if s.line > facts.classes[name].line][:1]
    return found


@operator("argument-add", prior=-1.6)
def argument_add(ctx: OperatorContext) -> Iterator[Change]:
    """A call gets one more argument: the names of parameters it does not fill, names in scope, usual values."""
    for expr, node in ctx.of(cst.Call):
        at, comma = _closing(ctx, node)
        name = callee_name(node)
        has_keyword = any(a.keyword is not None or a.star for a in node.args)
        known = names_for(ctx, expr.statement)
        missing = _missing(ctx, node)
        for text in KEYWORDS.get(name, ()):
            if "=" in text or not has_keyword:
                yield ctx.splice(expr, (at, at, comma + text), delta=0.2, note=f"{name}(..., {text})")
        for param in missing:
            for value in (param, "None", "True", "False", "0", "[]", *(f"self.{param}",)):
                delta = 0.4 if value == param and param in known else -0.4
                if value == param and param not in known:
                    continue
                if not has_keyword:
                    yield ctx.splice(expr, (at, at, comma + value), delta=delta, note=f"{name}(..., {value})")
                yield ctx.splice(
                    expr, (at, at, f"{comma}{param}={value}"), delta=delta - 0.2, note=f"{name}(..., {param}={value})"
                )
        if has_keyword or name in ("len", "print", "append", "str", "int"):
            continue
        usable = [(n, d) for n, d in known.items() if n in ctx.visible(expr.statement) and n not in ("self", "cls")]
        for other, near in sorted(usable, key=lambda x: -x[1])[:14]:
            plus = -0.6 if signatures_of(ctx, node) and not missing else 0.0
            yield ctx.splice(expr, (at, at, comma + other), delta=near + plus - 0.4, note=f"{name}(..., {other})")
            if node.args:
                first = _argument_span(ctx, node.args[0])[0]
                yield ctx.splice(
                    expr, (first, first, f"{other}, "), delta=near + plus - 0.6, note=f"{name}({other}, ...)"
                )
        for value in ("0", "1", "None", "True", "False", "-1", "1, -1"):
            yield ctx.splice(expr, (at, at, comma + value), delta=-1.0, note=f"{name}(..., {value})")


def _missing(ctx: OperatorContext, node: cst.Call) -> list[str]:
    given = {a.keyword.value for a in node.args if a.keyword is not None}
    positional = sum(1 for a in node.args if a.keyword is None)
    out: dict[str, None] = {}
    for signature in signatures_of(ctx, node):
        params = signature.params[1:] if signature.is_method else signature.params
        for name in (*params[positional:], *signature.keyword_only):
            if name not in given:
                out.setdefault(name)
    return list(out)[:8]


@operator("keyword-add", prior=-1.8)
def keyword_add(ctx: OperatorContext) -> Iterator[Change]:
    """A keyword that other calls of the callee give, with a name in scope, their value or a usual one; or handed on."""
    usual = [keyword for keyword, _ in ctx.facts.keywords.most_common()]
    for expr, node in ctx.of(cst.Call):
        name = callee_name(node)
        at, comma = _closing(ctx, node)
        given = {a.keyword.value for a in node.args if a.keyword is not None}
        seen: dict[str, int] = {}
        literals: dict[str, Counter[str]] = {}
        for facts in (ctx.facts, *ctx.nearby):
            for keyword, count in facts.keywords_of.get(name, {}).items():
                seen[keyword] = seen.get(keyword, 0) + count
                literals.setdefault(keyword, Counter()).update(facts.keyword_values.get((name, keyword), {}))
        known = names_for(ctx, expr.statement)
        handed_on = [k for k in usual if k in known and k not in seen and k not in given]
        for keyword in handed_on[:_HANDED_ON]:
            text = f"{comma}{keyword}={keyword}"
            yield ctx.splice(expr, (at, at, text), delta=known[keyword] - 0.4, note=f"{name}(..., {keyword}={keyword})")
        for keyword in sorted(seen, key=lambda k: -seen[k])[:8]:
            if keyword in given:
                continue
            values = _values(literals[keyword])
            if keyword in known:
                values.insert(0, keyword)
            if ctx.span.class_path:
                values.append(f"self.{keyword}")
            for place, value in enumerate(values):
                text = f"{comma}{keyword}={value}"
                yield ctx.splice(expr, (at, at, text), delta=0.2 - 0.1 * place, note=f"{name}(..., {keyword}={value})")


def _values(given: Mapping[str, int]) -> list[str]:
    """Literals that other calls give a keyword, then usual ones: of their type, where others give it literals alone."""
    own = [text for text, _ in sorted(given.items(), key=lambda x: -x[1]) if text][:_GIVEN]
    kinds = {type(ast.literal_eval(text)) for text in own}
    unknown = "" in given or not kinds - {type(None)}
    usual = [text for text in _USUAL_VALUES if unknown or text == "None" or type(ast.literal_eval(text)) in kinds]
    return list(dict.fromkeys([*own, *usual]))


@operator("keyword-rename", prior=-0.8)
def keyword_rename(ctx: OperatorContext) -> Iterator[Change]:
    """A keyword of a call becomes one that the callee takes or that other calls of it give."""
    for expr, node in ctx.of(cst.Call):
        name = callee_name(node)
        offers: dict[str, None] = dict.fromkeys(_missing(ctx, node))
        for facts in (ctx.facts, *ctx.nearby):
            offers.update(dict.fromkeys(facts.keywords_of.get(name, {})))
        given = {a.keyword.value for a in node.args if a.keyword is not None}
        for arg in node.args:
            if arg.keyword is None:
                continue
            span = ctx.unit.span(arg.keyword)
            for other in list(offers)[:10]:
                if other not in given:
                    yield ctx.splice(expr, (*span, other), note=f"{arg.keyword.value}= -> {other}=")


@operator("receiver-call", prior=-1.5)
def receiver_call(ctx: OperatorContext) -> Iterator[Change]:
    """A function applied to a value becomes its method, or the other way round: `sort(x)` to `x.sort()`."""
    for expr, node in ctx.of(cst.Call):
        texts = [ctx.unit.code(a.value) for a in node.args if a.keyword is None and not a.star]
        if len(texts) != len(node.args):
            continue
        if isinstance(node.func, cst.Name) and texts and texts[0].replace(".", "").isidentifier():
            yield ctx.put(expr, f"{texts[0]}.{node.func.value}({', '.join(texts[1:])})", ATOM, -0.3)
        elif isinstance(node.func, cst.Attribute):
            receiver = ctx.unit.code(node.func.value)
            if receiver == "self" and len(texts) > 0 and texts[0].isidentifier():
                yield ctx.put(expr, f"{texts[0]}.{node.func.attr.value}({', '.join(texts[1:])})", ATOM, -0.3)
            given = [receiver, *texts] if receiver not in ("self", "cls") else texts
            yield ctx.put(expr, f"{node.func.attr.value}({', '.join(given)})", ATOM, -0.2)
