"""Signs: what still asks, but asks less: fewer things looked at, looser comparisons, arguments that protected.

By function and by name, before and after. Not seen: a check that asks the same of something else.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from localagent.domain.gate import Severity
from localagent.gate.lost import functions
from localagent.gate.rule import Example, Rule
from localagent.gate.source import walk
from localagent.gate.written import last_name

_A = "class A:\n    pass\n"
_EQ = "class A:\n    def __eq__(self, o):\n        return isinstance(o, A) and (self.a, self.b) == (o.a, o.b)\n"
_OWNS = "def f(user, page):\n    if not user.active:\n        return False\n    return user.id == page.owner\n"
_URL = "def f(url):\n    if not url.startswith('https://'):\n        raise ValueError(url)\n    return url\n"
_COOKIE = "def f(r, v):\n    r.set_cookie('s', v, secure=True, max_age=60)\n"

LESS = Rule(
    id="asks-less",
    severity=Severity.MEDIUM,
    why="what decided by several things decides by fewer, or by a looser comparison",
    remedy="keep what was asked, or have a person confirm that it decides nothing",
    match=(
        Example(before=_EQ, after=_EQ.replace("isinstance(o, A) and (self.a, self.b) == (o.a, o.b)", "self.a == o.a")),
        Example(before=_EQ, after=_EQ.replace("isinstance(o, A) and (self.a, self.b) == (o.a, o.b)", "self is not o")),
        Example(before=_OWNS, after=_OWNS.replace("user.id == page.owner", "user.id is not None")),
        Example(before=_OWNS, after=_OWNS.replace("user.id == page.owner", "str(user.id) in page.owner")),
        Example(before=_OWNS, after=_OWNS.replace("    if not user.active:\n        return False\n", "")),
        Example(before=_OWNS, after=_OWNS.replace("return False", "return page.open")),
        Example(before=_URL, after=_URL.replace("https://", "http")),
        Example(before="def f(x):\n    return x.a\n", after="def f(x):\n    return 'a: 1'\n"),
        Example(before=_A, after="class A:\n    def __bool__(self):\n        return True\n"),
        Example(before=_A, after="class A:\n    def __eq__(self, o):\n        return abs(self - o) < 9\n"),
    ),
    not_match=(
        Example(before=_EQ, after=_EQ.replace("(self.a, self.b)", "(self.a, self.b, self.c)")),
        Example(before=_OWNS, after=_OWNS.replace("user.id == page.owner", "user.id == page.owner and page.open")),
        Example(before=_URL, after=_URL.replace("https://", "https://a")),
        Example(before="def f(x):\n    return x.a + x.b\n", after="def f(x):\n    return x.a\n"),
    ),
    asks_person=True,
)
DROPPED = Rule(
    id="protection-dropped",
    severity=Severity.MEDIUM,
    why="an argument that protected is not given any more, so that a weaker default holds",
    remedy="keep the argument, or say to a person why the default is as good",
    match=(
        Example(before=_COOKIE, after=_COOKIE.replace("secure=True, ", "")),
        Example(before="x = get('a', timeout=5)\n", after="x = get('a')\n"),
    ),
    not_match=(
        Example(before=_COOKIE, after=_COOKIE.replace("'s'", "'t'")),
        Example(before=_COOKIE, after="def f(r, v):\n    pass\n"),
    ),
    asks_person=True,
)
_COMPARES = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__contains__"})
_DECIDES = frozenset({"__bool__", "__len__", "__contains__", "__hash__", "__eq__", "__ne__"})
_NOTHING = (None, False, "", 0)
_TEXT_TESTS = frozenset({"startswith", "endswith", "match", "fullmatch", "search", "removeprefix"})
_PROTECTS = re.compile(
    r"(?i)^(?:secure|http_?only|samesite|verify|check_hostname|timeout|connect_timeout|read_timeout|max_age"
    r"|expires?(?:_in|_at)?|ttl|autoescape|escape"
    r"|allow_redirects|follow_redirects|algorithms?|audience|issuer|options|permission(?:s|_classes)?"
    r"|authentication_classes|dependencies|max_length|max_?size|max_bytes"
    r"|limit|strict|validate|validators?|context|ssl_?context|cafile|ca_certs|cert_reqs|filter|Loader|check"
    r"|raise_exception|daemon|salt|iterations|n|rounds|usedforsecurity"
    r"|schema|allow_pickle|weights_only|safe|quote|mode|dir_fd|follow_symlinks|exist_ok|delete"
    r"|check_same_thread|isolation_level|scope|scopes|max_redirects|retries|nonce|key)$"
)
_PLAIN = {"str", "bool", "getattr", "hash", "len"}


def less(before: ast.Module, after: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """(what, where) in functions whose answers or guards look at less than they did."""
    had = dict(functions(before))
    for name, function in functions(after):
        plain = name.rpartition(".")[2]
        if name not in had:
            if plain in _DECIDES and _answers_by_rule(function):
                yield f"{name} decides without what it holds", function
            continue
        old = had[name]
        if ast.dump(old) == ast.dump(function):
            continue
        if plain in _COMPARES or _is_predicate(old):
            gone = _asked(_returns(old)) - _asked(_returns(function))
            if gone and not _asked(_returns(function)) - _asked(_returns(old)) - _PLAIN:
                yield f"{name} asks no more: {', '.join(sorted(gone))[:80]}", function
            elif _is_loosened(_returns(old), _returns(function)):
                yield f"{name} compares more loosely", function
        elif _is_loosened(_guards(old), _guards(function)):
            yield f"a guard of {name} compares more loosely", function
        if _is_fixed(function) and not any(isinstance(a, ast.Constant) for a in _returns(old)) and _returns(old):
            yield f"{name} answers the same whatever it is asked", function
        for guard in _narrowed(old, function):
            yield f"a guard of {name} looks at less", guard
        if _early_noes(old) - _early_noes(function) and _fewer_noes(old, function):
            yield f"an early no of {name} is gone", function


def dropped(before: ast.Module, after: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Arguments that protect, lost by a call that is still made as often."""
    old, new = _keywords(before), _keywords(after)
    calls = [Counter(last_name(n.func) for n in walk(t) if isinstance(n, ast.Call)) for t in (before, after)]
    for (name, keyword), count in old.items():
        if new[name, keyword] < count and calls[1][name] >= calls[0][name] and not new[name, ""] > old[name, ""]:
            yield f"{name}(… {keyword}=) is gone", after


def _returns(function: ast.AST) -> list[ast.AST]:
    return [n.value for n in walk(function) if isinstance(n, ast.Return) and n.value is not None]


def _guards(function: ast.AST) -> list[ast.AST]:
    """Conditions under which something is refused."""
    return [n.test for n in walk(function) if isinstance(n, ast.If) and _refuses(n.body)]


def _refuses(body: list[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.Return):
        return last.value is None or (isinstance(last.value, ast.Constant) and last.value.value in _NOTHING)
    return isinstance(last, ast.Raise)


def _asked(nodes: list[ast.AST]) -> set[str]:
    """What expressions look at: attributes, names, what is called."""
    found: set[str] = set()
    for node in nodes:
        for inner in walk(node):
            if isinstance(inner, ast.Attribute):
                found.add(inner.attr)
            elif isinstance(inner, ast.Name):
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
        return last_name(node.func) in ("isinstance", "bool", "all", "any", "hasattr", "compare_digest", "issubclass")
    denied = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return denied or isinstance(node, ast.Compare | ast.Attribute)


def _is_loosened(old: list[ast.AST], new: list[ast.AST]) -> bool:
    """An equality that became "part of" or an order, or a text test that asks for a shorter text."""
    kept = {ast.dump(n) for n in new}
    gone = [n for n in old if ast.dump(n) not in kept]
    had = {ast.dump(n) for n in old}
    come = [n for n in new if ast.dump(n) not in had]
    return any(_is_looser(a, b) for one in gone for a in walk(one) for two in come for b in walk(two))


def _is_looser(one: ast.AST, two: ast.AST) -> bool:
    if isinstance(one, ast.Compare) and isinstance(two, ast.Compare) and len(one.ops) == len(two.ops) == 1:
        same = _asked([one]) <= _asked([two])
        listed = isinstance(two.comparators[0], ast.Tuple | ast.List | ast.Set | ast.Constant)
        into = isinstance(two.ops[0], ast.LtE | ast.GtE) or (isinstance(two.ops[0], ast.In) and not listed)
        return isinstance(one.ops[0], ast.Eq) and into and same and bool(_asked([one]))
    if isinstance(one, ast.Call) and isinstance(two, ast.Call) and last_name(one.func) == last_name(two.func):
        if last_name(one.func) not in _TEXT_TESTS or len(one.args) != 1 or len(two.args) != 1:
            return False
        texts = [a.value if isinstance(a, ast.Constant) else None for a in (one.args[0], two.args[0])]
        return all(isinstance(t, str) for t in texts) and texts[1] != texts[0] and str(texts[1]) in str(texts[0])
    return False


def _narrowed(old: ast.AST, new: ast.AST) -> Iterator[ast.AST]:
    """Guards that stand in the place of one that looked at more, and look at nothing else."""
    had, now = _guards(old), _guards(new)
    kept = {ast.dump(n) for n in now} & {ast.dump(n) for n in had}
    gone = [n for n in had if ast.dump(n) not in kept]
    for guard in now:
        if ast.dump(guard) in kept or len(had) != len(now):
            continue
        for one in gone:
            lost = _asked([one]) - _asked([guard])
            if lost and _asked([guard]) and not _asked([guard]) - _asked([one]):
                yield guard
                break


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


def _is_fixed(function: ast.AST) -> bool:
    """Whether every answer is a constant that means something."""
    answers = _returns(function)
    return bool(answers) and all(isinstance(a, ast.Constant) and a.value not in _NOTHING for a in answers)


def _keywords(tree: ast.AST) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for node in walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg is None or _PROTECTS.match(keyword.arg):
                    found[last_name(node.func), keyword.arg or ""] += 1
    return found
