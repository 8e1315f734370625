"""What a patch is for, where nobody said it: from what it turns, from what it adds, from what answers otherwise. Pure.

Limitations: intent is not in a patch. A bug fix that brings a new function and a test for it reads like a feature, and
a feature that no test asks for is unknown.
"""

import ast
from collections.abc import Sequence

from localagent.code.source_text import parse_or_none
from localagent.domain.claim import Claim
from localagent.domain.verification import Differential
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.worker.function_regions import regions


def inferred_claim(
    files: Sequence[ChangedFile],
    *,
    turned: Sequence[str],
    added: Sequence[str],
    near: Differential | None,
    data: bool,
) -> Claim:
    """The claim. `turned` are tests and checks, `added` tests that only the patched tree has.

    `data`: files that are neither Python nor text for people change too.
    """
    if turned:
        return Claim.ADDS if set(turned) <= set(added) and only_adds(files) else Claim.FIXES
    if not files:
        return Claim.UNKNOWN if data else Claim.PRESERVES
    if near is not None and near.others:
        return Claim.UNKNOWN
    around = any(file.around() or file.fresh() for file in files)
    compared = near is not None and bool(near.functions) and all(f.reached_by_inputs for f in near.functions)
    return Claim.PRESERVES if compared and not around and not data else Claim.UNKNOWN


def only_adds(files: Sequence[ChangedFile]) -> bool:
    """Whether there are functions, classes or parameters that were not there, and nothing else but lines that came."""
    return any(_adds(file) for file in files) and all(_loses_nothing(file) for file in files)


def _adds(file: ChangedFile) -> bool:
    if not file.before:
        return True
    old, new = parse_or_none(file.before), parse_or_none(file.after)
    if old is None or new is None:
        return False
    return bool(_names(new) - _names(old))


def _names(tree: ast.Module) -> set[str]:
    """Definitions and parameters, with where they stand."""
    found: set[str] = set()
    todo: list[tuple[str, ast.AST]] = [("", tree)]
    while todo:
        where, node = todo.pop()
        name = where
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.arg):
            name = f"{where}.{node.arg if isinstance(node, ast.arg) else node.name}"
            found.add(name)
        todo += [(name, child) for child in ast.iter_child_nodes(node)]
    return found


def _loses_nothing(file: ChangedFile) -> bool:
    """Whether no line went but heads of functions, which take new parameters, and lines outside of functions."""
    if not file.after:
        return False
    known = regions(file.before)
    if known is None:
        return not file.before
    gone = file.lines()[0]
    return not any(f.body_line <= n <= f.last_line for f in known.functions for n in gone)
