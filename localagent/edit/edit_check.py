"""Validity and identity of an edited unit: does it parse, and which syntax tree does it have?

Only the smallest part of the unit that holds the splices is parsed again. Not promised: what the compiler alone knows
(`return` outside functions and the like), unless the whole unit is compiled with `compiles`.
"""

import ast
import warnings
from collections.abc import Sequence

from localagent.code import normal_form
from localagent.code.source_text import parse_or_none
from localagent.edit.unit import Block, Stmt, Unit

Splices = Sequence[tuple[int, int, str]]


def spliced(text: bytes, start: int, end: int, splices: Splices) -> str:
    """The text of [start, end) after the splices that lie in it."""
    out: list[bytes] = []
    at = start
    for s, e, new in splices:
        out += (text[at:s], new.encode("utf-8"))
        at = e
    out.append(text[at:end])
    return b"".join(out).decode("utf-8")


def tree_digest(unit: Unit, splices: Splices) -> int | None:
    """Digest of the unit's syntax tree after the splices; None if it does not parse, or is nested too deeply."""
    try:
        return _tree_digest(unit, splices)
    except (RecursionError, MemoryError):
        return None


def _tree_digest(unit: Unit, splices: Splices) -> int | None:
    low, high = splices[0][0], splices[-1][1]
    suite = unit.root
    path: list[Block] = [suite]
    while True:
        holder = _holder(suite, low, high)
        if holder is None:
            break
        if not holder.compound:
            found = _simple(unit, holder, splices)
            if found is not None or not any("\n" in new or "\r" in new for _, _, new in splices):
                return found
            break  # several lines now: their block decides where they belong
        inner = next((s for s in holder.suites if _inside(s, low, high)), None)
        if inner is None:
            found = _header(unit, holder, low, high, splices)
            if found is not None:
                return found
            break
        suite = inner
        path.append(suite)
    return _block(unit, path, low, high, splices)


def compiles(unit: Unit, splices: Splices) -> bool:
    """Whether Python's compiler takes the whole edited unit."""
    text = unit.prefix + spliced(unit.text, 0, len(unit.text), splices)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<unit>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _holder(suite: Block, low: int, high: int) -> Stmt | None:
    for s in suite.statements:
        if s.start <= low and high <= s.end:
            return s
    return None


def _inside(suite: Block, low: int, high: int) -> bool:
    if not suite.statements:
        return False
    first, last = suite.statements[0], suite.statements[-1]
    if suite.inline:
        return any(s.start <= low and high <= s.end for s in suite.statements)
    return first.line_start <= low and high <= last.line_end


def _simple(unit: Unit, holder: Stmt, splices: Splices) -> int | None:
    tree = parse_or_none(spliced(unit.text, holder.start, holder.end, splices))
    if tree is None or not tree.body or any(hasattr(s, "body") for s in tree.body):
        return None
    return _replaced(
        unit, holder.suite, holder.index, holder.index + 1, [normal_form.statement_digest(s) for s in tree.body]
    )


def _header(unit: Unit, holder: Stmt, low: int, high: int, splices: Splices) -> int | None:
    if high < holder.head_end or (high == holder.head_end and splices[-1][2].endswith(":")):
        head = unit.head_digest_of(holder, spliced(unit.text, holder.start, holder.head_end, splices))
        if head is None:
            return None
        digest = normal_form.compound_digest(head, [unit.suite_digest(s) for s in holder.suites])
        return _replaced(unit, holder.suite, holder.index, holder.index + 1, [digest])
    for suite in holder.suites:
        if suite.head is not None and suite.head[0] <= low and high < suite.head[1]:
            head = unit.clause_digest(suite, spliced(unit.text, *suite.head, splices))
            if head is None:
                return None
            changed = normal_form.suite_digest(head, [unit.digest(s) for s in suite.statements])
            return _suite_replaced(unit, suite, changed)
    return None


def _block(unit: Unit, path: list[Block], low: int, high: int, splices: Splices) -> int | None:
    for suite in reversed(path):
        if suite.inline or suite.slot == "elif" or not suite.statements:
            continue
        rows = suite.statements
        first = next((i for i, s in enumerate(rows) if s.line_end > low), len(rows) - 1)
        last = max((i for i, s in enumerate(rows) if s.line_start <= high), default=first)
        last = max(first, last)
        start, end = min(rows[first].line_start, low), max(rows[last].line_end, high)
        text = spliced(unit.text, start, end, splices)
        body = _parsed_rows(text, rows[first].indent)
        if body is None:
            continue
        return _replaced(unit, suite, first, last + 1, [normal_form.statement_digest(s) for s in body])
    return None


def _parsed_rows(text: str, indent: str) -> list[ast.stmt] | None:
    tree = parse_or_none("if 1:\n" + text if indent else text)
    if tree is None:
        return None
    if not indent:
        return tree.body
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.If):
        return None
    return None if tree.body[0].orelse else tree.body[0].body


def _replaced(unit: Unit, suite: Block, first: int, end: int, digests: list[int]) -> int | None:
    kept = [unit.digest(s) for s in suite.statements]
    whole = [*kept[:first], *digests, *kept[end:]]
    if not whole and suite.slot in ("body", "except", "case"):
        return None
    return _suite_replaced(unit, suite, normal_form.suite_digest(suite.head_digest, whole))


def _suite_replaced(unit: Unit, suite: Block, digest: int) -> int:
    owner = suite.owner
    while owner is not None:
        digests = [digest if s is suite else unit.suite_digest(s) for s in owner.suites]
        statement = normal_form.compound_digest(owner.head_digest, digests)
        suite = owner.suite
        rows = [statement if s is owner else unit.digest(s) for s in suite.statements]
        digest = normal_form.suite_digest(suite.head_digest, rows)
        owner = suite.owner
    return digest
