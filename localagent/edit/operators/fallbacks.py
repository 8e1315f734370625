"""What real fixes put beside a value: what to take when it is missing, a conversion, a condition, the right argument.

Found by reading which one-place fixes of real projects the space lacked (bench/space.py). They are many and each is
seldom right, so they come late.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.layout import before, body_statements, inside_function
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.calls import callee_name, signatures_of
from localagent.edit.operators.ingredients import replaceable
from localagent.edit.operators.logic import known_conditions, operand_bases
from localagent.edit.precedence import AND, ATOM, LOOSE, OR, TERNARY, fit
from localagent.edit.unit import Expr, Stmt
from localagent.text.visible_text import shortened

_NOTHING = ("None", "[]", "''", "0", "{}", "()")
_NOTHING_OF = {"list": "[]", "str": "''", "dict": "{}", "tuple": "()", "set": "set()", "int": "0", "bool": "False"}
_TAKES_DEFAULT = {"getattr": 2, "next": 1, "get": 1, "pop": 1, "min": 1, "max": 1}
_DEFAULT_WORD = {"min": "default=", "max": "default="}
_CONVERSIONS = (
    "list({})",
    "str({})",
    "tuple({})",
    "set({})",
    "int({})",
    "dict({})",
    "{} or []",
    "{} or {{}}",
    "{} or ''",
)
_ONE_ARGUMENT = re.compile(r"([A-Za-z_][\w.]*)\((\w[\w.]*|\w[\w.]*\[[^\[\]]*\])\)")
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*|_\w+")
_POSITIONS = {  # of the library's functions whose later parameters are mistaken for each other
    "sub": ("count", "flags"),
    "subn": ("count", "flags"),
    "split": ("maxsplit", "flags"),
    "sorted": ("key", "reverse"),
    "sort": ("key", "reverse"),
    "open": ("mode", "encoding"),
    "enumerate": ("start",),
    "dumps": ("indent", "default"),
    "print": ("sep", "end", "file"),
}
_PER_UNIT = 12


@operator("subscript-default", prior=-1.2)
def subscript_default(ctx: OperatorContext) -> Iterator[Change]:
    """`x[k]` becomes `x.get(k)` or `x.get(k, default)`; `getattr`, `next`, `get`, `pop`, `min`, `max` get a default.

    `hasattr` becomes a `getattr` with None.
    """
    constants = [n for n in (*ctx.facts.module_names, *ctx.facts.imports) if _CONSTANT.fullmatch(n)]
    names = sorted(constants, key=lambda n: not n.isupper())[:6]
    for expr, node in ctx.of(cst.Subscript):
        index = node.slice[0].slice if len(node.slice) == 1 else None
        if expr.store or not isinstance(index, cst.Index) or isinstance(expr.parent, (cst.Del, cst.AugAssign)):
            continue
        key = ctx.unit.code(index.value)
        base = ctx.unit.code(node.value)
        number = isinstance(index.value, (cst.Integer, cst.UnaryOperation))
        if base[:1].isupper() or isinstance(index.value, cst.Tuple) or isinstance(expr.parent, cst.Annotation):
            continue
        sure = -1.5 if number else 0.3 if ctx.names.kind(node.value) in ("dict", "Counter") or key[:1] in "'\"" else 0.0
        for place, value in enumerate(("", ", None", ", ''", ", 0", ", []", ", {}", f", {key}")):
            yield ctx.put(expr, f"{base}.get({key}{value})", ATOM, sure - 0.12 * place)
    for expr, called in ctx.of(cst.Call):
        name = callee_name(called)
        if (
            name == "hasattr" and len(called.args) == 2 and not any(a.star for a in called.args)
        ):  # what is there and is None is set so in order not to be
            yield ctx.put(expr, f"getattr({', '.join(ctx.unit.code(a.value) for a in called.args)}, None)", ATOM, -0.6)
        if len(called.args) != _TAKES_DEFAULT.get(name, -1) or any(a.keyword or a.star for a in called.args):
            continue
        if name in ("get", "pop") and not isinstance(called.func, cst.Attribute):
            continue
        end = ctx.unit.outer(called.args[-1].value)[1]
        for place, value in enumerate((*_NOTHING, *names)):
            text = f", {_DEFAULT_WORD.get(name, '')}{value}"
            yield ctx.splice(expr, (end, end, text), delta=0.2 - 0.1 * place, note=f"{name}(...{text})")


@operator("value-if", prior=-2.4)
def value_if(ctx: OperatorContext) -> Iterator[Change]:
    """A value becomes conditional: `x if y else None`, with a name it uses as condition and a usual default."""
    together = _by_statement(ctx)
    for expr in ctx.exprs:
        if not isinstance(expr.parent, (cst.Assign, cst.Return, cst.Arg, cst.AnnAssign, cst.DictElement)) or expr.store:
            continue
        if (
            not replaceable(expr)
            or "\n" in expr.text
            or expr.in_fstring
            or isinstance(expr.node, (cst.IfExp, cst.Name))
        ):
            continue
        kind = _NOTHING_OF.get(ctx.kind(expr))
        others = dict.fromkeys([*([kind] if kind else []), *_NOTHING[:3]])
        for depth, base in enumerate(_read_by(expr, together[id(expr.statement)])[:3]):
            for condition, plus in ((base, 0.0), (f"{base} is not None", -0.3)):
                for place, other in enumerate(others):
                    delta = plus - 0.15 * place - 0.2 * depth
                    yield ctx.put(expr, f"{fit(expr.text, expr.level, OR)} if {condition} else {other}", TERNARY, delta)


def _by_statement(ctx: OperatorContext) -> Mapping[int, list[Expr]]:
    """The expressions of each statement, by its identity."""
    together: dict[int, list[Expr]] = defaultdict(list)
    for e in ctx.unit.exprs:
        together[id(e.statement)].append(e)
    return together


def _read_by(expr: Expr, around: list[Expr]) -> list[str]:
    """Names and attributes that an expression reads, the longest first; `around` are those of its statement."""
    inside = [e for e in around if expr.start <= e.start and e.end <= expr.end and not e.in_fstring]
    held = Counter(
        e.text
        for e in inside
        if isinstance(e.node, (cst.Name, cst.Attribute))
        and e.text not in ("self", "cls", "None", "True", "False")
        and not (isinstance(e.parent, cst.Call) and e.parent.func is e.node)
    )
    return sorted(held, key=lambda t: (-t.count("."), -held[t], t))


@operator("value-and", prior=-2.6)
def value_and(ctx: OperatorContext) -> Iterator[Change]:
    """A truth value that is assigned, returned or passed is combined with a known condition."""
    for expr in ctx.exprs:
        if not isinstance(expr.parent, (cst.Assign, cst.Return, cst.Arg)) or expr.store or expr.in_fstring:
            continue
        if ctx.kind(expr) != "bool" or expr.text in ("True", "False"):
            continue
        old = {bind: fit(expr.text, expr.level, bind + 1) for bind in (AND, OR)}
        for text, level, delta in known_conditions(ctx, expr, 20):
            for word, bind in (("and", AND), ("or", OR)):
                if text != expr.text:
                    new = fit(text, level, bind + 1)
                    yield ctx.put(expr, f"{new} {word} {old[bind]}", bind, delta)
                    yield ctx.put(expr, f"{old[bind]} {word} {new}", bind, delta - 0.1)


@operator("else-condition", prior=-1.8, effects={EditEffect.CHANGES_CONDITION})
def else_condition(ctx: OperatorContext) -> Iterator[Change]:
    """An `else` becomes an `elif` on what its first statement reads, or on a known condition."""
    together = _by_statement(ctx)
    for s in ctx.statements:
        if not isinstance(s.node, cst.If) or not isinstance(s.node.orelse, cst.Else):
            continue
        suite = s.suites[-1]
        if suite.slot != "else" or not suite.statements:
            continue
        start = _else_offset(ctx, s)
        if start < 0:
            continue
        first = suite.statements[0]
        offers: dict[str, float] = {}
        for e in together[id(first)]:
            plain = isinstance(e.node, (cst.Name, cst.Attribute)) and not e.store and not e.is_called
            if plain and e.text not in ("self", "cls", "None", "True", "False"):
                offers.setdefault(f"{e.text} is not None", 0.2)
                offers.setdefault(e.text, 0.1)
        test = next((e for e in ctx.unit.exprs if e.node is s.node.test), None)
        for text, _, delta in known_conditions(ctx, test, 12) if test is not None else ():
            offers.setdefault(text, delta - 0.4)
        for text, delta in list(offers.items())[:_PER_UNIT]:
            yield ctx.splice(
                first, (start, start + 4, f"elif {text}"), delta=delta, note=f"else -> elif {shortened(text, 40)}"
            )


def _else_offset(ctx: OperatorContext, s: Stmt) -> int:
    """Where the `else` of an `if` begins, in unit offsets; -1 when not found."""
    first = s.suites[-1].statements[0].start
    since = max((x.end for x in s.suites[0].statements), default=s.head_end)
    at = bytes(ctx.unit.text[since:first]).rfind(b"else")
    return since + at if at >= 0 else -1


_USED = (cst.Return, cst.Assign, cst.Arg, cst.Comparison, cst.ComparisonTarget, cst.For, cst.CompFor)


@operator("known-wrap", prior=-2.4, effects={EditEffect.WRAPS})
def known_wrap(ctx: OperatorContext) -> Iterator[Change]:
    """A value is passed through a function that the file elsewhere calls with one argument."""
    found: Counter[str] = Counter()
    for text, lines in ctx.facts.calls.items():
        if match := _ONE_ARGUMENT.fullmatch(text):
            found[match.group(1)] += len(lines)
    for name, signatures in ctx.facts.functions.items():
        if any(not g.is_method and g.required <= 1 <= len(g.params) for g in signatures):
            found[name] += 1
    usual = (
        "len",
        "str",
        "int",
        "list",
        "print",
        "isinstance",
        "super",
        "range",
        "sorted",
        "set",
        "sum",
        "repr",
        "iter",
    )
    names = [n for n, _ in found.most_common(30) if n not in usual][:_PER_UNIT]
    for expr in ctx.exprs:
        if not isinstance(expr.parent, _USED) or expr.store or not replaceable(expr):
            continue
        plain = isinstance(expr.parent, (cst.Return, cst.Assign, cst.Arg))
        if expr.text in ("self", "cls", "None", "True", "False") or "\n" in expr.text or expr.in_fstring:
            continue
        for place, name in enumerate(names):
            if not expr.text.startswith(f"{name}("):
                delta = -0.06 * place - 0.1 * expr.depth - (0.0 if plain else 0.3)
                yield ctx.put(expr, f"{name}({expr.text})", ATOM, delta)


@operator("rebind", prior=-2.4)
def rebind(ctx: OperatorContext) -> Iterator[Change]:
    """A name is converted before a statement that reads it: `x = list(x)`, `x = x or []`."""
    together = _by_statement(ctx)
    for s in body_statements(ctx):
        if not inside_function(ctx, s):
            continue
        scope = ctx.function(s)
        params = ctx.names.params.get(scope, []) if scope is not None else []
        read = {e.text for e in together[id(s)] if isinstance(e.node, cst.Name) and not e.store}
        for name in [p for p in params if p in read and p not in ("self", "cls")][:4]:
            for place, form in enumerate(_CONVERSIONS):
                line = f"{name} = {form.format(name)}"
                yield ctx.splice(s, before(ctx, s, line), delta=-0.1 * place, note=f"before: {line}")


@operator("argument-keyword", prior=-0.9)
def argument_keyword(ctx: OperatorContext) -> Iterator[Change]:
    """A positional argument is passed by keyword, for another parameter than the next one."""
    for expr, node in ctx.of(cst.Call):
        if not node.args or node.args[-1].keyword is not None or node.args[-1].star:
            continue
        name, last = callee_name(node), node.args[-1]
        known: dict[str, None] = dict.fromkeys(_POSITIONS.get(name, ()))
        for signature in signatures_of(ctx, node):
            known.update(dict.fromkeys([*signature.params[len(node.args) :], *signature.keyword_only]))
        known.update(dict.fromkeys(k for k, _ in ctx.facts.keywords_of.get(name, Counter()).most_common(4)))
        at = ctx.unit.outer(last.value)[0]
        for place, keyword in enumerate(list(known)[:8]):
            if keyword not in ("self", "cls"):
                yield ctx.splice(expr, (at, at, f"{keyword}="), delta=-0.05 * place, note=f"{name}(..., {keyword}=...)")


@operator("display-call", prior=-1.9)
def display_call(ctx: OperatorContext) -> Iterator[Change]:
    """`[x]` becomes `list(x)`, `{x}` `set(x)`, `(x,)` `tuple(x)`, and the other way round."""
    for expr, node in ctx.of_any(cst.List, cst.Set, cst.Tuple):
        if len(node.elements) == 1 and isinstance(node.elements[0], cst.Element) and not expr.store:
            word = "list" if isinstance(node, cst.List) else "set" if isinstance(node, cst.Set) else "tuple"
            yield ctx.put(expr, f"{word}({ctx.unit.code(node.elements[0].value)})", ATOM)
    for expr, called in ctx.of(cst.Call):
        pair = {"list": "[]", "set": "{}", "tuple": "()"}.get(callee_name(called))
        plain = isinstance(called.func, cst.Name) and len(called.args) == 1 and not called.args[0].star
        if pair and plain and called.args[0].keyword is None:
            text = ctx.unit.code(called.args[0].value)
            comma = "," if pair == "()" else ""
            yield ctx.put(expr, f"{pair[0]}{text}{comma}{pair[1]}", ATOM if pair != "()" else LOOSE, -0.2)


@operator("attribute-condition", prior=-2.6, effects={EditEffect.CHANGES_CONDITION})
def attribute_condition(ctx: OperatorContext) -> Iterator[Change]:
    """A condition also tests another attribute of the same object: `and self.x is not None`, `and not self.x`."""
    own = ctx.facts.classes.get(ctx.span.class_path[-1]) if ctx.span.class_path else None
    for expr in ctx.exprs:
        if not isinstance(expr.parent, (cst.If, cst.While, cst.IfExp)) or expr.parent.test is not expr.node:
            continue
        old = fit(expr.text, expr.level, AND)
        words = set(re.findall(r"[a-z]+", expr.text.lower()))
        offers: dict[str, float] = {}
        for name in own.attributes if own is not None else ():
            alike = bool(words & set(re.findall(r"[a-z]+", name.lower())) - {"self", "is", "not"})
            offers[f"self.{name}"] = 0.6 if alike else 0.0
        for base in operand_bases(expr)[:2]:
            for name, _ in ctx.facts.attributes_of.get(base, Counter()).most_common(6):
                offers.setdefault(f"{base}.{name}", 0.2)
        for text, delta in sorted(offers.items(), key=lambda x: -x[1])[:_PER_UNIT]:
            for place, check in enumerate((f"{text} is not None", text, f"not {text}", f"{text} is None")):
                yield ctx.put(expr, f"{old} and {check}", AND, delta - 0.15 * place, f"... and {check}")
