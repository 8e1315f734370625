"""Options, arguments and values that a function used and no longer uses; assignments turned round.

Limitations: whatever is read by its name as text (`locals()`, `getattr`) is not followed; such functions are not asked.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from localagent.code.spans import Function, functions
from localagent.repair.acceptance.changed_functions import FunctionPair, TouchedFile
from localagent.repair.acceptance.contradiction import Contradiction, ContradictionKind, ContradictionWeight, against
from localagent.repair.acceptance.effect import EffectKind

_BY_TEXT = frozenset({"locals", "vars", "eval", "exec"})
_FIELDS_BY_TEXT = _BY_TEXT | {"getattr", "attrgetter", "asdict", "astuple", "fields", "replace", "__dict__"}
_FIELDS_BY_TEXT |= {"NamedTuple", "namedtuple", "TypedDict", "BaseModel"}
_RECEIVERS = frozenset({"self", "cls"})


def lost_options(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """Parameters, attributes of `self` in a condition, and locals that were read before and are not any more."""
    was, now = _loads(pair.old), _loads(pair.new)
    if (was | now) & _BY_TEXT:
        return
    parameters = {a.arg for a in _parameters(pair.old)} & {a.arg for a in _parameters(pair.new)} - _RECEIVERS
    doc = ast.get_docstring(pair.new) or ""
    for name in sorted(parameters & was - now):
        documented = re.search(rf"(?m)(?::param[^:\n]* {re.escape(name)}:|^\s*\*{{0,2}}{re.escape(name)}\s*[:(])", doc)
        said = "the documented parameter" if documented else "the parameter"
        why = f"{said} `{name}` was used before and is not used any more"
        yield against(file, pair, ContradictionKind.OPTION_LOST, ContradictionWeight.HARD, why)
    for attribute in sorted(_tested_attributes(pair.old) - _attributes(pair.new)):
        why = f"`self.{attribute}` was asked about before and is not read in `{pair.new.name}` any more"
        yield against(file, pair, ContradictionKind.OPTION_LOST, ContradictionWeight.SOFT, why)
    for name in sorted((_stores(pair.old) & _stores(pair.new) & was) - now - parameters - _RECEIVERS):
        why = f"`{name}` is still computed and its value is not used any more"
        yield against(file, pair, ContradictionKind.VALUE_UNUSED, ContradictionWeight.HARD, why)


def lost_fields(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A field that the file still sets and reads nowhere any more, while what is read instead was read before too."""
    if (_identifiers(file.old) | _identifiers(file.new)) & _FIELDS_BY_TEXT:
        return
    was, now = _read_attributes(file.old), _read_attributes(file.new)
    if now - was:
        return
    lost = (was - now) & _read_attributes(pair.old) & _set_fields(file.new)
    for name in sorted(name for name in lost if not name.startswith("_")):
        why = f"`{name}` is still set, and nothing in the file reads it any more"
        yield against(file, pair, ContradictionKind.OPTION_LOST, ContradictionWeight.SOFT, why)


def _identifiers(tree: ast.AST) -> set[str]:
    return {
        n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Attribute)
    }


def _read_attributes(tree: ast.AST) -> set[str]:
    nodes = list(ast.walk(tree))
    read = {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    added = (n.target for n in nodes if isinstance(n, ast.AugAssign))
    return read | {t.attr for t in added if isinstance(t, ast.Attribute)}


def _set_fields(tree: ast.Module) -> set[str]:
    """Fields that the file's classes state, or their methods set on `self`."""
    classes = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    stated = (s.target for c in classes for s in c.body if isinstance(s, ast.AnnAssign))
    found = {t.id for t in stated if isinstance(t, ast.Name)}
    return found.union(*(_set_attributes(f.node) for f in functions(tree)))


def lost_targets(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """Names that a loop or comprehension goes through and whose values nothing reads any more."""
    was, now = _loads(pair.old), _loads(pair.new)
    if (was | now) & _BY_TEXT:
        return
    lost = (_targets(pair.old) & _targets(pair.new) & was) - now
    for name in sorted(name for name in lost if not name.startswith("_")):
        why = f"what `{name}` goes through is not used any more"
        yield against(file, pair, ContradictionKind.VALUE_UNUSED, ContradictionWeight.SOFT, why)


def left_unread(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A local that nothing read before the edit and nothing reads after it: it was computed to be used."""
    was, now = _loads(pair.old), _loads(pair.new)
    if (was | now) & _BY_TEXT:
        return
    own = (_stores(pair.old) & _stores(pair.new)) - {a.arg for a in _parameters(pair.new)}
    for name in sorted(own - was - now):
        why = f"`{name}` is computed and nothing reads it, before the edit and after it"
        yield against(file, pair, ContradictionKind.VALUE_UNUSED, ContradictionWeight.SOFT, why)


def stated_defaults(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """An argument that the edit adds is the number that a parameter has by default: the parameter is meant."""
    arguments = pair.new.args
    places = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(places[len(places) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *((a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None),
    ]
    defaults = {d.value: a.arg for a, d in pairs if isinstance(d, ast.Constant) and type(d.value) in (int, float)}
    had = Counter(ast.unparse(a) for a in _given(pair.old))
    for argument in _given(pair.new):
        name = defaults.get(argument.value) if type(argument.value) in (int, float) else None
        if name is not None and not had[ast.unparse(argument)]:
            why = f"`{ast.unparse(argument)}` is written where the parameter `{name}` may have another value"
            yield against(file, pair, ContradictionKind.OPTION_LOST, ContradictionWeight.SOFT, why)
            return


def _given(function: Function) -> Iterator[ast.Constant]:
    """The literals that stand as arguments of calls in a function's body."""
    for node in (n for s in function.body for n in ast.walk(s) if isinstance(n, ast.Call)):
        values = (*node.args, *(k.value for k in node.keywords))
        yield from (v for v in values if isinstance(v, ast.Constant))


def _targets(function: Function) -> set[str]:
    loops = [n for s in function.body for n in ast.walk(s) if isinstance(n, ast.For | ast.AsyncFor | ast.comprehension)]
    return {n.id for loop in loops for n in ast.walk(loop.target) if isinstance(n, ast.Name)}


_RESETS = re.compile(
    r"__init__|__enter__|__exit__|__del__|.*(?:reset|clear|init|start|stop|begin|close|flush|empt|drop)"
)
_PASSING = re.compile(r".*(?:cache|memo|buffer|pending|current|seen|temp|dirty)")


def emptied_attributes(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A collection in `self` that the edit empties in a method whose name says nothing of that."""
    if _RESETS.match(pair.new.name.lower()):
        return
    had = _emptied(pair.old) | _set_attributes(pair.old)
    for name in sorted(_emptied(pair.new) - had):
        if not _PASSING.match(name.lower()):
            why = f"the edit empties `self.{name}`, and nothing about `{pair.new.name}` speaks of that"
            yield against(file, pair, ContradictionKind.STATE_EMPTIED, ContradictionWeight.SOFT, why)


def _set_attributes(function: Function) -> set[str]:
    nodes = (n for s in function.body for n in ast.walk(s))
    return {
        n.attr
        for n in nodes
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and ast.unparse(n.value) == "self"
    }


def _emptied(function: Function) -> set[str]:
    """Attributes of `self` that are set to an empty collection."""
    found = set()
    for node in (n for s in function.body for n in ast.walk(s)):
        if isinstance(node, ast.Assign) and ast.unparse(node.value) in ("{}", "[]", "dict()", "list()", "set()"):
            found |= {t.attr for t in node.targets if isinstance(t, ast.Attribute) and ast.unparse(t.value) == "self"}
    return found


def _parameters(function: Function) -> Iterator[ast.arg]:
    args = function.args
    yield from (*args.posonlyargs, *args.args, *args.kwonlyargs)
    yield from (a for a in (args.vararg, args.kwarg) if a is not None)


def _loads(function: Function) -> set[str]:
    nodes = [n for s in function.body for n in ast.walk(s)]
    read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load | ast.Del)}
    return read | {n.target.id for n in nodes if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}


def _stores(function: Function) -> set[str]:
    """Names that plain assignments bind, none of which is of an outer scope."""
    nodes = [n for s in function.body for n in ast.walk(s)]
    outer = {name for n in nodes if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}
    assigned = {t.id for n in nodes if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    return {name for name in assigned if not name.startswith("_")} - outer


def _attributes(function: Function) -> set[str]:
    return {n.attr for s in function.body for n in ast.walk(s) if isinstance(n, ast.Attribute)}


def _tested_attributes(function: Function) -> set[str]:
    """Attributes of `self` that conditions of a function ask about."""
    tests = [n.test for s in function.body for n in ast.walk(s) if isinstance(n, ast.If | ast.IfExp | ast.While)]
    return {
        n.attr
        for test in tests
        for n in ast.walk(test)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"
    }


def reversed_assignments(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """`a = b` that becomes `b = a`."""
    for effect in pair.effects:
        if effect.kind is EffectKind.SWAPS_ASSIGNMENT:
            why = f"the assignment `{effect.old}` is turned round: its target is not set any more"
            yield against(file, pair, ContradictionKind.ASSIGNMENT_REVERSED, ContradictionWeight.HARD, why, effect.line)
