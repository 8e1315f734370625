"""Changed code that no test ran and that has to be tested: all but new code that nothing which stood depends on.

New code that the instruction names is what was asked for, and is told as not shown; so is what that alone uses, and
what is given to a call with a text of the instruction. By words, not by resolution: a method of the same name is the
same to it.
"""

import ast
import re
from collections.abc import Collection, Iterable, Sequence

from localagent.code.names import last_name
from localagent.code.source_text import parse_or_none
from localagent.domain.verification import UnrunCode

_WORD = re.compile(r"\w+")
_ROLES = frozenset(
    {
        "cmd",
        "command",
        "do",
        "on",
        "handle",
        "handler",
        "run",
        "action",
        "sub",
        "subcommand",
        "get",
        "set",
        "make",
        "is",
    }
)
_SHORTEST = 3
_INSTALLS = "setup.py"  # that no test runs; what it decides the gates leave to a person


def untested(unrun: Sequence[UnrunCode], sources: Collection[str], instruction: str) -> list[UnrunCode]:
    """What of `unrun` has to be run by a test; `sources` are the changed files as they are now."""
    words = {*_WORD.findall(instruction)}
    named = [c for c in unrun if (c.new and _is_named(c, words)) or c.path.name == _INSTALLS]
    left = [c for c in unrun if c not in named]
    users, handed = _users(sources), _handed_over(sources, words)
    named += [c for c in left if c.new and c.name in handed]
    left = [c for c in left if c not in named]
    while True:  # what only serves new code that was named, step by step
        let_be = {c.name.rpartition(".")[2] for c in named}
        more = [c for c in left if c.new and (by := users.get(c.name.rpartition(".")[2])) and by <= let_be]
        if not more:
            return left
        named += more
        left = [c for c in left if c not in more]


def _is_named(code: UnrunCode, words: set[str]) -> bool:
    """Whether the instruction says the name of a function, its class or its module; `cmd_remove` for `remove`."""
    if words & {*code.name.split("."), code.path.name.partition(".")[0]}:
        return True
    parts = [part for part in code.name.rpartition(".")[2].split("_") if part]
    said = [part for part in parts if part in words and len(part) >= _SHORTEST and part not in _ROLES]
    return bool(said) and all(part in words or part in _ROLES for part in parts)


def _handed_over(sources: Iterable[str], words: set[str]) -> set[str]:
    """Functions that a call is given with a text that the instruction says: `add_argument("--tz", type=zone)`."""
    trees = (parse_or_none(text.encode()) for text in sources)
    calls = (n for tree in trees if tree is not None for n in ast.walk(tree) if isinstance(n, ast.Call))
    found = set[str]()
    for given in ([*call.args, *(k.value for k in call.keywords)] for call in calls):
        texts = [a.value for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if any(text.strip("-") in words for text in texts):
            found |= {a.id for a in given if isinstance(a, ast.Name)}
    return found


def _users(sources: Iterable[str]) -> dict[str, set[str]]:
    """By name: the functions that use it; "" where it is used outside of functions."""
    found: dict[str, set[str]] = {}
    for text in sources:
        tree = parse_or_none(text.encode())
        waiting: list[tuple[ast.AST, str]] = [(tree, "")] if tree is not None else []
        while waiting:
            node, inside = waiting.pop()
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.setdefault(last_name(node), set()).add(inside)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not inside:
                inside = node.name
            waiting += [(inner, inside) for inner in ast.iter_child_nodes(node)]
    return found
