"""Gate: an exception that is silenced is not repaired.

Real fixes do catch exceptions: a handler for a particular type is let be, whatever it does, and so is one that raises
again on every path. What is refused is catching everything, widening what is caught to everything, and taking away the
very `raise` or `assert` that the failing tests trip over. Conditions that are no constants may never hold: not seen.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.policy import Permission, Policy
from localagent.gate.change import GateInput, Region
from localagent.gate.handlers import End, catches_everything, ends_of, names_of_types
from localagent.gate.names import Use, bindings_with, find_uses, module_bindings, within
from localagent.gate.rule import Example, Rule, decide
from localagent.gate.source import Snippet, SourceFile

_BASE = "def f(x):\n    return g(x)\n"
_TRIES = "def f(x):\n    try:\n        return g(x)\n    except {}:\n        {}\n"
_RAISES = "def f(x):\n    if x < 0:\n        raise ValueError(x)\n    return x\n"

_CLASS = "class A:\n    x = 0\n\n    def __enter__(self):\n        return self\n\n"
BARE = Rule(
    id="bare-except",
    severity=Severity.MEDIUM,
    why="a handler for everything also hides what nobody thought of",
    remedy="name the exceptions that are meant, or raise again",
    match=(
        Example(before=_BASE, after="def f(x):\n    try:\n        return g(x)\n    except:\n        return None\n"),
        Example(
            before="def f(x):\n    try:\n        return g(x)\n    except KeyError:\n        return None\n",
            after="def f(x):\n    try:\n        return g(x)\n    except:\n        return None\n",
        ),
    ),
    not_match=(
        Example(
            before=_BASE, after="def f(x):\n    try:\n        return g(x)\n    except:\n        log(x)\n        raise\n"
        ),
        Example(
            before="def f(x):\n    try:\n        return g(x)\n    except:\n        return 1\n",
            after="def f(x):\n    try:\n        return g(-x)\n    except:\n        return 1\n",
        ),
    ),
)
BROAD = Rule(
    id="broad-except",
    severity=Severity.MEDIUM,
    why="catching Exception or BaseException without raising again silences every failure",
    remedy="name the exceptions that are meant, or raise again",
    match=(
        Example(before=_BASE, after="def f(x):\n    try:\n        return g(x)\n    except Exception:\n        pass\n"),
        Example(
            before=_BASE,
            after="def f(x):\n    try:\n        return g(x)\n    except (KeyError, BaseException):\n        return 0\n",
        ),
        Example(
            before="def f(x):\n    try:\n        return g(x)\n    except KeyError as e:\n        return h(e)\n",
            after="def f(x):\n    try:\n        return g(x)\n    except Exception as e:\n        return h(e)\n",
        ),
        Example(
            before="import builtins as b\n" + _BASE,
            after="import builtins as b\ndef f(x):\n    try:\n        return g(x)\n    except b.Exception:\n        0",
        ),
        Example(before=_BASE, after="def f(x):\n    try:\n        return g(x)\n    except* Exception:\n        pass\n"),
        *(
            Example(before=_BASE, after=_TRIES.format(kind, body))
            for kind, body in (
                ("Exception", "if 0:\n            raise\n        return None"),
                ("Exception", "while 1 > 2:\n            raise\n        return None"),
                ("Exception", "def again():\n            raise\n        return None"),
                ("Exception", "return None\n        raise"),
                ("(ValueError, *(Exception,))", "return None"),
                ("(ValueError,) + (Exception,)", "return None"),
            )
        ),
        Example(before="E = Exception\n" + _BASE, after="E = Exception\n" + _TRIES.format("E", "return None")),
        Example(
            before="A = (KeyError, Exception)\n" + _BASE, after="A = (KeyError, Exception)\n" + _TRIES.format("A", "0")
        ),
        Example(before=_BASE, after="from builtins import Exception as E\n" + _TRIES.format("E", "return None")),
    ),
    not_match=(
        Example(
            before=_BASE, after="def f(x):\n    try:\n        return g(x)\n    except KeyError:\n        return None\n"
        ),
        Example(
            before=_BASE,
            after="def f(x):\n    try:\n        return g(x)\n    except Exception as e:\n        raise Own(x) from e\n",
        ),
        Example(
            before="def f(x):\n    try:\n        return g(x)\n    except KeyError:\n        return 1\n",
            after="def f(x):\n    try:\n        return g(x)\n    except (KeyError, IndexError):\n        return 1\n",
        ),
        Example(before="E = KeyError\n" + _BASE, after="E = KeyError\n" + _TRIES.format("E", "return None")),
        Example(before=_BASE, after=_TRIES.format("Exception", "if x:\n            h(x)\n        raise")),
        Example(
            before=_BASE,
            after=_TRIES.format("Exception", "if x:\n            raise Own(x)\n        else:\n            raise"),
        ),
    ),
)
AT_TIMES = Rule(
    id="broad-except-at-times",
    severity=Severity.MEDIUM,
    why="a handler of everything that raises again on some of its paths silences the others",
    remedy="name the exceptions that are meant, or raise again on every path",
    match=tuple(
        Example(before=_BASE, after=_TRIES.format("Exception", body))
        for body in (
            "if x:\n            raise\n        return None",
            "for y in x:\n            raise\n        return None",
        )
    ),
    not_match=(
        Example(before=_BASE, after=_TRIES.format("KeyError", "if x:\n            raise\n        return None")),
        Example(before=_BASE, after=_TRIES.format("Exception", "h(x)\n        raise")),
    ),
    asks_person=True,
)
SUPPRESS = Rule(
    id="suppress",
    severity=Severity.MEDIUM,
    why="contextlib.suppress is a handler that does nothing",
    remedy="handle the exception, or let it through",
    match=(
        Example(
            before="import contextlib\n" + _BASE,
            after="import contextlib\ndef f(x):\n    with contextlib.suppress(Exception):\n        return g(x)\n",
        ),
        Example(
            before="from contextlib import suppress as s\n" + _BASE,
            after="from contextlib import suppress as s\ndef f(x):\n    with s(KeyError):\n        return g(x)\n",
        ),
    ),
    not_match=(
        Example(
            before=_BASE, after="import contextlib\ndef f(x):\n    with contextlib.closing(x):\n        return g(x)\n"
        ),
    ),
)
SILENCES = Rule(
    id="silences-raise",
    severity=Severity.MEDIUM,
    why="the only change takes away the raise or assert that the failing tests end in",
    remedy="make what is computed right, and leave the check",
    match=(
        Example(before=_RAISES, after="def f(x):\n    return x\n", exception="ValueError"),
        Example(before=_RAISES, after="def f(x):\n    if x < 0:\n        pass\n    return x\n", exception="ValueError"),
        Example(
            before=_RAISES,
            after="def f(x):\n    if x < 0:\n        return None\n    return x\n",
            exception="ValueError",
        ),
        Example(
            before="def f(x):\n    assert x > 0, x\n    return x\n",
            after="def f(x):\n    return x\n",
            exception="AssertionError",
        ),
    ),
    not_match=(
        Example(before=_RAISES, after="def f(x):\n    return x\n", exception="KeyError"),
        Example(before=_RAISES, after=_RAISES.replace("ValueError", "TypeError"), exception="ValueError"),
        Example(before=_RAISES, after=_RAISES.replace("x < 0", "x < -1"), exception="ValueError"),
        Example(
            before=_RAISES, after="def f(x):\n    if x < 0:\n        x = abs(x)\n    return x\n", exception="ValueError"
        ),
    ),
)
FINALLY = Rule(
    id="finally-jumps",
    severity=Severity.MEDIUM,
    why="a `finally` that leaves by return, break or continue drops whatever was raised",
    remedy="leave after the `try`, or handle the exceptions that are meant",
    match=(
        Example(before=_BASE, after="def f(x):\n    try:\n        return g(x)\n    finally:\n        return None\n"),
        Example(
            before="def f(x):\n    for y in x:\n        g(y)\n",
            after="def f(x):\n    for y in x:\n        try:\n            g(y)\n        finally:\n            break\n",
        ),
    ),
    not_match=(
        Example(before=_BASE, after="def f(x):\n    try:\n        return g(x)\n    finally:\n        h(x)\n"),
        Example(
            before=_BASE,
            after="def f(x):\n    try:\n        return g(x)\n    finally:\n        for y in x:\n            break\n",
        ),
    ),
)
EXIT = Rule(
    id="exit-swallows",
    severity=Severity.MEDIUM,
    why="an `__exit__` that answers true drops whatever was raised in the block",
    remedy="answer nothing, or catch the exceptions that are meant inside",
    match=(
        *(
            Example(before=_CLASS, after=_CLASS + method)
            for method in (
                "    def __exit__(self, kind, error, trace):\n        return True\n",
                "    async def __aexit__(self, *_):\n        self.x = 1\n        return 1\n",
                "    def __exit__(self, kind, error, trace):\n        return kind is not None\n",
                "    __exit__ = lambda self, *_: True\n",
            )
        ),
        Example(before=_BASE, after="def f(x, s):\n    s.push(lambda *_: True)\n    return g(x)\n"),
    ),
    not_match=(
        Example(before=_CLASS, after=_CLASS + "    def __exit__(self, kind, error, trace):\n        self.x = 1\n"),
        Example(before=_CLASS, after=_CLASS + "    def __exit__(self, *a):\n        return self.x.__exit__(*a)\n"),
        Example(before=_CLASS, after=_CLASS + "    def __exit__(self, *a):\n        return False\n"),
    ),
    asks_person=True,
)
RULES = (BARE, BROAD, AT_TIMES, SUPPRESS, SILENCES, FINALLY, EXIT)

_KINDS = (AT_TIMES, BROAD, BARE)  # each says more than the one before
_PUSHES = ("push", "push_async_exit")
_EXITS = ("__exit__", "__aexit__")
_CONCERNED = (ast.Raise, ast.Assert, ast.ExceptHandler, ast.Try, ast.TryStar)
_BLOCKS = ("body", "orelse", "finalbody")


class Swallow:
    """Refuses handlers that catch everything and edits that only take a raise away."""

    name = "swallow"

    def __init__(self, policy: Policy) -> None:
        self._allowed = policy.swallowed_exceptions is Permission.ALLOW

    def review(self, change: GateInput) -> Decision:
        """Deny if a rule of this file fires on a changed region."""
        if self._allowed:
            return decide(self.name, [])
        failing = set(change.baseline.failing)
        fails_with = {t.failure.exception for t in change.baseline.tests if t.failure and t.id in failing}
        found: list[Finding] = []
        for region in change.regions:
            others = [r.whole.after for r in change.regions if r.path == region.path] if len(change.regions) > 1 else []
            if not _concerns(region) and not any("suppress" in other.text for other in others):
                continue
            found += _handlers(region, others)
            found += _suppressions(region, others)
            found += _jumps(region)
            found += _exits(region)
            found += _silenced(region, fails_with)
        return decide(self.name, found)


def _concerns(region: Region) -> bool:
    """True if something near the change raises, asserts, handles or suppresses."""
    if _may_suppress(region.file):
        return True
    for snippet in region.near:
        if snippet is None or "suppress" in snippet.text or "exit__" in snippet.text or ".push(" in snippet.text:
            return True
        if "concerns" not in snippet.memo:
            snippet.memo["concerns"] = any(isinstance(node, _CONCERNED) for node in snippet.nodes)
        if snippet.memo["concerns"]:
            return True
    return False


def _may_suppress(file: SourceFile) -> bool:
    if "may-suppress" not in file.memo:
        file.memo["may-suppress"] = b"suppress" in file.source and b"contextlib" in file.source
    return bool(file.memo["may-suppress"])


def _handlers(region: Region, others: list[Snippet]) -> Iterator[Finding]:
    """New handlers of everything; one that was there may become milder, never worse."""
    before, after = region.whole
    if before is None and region.file.source.count(b"except") >= after.text.count("except"):
        return
    handlers = _nodes(after)
    if not handlers:
        return
    known = names_of_types((*region.file.bindings, *after.nodes, *(node for other in others for node in other.nodes)))
    had = [_kind(h, known) for h in _nodes(before)] if before else []
    spare = [sum(kind >= least for kind in had) for least in range(len(_KINDS) + 1)]
    for handler in handlers:
        kind = _kind(handler, known)
        for least in range(1, kind + 1):
            spare[least] -= 1
        if any(spare[least] < 0 for least in range(1, kind + 1)):
            rule = _KINDS[kind - 1]
            yield rule.finding(region.path, after.line_of(handler), f"new handler of everything: {rule.why}")


def _jumps(region: Region) -> Iterator[Finding]:
    """New ways out of a `finally` that drop an exception."""
    before, after = region.whole
    spare = len(list(_leaving(before))) if before else 0
    for node in _leaving(after):
        spare -= 1
        if spare < 0:
            yield FINALLY.finding(region.path, after.line_of(node), f"newly: {FINALLY.why}")


def _exits(region: Region) -> Iterator[Finding]:
    """New ways of a context manager to answer that nothing was raised."""
    before, after = region.whole
    spare = Counter(what for what, _ in _dropping(before)) if before else Counter[str]()
    for what, node in _dropping(after):
        spare[what] -= 1
        if spare[what] < 0:
            yield EXIT.finding(region.path, after.line_of(node), f"{what}: {EXIT.why}")


def _dropping(snippet: Snippet) -> Iterator[tuple[str, ast.AST]]:
    for node in snippet.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in _EXITS:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and inner.value is not None and _may_be_true(inner.value):
                    yield f"{node.name} answers {ast.unparse(inner.value)[:40]}", inner
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and _may_be_true(node.value.body):
            if any(isinstance(t, ast.Name | ast.Attribute) and _name(t) in _EXITS for t in node.targets):
                yield f"an exit answers {ast.unparse(node.value.body)[:40]}", node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PUSHES:
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Lambda) and _may_be_true(first.body):
                yield "an exit is pushed", node


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


def _may_be_true(node: ast.expr) -> bool:
    """False for constants that are false, and for what another context manager answers."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.Await):
        node = node.value
    return not (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (*_EXITS, "close")
    )


def _leaving(snippet: Snippet) -> Iterator[ast.stmt]:
    for node in snippet.nodes:
        if isinstance(node, ast.Try | ast.TryStar):
            yield from _ways_out(node.finalbody, loops=True)


def _ways_out(body: list[ast.stmt], *, loops: bool) -> Iterator[ast.stmt]:
    """Statements that leave a block: `break` and `continue` only of a loop around it."""
    for node in body:
        if isinstance(node, ast.Return) or (loops and isinstance(node, ast.Break | ast.Continue)):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = loops and not isinstance(node, ast.For | ast.AsyncFor | ast.While)
            blocks = [getattr(node, name, []) for name in _BLOCKS]
            blocks += [part.body for name in ("handlers", "cases") for part in getattr(node, name, [])]
            for block in blocks:
                yield from _ways_out(block, loops=inner)


def _nodes(snippet: Snippet) -> list[ast.ExceptHandler]:
    return [node for node in snippet.nodes if isinstance(node, ast.ExceptHandler)]


def _kind(handler: ast.ExceptHandler, known: dict[str, list[ast.expr]]) -> int:
    """How much a handler hides, by the place in `_KINDS` from 1; 0 if it names what it catches or raises again."""
    if handler.type is not None and not catches_everything(handler.type, known):
        return 0
    ends = ends_of(handler.body)
    if End.RAISES in ends:
        return 1 if len(ends) > 1 else 0
    return 3 if handler.type is None else 2


def _suppressions(region: Region, others: list[Snippet]) -> Iterator[Finding]:
    """New uses of contextlib.suppress; `others` are changed parts of the same file, which may import it."""
    before, after = region.whole
    if "suppress" not in after.text and not others and not _may_suppress(region.file):
        return
    outer = bindings_with(region.file, others) if others else module_bindings(region.file)
    uses = within(region.file, before).uses if before else Counter[Use]()
    seen, had = 0, uses[Use("call", "contextlib.suppress")]
    for use, node in find_uses(after.tree, outer):
        if use.kind == "call" and use.name == "contextlib.suppress":
            seen += 1
            if seen > had:
                yield SUPPRESS.finding(region.path, after.line_of(node), SUPPRESS.why)


def _silenced(region: Region, fails_with: set[str]) -> Iterator[Finding]:
    before, after = region.whole
    if before is None or not fails_with:
        return
    old, new = _steps(before), _steps(after)
    head = 0
    while head < min(len(old), len(new)) and old[head][0] == new[head][0]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail][0] == new[-1 - tail][0]:
        tail += 1
    gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
    raised = [node for _, node in gone if isinstance(node, ast.Raise | ast.Assert)]
    only_raises = all(isinstance(node, ast.Raise | ast.Assert | ast.If | ast.Pass) for _, node in gone)
    if raised and only_raises and all(_does_nothing(node) for _, node in come):
        for node in raised:
            if _raises(node) & fails_with or not _raises(node):
                yield SILENCES.finding(
                    region.path, region.near.after.line, f"{SILENCES.why} ({', '.join(sorted(fails_with))})"
                )
                return


def _steps(snippet: Snippet) -> list[tuple[str, ast.stmt]]:
    """Statements in order, compound ones by their heads, each with its text. Kept with the snippet."""
    if "steps" not in snippet.memo:
        steps: list[tuple[str, ast.stmt]] = []
        _walk(snippet.tree.body, steps)
        snippet.memo["steps"] = steps
    kept: list[tuple[str, ast.stmt]] = snippet.memo["steps"]
    return kept


def _walk(body: list[ast.stmt], steps: list[tuple[str, ast.stmt]]) -> None:
    for node in body:
        blocks = [v for v in (getattr(node, name, None) for name in _BLOCKS) if isinstance(v, list)]
        handlers: list[ast.ExceptHandler] = getattr(node, "handlers", [])
        if not blocks:
            steps.append((ast.dump(node), node))
            continue
        head = [_dump(v) for k, v in ast.iter_fields(node) if k not in (*_BLOCKS, "handlers")]
        head += [_dump(handler.type) for handler in handlers]
        steps.append((f"{type(node).__name__} {head}", node))
        for block in (*blocks, *(handler.body for handler in handlers)):
            _walk(block, steps)


def _dump(value: object) -> str:
    if isinstance(value, ast.AST):
        return ast.dump(value)
    return str([_dump(item) for item in value]) if isinstance(value, list) else repr(value)


def _does_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Return):
        return node.value is None or isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass | ast.Continue | ast.Break | ast.If)


def _raises(node: ast.stmt) -> set[str]:
    """The bare name of what a statement raises, empty if it cannot be told."""
    if isinstance(node, ast.Assert):
        return {"AssertionError"}
    raised = node.exc if isinstance(node, ast.Raise) else None
    if isinstance(raised, ast.Call):
        raised = raised.func
    if isinstance(raised, ast.Attribute):
        return {raised.attr}
    return {raised.id} if isinstance(raised, ast.Name) and raised.id[:1].isupper() else set()
