"""Bodies for functions that are left open: `raise NotImplementedError`, `pass` or `...` and nothing else.

Idioms that a short function is: a parameter or attribute given back, asked, compared, combined or stored; something
counted, collected or looked up. What a body must do is said by the tests alone; the likeliest forms come first.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.layout import body_statements, is_docstring
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.unit import Stmt
from localagent.text.visible_text import shortened

_ONE = (
    "{0}", "len({0})", "sum({0})", "not {0}", "bool({0})", "sorted({0})", "max({0})", "min({0})", "list({0})", "-{0}",
    "{0}.strip()", "{0}.lower()", "{0}.upper()", "{0}.title()", "{0}.split()", "{0}.copy()", "{0}[0]", "{0}[-1]",
    "{0}[::-1]", "list(reversed({0}))", "list(dict.fromkeys({0}))", "set({0})", "str({0})", "int({0})", "abs({0})",
    "sum({0}) / len({0})", "{0} is None", "{0} == {0}[::-1]", "{0} % 2 == 0", "sum({0}.values())",
    "sorted({0}.items())", "[x for x in {0} if x]", "{0}.items()", "{0}.keys()", "{0}.values()", "any({0})",
    "all({0})", "{0} * {0}", "{0} + 1", "dict({0})", "''.join({0})", "' '.join({0})", "{0}.splitlines()", "iter({0})",
    "{{v: k for k, v in {0}.items()}}", "{{x: {0}.count(x) for x in {0}}}", "[str(x) for x in {0}]",
    "[len(x) for x in {0}]", "list(enumerate({0}))", "list(zip({0}, {0}[1:]))",
)  # fmt: skip
_TWO = (
    "{0} + {1}", "{0} * {1}", "{0} == {1}", "{0} in {1}", "{0} - {1}", "{0} / {1}", "{0} // {1}", "{0} % {1}",
    "{0}[{1}]", "{0}.get({1})", "{0} < {1}", "{0} <= {1}", "max({0}, {1})", "min({0}, {1})", "{0}.split({1})",
    "{0}.join({1})", "{0}.count({1})", "{0}.startswith({1})", "{0}.endswith({1})", "{0} and {1}", "{0} or {1}",
    "{0} ** {1}", "{{**{0}, **{1}}}", "{0}[:{1}]", "{0}[{1}:]", "[x for x in {0} if x != {1}]", "{0}({1})",
    "[{1}(x) for x in {0}]", "[x for x in {0} if {1}(x)]", "dict(zip({0}, {1}))", "{0}.index({1})", "({0}, {1})",
    "f'{{{0}}} {{{1}}}'", "[x for x in {0} if x > {1}]", "[x for x in {0} if x < {1}]",
    "[x for x in {0} if len(x) >= {1}]", "[x for x in {0} if len(x) > {1}]", "[x for x in {0} if {1} in x]",
    "[x * {1} for x in {0}]", "[x + {1} for x in {0}]",
    "set({0}) & set({1})", "abs({0} - {1})", "[{0}[i:i + {1}] for i in range(0, len({0}), {1})]",
)  # fmt: skip
_THREE = ("{0}.get({1}, {2})", "{0}.replace({1}, {2})", "{0} + {1} + {2}", "{0} * {1} * {2}", "max({0}, min({1}, {2}))",
          "min({2}, max({1}, {0}))", "{1} <= {0} <= {2}", "{0}[{1}:{2}]", "getattr({0}, {1}, {2})")  # fmt: skip
_STORE_ONE = ("{a}.append({0})", "{a}.add({0})", "{a} += {0}", "{a} -= {0}", "{a} = {0}", "{a}.remove({0})",
              "{a}.discard({0})", "{a}.extend({0})", "del {a}[{0}]")  # fmt: skip
_STORE_TWO = ("{a}[{0}] = {1}", "{a}[{0}] = {a}.get({0}, 0) + {1}", "{a}.setdefault({0}, []).append({1})",
              "{a}.append(({0}, {1}))", "{a}.insert({0}, {1})")  # fmt: skip
_MADE = ("cls({0})", "cls(*{0})", "cls(**{0})", "cls(*{0}.split())", "cls(*{0}.split(','))")
_COMPARED = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">=", "__eq__": "=="}
_COMPUTED = {"__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/", "__mod__": "%"}
_STEP = 0.035
_NOTHING_SAID = -1.5  # `pass` may be what is meant
_MOST_NAMES = 5


@operator("stub-body", prior=0.4, effects={EditEffect.INVENTS})
def stub_body(ctx: OperatorContext) -> Iterator[Change]:
    """A function body that is a stub becomes a short idiom of its parameters and its object's attributes."""
    for s in body_statements(ctx):
        function = ctx.function(s)
        if function is None or not is_open(s):
            continue
        sure = 0.0 if isinstance(s.node, cst.Raise) else _NOTHING_SAID
        for place, text in enumerate(dict.fromkeys(_bodies(ctx, function))):
            yield ctx.splice(s, (s.start, s.end, text), delta=sure - _STEP * place, note=f"-> {shortened(text, 50)}")


def is_open(s: Stmt) -> bool:
    """Whether a statement stands, docstrings aside, alone in a function and leaves it open."""
    if not isinstance(s.suite.owner.node if s.suite.owner else None, cst.FunctionDef):
        return False
    if [x for x in s.suite.statements if not is_docstring(x)] != [s]:
        return False
    node = s.node
    if isinstance(node, cst.Raise):
        raised = node.exc.func if isinstance(node.exc, cst.Call) else node.exc
        return isinstance(raised, cst.Name) and raised.value == "NotImplementedError"
    return isinstance(node, cst.Pass) or (isinstance(node, cst.Expr) and isinstance(node.value, cst.Ellipsis))


def _bodies(ctx: OperatorContext, function: cst.FunctionDef) -> Iterator[str]:
    parameters = [p.name.value for p in (*function.params.params, *function.params.kwonly_params)]
    method = bool(ctx.span.class_path) and parameters[:1] in (["self"], ["cls"])
    given = parameters[1:] if method else parameters
    owner = ctx.facts.classes.get(ctx.span.class_path[-1]) if method else None
    attributes = [f"self.{name}" for name in sorted(owner.attributes)] if owner is not None else []
    attributes = attributes[:_MOST_NAMES]
    yield from _special(function.name.value, attributes, given)
    yield from _delegated(function.name.value, attributes, given)
    if method and parameters[0] == "cls":
        yield from (f"return {text.format(name)}" for text in _MADE for name in given)
    yield from _interleaved(
        [f"return {text}" for text in _values((*given, *attributes)[:_MOST_NAMES])],
        [text for a in attributes for text in _stores(a, given)],
    )
    if method:
        yield f"return {parameters[0]}"


def _special(name: str, attributes: Sequence[str], given: Sequence[str]) -> Iterator[str]:
    """What two objects of a class are, compared and combined by what they hold."""
    if len(given) != 1:
        return
    pairs = [(a, f"{given[0]}.{a.removeprefix('self.')}") for a in attributes]
    if name in _COMPARED:
        yield from (f"return {a} {_COMPARED[name]} {b}" for a, b in pairs)
        left, right = ("(" + ", ".join(side) + ")" for side in zip(*pairs, strict=True)) if len(pairs) > 1 else ("", "")
        yield from [f"return {left} {_COMPARED[name]} {right}"] if left else ()
    if name in _COMPUTED:
        sign = _COMPUTED[name]
        yield f"return type(self)({', '.join(f'{a} {sign} {b}' for a, b in pairs)})"
        yield from (f"return type(self)({a} {sign} {given[0]})" for a in attributes)
        yield from (f"return {a} {sign} {b}" for a, b in pairs)


def _delegated(name: str, attributes: Sequence[str], given: Sequence[str]) -> Iterator[str]:
    """The method of the same name of what an object holds."""
    if not name.startswith("__"):
        yield from (f"return {a}.{name}({', '.join(given)})" for a in attributes)


def _interleaved(values: Sequence[str], stores: Sequence[str]) -> Iterator[str]:
    """One of each in turn: whether a method gives or stores is not known."""
    for place in range(max(len(values), len(stores))):
        yield from stores[place : place + 1]
        yield from values[place : place + 1]


def _values(names: Sequence[str]) -> Iterator[str]:
    """Expressions that use every name come before those that leave one out."""
    three = [t.format(*p) for p in permutations(names, 3) if len(names) == 3 for t in _THREE]
    two = [t.format(*p) for t in _TWO for pair in combinations(names, 2) for p in (pair, pair[::-1])]
    one = [t.format(name) for t in _ONE for name in names]
    yield from (*three, *two, *one) if len(names) != 1 else one


def _stores(attribute: str, given: Sequence[str]) -> Iterator[str]:
    for pair in combinations(given, 2):
        yield from (t.format(*pair, a=attribute) for t in _STORE_TWO)
    for name in given:
        yield from (t.format(name, a=attribute) for t in _STORE_ONE)
