"""Sign: what still asks, but asks less: fewer things looked at, early noes that are gone.

By function and by name, before and after. Not seen: a check that asks the same of something else.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from localagent.code.bindings import FUNCTIONS
from localagent.code.condition_implication import Names
from localagent.code.function_pairing import settled
from localagent.code.names import bound_name, callee_name
from localagent.code.regions import walk
from localagent.code.spans import Function
from localagent.gate.core.rule import became, question
from localagent.gate.review.source_change import Signs, Source, SourceChange, newly
from localagent.text.visible_text import shortened

_A = "class A:\n    pass\n"
_AB = "class A:\n    a: int\n    b: int\n"
_EQ = "class A:\n    def __eq__(self, o):\n        return isinstance(o, A) and (self.a, self.b) == (o.a, o.b)\n"
_OWNS = "def f(user, page):\n    if not user.active:\n        return False\n    return user.id == page.owner\n"
_URL = "def f(url):\n    if not url.startswith('https://'):\n        raise ValueError(url)\n    return url\n"

LESS = question(
    id="asks-less",
    why="what decided by several things decides by fewer, or by a looser comparison",
    remedy="keep what was asked, or have a person confirm that it decides nothing",
    match=(
        became(_EQ, _EQ.replace("isinstance(o, A) and (self.a, self.b) == (o.a, o.b)", "self.a == o.a")),
        became(_EQ, _EQ.replace("isinstance(o, A) and (self.a, self.b) == (o.a, o.b)", "self is not o")),
        became(_OWNS, _OWNS.replace("user.id == page.owner", "user.id is not None")),
        became(_OWNS, _OWNS.replace("    if not user.active:\n        return False\n", "")),
        became(_OWNS, _OWNS.replace("return False", "return page.open")),
        became(_A, "class A:\n    def __bool__(self):\n        return True\n"),
        became(_A, "class A:\n    def __eq__(self, o):\n        return abs(self - o) < 9\n"),
        became(_AB, _AB + "\n    def __eq__(self, o):\n        return self.a == o.a\n"),
        became(_A, _A + "\n\nclass B(Policy):\n    def missing_host_key(self, *a):\n        return None\n"),
        became(_A, _A + "\n\nclass B(Base):\n    def is_allowed(self, a):\n        return True\n"),
    ),
    not_match=(
        became(_EQ, _EQ.replace("(self.a, self.b)", "(self.a, self.b, self.c)")),
        became(_OWNS, _OWNS.replace("user.id == page.owner", "user.id == page.owner and page.open")),
        became(_URL, _URL.replace("https://", "https://a")),
        became("def f(x):\n    return x.a + x.b\n", "def f(x):\n    return x.a\n"),
        became(_AB, _AB + "\n    def __eq__(self, o):\n        return (self.a, self.b) == (o.a, o.b)\n"),
        became(_A, _A + "\n\nclass B(Base):\n    def close(self):\n        pass\n"),
    ),
)
_CHECKS = re.compile(
    r"(?i)verif|valid|check|polic[yi]|permission|auth|guard|filter|throttl|limit|sanit|allow|trust|safe|secur|clean|access|csrf|audit|escape"
)
_KINDS = re.compile(r"Protocol|ABC|Exception|Error|Enum|Warning")
Functions = dict[str, Function]
_COMPARES = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__contains__"})
_DECIDES = frozenset({"__bool__", "__len__", "__contains__", "__hash__", "__eq__", "__ne__"})
_NOTHING = (None, False, "", 0)
_MOST_COMPARED = 40_000
_PLAIN = {"str", "bool", "getattr", "hash", "len"}


def less(change: SourceChange) -> Signs:
    """(what, where) in functions whose answers or guards look at less than they did."""
    had, now = change.before.functions, change.after.functions
    same = {name: (old, new) for name, old, new in change.pairs}
    for name, function in now.items():
        if name in same:
            yield from ((what.format(name), where) for what, where in _looser(*same[name], now, had))
        elif name not in had and name.rpartition(".")[2] in _DECIDES and _answers_by_rule(function):
            yield f"{name} decides without what it holds", function
    paired = {id(old) for old, _ in same.values()}
    bound = {n.id for n in change.after.nodes if isinstance(n, ast.Name)}
    bound |= {bound_name(n) for n in change.after.nodes if isinstance(n, ast.alias)}
    for name, old in had.items():
        is_lost = name not in now and id(old) not in paired and name.rpartition(".")[2] in bound
        if is_lost and _is_predicate(old):
            yield f"{name} is something else now", change.after.tree


def unchecked(source: Source) -> Signs:
    """Methods of subclasses that do nothing, or always say yes, where their names or their bases speak of checks."""
    for owner in source.nodes:
        if not isinstance(owner, ast.ClassDef) or not owner.bases:
            continue
        bases = " ".join(callee_name(base) for base in owner.bases)
        for method in owner.body if not _KINDS.search(bases) else ():
            if not isinstance(method, FUNCTIONS) or method.name == "__init__":
                continue
            if _CHECKS.search(f"{method.name} {bases}") and _does_nothing(method):
                yield f"{owner.name}.{method.name} checks nothing", method


def _does_nothing(function: Function) -> bool:
    rest = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    last = rest[-1] if len(rest) == 1 else None
    if isinstance(last, ast.Return):
        return last.value is None or isinstance(last.value, ast.Constant | ast.Name)
    return all(isinstance(s, ast.Pass) for s in rest)


def _looser(old: Function, new: Function, now: Functions, had: Functions) -> Iterator[tuple[str, ast.AST]]:
    """What of a function that stands before and after looks at less; `{}` is for its name."""
    names = settled(old), settled(new)
    answers = _returns(old, names[0]), _returns(new, names[1])
    if old.name in _COMPARES or _is_predicate(old):
        asked = _inputs_of(old, answers[0], names[0]), _inputs_of(new, answers[1], names[1])
        if len(own := _parameters(old)) != len(_parameters(new)):
            asked = asked[0] - own - _parameters(new), asked[1] - own - _parameters(new)
        gone, come = asked[0] - asked[1], asked[1] - asked[0] - _PLAIN
        if helpers := [n for n in now if n not in had and n.rpartition(".")[2] in come]:
            gone, come = _delegated(asked, [now[n] for n in helpers])
        if gone and not come:
            yield f"{{}} asks no more: {shortened(', '.join(sorted(gone)), 80)}", new
    yield from (("a guard of {} looks at less", guard) for guard in _narrowed(old, new))
    if _early_noes(old) - _early_noes(new) and _fewer_noes(old, new):
        yield "an early no of {} is gone", new


def _inputs_of(function: Function, answers: list[ast.AST], names: Names) -> set[str]:
    """What a predicate looks at, in its answers and on its way to them."""
    return _operands([*answers, *(n.test for n in walk(function) if isinstance(n, ast.If))], names)


def _parameters(function: Function) -> set[str]:
    return {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}


def _delegated(asked: tuple[set[str], set[str]], helpers: list[Function]) -> tuple[set[str], set[str]]:
    """What is gone and what has come, where new functions answer: what these look at counts, their own names do not."""
    own = {name for f in helpers for name in _parameters(f)}
    looked = {what for f in helpers for what in _operands([*_returns(f, {}), *_guards(f)], {})} - own
    gone = asked[0] - asked[1] - looked
    return gone, (looked | asked[1]) - asked[0] - _PLAIN - {f.name for f in helpers} - own


def _returns(function: ast.AST, names: Names | None = None) -> list[ast.AST]:
    """What a function answers with; a name that is set once is what it is set to."""
    found = [n.value for n in walk(function) if isinstance(n, ast.Return) and n.value is not None]
    known = settled(function) if names is None else names
    return [known.get(v.id, v) if isinstance(v, ast.Name) else v for v in found]


def _guards(function: ast.AST) -> list[ast.AST]:
    """Conditions under which something is refused."""
    return [n.test for n in walk(function) if isinstance(n, ast.If) and _refuses(n.body)]


def _refuses(body: list[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.Return):
        return last.value is None or (isinstance(last.value, ast.Constant) and last.value.value in _NOTHING)
    return isinstance(last, ast.Raise)


def _operands(nodes: list[ast.AST], names: Names | None = None) -> set[str]:
    """What expressions look at: attributes, names, what is called; by way of the names that are set once."""
    found: set[str] = set()
    open_names = dict(names or {})
    todo = list(nodes)
    while todo:
        for inner in walk(todo.pop()):
            if isinstance(inner, ast.Attribute):
                found.add(inner.attr)
            elif isinstance(inner, ast.Name) and inner.id in open_names:
                todo.append(open_names.pop(inner.id))
            elif isinstance(inner, ast.Name) and inner.id not in (names or ()):
                found.add(inner.id)
    return found


def _is_predicate(function: ast.AST) -> bool:
    """Whether every answer is a condition, and one at least compares."""
    answers = _returns(function)
    return any(isinstance(a, ast.Compare | ast.BoolOp) for a in answers) and all(map(_is_yes_or_no, answers))


def _is_yes_or_no(node: ast.AST) -> bool:
    if isinstance(node, ast.BoolOp):
        return all(_is_yes_or_no(v) for v in node.values)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    if isinstance(node, ast.Call):
        return callee_name(node.func) in ("isinstance", "bool", "all", "any", "hasattr", "compare_digest", "issubclass")
    denied = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return denied or isinstance(node, ast.Compare | ast.Attribute)


def _narrowed(old: ast.AST, new: ast.AST) -> Iterator[ast.AST]:
    """Guards that stand in the place of one that looked at more, and look at nothing else."""
    had, now = _guards(old), _guards(new)
    kept = {ast.dump(n) for n in now} & {ast.dump(n) for n in had}
    gone = [_operands([n]) for n in had if ast.dump(n) not in kept]
    if len(had) != len(now) or len(gone) ** 2 > _MOST_COMPARED:
        return
    for guard in now:
        looked = _operands([guard]) if ast.dump(guard) not in kept else set()
        if looked and any(looked < one for one in gone):
            yield guard


def _early_noes(function: ast.AST) -> Counter[str]:
    """Conditions that answer False, or nothing, by themselves."""
    return Counter(
        ast.dump(n.test)
        for n in walk(function)
        if isinstance(n, ast.If) and isinstance(n.body[-1], ast.Return) and _refuses(n.body)
    )


def _fewer_noes(old: ast.AST, new: ast.AST) -> bool:
    """Whether a condition gives a no less often, in a function that goes on to answer yes."""
    counts = [sum(1 for n in walk(f) if isinstance(n, ast.If) and _refuses(n.body)) for f in (old, new)]
    return counts[1] < counts[0] and _is_predicate_like(old)


def _is_predicate_like(function: ast.AST) -> bool:
    answers = _returns(function)
    noes = [a for a in answers if isinstance(a, ast.Constant) and a.value is False]
    return bool(noes) or _is_predicate(function)


def _answers_by_rule(function: ast.AST) -> bool:
    """Whether a new method answers with a constant, or with an order where equality is asked."""
    answers = _returns(function)
    name = getattr(function, "name", "")
    if name in ("__eq__", "__ne__"):
        return any(
            isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
            for a in answers
            for n in walk(a)
        )
    return len(answers) == 1 and isinstance(answers[0], ast.Constant) and bool(answers[0].value)


CHECKS = ((LESS, less), (LESS, newly(unchecked)))
