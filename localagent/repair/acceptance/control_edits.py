"""Controls: an edit known to change nothing and edits known to break the program must stay red.

If one turns the failing tests green, the tests do not depend on the code and no patch could be believed.
"""

import ast
from collections.abc import Sequence

from localagent.domain.edit import Edit, Scope, Splice
from localagent.domain.paths import RepoPath
from localagent.repair.search.enclosing_function import outermost_function

_BREAKS = (b"raise SystemError('localagent control')", b"return NotImplemented")


def no_op(path: RepoPath, source: bytes, scope: Scope | None = None) -> Edit:
    """A comment: after the last statement of `scope`, or at the end of the file."""
    if scope is not None:
        comment = Splice(start=scope.end, end=scope.end, text=b"  # localagent: control")
        return _edit(path, comment, scope.last_line, scope, "control.no-op")
    lead = b"" if source.endswith((b"\n", b"\r")) or not source else b"\n"
    splice = Splice(start=len(source), end=len(source), text=lead + b"# localagent: control\n")
    return _edit(path, splice, source.count(b"\n") + 1, None, "control.no-op")


def breaking(path: RepoPath, source: bytes, line: int, scope: Scope | None = None) -> tuple[Edit, ...]:
    """Edits that ruin the function around `line` in two different ways; the whole module if there is no function.

    Two, because a failing test may expect an exception (`pytest.raises(Exception)`), which the first would satisfy.
    """
    place = _body_start(source, scope.last_line if scope is not None else line)
    if place is None:
        splice = Splice(start=0, end=0, text=b"raise SystemError('localagent control')\n")
        return (_edit(path, splice, 1, None, "control.break"),)
    offset, indent, at_line, own_line = place
    if scope is not None and not scope.body_start <= offset < scope.end:
        scope = None
    glue = b"\n" + indent if own_line else b"; "
    return tuple(
        _edit(path, Splice(start=offset, end=offset, text=text + glue), at_line, scope, "control.break")
        for text in _BREAKS
    )


def only_flaky(names: Sequence[str]) -> str:
    """Why nothing can be repaired where no test fails at every run of the unpatched tree, but some at one."""
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (
        f"no test fails at every run, but {shown} failed at one run of the unpatched tree and passed at another: they "
        "depend on chance or on what an earlier run left behind, and no patch could be believed"
    )


def _edit(path: RepoPath, splice: Splice, line: int, scope: Scope | None, operator: str) -> Edit:
    note = operator.partition(".")[2]
    return Edit(
        path=path, splices=(splice,), operator=operator, line=line, end_line=line, prior=0.0, note=note, scope=scope
    )


def _body_start(source: bytes, line: int) -> tuple[int, bytes, int, bool] | None:
    """(byte offset of the first statement, its indentation, its line, whether it stands on a line of its own).

    A docstring with more behind it stays the first: its examples may be what fails.
    """
    function = outermost_function(source, line)
    if function is None:
        return None
    first = function.body[len(function.body) > 1 and ast.get_docstring(function, clean=False) is not None]
    lines = source.splitlines(keepends=True)
    row = lines[first.lineno - 1]
    offset = sum(len(part) for part in lines[: first.lineno - 1]) + first.col_offset
    lead = row[: first.col_offset]
    return offset, lead if not lead.strip() else b"", first.lineno, not lead.strip()
