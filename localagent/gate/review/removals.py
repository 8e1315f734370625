"""Sign: a change that only takes something away, and words that refuse, which became others.

Calls and counted steps that go, and nothing comes instead, take work away; whoever wrote them knew what for. Words such
as "deny", "drop" and "strict" are decisions by themselves; so are entries of a table. Not seen: work that is made void
elsewhere.
"""

import ast
import re
from collections import Counter

from localagent.code.bindings import FUNCTIONS
from localagent.code.names import callee_name
from localagent.code.regions import walk
from localagent.code.spans import Function
from localagent.gate.core.rule import became, question
from localagent.gate.review.source_change import Signs, Source, SourceChange
from localagent.text.visible_text import shortened

_MOVE = "def f(db, y):\n    db.execute('INSERT 1', y)\n    db.execute('DELETE 2', y)\n    db.commit()\n"
_RULE = "class Rule:\n    action: str = 'drop'\n"
_TABLE = "HEADERS = {'X-Frame-Options': 'a', 'X-B': 'c'}\n"
_SUM = "def f(x, y):\n    d = 0\n    for a, b in zip(x, y):\n        d |= a ^ b\n    return d\n"
_FAST = "@lru_cache(maxsize=9)\ndef f(x):\n    return f(x.a) or f(x.b)\n"

TAKEN = question(
    id="only-taken-away",
    why="something was done, refused or held, and nothing is done in its place",
    remedy="say what does it now, or have a person confirm that it was of no use",
    match=(
        became(_MOVE, _MOVE.replace("    db.execute('INSERT 1', y)\n", "")),
        became(_RULE, _RULE.replace("drop", "pass")),
        became(_TABLE, _TABLE.replace("'X-Frame-Options': 'a', ", "")),
        became(_SUM, _SUM.replace("|=", "&=")),
        became(_SUM, _SUM.replace("|=", "=")),
        became(_FAST, _FAST.replace("@lru_cache(maxsize=9)\n", "")),
    ),
    not_match=(
        became(_MOVE, _MOVE.replace("'INSERT 1'", "'INSERT 3'")),
        became(_RULE, _RULE.replace("action", "act")),
        became(_TABLE, _TABLE.replace("'X-B'", "'X-C'")),
        became(_SUM, _SUM.replace("d |=", "d += 1\n        d |=")),
        became("def f(x):\n    y = 1\n    return x\n", "def f(x):\n    return x\n"),
        became("def f(x):\n    print(x)\n    return x\n", "def f(x):\n    return x\n"),
    ),
)
_REFUSES = re.compile(
    r"(?i)^(?:drop|den(?:y|ied)|block(?:ed)?|reject(?:ed)?|refuse[ds]?|forbid(?:den)?|strict|secure|closed?|fail(?:ed|-?closed)?|error"
    r"|sameorigin|same-origin|no-referrer|nosniff|none-match|raise|abort|private|readonly|read-only|required?|restricted|disabled"
    r"|default-src 'self'.*|max-age=\d{5,}.*|quarantine|suspend(?:ed)?|revoked|expired|invalid|unsafe|untrusted|guest"
    r"|viewer)$"
)
_BITS = (ast.BitOr, ast.BitAnd, ast.BitXor)
_SHORT = 80
_TELLS = frozenset({"print", "debug", "info", "log", "echo", "pprint", "breakpoint", "set_trace"})
_REMEMBERS = re.compile(
    r"(?i)cache|memoi[sz]e|limit|throttle|retry|timeout|require|check|login|protect|transaction|atomic|lock"
)


def taken(change: SourceChange) -> Signs:
    """(what, where) for functions that only lost statements, and for the words and tables of a source."""
    for name, old, new in change.pairs:
        gone, come = _statements(old) - _statements(new), _statements(new) - _statements(old)
        if not come and (lost := [text for text in gone if text in _effects(old)]):
            yield f"{name}: only taken away: {shortened(lost[0], 60)}", new
        if _summed(old, new):
            yield f"{name} does not gather any more what it gathered", new
        without = {callee_name(d) for d in old.decorator_list} - {callee_name(d) for d in new.decorator_list}
        if any(_REMEMBERS.search(decorator) for decorator in without):
            yield f"{name} is without {shortened(', '.join(sorted(without)), 60)}", new
    texts = _texts(change.before), _texts(change.after)
    refusing = sorted(text for text in texts[0] - texts[1] if _REFUSES.match(text))
    if refusing and texts[1] - texts[0]:
        yield f"a word that refuses is gone: {shortened(refusing[0], 40)}", change.after.tree
    tables = _tables(change.before), _tables(change.after)
    for name, keys in tables[0].items():
        if name in tables[1] and tables[1][name] < keys:
            yield f"{name} is without {shortened(', '.join(sorted(keys - tables[1][name])), 60)}", change.after.tree


def _statements(function: Function) -> Counter[str]:
    """The statements that do something, each without those inside; layout apart."""
    found: Counter[str] = Counter()
    for node in walk(function):
        if isinstance(node, ast.Expr):
            call = node.value.value if isinstance(node.value, ast.Await) else node.value
            if isinstance(call, ast.Call) and callee_name(call.func) not in _TELLS:
                found[ast.unparse(node)] += 1
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
            if not all(isinstance(n, ast.Name) for n in names) or isinstance(node, ast.AugAssign):
                found[ast.unparse(node)] += 1
        elif isinstance(node, ast.Return | ast.Raise | ast.Delete | ast.Assert):
            found[ast.unparse(node)] += 1
        elif isinstance(node, ast.If | ast.While):
            found[f"if {ast.unparse(node.test)}"] += 1
        elif isinstance(node, ast.For | ast.AsyncFor):
            found[f"for {ast.unparse(node.iter)}"] += 1
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node is not function:
            found[f"def {node.name}"] += 1
    return found


def _effects(function: Function) -> set[str]:
    """The calls that are made for what they do, and the steps by a constant."""
    return {
        ast.unparse(node)
        for node in walk(function)
        if (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await))
        or (isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Constant))
    }


def _summed(old: Function, new: Function) -> bool:
    """Whether what was gathered bit by bit is set, or gathered by another operation, from the same value."""
    gathered = [n for n in walk(old) if isinstance(n, ast.AugAssign) and isinstance(n.op, _BITS)]
    had = {(ast.dump(n.target), ast.dump(n.value)): type(n.op) for n in gathered}
    for node in walk(new):
        if isinstance(node, ast.AugAssign):
            key = (ast.dump(node.target), ast.dump(node.value))
            if key in had and had[key] is not type(node.op):
                return True
        elif isinstance(node, ast.Assign) and (ast.dump(node.targets[0]), ast.dump(node.value)) in had:
            return True
    return False


def _texts(source: Source) -> Counter[str]:
    """The short texts of a source."""
    return Counter(
        n.value
        for n in source.nodes
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and len(n.value) < _SHORT
    )


def _tables(source: Source) -> dict[str, set[str]]:
    """The keys of each table of constants that a module or a class gives a name."""
    found: dict[str, set[str]] = {}
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Dict):
            continue
        name = callee_name(node.targets[0])
        if name.isupper():
            found[name] = {ast.unparse(key) for key in node.value.keys if key is not None}
    return found


CHECKS = ((TAKEN, taken),)
