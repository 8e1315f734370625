"""Functions of a source before and after that are the same, whatever they are called now; what their names stand for.

A function that lost its name is looked for among the new ones by what it says, and one that answered a condition and
only answers a constant now by its place and the number of its parameters. Not seen: one that moved to another file.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar, cast

from localagent.code.bindings import FUNCTIONS
from localagent.code.condition_implication import Names
from localagent.code.names import last_name
from localagent.code.regions import walk
from localagent.code.spans import Function

Node = TypeVar("Node", bound=ast.AST)
_ALIKE = 0.4
_MOST_LOST = 60
_MOST_SETTLED = 200


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Every function by its qualified name, in order; a lambda that is given a name is one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            yield prefix + child.name, child
        elif isinstance(child, ast.Assign | ast.AnnAssign) and isinstance(child.value, ast.Lambda):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield prefix + target.id, _named(target.id, child.value)
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            yield from functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.stmt):
            yield from functions(child, prefix)


def _named(name: str, made: ast.Lambda) -> Function:
    answer = ast.copy_location(ast.Return(value=made.body), made)
    function = ast.FunctionDef(name=name, args=made.args, body=[answer], decorator_list=[], returns=None)
    return ast.copy_location(function, made)


def pairs(before: ast.AST, after: ast.AST) -> Iterator[tuple[str, Function, Function]]:
    """(name after, function before, function after) of every function that stands on both sides and differs."""
    old, new = dict(functions(before)), dict(functions(after))
    for name, function in new.items():
        if name in old and ast.dump(old[name]) != ast.dump(function):
            yield name, old[name], _called_alike(old[name], function)
    lost = [name for name in old if name not in new][:_MOST_LOST]
    come = {name: _mentioned_names(function) for name, function in new.items() if name not in old} if lost else {}
    for name in lost:
        words = _mentioned_names(old[name])
        best = max(come, key=lambda n: (_alike(words, come[n]), n), default="")
        if not best or _alike(words, come[best]) < _ALIKE:
            best = next((n for n in come if _is_emptied(old[name], new[n]) and _owner(n) == _owner(name)), "")
        if best:
            come.pop(best)
            yield best, old[name], _called_alike(old[name], new[best])


def _is_emptied(old: Function, new: Function) -> bool:
    """Whether a function that answered a condition may be one that only answers a constant now."""
    answers = [n.value for n in walk(old) if isinstance(n, ast.Return)]
    last = new.body[-1]
    only = all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in new.body[:-1])
    return (
        only
        and isinstance(last, ast.Return)
        and isinstance(last.value, ast.Constant)
        and any(isinstance(a, ast.Compare | ast.BoolOp) for a in answers)
        and len(old.args.args) == len(new.args.args)
    )


def _owner(name: str) -> str:
    return name.rpartition(".")[0]


def _called_alike(old: Function, new: Function) -> Function:
    """The new function with its parameters called as they were, where only their names differ."""
    had, now = ([a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)] for f in (old, new))
    used = {n.id for n in walk(new) if isinstance(n, ast.Name)} | set(now)
    names = {b: a for a, b in zip(had, now, strict=False) if a != b and a not in used and b not in had}
    if not names or len(had) != len(now):
        return new
    made = copied(new)
    for node in walk(made):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = names.get(node.arg, node.arg)
    return made


Words = tuple[frozenset[str], frozenset[str]]


def _mentioned_names(function: Function) -> Words:
    """What a function mentions, without the names that it gives itself, and the names of its parameters."""
    nodes = walk(function)
    parameters = {n.arg for n in nodes if isinstance(n, ast.arg)}
    own = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)} | parameters
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and node.id not in own:
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(f".{node.attr}")
        elif isinstance(node, ast.Constant):
            found.add(repr(node.value)[:40])
    return frozenset(found), frozenset(f"({name}" for name in parameters)


def _alike(one: Words, other: Words) -> float:
    """The share of what two functions mention that both do, with their parameters where these make them more alike."""
    return max(_share(one[0], other[0]), _share(one[0] | one[1], other[0] | other[1]))


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def copied(tree: Node) -> Node:
    """A tree of its own; contexts and operators are shared. Takes no stack, as `copy.deepcopy` would."""
    made: dict[int, ast.AST] = {}
    for node in reversed(walk(tree)):
        new = made[id(node)] = type(node)()
        for name in (*node._fields, *node._attributes):
            value: Any = getattr(node, name, None)
            if type(value) is list:
                value = [made.get(id(item), item) for item in value]
            setattr(new, name, made.get(id(value), value))
    return cast("Node", made[id(tree)])


def settled(function: ast.AST) -> Names:
    """The names that a function sets once, each with what it is set to; parameters and loops set theirs otherwise."""
    values: dict[str, ast.expr] = {}
    bound: Counter[str] = Counter()
    for node in walk(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound[node.id] += 1
        elif isinstance(node, ast.arg):
            bound[node.arg] += 2
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name) and node.value:
            values[node.target.id] = node.value
    if len(values) > _MOST_SETTLED:
        return {}
    return {name: value for name, value in values.items() if bound[name] == 1}


def names_of_calls(tree: ast.AST) -> dict[int, Names]:
    """What names stand for where each call of a source stands, by the call's id."""
    scopes: list[tuple[ast.AST, Names]] = [(tree, settled(tree))]
    scopes += [(function, settled(function)) for _, function in functions(tree)]
    found: dict[int, Names] = {}
    for scope, known in scopes:  # an inner function comes after the one around it
        if known:
            found.update((id(node), known) for node in walk(scope) if isinstance(node, ast.Call))
    return found


def called_name(node: ast.expr, names: Names) -> str:
    """The last part of what is called, by way of the names that stand for it."""
    return last_name(called(node, names))


def called(node: ast.expr, names: Names) -> ast.expr:
    """What is called, by way of the names that stand for it: with `say = log.info`, `say(x)` calls `log.info`."""
    for _ in range(5):
        if isinstance(node, ast.Call) and last_name(node.func) in ("partial", "partialmethod") and node.args:
            node = node.args[0]
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Name) and isinstance(names.get(node.id), ast.Name | ast.Attribute | ast.Call):
            value = names[node.id]
            if isinstance(value, ast.Call) and last_name(value.func) not in ("partial", "partialmethod"):
                break
            names = {k: v for k, v in names.items() if k != node.id}
            node = value
        else:
            break
    return node
