"""Code that no longer runs, loops that end at once, conditions and answers that no longer depend on anything.

Each counts only what the edit brings in.

Limitations: reachability is read off the syntax; calls that never return, and values that need running, are not seen.
"""

import ast
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from localagent.code.spans import Definition, Function, blocks
from localagent.repair.acceptance.changed_functions import FunctionPair, TouchedFile
from localagent.repair.acceptance.contradiction import Contradiction, ContradictionKind, ContradictionWeight, against
from localagent.repair.acceptance.documentation_rules import own_nodes
from localagent.repair.acceptance.effect import EffectKind
from localagent.repair.acceptance.expression_diff import is_constant, key
from localagent.text.visible_text import shortened

# Whether a function can come to its end without a `return`, read off the syntax.
#
# Limitations: a condition may be either; calls that never return and context managers that swallow exceptions are not
# seen. What is not certain counts as an end that can be reached.

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_CONTROL_FLOW_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def completes(block: Sequence[ast.stmt]) -> bool:
    """Whether what comes after the block can run."""
    return all(_completes(statement) for statement in block)


def _completes(node: ast.stmt) -> bool:
    match node:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return False
        case ast.If():
            return completes(node.body) or completes(node.orelse)
        case ast.While(test=ast.Constant(value=value)) if value:
            return any(isinstance(n, ast.Break) for n in _of_loop(node.body))
        case ast.With() | ast.AsyncWith():
            return completes(node.body)
        case ast.Try() | ast.TryStar():
            ways = [completes([*node.body, *node.orelse]), *(completes(h.body) for h in node.handlers)]
            return any(ways) and completes(node.finalbody)
        case ast.Match():
            rest = any(
                isinstance(c.pattern, ast.MatchAs) and c.pattern.pattern is None and not c.guard for c in node.cases
            )
            return not rest or any(completes(case.body) for case in node.cases)
        case _:
            return True


def _of_loop(block: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes whose `break` ends this loop."""
    for node in block:
        yield node
        if isinstance(node, _CONTROL_FLOW_LOOPS):
            yield from _of_loop(node.orelse)
        elif not isinstance(node, _SCOPES):
            yield from _of_loop(list(ast.iter_child_nodes(node)))


_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_NAMED = (ast.Name, ast.Attribute)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Fault:
    """One place of a function; `same` tells whether the function before had it too. `calls`: something may be done."""

    same: str
    why: str
    calls: bool = False


def unreachable(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """Statements and branches that the edit cuts off."""
    for find in (_after_a_leave, _repeated_conditions, _decided_locals):
        had = Counter(f.same for f in find(pair.old))
        for fault in find(pair.new):
            if had[fault.same] <= 0:
                yield against(file, pair, ContradictionKind.UNREACHABLE, ContradictionWeight.HARD, fault.why)
            had[fault.same] -= 1


def _blocks(function: Function) -> Iterator[list[ast.stmt]]:
    for node in (function, *own_nodes(function)):
        if node is function or not isinstance(node, Definition):
            yield from blocks(node)


def overwritten(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A value that is replaced before anything reads it, which the edit brings about: a branch that decides nothing."""
    had = Counter(f.same for f in _overwritten(pair.old))
    for fault in _overwritten(pair.new):
        if had[fault.same] <= 0:
            severity = ContradictionWeight.SOFT if fault.calls else ContradictionWeight.HARD
            yield against(file, pair, ContradictionKind.VALUE_UNUSED, severity, fault.why)
        had[fault.same] -= 1


def _overwritten(function: Function) -> Iterator[_Fault]:
    for block in _blocks(function):
        for one, other in pairwise(block):
            names = _only_sets(one)
            if not names or not names <= _only_sets(other) or isinstance(other, ast.If):
                continue
            read = {n.id for n in ast.walk(other) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            if not names & read:
                why = f"what `{_line(one)}` gives `{min(names)}` is replaced before anything reads it"
                yield _Fault(same=key(one), why=why, calls=any(isinstance(n, _ACTS) for n in ast.walk(one)))


_ACTS = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom)  # what may be wanted for more than its value


def _only_sets(node: ast.stmt) -> set[str]:
    """The names that a statement gives a value, where it does nothing else; an `if` where each of its ways does so."""
    if isinstance(node, ast.If):
        return set().union(*sets) if all(sets := [_only_sets(s) for s in (*node.body, *node.orelse)]) else set()
    if isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets):
        return {t.id for t in node.targets if isinstance(t, ast.Name)}
    return set()


def unguarded(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """`x or f(x[0])`: what needs a value is asked only where there is none; before, that was not so."""
    had = Counter(f.same for f in _unguarded(pair.old))
    for fault in _unguarded(pair.new):
        if had[fault.same] <= 0:
            yield against(file, pair, ContradictionKind.BRANCH_NEGATED, ContradictionWeight.HARD, fault.why)
        had[fault.same] -= 1


_NEED_ONE = frozenset({"min", "max"})


def _unguarded(function: Function) -> Iterator[_Fault]:
    for node in own_nodes(function):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            for at, part in enumerate(node.values[:-1]):
                empty = _emptiness_test_name(part)
                if empty and (using := next((v for v in node.values[at + 1 :] if _needs(v, empty)), None)) is not None:
                    why = f"`{_line(using)}` is asked only where `{empty}` is nothing"
                    yield _Fault(same=key(node), why=why)
                    break


def _emptiness_test_name(test: ast.expr) -> str:
    """The name that a test `x` or `x is not None` is about."""
    match test:
        case ast.Name(id=name):
            return name
        case ast.Compare(
            left=ast.Name() | ast.Attribute() as left, ops=[ast.IsNot()], comparators=[ast.Constant(None)]
        ):
            return ast.unparse(left)
    return ""


def _needs(node: ast.expr, name: str) -> bool:
    """Whether an expression takes an element or attribute of a name, or the least or greatest of it."""
    for n in ast.walk(node):
        match n:
            case ast.Subscript(value=value, slice=index) if not isinstance(index, ast.Slice):
                held = value
            case ast.Attribute(value=value):
                held = value
            case ast.Call(func=ast.Name(id=function), args=[only], keywords=[]) if function in _NEED_ONE:
                held = only
            case _:
                continue
        if ast.unparse(held) == name:
            return True
    return False


_UPWARD, _DOWNWARD = (ast.Gt, ast.GtE), (ast.Lt, ast.LtE)


def shadowed_steps(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A step of `if x >= 10: return …`, `if x >= 50: return …` that an earlier one leaves nothing of, edit or not."""
    for chain in _chains(pair.new):
        seen: list[_Bound] = []
        for test in chain:
            bound = _bound_of(test)
            if bound is None:
                continue
            if any(bound.within(earlier) for earlier in seen):
                why = f"the branch `{_line(test)}` can never run: an earlier one takes all of it"
                yield against(file, pair, ContradictionKind.UNREACHABLE, ContradictionWeight.SOFT, why)
                return
            seen.append(bound)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Bound:
    """`name >= least`, or `name <= least` where it is `down`; `strict` without the bound itself."""

    name: str
    down: bool
    least: float
    strict: bool

    def within(self, other: "_Bound") -> bool:
        """Whether whatever meets this meets the other one."""
        if (self.name, self.down) != (other.name, other.down):
            return False
        mine, its = (-self.least, -other.least) if self.down else (self.least, other.least)
        return mine > its or (mine == its and (self.strict or not other.strict))


def _bound_of(test: ast.expr) -> _Bound | None:
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=int() | float() as least)]):
            if isinstance(op, (*_UPWARD, *_DOWNWARD)) and not math.isnan(least):
                strict = isinstance(op, ast.Gt | ast.Lt)
                return _Bound(name=name, down=isinstance(op, _DOWNWARD), least=least, strict=strict)
    return None


def _chains(function: Function) -> Iterator[list[ast.expr]]:
    """Tests that are asked one after another, each only where those before it said no."""
    inner = {id(n.orelse[0]) for n in own_nodes(function) if isinstance(n, ast.If) and len(n.orelse) == 1}
    for block in _blocks(function):
        chain: list[ast.expr] = []
        for node in block:
            if not isinstance(node, ast.If) or (id(node) in inner and node is block[0] and len(block) == 1):
                chain = []
                continue
            tests = [node.test]
            at, leaves = node, not completes(node.body)
            while len(at.orelse) == 1 and isinstance(at.orelse[0], ast.If):
                at = at.orelse[0]
                tests.append(at.test)
                leaves = leaves and not completes(at.body)
            yield [*chain, *tests]
            chain = [*chain, *tests] if leaves and not at.orelse else []


def _after_a_leave(function: Function) -> Iterator[_Fault]:
    for block in _blocks(function):
        for one, other in pairwise(block):
            if isinstance(one, _LEAVES) and not _only_yields(other):
                word = type(one).__name__.lower()
                yield _Fault(same=key(other), why=f"`{_line(other)}` can no longer run: it stands after a `{word}`")
                break


def _only_yields(node: ast.stmt) -> bool:
    """`yield` after `return` makes a generator of a function, on purpose."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield)


def _line(node: ast.AST) -> str:
    return shortened(ast.unparse(node).split("\n", 1)[0], 80)


def _repeated_conditions(function: Function) -> Iterator[_Fault]:
    """An `elif` that asks what an earlier branch of the chain asked."""
    inner = {id(n.orelse[0]) for n in own_nodes(function) if isinstance(n, ast.If) and len(n.orelse) == 1}
    for node in own_nodes(function):
        if not isinstance(node, ast.If) or id(node) in inner:
            continue
        seen: set[str] = set()
        at: ast.stmt | None = node
        while isinstance(at, ast.If):
            asked = key(at.test)
            if asked in seen and not any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(at.test)):
                yield _Fault(
                    same=asked, why=f"the branch `{_line(at.test)}` can no longer run: it is asked for earlier"
                )
            seen.add(asked)
            at = at.orelse[0] if len(at.orelse) == 1 else None


def _decided_locals(function: Function) -> Iterator[_Fault]:
    """Tests on a local that only ever holds constants which all answer the same."""
    held = _constant_locals(function)
    for node in own_nodes(function):
        if isinstance(node, ast.If | ast.IfExp):
            answers = {_answer(node.test, value) for value in held.get(_tested_local(node.test), ())}
            if len(answers) == 1 and None not in answers:
                says = "true" if True in answers else "false"
                why = (
                    f"`{_line(node.test)}` is now always {says}: `{_tested_local(node.test)}` never holds anything else"
                )
                yield _Fault(same=key(node.test) + says, why=why)


def _constant_locals(function: Function) -> dict[str, list[object]]:
    """The values of locals that are bound by plain assignments of constants only."""
    bound: dict[str, list[object]] = {}
    plain: set[int] = set()
    shared = {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
    for node in ast.walk(function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            shared |= set(node.names)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    bound.setdefault(target.id, []).append(node.value.value)
                    plain.add(id(target))
    stores = (n for n in ast.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    other = {n.id for n in stores if id(n) not in plain}
    other |= {h.name for h in ast.walk(function) if isinstance(h, ast.ExceptHandler) and h.name}
    return {name: values for name, values in bound.items() if name not in other | shared}


def _tested_local(test: ast.expr) -> str:
    """The one local that a simple test is about."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _tested_local(test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.comparators[0], ast.Constant):
        return test.left.id if isinstance(test.left, ast.Name) else ""
    return test.id if isinstance(test, ast.Name) else ""


def _answer(test: ast.expr, value: object) -> bool | None:
    if isinstance(test, ast.UnaryOp):
        inner = _answer(test.operand, value)
        return None if inner is None else not inner
    if isinstance(test, ast.Name):
        return bool(value)
    if not isinstance(test, ast.Compare) or not isinstance(test.comparators[0], ast.Constant):
        return None
    other, op = test.comparators[0].value, test.ops[0]
    if isinstance(op, ast.Is | ast.IsNot) and (other is None or isinstance(other, bool)):
        return (value is other) == isinstance(op, ast.Is)
    if isinstance(op, ast.Eq | ast.NotEq):
        return (value == other) == isinstance(op, ast.Eq)
    return None


def loops(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """Loops that now end on their first pass, and statements that left a loop's body."""
    had = Counter(_loop_head(n) for n in own_nodes(pair.old) if isinstance(n, _LOOPS) and _ends_at_once(n))
    for loop in own_nodes(pair.new):
        if isinstance(loop, _LOOPS) and _ends_at_once(loop):
            if had[_loop_head(loop)] <= 0 and _loop_head(loop) in {
                _loop_head(n) for n in own_nodes(pair.old) if isinstance(n, _LOOPS)
            }:
                why = f"the loop `{_line(loop)}` now ends on its first pass"
                yield against(file, pair, ContradictionKind.LOOP_ENDS_EARLY, ContradictionWeight.HARD, why)
            had[_loop_head(loop)] -= 1
    yield from _left_loops(file, pair)


def _loop_head(loop: ast.AST) -> str:
    if isinstance(loop, ast.While):
        return key(loop.test)
    return key(loop.iter) if isinstance(loop, ast.For | ast.AsyncFor) else ""


def _ends_at_once(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    if not isinstance(loop.body[-1], ast.Return | ast.Break | ast.Raise):
        return False
    return not any(isinstance(n, ast.Continue) for s in loop.body for n in ast.walk(s))


def _left_loops(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A statement of a loop's body that now stands after the loop, and uses what the loop binds."""
    left = {e.line for e in pair.effects if e.kind is EffectKind.CHANGES_INDENT}
    if not left:
        return
    before, after = _loops_by_head(pair.old), _loops_by_head(pair.new)
    for head in (h for h in before if h in after):
        (loop, *others), (now, *twins) = before[head], after[head]
        if others or twins or not isinstance(loop, ast.For | ast.AsyncFor):
            continue
        inside = {key(n) for n in ast.walk(now) if isinstance(n, ast.stmt)}
        elsewhere = {key(n) for n in own_nodes(pair.new) if isinstance(n, ast.stmt)} - inside
        bound = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        for statement in loop.body:
            uses = bound & {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
            gone = statement.lineno in left and key(statement) not in inside
            if gone and key(statement) in elsewhere and uses:
                why = (
                    f"`{_line(statement)}` left the loop over `{_line(loop.iter)}`: it now runs for the last "
                    f"`{min(uses)}` only"
                )
                yield against(file, pair, ContradictionKind.LOOP_BODY_LEFT, ContradictionWeight.HARD, why)


def _loops_by_head(function: Function) -> dict[str, list[ast.stmt]]:
    found: dict[str, list[ast.stmt]] = {}
    for node in own_nodes(function):
        if isinstance(node, _LOOPS):
            found.setdefault(_loop_head(node), []).append(node)
    return found


def constant_answers(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """Functions that computed and now always answer the same; conditions that became constants."""
    old, new = _returns(pair.old), _returns(pair.new)
    if new and len({key(v) for v in new}) == 1 and is_constant(new[0]) and not _yields(pair.new):
        computed = any(not is_constant(v) for v in old) or len({key(v) for v in old}) > 1
        if computed and not (isinstance(new[0], ast.Constant) and new[0].value is None):
            always = shortened(ast.unparse(new[0]), 60)
            why = f"`{pair.new.name}` computed its answer before and now always returns {always}"
            yield against(file, pair, ContradictionKind.CONSTANT_ANSWER, ContradictionWeight.HARD, why)
    for effect in pair.effects:
        if effect.in_condition and effect.kind is EffectKind.CONSTANT_FOR_EXPRESSION and effect.whole:
            why = f"the condition `{effect.old}` becomes the constant {effect.new}"
            yield against(file, pair, ContradictionKind.CONSTANT_CONDITION, ContradictionWeight.HARD, why, effect.line)
    yield from _independent(file, pair)


def equal_branches(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """An `if` whose `else` now does the same: which way is taken no longer matters."""
    was = [_keys(node.body) for node in _with_equal_branches(pair.old)]
    for node in _with_equal_branches(pair.new):
        if _keys(node.body) not in was:
            why = f"both branches of `{_line(node.test)}` now do the same"
            yield against(file, pair, ContradictionKind.CONSTANT_CONDITION, ContradictionWeight.HARD, why)
            return


def _with_equal_branches(function: Function) -> Iterator[ast.If | ast.IfExp]:
    for node in own_nodes(function):
        if isinstance(node, ast.If | ast.IfExp) and _keys(node.body) == _keys(node.orelse):
            yield node


def _keys(branch: ast.expr | Sequence[ast.stmt]) -> list[str]:
    return [key(node) for node in ([branch] if isinstance(branch, ast.expr) else branch)]


def ends_without_answer(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A function that always returned a value, or raised, and can now come to its end without a `return`."""
    values = [n.value for n in own_nodes(pair.old) if isinstance(n, ast.Return)]
    if not values or None in values or _yields(pair.old) or completes(pair.old.body) or not completes(pair.new.body):
        return
    why = f"`{pair.new.name}` always returned a value before, and can now end without one"
    yield against(file, pair, ContradictionKind.NO_ANSWER, ContradictionWeight.SOFT, why)


def _returns(function: Function) -> list[ast.expr]:
    found = [n.value for n in own_nodes(function) if isinstance(n, ast.Return)]
    return [v if v is not None else ast.Constant(value=None) for v in found]


def _yields(function: Function) -> bool:
    return any(isinstance(n, ast.Yield | ast.YieldFrom) for n in own_nodes(function))


def _independent(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """Conditions that depended on a parameter and depend on none any more."""
    for effect in pair.effects:
        if not effect.in_condition or not effect.whole or effect.kind is EffectKind.CONSTANT_FOR_EXPRESSION:
            continue
        was, now = _names_in(effect.old), _names_in(effect.new)
        if not was or not now:
            continue
        depending, still = _depending(pair.old), _depending(pair.new)
        if was & depending and not now & still and not _calls(effect.new):
            why = f"the condition `{effect.new}` no longer depends on any argument, `{effect.old}` did"
            yield against(file, pair, ContradictionKind.CONSTANT_CONDITION, ContradictionWeight.SOFT, why, effect.line)


def _names_in(text: str) -> set[str]:
    tree = _expression(text)
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} if tree is not None else set()


def _calls(text: str) -> bool:
    tree = _expression(text)
    return tree is None or any(isinstance(n, ast.Call) for n in ast.walk(tree))


def _expression(text: str) -> ast.AST | None:
    try:
        return ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _depending(function: Function) -> set[str]:
    """Names whose values may depend on a parameter; names of an outer scope are not among them."""
    found = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    uses: list[tuple[set[str], set[str]]] = []  # what each statement reads, and what it binds
    for node in own_nodes(function):
        if isinstance(node, ast.stmt):
            names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
            bound = {n.id for n in names if isinstance(n.ctx, ast.Store)}
            uses.append(({n.id for n in names if isinstance(n.ctx, ast.Load)}, bound))
    for _ in range(10):
        size = len(found)
        for reads, bound in uses:
            if reads & found:
                found |= bound
        if len(found) == size:
            break
    return found


def branch_negated(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """An `if` turned round as a whole whose two ways both do work."""
    for effect in pair.effects:
        if effect.kind is not EffectKind.NEGATES_CONDITION or not effect.whole:
            continue
        for block in _blocks(pair.old):
            for at, node in enumerate(block):
                if isinstance(node, ast.If) and node.test.lineno == effect.line and _works(node, block[at + 1 :]):
                    why = f"the condition `{effect.old}` is turned round, and both ways of the branch do work"
                    yield against(
                        file, pair, ContradictionKind.BRANCH_NEGATED, ContradictionWeight.SOFT, why, effect.line
                    )


def guards_nothing(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A branch that asks whether `x` is there and used x, and does not read it any more."""
    was = {key(node.test): node.body for node in own_nodes(pair.old) if isinstance(node, ast.If)}
    for node in own_nodes(pair.new):
        if not isinstance(node, ast.If) or not (asked := _there(node.test)):
            continue
        if _reads(was.get(key(node.test), []), asked) and not _reads(node.body, asked):
            why = f"the branch is there for `{asked}`, which was used in it and is not read there any more"
            yield against(file, pair, ContradictionKind.VALUE_UNUSED, ContradictionWeight.SOFT, why)
            return


def _there(test: ast.expr) -> str:
    """The name of which a test says that it is something: `x`, `x is not None`."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
        is_none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
        return ast.unparse(test.left) if is_none and isinstance(test.left, _NAMED) else ""
    return ast.unparse(test) if isinstance(test, _NAMED) else ""


def _reads(body: Sequence[ast.stmt], name: str) -> bool:
    return any(_loads(n) and ast.unparse(n) == name for statement in body for n in ast.walk(statement))


def none_used(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A branch for `x is not None` that now runs for None, and still uses x."""
    turned = {(e.old, e.new): e for e in pair.effects if e.kind is EffectKind.NEGATES_CONDITION and e.in_condition}
    for node in own_nodes(pair.new):
        asked = _none_tested_name(node.test) if isinstance(node, ast.If) else ""
        effect = turned.get((f"{asked} is not None", f"{asked} is None"))
        if not isinstance(node, ast.If) or effect is None:
            continue
        using = next(
            (s for s in node.body if asked in {ast.unparse(n) for n in ast.walk(s) if isinstance(n, _NAMED)}), None
        )
        if using is not None and asked in {ast.unparse(n) for n in ast.walk(using) if _loads(n)}:
            why = f"the branch now runs where `{asked}` is None, and `{_line(using)}` uses it"
            yield against(file, pair, ContradictionKind.BRANCH_NEGATED, ContradictionWeight.HARD, why, effect.line)


def _none_tested_name(test: ast.expr) -> str:
    """The name that a test `x is None` is about."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Is) or len(test.ops) != 1:
        return ""
    right = test.comparators[0]
    named = isinstance(test.left, _NAMED) and isinstance(right, ast.Constant) and right.value is None
    return ast.unparse(test.left) if named else ""


def _loads(node: ast.AST) -> bool:
    return isinstance(node, _NAMED) and isinstance(node.ctx, ast.Load)


def _works(node: ast.If, rest: list[ast.stmt]) -> bool:
    """Whether both ways of a branch do something else than pass or raise."""
    other = node.orelse or (rest if isinstance(node.body[-1], _LEAVES) else [])
    ways = (node.body, other)
    return all(any(not isinstance(s, ast.Pass | ast.Raise) for s in way) for way in ways)
