"""Edits that a report of an undefined name suggests. They come before all others."""

import builtins
import re
from collections.abc import Iterator

import libcst as cst

from localagent.code.builtin_types import FOREIGN_NAMES
from localagent.domain.edit import EditEffect
from localagent.edit.failure_hints import placed, undefined
from localagent.edit.layout import after, before, movable, removed
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator, operators
from localagent.edit.operators.variables import BUILTINS, likeness, names_for
from localagent.edit.precedence import ATOM
from localagent.edit.unit import Expr, Stmt

_WORDS = re.compile(r"\w+")
_SHORT_OF_A_USE = 0.6  # what it costs to begin where a later use does not see it begun
_STARTS = ("0", "[]", "{}", "set()", "''", "None", "1", "False", "True", "float('inf')", "-1", "float('-inf')")
_TWINS = 0.6
_VALUES: dict[str, object] = {"0": 0, "1": 1, "-1": -1, "None": None, "[]": [], "''": ""}
_MOST_NUMBERS = 6
_ONE_OF_SEVERAL = 0.4  # what it costs to change a name in one of the places where it stands,
_MISSING_ELSEWHERE = 1.6  # and where it gets no value anywhere, so that the others miss it still
_NO_ATTRIBUTE = 1.5  # for an attribute of one's own that its class lacks
_OFTEN, _ONCE = 0.5, 0.8  # what is read in several places was meant to have a value, what is read once was not


@operator("undefined-name", prior=2.0, effects={EditEffect.MENDS_NAME, EditEffect.EXPLAINED})
def undefined_name(ctx: OperatorContext) -> Iterator[Change]:
    """An undefined name becomes a similar one, a builtin, a nearby number, Python's word for it, or `self.x`."""
    for failure in ctx.failing_with("NameError", "UnboundLocalError"):
        name = undefined(failure)
        uses, lacked = _uses(ctx, name), _lacked(ctx, name)
        others = 0.0 if len(uses) < 2 else _ONE_OF_SEVERAL if any(e.store for e in uses) else _MISSING_ELSEWHERE
        for expr, node in ctx.of(cst.Name):
            if node.value != name:
                continue
            bonus = placed(ctx, failure, expr.line, expr.end_line) - others
            offers = dict(names_for(ctx, expr.statement))
            near_builtins = (b for b in sorted(BUILTINS) if b not in offers and likeness(name, b) > 0.5)
            offers.update({b: -0.8 for b in near_builtins if _usable(getattr(builtins, b, None), expr)})
            offers.update({s: -0.8 for s in _from_star_imports(ctx, name) if s not in offers})
            for other, near in offers.items():
                if other != name:
                    yield ctx.put(expr, other, ATOM, bonus + near * 0.5 + 1.2 * likeness(name, other) - 0.6)
            for text in FOREIGN_NAMES.get(name, ()):
                yield ctx.put(expr, text, ATOM, bonus + 0.8)
            if ctx.span.class_path:
                yield ctx.put(expr, f"self.{name}", ATOM, bonus + 0.4 - lacked)
            for place, (text, value) in enumerate(_VALUES.items()):
                if not _usable(value, expr):
                    continue
                change = ctx.put(expr, text, ATOM if text != "-1" else 13, bonus - 0.8 - 0.05 * place)
                yield change if value is None else change.having(EditEffect.INVENTS_LITERAL)
            for place, text in enumerate(_numbers(ctx, expr)):
                yield ctx.put(expr, text, ATOM, bonus - 0.8 - 0.05 * place).having(EditEffect.INVENTS_LITERAL)
            if isinstance(expr.parent, cst.BinaryOperation):
                other_side = expr.parent.right if expr.parent.left is node else expr.parent.left
                start, end = ctx.unit.outer(expr.parent)
                text = ctx.unit.code(other_side)
                new = f"({text})" if " " in text else text
                change = ctx.splice(expr, (start, end, new), delta=bonus - 0.4, note=f"{name} dropped")
                yield change.having(EditEffect.DROPS_UNDEFINED)


def _uses(ctx: OperatorContext, name: str) -> list[Expr]:
    return [e for e in ctx.unit.exprs if isinstance(e.node, cst.Name) and e.text == name]


def _wanted(ctx: OperatorContext, name: str) -> float:
    """How much likelier it is that a name lacks its value than that another one was meant, by how often it is read."""
    uses = _uses(ctx, name)
    if any(e.store for e in uses):
        return 0.0
    return _OFTEN if len(uses) > 1 else -_ONCE


def _lacked(ctx: OperatorContext, name: str) -> float:
    """What an attribute of one's own costs: more where the class has no bases, and none such."""
    owner = ctx.facts.classes.get(ctx.span.class_path[-1]) if ctx.span.class_path else None
    if owner is None or owner.bases not in ((), ("object",)):
        return 0.0
    return 0.0 if name in (*owner.methods, *owner.attributes) else _NO_ATTRIBUTE


def _numbers(ctx: OperatorContext, expr: Expr) -> list[str]:
    """Whole numbers that the unit says, the nearest first, where one can stand in an expression's place."""
    if not _usable(2, expr):
        return []
    said = [e for e in ctx.unit.exprs if isinstance(e.node, cst.Integer) and e.text not in _VALUES]
    return list(dict.fromkeys(e.text for e in sorted(said, key=lambda e: abs(e.line - expr.line))))[:_MOST_NUMBERS]


def _usable(value: object, expr: Expr) -> bool:
    """Whether a value can stand where something is read from the name, or a place in it."""
    parent = expr.parent
    if isinstance(parent, cst.Attribute) and parent.value is expr.node:
        return hasattr(value, parent.attr.value)
    if isinstance(parent, cst.Subscript) and parent.value is expr.node:
        return hasattr(value, "__getitem__") or hasattr(value, "__class_getitem__")
    return True


def _from_star_imports(ctx: OperatorContext, name: str) -> list[str]:
    """Names like `name` that the library's modules of the file's `from x import *` bring."""
    from localagent.code.builtin_types import IMPORTS  # noqa: PLC0415 - a large table, needed for these failures alone

    modules = set(ctx.facts.star_imports)
    if not modules:
        return []
    return [
        known
        for known, origins in IMPORTS.items()
        if likeness(name, known) > 0.5
        and any(o.partition(":")[0] in modules and o.endswith(f":{known}") for o in origins)
    ]


@operator("undefined-everywhere", prior=1.6, effects={EditEffect.MENDS_NAME, EditEffect.EXPLAINED})
def undefined_everywhere(ctx: OperatorContext) -> Iterator[Change]:
    """All uses of an undefined name in the function become one other name."""
    for failure in ctx.failing_with("NameError", "UnboundLocalError"):
        name = undefined(failure)
        uses = _uses(ctx, name)
        if len(uses) < 2:
            continue
        offers = dict(names_for(ctx, uses[0].statement))
        targets = [
            *offers,
            *_from_star_imports(ctx, name),
            *FOREIGN_NAMES.get(name, ()),
            *([f"self.{name}"] if ctx.span.class_path else []),
        ]
        foreign, lacked = FOREIGN_NAMES.get(name, ()), _lacked(ctx, name)
        told = ctx.lines_of(failure)
        at = next((e for e in uses if e.line in told), uses[0])  # the first use may stand where no test comes
        for other in dict.fromkeys(targets):
            if other != name:
                splices = tuple((e.start, e.end, other) for e in uses)
                delta = 1.6 if other in foreign else 1.2 * likeness(name, other) - 0.6
                delta -= lacked if other.startswith("self.") else 0.0
                note = f"{name} -> {other} everywhere"
                yield ctx.splice(at, *splices, delta=delta, note=note, old=name, new=other)


@operator("parameter-rename", prior=1.4, effects={EditEffect.RENAMES_PARAMETER})
def parameter_rename(ctx: OperatorContext) -> Iterator[Change]:
    """A parameter gets the undefined name that the body reads, in the definition alone or in all uses."""
    for failure in ctx.failing_with("NameError"):
        name = undefined(failure)
        if not name or not any(e.text == name for e in ctx.unit.exprs):
            continue
        wanted = max(0.0, _wanted(ctx, name))
        for s in ctx.statements:
            if not isinstance(s.node, cst.FunctionDef):
                continue
            taken = ctx.names.params.get(s.node, [])
            for param in s.node.params.params:
                old = param.name.value
                if old in ("self", "cls") or name in taken:
                    continue
                uses = [
                    (e.start, e.end, name)
                    for e in ctx.unit.exprs
                    if isinstance(e.node, cst.Name) and e.text == old and s.start <= e.start < s.end
                ]
                own = (*ctx.unit.span(param.name), name)
                delta = 0.8 * likeness(old, name) + (-0.2 if uses else 0.6) - 0.4 + wanted
                yield ctx.splice(s, own, *uses, delta=delta, note=f"parameter {old} -> {name} everywhere")
                if uses:
                    yield ctx.splice(s, own, delta=delta - 0.4, note=f"parameter {old} -> {name}")


@operator("undefined-twin", prior=1.4, effects={EditEffect.MENDS_NAME})
def undefined_twin(ctx: OperatorContext) -> Iterator[Change]:
    """An undefined name is assigned like a similar one: `dp_col = [0] * n` after `dp_row = [0] * n`."""
    for failure in ctx.failing_with("NameError", "UnboundLocalError"):
        name = undefined(failure)
        use, wanted = next(iter(_uses(ctx, name)), None), _wanted(ctx, name)
        if use is None or not name:
            continue
        for s in ctx.statements:
            if not isinstance(s.node, cst.Assign) or not movable(s) or s.end > use.start or len(s.node.targets) != 1:
                continue
            target = s.node.targets[0].target
            like = likeness(target.value, name) if isinstance(target, cst.Name) else 0.0
            if like < _TWINS or not isinstance(target, cst.Name):
                continue
            value = ctx.unit.slice(*ctx.unit.outer(s.node.value))
            if "\n" not in value:
                yield ctx.splice(
                    s, after(ctx, s, f"{name} = {value}"), delta=like - 0.8 + wanted, note=f"{name} = {value}"
                )


@operator("undefined-initialise", prior=1.2, effects={EditEffect.MENDS_NAME, EditEffect.INVENTS})
def undefined_initialise(ctx: OperatorContext) -> Iterator[Change]:
    """An undefined name is initialised before its first use: first where every use sees it, then in other blocks."""
    for failure in ctx.failing_with("NameError", "UnboundLocalError"):
        name = undefined(failure)
        use, wanted = next(iter(_uses(ctx, name)), None), _wanted(ctx, name)
        if use is None or not name:
            continue
        kind = ctx.names.kinds.get(name, "")
        likely = {"list": "[]", "dict": "{}", "set": "set()", "int": "0", "str": "''"}.get(kind, "")
        extra = ("defaultdict(list)", "defaultdict(int)", "deque()", "Counter()")
        usable = [t for t in extra if t.split("(")[0] in ctx.facts.imports or "collections" in ctx.facts.star_imports]
        names = [n for n in ctx.visible(use.statement) if n not in (name, "self", "cls")][:8]
        values = [*_STARTS, *usable, *(f"len({n})" for n in names), *names]
        scope = use.statement.scope
        last = max(e.start for e in ctx.unit.exprs if e.text == name and e.statement.scope is scope)
        for at, place in _insertion_points(use.statement, last):
            for rank, value in enumerate(values):
                delta = wanted - place + (0.6 if value == likely else -0.04 * rank)
                line = f"{name} = {value}"
                change = ctx.splice(at, before(ctx, at, line), delta=delta, note=line)
                yield change if value in _STARTS else change.having(EditEffect.STARTS_FROM_EXPRESSION)


def _insertion_points(s: Stmt, last: int) -> Iterator[tuple[Stmt, float]]:
    """Statements before which a name may get its value, innermost first, and what each costs.

    One in a block that ends before the `last` use leaves that use without it, or with what an earlier turn left.
    """
    place, at = 0.0, s
    while True:
        owner = at.suite.owner
        outermost = owner is None or isinstance(owner.node, cst.FunctionDef)
        short = not outermost and at.suite.statements[-1].end <= last
        if at.alone and not at.is_elif and not at.suite.inline:
            yield at, _SHORT_OF_A_USE if short else place
            place += 0.0 if short else 0.2
        if owner is None or outermost:
            break
        at = owner
    first = at.suite.statements[0]
    if first is not at and first.alone and not first.suite.inline:
        yield first, place


@operator("undefined-drop", prior=0.8, effects={EditEffect.MENDS_NAME, EditEffect.DROPS_UNDEFINED})
def undefined_drop(ctx: OperatorContext) -> Iterator[Change]:
    """The statement, the argument or the element with an undefined name is dropped."""
    for failure in ctx.failing_with("NameError", "UnboundLocalError", "AttributeError", "TypeError"):
        name = undefined(failure)
        lines = ctx.lines_of(failure)
        for s in ctx.statements:
            if s.compound or not (s.line in lines or (name and f"{name}" in ctx.unit.slice(s.start, s.end).split())):
                continue
            if not (s.suite.inline and len(s.suite.statements) > 1):
                delta = 0.0 if name else -0.8
                yield ctx.splice(
                    s, removed(s), delta=delta + placed(ctx, failure, s.line, s.end_line) - 0.4, note="deleted"
                )
            if isinstance(s.node, cst.Expr) and isinstance(s.node.value, cst.Call):
                yield ctx.splice(s, (s.start, s.end, "pass"), delta=-1.0, note="pass")
        for change in _lost(ctx, name):
            bonus = placed(ctx, failure, change.line, change.end_line)
            yield change._replace(delta=change.delta + bonus, note=f"{name}: {change.note}")


def _lost(ctx: OperatorContext, name: str) -> Iterator[Change]:
    """Changes of calls and displays that lose an argument or an element which holds a name."""
    for drops in ("argument-drop", "element-drop") if name else ():
        for change in operators()[drops].propose(ctx):
            start, end, new = change.splices[0]
            if name in _WORDS.findall(ctx.unit.slice(start, end)) and name not in _WORDS.findall(new):
                yield change
