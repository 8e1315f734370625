"""Asks the edit space, without running anything, whether people's fix is one of its edits at the lines they touched.

Not promised: an answer for fixes in several files or several functions (they count as not one edit), nor that the
search meets the edit: its order mixes places, and its budget is smaller than the space.
"""

import ast
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.real.judge import same_code
from bench.real.layout import TrueFix

_FILE_BYTES = 1 << 20
_SECONDS = 120.0


def is_one_edit(tree: Path, fix: TrueFix) -> bool:
    """True if `rank_in_space` finds the fix."""
    return rank_in_space(tree, fix) is not None


def rank_in_space(tree: Path, fix: TrueFix, failing: Sequence[Mapping[str, Any]] = ()) -> int | None:
    """Place, from 1, of the fix among the edits at its own lines, best prior first; None if it is not there.

    `failing` is the report's list of failures: some operators read the messages.
    """
    from localagent.domain.outcome import Failure, Frame  # noqa: PLC0415
    from localagent.domain.paths import RepoPath  # noqa: PLC0415 - self-checks need no localagent
    from localagent.edit.space import open_edit_space  # noqa: PLC0415

    if len(fix.lines) != 1:
        return None
    ((name, lines),) = fix.lines.items()
    path = RepoPath(name)
    sources = {
        RepoPath(p.relative_to(tree).as_posix()): p.read_bytes()
        for p in sorted(tree.rglob("*.py"))
        if p.is_file() and not p.is_symlink() and p.stat().st_size <= _FILE_BYTES
    }
    before, after = sources[path], fix.after[name]
    wanted = _functions(after)
    ends = time.monotonic() + _SECONDS
    failures = tuple(
        Failure(
            exception=f["exception"],
            message=f["message"],
            frames=tuple(Frame(path=RepoPath(w["path"]), line=w["line"], function=w["function"]) for w in f["where"]),
        )
        for f in failing
    )
    edits = open_edit_space({}).edits(path, sources, lines=lines, failures=failures)
    for rank, edit in enumerate(edits, 1):
        if time.monotonic() > ends:
            return None
        scope = edit.scope
        made = edit.apply(before)
        if scope is not None:
            start = before.rfind(b"\n", 0, scope.start) + 1
            text = made[start : scope.end + len(made) - len(before)]
            if not _matches(text, wanted.get(scope.qualname)):
                continue
        if same_code(made, after):
            return rank
    return None


def _functions(source: bytes) -> dict[str, set[str]]:
    """Qualified name -> dumps of the functions so named, as they would parse alone."""
    found: dict[str, set[str]] = {}
    stack: list[tuple[str, ast.AST]] = [("", ast.parse(source))]
    while stack:
        prefix, node = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.setdefault(prefix + child.name, set()).add(ast.dump(_bare(child)))
            elif isinstance(child, ast.ClassDef):
                stack.append((f"{prefix}{child.name}.", child))
            else:
                stack.append((prefix, child))
    return found


def _bare(node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
    if ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:]
    return node


def _matches(text: bytes, wanted: set[str] | None) -> bool:
    if wanted is None:
        return False
    try:
        tree = ast.parse(b"if 1:\n" + text if text[:1] in b" \t" else text)
    except (SyntaxError, ValueError):
        return False
    found = (n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
    first = next(found, None)
    return first is not None and ast.dump(_bare(first)) in wanted
