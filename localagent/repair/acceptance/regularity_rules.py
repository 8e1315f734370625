"""What is regular in the code and no longer after an edit: what treats two things alike, a sum over a loop, a fold.

Also two idioms that are right for special values alone: rounding up by adding one, and `get` for what may hold None.

Limitations: forms are compared as Python would write them; each rule knows one form of its idiom.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from localagent.code.spans import Function, all_blocks
from localagent.repair.acceptance.changed_functions import FunctionPair, TouchedFile
from localagent.repair.acceptance.contradiction import Contradiction, ContradictionKind, ContradictionWeight, against
from localagent.repair.acceptance.documentation_rules import own_nodes
from localagent.repair.acceptance.expression_diff import is_constant

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_TURNED = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_EITHER_WAY = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)


def lost_symmetry(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A condition that said the same of two things in both directions, of which the edit changes one."""
    new = Counter(map(ast.unparse, _conditions(pair.new)))
    gone = [c for c in _conditions(pair.old) if not new[ast.unparse(c)]]
    old = Counter(map(ast.unparse, _conditions(pair.old)))
    come = [c for c in _conditions(pair.new) if not old[ast.unparse(c)]]
    for was in gone:
        names = _treated_alike(was)
        kept = [c for c in come if _parts(c) & _parts(was) and len(c.values) == len(was.values)]
        for now in kept if names is not None else ():
            if names is not None and not _alike(now, *names):
                why = f"`{ast.unparse(was)}` treats `{names[0]}` and `{names[1]}` alike, and as edited it does not"
                yield against(file, pair, ContradictionKind.SYMMETRY_LOST, ContradictionWeight.SOFT, why)
                return


def _conditions(function: Function) -> list[ast.BoolOp]:
    return [n for n in own_nodes(function) if isinstance(n, ast.BoolOp)]


def _treated_alike(condition: ast.BoolOp) -> tuple[str, str] | None:
    """Two names that can change places in a condition; None where there are none."""
    names = sorted({n.id for n in ast.walk(condition) if isinstance(n, ast.Name)})
    return next((two for two in combinations(names[:6], 2) if _alike(condition, *two)), None)


def _alike(condition: ast.BoolOp, one: str, other: str) -> bool:
    """Whether parts of it become one another, and all of it itself, where two names change places."""
    plain = [_form(value, {}) for value in condition.values]
    swapped = [_form(value, {one: other, other: one}) for value in condition.values]
    return plain != swapped and set(plain) == set(swapped)


def _parts(condition: ast.BoolOp) -> set[str]:
    return {_form(value, {}) for value in condition.values}


def _form(node: ast.expr, names: dict[str, str]) -> str:
    """A part of a condition with names replaced, a comparison written in one direction."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right, kind = _form(node.left, names), _form(node.comparators[0], names), type(node.ops[0])
        if kind in _TURNED or (kind in _EITHER_WAY and left > right):
            left, right, kind = right, left, _TURNED.get(kind, kind)
        return f"{left} {kind.__name__} {right}"
    renamed = _Renamed(names).visit(ast.parse(ast.unparse(node), mode="eval"))
    return ast.unparse(renamed)


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(id=self._names.get(node.id, node.id), ctx=node.ctx)


def lost_accumulation(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """What a loop added up is set anew in each round: all but the last are lost."""
    sums = [n for _, n in _in_loops(pair.old) if isinstance(n, ast.AugAssign)]
    summed = {(ast.unparse(n.target), ast.unparse(n.value)) for n in sums}
    for loop, node in _in_loops(pair.new):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Name):
            continue
        if (target.id, ast.unparse(node.value)) not in summed:
            continue
        reads = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        if target.id not in {n.id for n in reads}:
            why = f"each round of the loop sets `{target.id}` anew, so that only the last one counts"
            yield against(file, pair, ContradictionKind.VALUE_UNUSED, ContradictionWeight.HARD, why)


def _in_loops(function: Function) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """Statements that every round of a loop comes to, with the loop."""
    for loop in own_nodes(function):
        if isinstance(loop, _LOOPS):
            yield from ((loop, node) for node in loop.body)


def rounded_by_one(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """`(n + 1) // size`: one more rounds up by two alone, and the size is a value of its own."""
    had = {ast.unparse(n) for n in own_nodes(pair.old) if isinstance(n, ast.BinOp)}
    for node in own_nodes(pair.new):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv) or is_constant(node.right):
            continue
        top = node.left
        plain = isinstance(top, ast.BinOp) and isinstance(top.op, ast.Add) and isinstance(top.right, ast.Constant)
        if plain and isinstance(top, ast.BinOp) and ast.unparse(node) not in had:
            was = ast.BinOp(left=top.left, op=node.op, right=node.right)
            if ast.unparse(was) in had:
                why = f"`{ast.unparse(node)}` adds a fixed number where `{ast.unparse(node.right)}` may be any"
                yield against(file, pair, ContradictionKind.ROUNDING, ContradictionWeight.SOFT, why)


def presence_by_get(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """`box.get(key) is not None` where elsewhere `key in box` is asked: a key may hold None."""
    had = {ast.unparse(n) for n in own_nodes(pair.old) if isinstance(n, ast.Compare)}
    asked = {
        (ast.unparse(n.left), ast.unparse(n.comparators[0]))
        for n in ast.walk(file.old)
        if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.In | ast.NotIn)
    }
    for node in own_nodes(pair.new):
        match node:
            case ast.Compare(
                left=ast.Call(func=ast.Attribute(attr="get", value=box), args=[wanted], keywords=[]),
                ops=[ast.Is() | ast.IsNot()],
                comparators=[ast.Constant(value=None)],
            ) if ast.unparse(node) not in had and (ast.unparse(wanted), ast.unparse(box)) in asked:
                form = f"{ast.unparse(wanted)} in {ast.unparse(box)}"
                why = f"elsewhere the file asks `{form}`, which is otherwise where the value is None"
                yield against(file, pair, ContradictionKind.SIBLINGS, ContradictionWeight.SOFT, why)


_RELATIONS = re.compile(
    r"(?:^|_)(?:overlap|intersect|collid|conflict|disjoint|adjacent|touch|coprime|equal|same|similar|alike|clash|meet)"
)


def one_sided_relation(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A relation without a direction by its name, `overlap(a, b)`, whose new answer depends on which comes first."""
    arguments = pair.new.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    body = [s for s in pair.new.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(names) != 2 or not _RELATIONS.search(pair.new.name.lower()) or len(body) != 1:
        return
    (answer,) = body
    if not isinstance(answer, ast.Return) or answer.value is None:
        return
    one, other = names
    if not _sides(answer.value, one) & _sides(answer.value, other):  # no two of a kind: `self.name == name`
        return
    plain, turned = (_relation(answer.value, names, change) for change in ({}, {one: other, other: one}))
    if plain is not None and plain != turned:
        why = f"`{pair.new.name}` names no direction, and `{ast.unparse(answer.value)}` depends on which of "
        why += f"`{one}` and `{other}` comes first"
        yield against(file, pair, ContradictionKind.SYMMETRY_LOST, ContradictionWeight.SOFT, why)


def _sides(answer: ast.expr, name: str) -> set[str]:
    """The sides of comparisons that speak of a name, with a blank for it."""
    sides = [s for n in ast.walk(answer) if isinstance(n, ast.Compare) for s in (n.left, *n.comparators)]
    return {form for s in sides if (form := _form(s, {name: "_"})) != _form(s, {})}


_Form = str | tuple[str, frozenset["_Form"]]


def _relation(node: ast.expr, of: Sequence[str], names: dict[str, str]) -> _Form | None:
    """The form of comparisons with names replaced; None where one side speaks of both, which may be told anyhow."""
    match node:
        case ast.BoolOp():
            parts = [_relation(value, of, names) for value in node.values]
            return None if None in parts else (type(node.op).__name__, frozenset(p for p in parts if p is not None))
        case ast.UnaryOp(op=ast.Not()):
            inner = _relation(node.operand, of, names)
            return None if inner is None else ("Not", frozenset({inner}))
        case ast.Compare():
            sides = [node.left, *node.comparators]
            if any(len({n.id for n in ast.walk(s) if isinstance(n, ast.Name)} & set(of)) != 1 for s in sides):
                return None
            steps = zip(sides, node.ops, sides[1:], strict=False)
            forms = [_form(ast.Compare(left=a, ops=[op], comparators=[b]), names) for a, op, b in steps]
            return forms[0] if len(forms) == 1 else ("And", frozenset(forms))
        case _:
            return None


_FEWEST_ALIKE = 3


def unlike_its_neighbours(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """One of several comparisons of one value with constants, all alike, that the edit turns into another kind."""
    was, now = _with_constants(pair.old), _with_constants(pair.new)
    made = [n for subject, nodes in now.items() if subject not in was for n in nodes]
    for subject, old in was.items():
        new = now.get(subject, [])
        if len(old) < _FEWEST_ALIKE or len({type(n.ops[0]) for n in old}) != 1:
            continue
        bounds = Counter(map(_bound, old))
        changed = [n for n in new if type(n.ops[0]) is not type(old[0].ops[0])]
        changed += [n for n in made if subject in ast.unparse(n.left)]  # `n + 1 > 9`
        stays = [n for n in new if n not in changed]
        if len(changed) == 1 and Counter(map(_bound, (*stays, *changed))) == bounds:
            why = (
                f"`{ast.unparse(changed[0])}` is no longer like `{ast.unparse(stays[0])}` and the others of `{subject}`"
            )
            yield against(file, pair, ContradictionKind.SYMMETRY_LOST, ContradictionWeight.SOFT, why)


def _with_constants(function: Function) -> dict[str, list[ast.Compare]]:
    """The comparisons of one value with one number, by the value, in the order of the text."""
    found: dict[str, list[ast.Compare]] = {}
    for node in own_nodes(function):
        if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], _ORDERS):
            continue
        if is_constant(node.comparators[0]) and not is_constant(node.left):
            found.setdefault(ast.unparse(node.left), []).append(node)
    return {subject: sorted(nodes, key=lambda n: (n.lineno, n.col_offset)) for subject, nodes in found.items()}


def _bound(node: ast.Compare) -> str:
    return ast.unparse(node.comparators[0])


def guarded_alone(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """One of two branches of one form, for other names, whose condition asks for more while the other's does not."""
    had = {ast.unparse(n.test) for n in own_nodes(pair.old) if isinstance(n, ast.If)}
    holders = (pair.new, *own_nodes(pair.new))
    for block in (block for holder in holders for block in all_blocks(holder)):
        branches = [node for node in block if isinstance(node, ast.If)]
        kept = [node for node in branches if ast.unparse(node.test) in had]
        for node, (plain, guard) in ((n, split) for n in branches for split in _without_a_guard(n.test)):
            twin = next((k for k in kept if k is not node and _shape(k.test, k.body) == _shape(plain, node.body)), None)
            if twin is None or ast.unparse(plain) not in had or ast.unparse(node.test) in had:
                continue
            if _names_in(guard) & (_names_in(node) - _names_in(twin)):
                why = f"`if {ast.unparse(node.test)}` asks for more now, and `if {ast.unparse(twin.test)}` beside it, "
                why += "which does the same to another name, does not"
                yield against(file, pair, ContradictionKind.SIBLINGS, ContradictionWeight.SOFT, why)
                return


def _without_a_guard(test: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is left of an `and` without one of its operands, with that operand."""
    values = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else []
    for operand in values:
        left = [value for value in values if value is not operand]
        yield (left[0] if len(left) == 1 else ast.BoolOp(op=ast.And(), values=left)), operand


def _shape(test: ast.expr, body: Sequence[ast.stmt]) -> str:
    """A branch with its names numbered in the order in which they come."""
    branch = ast.parse(ast.unparse(ast.If(test=test, body=list(body), orelse=[])))
    numbers: dict[str, str] = {}
    for node in ast.walk(branch):
        if isinstance(node, ast.Name):
            node.id = numbers.setdefault(node.id, str(len(numbers)))
    return ast.dump(branch)


def _names_in(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


_FOLDS = frozenset({"lower", "upper", "casefold"})
_LOOKS_UP = frozenset(
    {"get", "pop", "setdefault", "index", "count", "add", "discard", "remove", "startswith", "endswith"}
)


def folded_beyond_keys(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """Case is folded to look something up elsewhere in the file, and here in what is answered or passed on as well."""
    had = {ast.unparse(c) for c in _folds(pair.old)}
    for call in _folds(pair.new):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        before = [c for c in _folds(file.old) if isinstance(c.func, ast.Attribute) and c.func.attr == name]
        keys = _keys(file.old)
        if ast.unparse(call) in had or not before or not all(c in keys for c in before):
            continue
        statement = next(
            (s for s in own_nodes(pair.new) if isinstance(s, ast.Assign) and call in set(ast.walk(s))), None
        )
        if statement is None or call in _keys(pair.new):
            continue
        bound = {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        out = sorted(bound & _passed_on(pair.new))
        if out:
            why = f"`{ast.unparse(call)}` folds the case of `{out[0]}` too; elsewhere the file does so only to look up"
            yield against(file, pair, ContradictionKind.SIBLINGS, ContradictionWeight.SOFT, why)
            return


def _folds(tree: ast.AST) -> list[ast.Call]:
    calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and not n.args)
    return [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in _FOLDS]


def _keys(tree: ast.AST) -> set[ast.AST]:
    """What stands in brackets, in a comparison, or is given to a method that looks up."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(slice=key):
                found.add(key)
            case ast.Compare():
                found |= {node.left, *node.comparators}
            case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if name in _LOOKS_UP:
                found.add(first)
            case ast.Dict():
                found |= {k for k in node.keys if k is not None}
            case _:
                pass
    return found


def _passed_on(function: Function) -> set[str]:
    """Names that are returned, yielded, shown in a text or given to a call, not only as a key."""
    keys, found = _keys(function), set[str]()
    for node in own_nodes(function):
        parts: list[ast.expr] = []
        match node:
            case ast.Call():
                parts = [*node.args, *(k.value for k in node.keywords)]
            case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
                parts = [value]
            case ast.FormattedValue(value=value):
                parts = [value]
            case _:
                pass
        plain = (p.value if isinstance(p, ast.Starred) else p for p in parts if p not in keys)
        found |= {p.id for p in plain if isinstance(p, ast.Name)}
    return found
