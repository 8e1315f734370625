"""What a source refuses and checks: its raises and asserts, calls of checkers, and how wide its conditions are."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator

from localagent.code.bindings import FUNCTIONS
from localagent.code.condition_implication import Names, condition_of, narrower
from localagent.code.function_pairing import settled
from localagent.code.guard_clauses import refused_less, says_yes
from localagent.code.names import called_names, callee_name
from localagent.code.regions import walk
from localagent.code.spans import last_line
from localagent.gate.core.rule import PLAIN, introduced, question
from localagent.gate.review.source_change import Check, Signs, SourceChange, differing
from localagent.text.visible_text import shortened

_GUARD = "def f(x):\n    if '/' in x:\n        raise ValueError(x)\n    return x\n"
_CALLS = "def f(x, y):\n    x = escape(x)\n    return g(x)\n"
_PATH = "def f(x, y):\n    y = {}\n    if not y.is_relative_to(x):\n        raise ValueError(x)\n    return {}\n"
_OWNS = "def owns(user, item):\n    return item.owner == user.name and user.active\n"

GUARD = question(
    id="guard-gone",
    why="what was refused is let through",
    remedy="keep the check, or say to a person why it is not needed",
    match=(
        introduced("def f(x):\n    x = x.replace('/', '')\n    return x\n", _GUARD),
        introduced("def f(x):\n    if '/' in x:\n        return 0\n    return x\n", _GUARD),
        introduced(
            "def f(x):\n    if x.a:\n        return x\n    if '/' in x:\n        raise ValueError(x)\n    return x\n",
            _GUARD,
        ),
        introduced("def f(x):\n    if '/' in x and x.old:\n        raise ValueError(x)\n    return x\n", _GUARD),
        introduced("def f(x):\n    if False:\n        raise ValueError(x)\n    return x\n", _GUARD),
        introduced("def f(x):\n    return x\n", "def f(x):\n    assert x > 0\n    return x\n"),
    ),
    not_match=(
        introduced(_GUARD.replace("ValueError", "KeyError"), _GUARD),
        introduced(
            "def f(x):\n    g(x)\n    return x\n\n\ndef g(x):\n    if '/' in x:\n        raise ValueError(x)\n", _GUARD
        ),
        introduced("def f(x):\n    if '/' in x or not x:\n        raise ValueError(x)\n    return x\n", _GUARD),
    ),
)
CHECK = question(
    id="check-gone",
    why="what made a value safe is not asked any more",
    remedy="keep the call, or say to a person why it is not needed",
    match=(
        introduced("def f(x, y):\n    return g(x)\n", _CALLS),
        introduced("def f(x):\n    return x\n", "@login_required\ndef f(x):\n    return x\n"),
        introduced("def f(x):\n    return x\n", "@admins.only('a')\ndef f(x):\n    return x\n"),
        introduced(
            "import hmac\ndef f(x, y):\n    return x == y\n",
            "import hmac\ndef f(x, y):\n    return hmac.compare_digest(x, y)\n",
        ),
        introduced(_PATH.format("y", "y.resolve()"), _PATH.format("y.resolve()", "y")),
    ),
    not_match=(
        introduced("def f(x, y):\n    return g(escape(x))\n", _CALLS),
        introduced(_CALLS.replace("g(x)", "h(x)"), _CALLS),
        introduced(
            "class A:\n    def f(x):\n        return x\n", "class A:\n    @property\n    def f(x):\n        return x\n"
        ),
    ),
)
WIDENED = question(
    id="condition-widened",
    why="an answer that was no in some cases is yes there now",
    remedy="have a person confirm that these cases are meant",
    match=(
        introduced(_OWNS.replace("user.active", "user.active or user.mail.endswith('x')"), _OWNS),
        introduced("def owns(user, item):\n    return item.owner == user.name\n", _OWNS),
        introduced("def owns(user, item):\n    return True\n", _OWNS),
    ),
    not_match=(
        introduced(_OWNS.replace("user.active", "user.active and item.open"), _OWNS),
        introduced(PLAIN.replace("return x", "return -x")),
    ),
)
_CHECKER = re.compile(
    r"(?i)verif|valid|(?:^|_)check(?!sum|out|point)|sanit|escape|quot|authenti|authori[sz]|permission|compare_digest|realpath"
    r"|^resolve$|normpath|is_relative_to|login_required|csrf|encrypt|(?:^|_)sign(?:$|_|ed)|^assert_|^ensure|^require|strip_tags|bleach"
    r"|^clean|safe_join|secure_filename|safe_load|(?:^|_)lock(?:ed)?$|acquire|is_safe|allowed|forbid|deny|raise_for_status|rate_?limit"
    r"|safe(?!ty)|inside|within|guard|enforce|throttle|audit|atomic|transaction|^token_(?:urlsafe|hex|bytes)$|^urandom$|^SystemRandom$"
)

# Decorators that hold nothing back: what a function loses with any other may have been what asked who calls.
_PLAIN = frozenset({
    "staticmethod", "classmethod", "property", "setter", "getter", "deleter", "cached_property", "cache", "lru_cache",
    "wraps", "contextmanager", "asynccontextmanager", "abstractmethod", "overload", "override", "final", "dataclass",
    "total_ordering", "singledispatch", "deprecated", "no_type_check",
})  # fmt: skip
_MOST_COMPARED = 3_600
_ASKS = re.compile(r"is|has|can|may|_*check|valid|verif|compare|all|any|authenti")
_HOPS = 3
_WAYS: dict[type[ast.cmpop], str] = {
    ast.Lt: "below", ast.LtE: "below", ast.Gt: "above", ast.GtE: "above", ast.Eq: "equal", ast.Is: "equal",
    ast.NotEq: "different", ast.IsNot: "different", ast.In: "inside", ast.NotIn: "outside",
}  # fmt: skip


def guards(tree: ast.AST) -> Iterator[str]:
    """One for each raise and each assert."""
    if isinstance(tree, ast.Assert) or (isinstance(tree, ast.Raise) and not _is_open(tree)):
        yield "a raise or an assert"
    for name in tree._fields:
        inner = getattr(tree, name, None)
        if isinstance(inner, ast.AST):
            yield from guards(inner)
        elif isinstance(inner, list) and not (name == "body" and _never(tree)):
            for node in inner:
                if isinstance(node, ast.AST):
                    yield from guards(node)
                if isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue):
                    break  # what follows is not reached


def _is_open(node: ast.Raise) -> bool:
    """`raise NotImplementedError`: a place that is left open refuses nothing."""
    return node.exc is not None and callee_name(node.exc) == "NotImplementedError"


def _never(node: ast.AST) -> bool:
    return isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Constant) and not node.test.value


def checks(tree: ast.AST) -> Iterator[str]:
    """The name of each checker that is called, or that decorates something; what raises in the source is a checker."""
    nodes = walk(tree)
    raising = {n.name for n in nodes if isinstance(n, FUNCTIONS) and _exists_to_raise(n)}
    for node in nodes:
        if isinstance(node, ast.Call):
            name = callee_name(node.func)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            for decorator in node.decorator_list:
                if not isinstance(decorator, ast.Call) and _CHECKER.search(callee_name(decorator)):
                    yield callee_name(decorator)
            continue
        else:
            continue
        if (name in raising and not name.startswith("__")) or _CHECKER.search(name):
            yield name


def _exists_to_raise(function: ast.AST) -> bool:
    """Whether a function may raise, and answers nothing but what it was given."""
    nodes = walk(function)
    if not any(isinstance(n, ast.Raise) for n in nodes):
        return False
    answers = [n.value for n in nodes if isinstance(n, ast.Return) and n.value is not None]
    return all(isinstance(a, ast.Name | ast.Constant) for a in answers)


def widened_answers(change: SourceChange) -> Signs:
    """Conditions under which a function answers yes more often."""
    for _, old, new in change.pairs:
        names = settled(old), settled(new)
        yes = says_yes(old, names[0]), says_yes(new, names[1])
        if yes[0] is None or yes[1] is None:
            yield from map(_shown, _wider_answers(old, new, names))
        elif narrower(yes[0], yes[1]):
            yield _shown(new)


def widened_guards(change: SourceChange) -> Signs:
    """Conditions under which a function lets through what it refused."""
    for _, old, new in change.pairs:
        refused = refused_less(old, new, (settled(old), settled(new)))
        yield from map(_shown, (*refused, *_turned_round(old, new), *_steps_around(old, new)))


def _shown(node: ast.AST) -> tuple[str, ast.AST]:
    return f"newly: {shortened(ast.unparse(node), 120)}", node


def _wider_answers(old: ast.AST, new: ast.AST, names: tuple[Names, Names]) -> Iterator[ast.expr]:
    gone, come = differing(_answers(old), _answers(new))
    if len(gone) * len(come) > _MOST_COMPARED:
        yield come[0]  # so much has changed that nobody can say what is answered
        return
    asked = [condition_of(e, names[0]) for e in gone if _is_condition(e)]
    yield from (one for one in come if any(narrower(was, condition_of(one, names[1])) for was in asked))


def _turned_round(old: ast.AST, new: ast.AST) -> Iterator[ast.expr]:
    gone, come = differing(_tests(old), _tests(new))
    if len(gone) * len(come) <= _MOST_COMPARED:
        yield from (one for one in come if any(_moved(was, one) for was in gone))


def unreached(ways: Callable[[ast.AST], Iterator[str]]) -> Check:
    """A check for functions that lost a guard or a check, for which nothing came that they reach, or that reaches them.

    Counted over a whole file, one that is taken away here could be made up for by one that is never asked.
    """

    def check(change: SourceChange) -> Signs:
        old, new = change.before.functions, change.after.functions
        calls = {name: _called(function) for name, function in new.items()} if change.pairs else {}
        counts = {name: Counter(ways(function)) for name, function in new.items()}
        grown = {name: counts[name] - Counter(ways(old[name]) if name in old else ()) for name in new}
        for name, was, function in change.pairs:
            gone = Counter(ways(was)) - counts[name]
            for other in _near(name, calls) if gone else ():
                gone -= grown[other]
            if gone:
                yield f"{name}: {shortened(', '.join(sorted(gone)), 80)}", function

    return check


def reordered(change: SourceChange) -> Signs:
    """Functions that call the same checkers in another order: what is made safe after it was judged is not judged."""
    for name, old, new in change.pairs:
        was, now = _in_order(old), _in_order(new)
        if was != now and sorted(was) == sorted(now):
            yield f"{name} checks in another order: {shortened(', '.join(now), 80)}", new


def undecorated(change: SourceChange) -> Signs:
    """Functions that have fewer decorators, the plain ones aside, than they had."""
    for name, old, new in change.pairs:
        had, kept = ([callee_name(d) for d in f.decorator_list if callee_name(d) not in _PLAIN] for f in (old, new))
        if len(kept) < len(had):
            gone = Counter(had) - Counter(kept)
            yield f"{name} is not decorated any more: {shortened(', '.join(sorted(gone)), 80)}", new


def _in_order(function: ast.AST) -> list[str]:
    calls = [n for n in walk(function) if isinstance(n, ast.Call) and _CHECKER.search(callee_name(n.func))]
    return [callee_name(n.func) for n in sorted(calls, key=lambda n: (last_line(n), n.end_col_offset or 0))]


def _near(name: str, calls: dict[str, set[str]]) -> set[str]:
    """The functions that one calls, directly or by way of others, those that call it, and those around it."""
    near, at = {name}, {name}
    for _ in range(_HOPS):
        words = {word for n in at for word in calls[n]}
        at = {n for n in calls if n.rpartition(".")[2] in words} - near
        near |= at
    own = name.rpartition(".")[2]
    near |= {n for n, words in calls.items() if own in words or name.startswith(f"{n}.")}
    return near - {name}


def _called(function: ast.AST) -> set[str]:
    """What a function calls, hands on, or is decorated with."""
    found = called_names(walk(function))
    return found | {n.id for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _answers(function: ast.AST) -> Iterator[ast.expr]:
    for node in walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def _tests(function: ast.AST) -> Iterator[ast.expr]:
    """Conditions under which something is refused."""
    for node in walk(function):
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise | ast.Return):
            last = node.body[-1]
            if isinstance(last, ast.Raise) or last.value is None or isinstance(last.value, ast.Constant):
                yield node.test


def _steps_around(before: ast.AST, after: ast.AST) -> Iterator[ast.expr]:
    """New conditions under which a function answers before a guard that stood already is reached."""
    had = {ast.dump(n.test) for n in walk(before) if isinstance(n, ast.If)}
    guarded = [
        n.lineno
        for n in walk(after)
        if isinstance(n, ast.If) and ast.dump(n.test) in had and any(isinstance(s, ast.Raise) for s in n.body)
    ]
    for node in walk(after):
        if not (isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return)):
            continue
        if node.lineno < max(guarded, default=0) and ast.dump(node.test) not in had:
            yield node.test


def _moved(old: ast.expr, new: ast.expr) -> bool:
    """Whether a comparison has turned round, or has got a further condition; another bound is an ordinary repair."""
    if not (isinstance(old, ast.Compare) and isinstance(new, ast.Compare)):
        return False
    ways = [_WAYS.get(type(side.ops[0]), "") for side in (old, new)]
    return ast.dump(old.left) == ast.dump(new.left) and (len(new.ops) > len(old.ops) or ways[0] != ways[1])


def _is_condition(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp):
        return any(_is_condition(v) for v in node.values)
    return (
        isinstance(node, ast.Compare | ast.Attribute)
        or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
        or (isinstance(node, ast.Call) and _ASKS.match(callee_name(node.func)) is not None)
    )


CHECKS = (
    (WIDENED, widened_answers),
    (GUARD, widened_guards),
    (GUARD, unreached(guards)),
    (CHECK, unreached(checks)),
    (CHECK, reordered),
    (CHECK, undecorated),
)
