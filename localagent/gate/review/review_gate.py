"""Gate: what a change means where nothing in it is dangerous by name: doors, lost checks, written answers.

These are signs and no proofs, so each asks a person, and tests are let be. A sign that stood in the same function, or
stood anywhere in the same words, is not new: code may move within its file, but one sign makes up for no other. Not
seen: meaning that needs values, other files, or what is called.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator

import pathspec

from localagent.code.function_pairing import functions
from localagent.code.regions import DoesNotParse, decode_source, parse
from localagent.domain.edit import FileChange
from localagent.domain.gate import Decision, Finding
from localagent.domain.policy import Policy
from localagent.gate.core.gate_input import GateInput
from localagent.gate.core.rule import decide
from localagent.gate.review.access_and_money import STAKES, stakes
from localagent.gate.review.changed_arguments import GIVEN, asks, given
from localagent.gate.review.changed_control_flow import STEERING, steered
from localagent.gate.review.changed_thresholds import BOUND, moved
from localagent.gate.review.data_exposure import EXPOSED, exposed
from localagent.gate.review.dropped_arguments import DROPPED, dropped
from localagent.gate.review.hard_coded_answers import AnswerSource, written_answers
from localagent.gate.review.hidden_triggers import TRIGGER, triggers
from localagent.gate.review.llm_prompt_changes import PROMPT, prompts
from localagent.gate.review.logic_rules import (
    ANSWERS,
    CHECK,
    CLOCK,
    ENDLESS,
    GUARD,
    IMPORTS,
    MAGIC,
    OPAQUE,
    REPLACED,
    SILENT,
    UNASKED,
    WIDENED,
)
from localagent.gate.review.new_side_effects import ACTS, acts
from localagent.gate.review.obfuscation import COMPUTED, computed, escaped_letters
from localagent.gate.review.reduced_behaviour import NARROWED, narrowed
from localagent.gate.review.removals import TAKEN, taken
from localagent.gate.review.removed_checks import checks, guards, reordered, undecorated, unreached, widened
from localagent.gate.review.removed_error_reporting import UNREPORTED, quieted, unreported
from localagent.gate.review.removed_limits import LIMIT, loosened_limits
from localagent.gate.review.secret_leaks import TOLD, told
from localagent.gate.review.suspicious_constructs import (
    bound_again,
    clocks,
    endless,
    exchanged,
    known_keys,
    magic,
    opaque,
    replaced,
    shadowed,
    silent,
    unasked,
)
from localagent.gate.review.unbounded_growth import GROWTH, grows
from localagent.gate.review.weak_secrets import KEPT, kept
from localagent.gate.review.weakened_conditions import LESS, emptied, less
from localagent.gate.review.weaker_comparisons import LOOSER, looser, partial_equality

_STDLIB = frozenset(sys.stdlib_module_names) | {"__future__", "typing_extensions"}
_SIGNS = (
    (MAGIC, magic), (ANSWERS, written_answers), (CLOCK, clocks), (SILENT, silent), (REPLACED, replaced),
    (REPLACED, shadowed), (REPLACED, bound_again), (REPLACED, exchanged), (UNASKED, unasked),
    (ENDLESS, endless), (OPAQUE, opaque), (COMPUTED, computed), (TOLD, told), (KEPT, kept), (GIVEN, asks),
    (GROWTH, grows), (TRIGGER, triggers), (ACTS, acts), (EXPOSED, exposed),
    (UNREPORTED, quieted), (MAGIC, known_keys), (LESS, emptied), (PROMPT, prompts),
)  # fmt: skip
_LOOSER = (
    (GUARD, unreached),
    (LESS, less),
    (DROPPED, dropped),
    (BOUND, moved),
    (GIVEN, given),
    (LIMIT, loosened_limits),
    (LOOSER, looser),
    (TAKEN, taken),
    (STEERING, steered),
    (NARROWED, narrowed),
    (UNREPORTED, unreported),
    (CHECK, reordered),
    (CHECK, undecorated),
    (LESS, partial_equality),
)
_LOST = ((GUARD, guards), (CHECK, checks))


class Logic:
    """Asks a person where a change takes a check away, or brings what only its author would know."""

    name = "logic"

    def __init__(self, policy: Policy) -> None:
        self._tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.patches.lenient])

    def review(self, change: GateInput) -> Decision:
        """Deny if a sign stands more often than before, or a check less often."""
        found: list[Finding] = []
        own = {part.removesuffix(".py") for file in change.changes for part in file.path.split("/")}
        own |= change.own_packages
        for file in change.sources_changed:
            if not self._tests.match_file(file.path.replace("\n", " ").lower()):
                found += reviewed(file, own)
        return decide(self.name, found)


def reviewed(file: FileChange, own: set[str]) -> Iterator[Finding]:
    """The signs that one source brings; `own` are the packages that it may import without a question."""
    try:
        text = decode_source(file.after)
        after = parse(text)
    except DoesNotParse:
        return  # refused by another gate
    said = ""
    try:
        said = decode_source(file.before)
        before = parse(said)
    except DoesNotParse:
        before = ast.Module(body=[], type_ignores=[])  # what could not run held nothing back
    old = AnswerSource(before)
    new = AnswerSource(after, old)
    scopes = {**_scopes(before), **_scopes(after)}
    for rule, signs in _SIGNS:
        for what, node in _fresh(list(signs(old)), list(signs(new)), scopes):
            yield rule.finding(file.path, int(getattr(node, "lineno", 0)), f"newly introduced: {what[:120]}")
    for rule, ways in _LOST:
        gone = Counter(ways(before)) - Counter(ways(after))
        if gone:
            yield rule.finding(file.path, 0, f"gone: {', '.join(sorted(gone))[:120]}")
    for kind, condition in widened(before, after):
        rule = GUARD if kind == "guard" else WIDENED
        yield rule.finding(file.path, int(getattr(condition, "lineno", 0)), f"newly: {ast.unparse(condition)[:120]}")
    for rule, differences in _LOOSER:
        for what, node in differences(before, after):
            yield rule.finding(file.path, int(getattr(node, "lineno", 0)), what[:140])
    for what, node in stakes(before, after, file.path):
        yield STAKES.finding(file.path, int(getattr(node, "lineno", 0)), what[:140])
    if escaped_letters(text) > escaped_letters(said):
        yield COMPUTED.finding(file.path, 0, "letters are written by their numbers")
    had = {name for name, _ in _imported(before)}
    for name, node in _imported(after):
        if name not in had | own | _STDLIB:
            yield IMPORTS.finding(file.path, node.lineno, f"newly imported: {name}")


Sign = tuple[str, ast.AST]


def _fresh(old: list[Sign], new: list[Sign], scopes: dict[int, str]) -> Iterator[Sign]:
    """Signs that did not stand before: not in the same words anywhere, and not in the same function."""
    if not new:
        return
    said = Counter((what, ast.dump(node)) for what, node in old)
    left = [(what, node) for what, node in new if not _taken(said, (what, ast.dump(node)))]
    kept = Counter((what, ast.dump(node)) for what, node in new)
    places = Counter[tuple[str, str]]()
    for what, node in old:
        if not _taken(kept, (what, ast.dump(node))):
            places[what, scopes.get(id(node), "")] += 1
    yield from ((what, node) for what, node in left if not _taken(places, (what, scopes.get(id(node), ""))))


def _taken(counts: Counter[tuple[str, str]], key: tuple[str, str]) -> bool:
    counts[key] -= 1
    return counts[key] >= 0


def _scopes(tree: ast.Module) -> dict[int, str]:
    """The function that each node stands in, by the node's id; "" outside of all."""
    return {id(node): name for name, function in functions(tree) for node in ast.walk(function)}


def _imported(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """The packages that a source imports, with where; relative ones are its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").split(".")[0], node
