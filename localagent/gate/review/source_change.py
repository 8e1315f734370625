"""One source before and after, as every rule of the review reads it.

A rule is a function of a `SourceChange` that yields what it found and where. One that reads a source by itself, without
what stood before, is made such a function by `newly`: a sign that stood in the same function, or anywhere in the same
words, is not new. Code may move within its file, but one sign makes up for no other.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property

from localagent.code.bindings import FUNCTIONS
from localagent.code.function_pairing import functions, pairs
from localagent.code.regions import DoesNotParse, decode_source, parse, walk
from localagent.code.spans import Function
from localagent.domain.edit import FileChange
from localagent.text.visible_text import shortened

Signs = Iterator[tuple[str, ast.AST]]
"""What each sign is, alike for what is alike, and where it stands."""
TRIVIAL = (0, 1, 2, -1, "", b"", True, False)


class Source:
    """A whole source, with what its module level sets to constants, and what is known of how it stood before."""

    def __init__(self, tree: ast.Module, before: "Source | None" = None) -> None:
        self.tree = tree
        self.nodes = walk(tree)
        self.is_script = (before or self).runs_through()
        values = [n.value for n in before.nodes if isinstance(n, ast.Constant)] if before else []
        self.known = frozenset(value for value in values if isinstance(value, str))
        self.numbers = frozenset(value for value in values if isinstance(value, int | float))
        self.named = dict(module_values(tree))

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Every function by its qualified name."""
        return dict(functions(self.tree))

    def stands_for(self, node: ast.expr) -> ast.expr:
        """A name's value where the module level sets it, else the expression itself."""
        return self.named.get(node.id, node) if isinstance(node, ast.Name) else node

    def runs_through(self) -> bool:
        """Whether nothing is defined, and several calls are made for what they do: a script, not a module."""
        calls = sum(1 for n in self.tree.body if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call))
        return calls > 1 and not any(isinstance(n, (*FUNCTIONS, ast.ClassDef)) for n in self.nodes)


class SourceChange:
    """A source before and after, and its functions that stand on both sides and differ.

    `own_packages` may be imported without a question. DoesNotParse where the source after is not Python.
    """

    def __init__(self, file: FileChange, own_packages: frozenset[str] = frozenset()) -> None:
        self.path = file.path
        self.own_packages = own_packages
        self.texts = ("", decode_source(file.after))
        after, before = parse(self.texts[1]), ast.Module(body=[], type_ignores=[])
        with suppress(DoesNotParse):  # what could not run held nothing back
            self.texts = (decode_source(file.before), self.texts[1])
            before = parse(self.texts[0])
        self.before = Source(before)
        self.after = Source(after, self.before)

    @cached_property
    def pairs(self) -> tuple[tuple[str, Function, Function], ...]:
        """(name after, function before, function after)."""
        return tuple(pairs(self.before.tree, self.after.tree))

    @cached_property
    def scopes(self) -> dict[int, str]:
        """The function that each node stands in, by the node's id; nothing for what is outside of all."""
        found = (pair for side in (self.before, self.after) for pair in functions(side.tree))
        return {id(node): name for name, function in found for node in walk(function)}


Check = Callable[[SourceChange], Signs]
NEW = "newly introduced: "


def newly(signs: Callable[[Source], Signs]) -> Check:
    """A check for signs that did not stand before."""

    def check(change: SourceChange) -> Signs:
        new = list(signs(change.after))
        if not new:
            return
        old = list(signs(change.before))
        words_before = Counter(_mentioned_identifiers(sign) for sign in old)
        left = [sign for sign in new if not _is_counted_off(words_before, _mentioned_identifiers(sign))]
        words_after = Counter(_mentioned_identifiers(sign) for sign in new)
        gone = [sign for sign in old if not _is_counted_off(words_after, _mentioned_identifiers(sign))]
        places = Counter((what, change.scopes.get(id(node), "")) for what, node in gone)
        for what, node in left:
            if not _is_counted_off(places, (what, change.scopes.get(id(node), ""))):
                yield f"{NEW}{shortened(what, 120)}", node

    return check


def differing(old: Iterable[ast.expr], new: Iterable[ast.expr]) -> tuple[list[ast.expr], list[ast.expr]]:
    """The expressions of each side that do not stand on the other in the same words."""
    had, now = ([(ast.dump(node), node) for node in side] for side in (old, new))
    kept = {text for text, _ in had} & {text for text, _ in now}
    gone, come = ([node for text, node in side if text not in kept] for side in (had, now))
    return gone, come


def module_values(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The names that a module's level gives to values."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((t.id, node.value) for t in targets if isinstance(t, ast.Name))


def _mentioned_identifiers(sign: tuple[str, ast.AST]) -> tuple[str, str]:
    return sign[0], ast.dump(sign[1])


def _is_counted_off(counts: Counter[tuple[str, str]], key: tuple[str, str]) -> bool:
    counts[key] -= 1
    return counts[key] >= 0
