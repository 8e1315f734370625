"""The program that a reduction starts with: a test's file, with what its conftest files define in front.

Not promised: that the whole behaves as the parts did; it is run, and where it does not fail in the same way, conftest
files stay where they are.
"""

import ast
from collections.abc import Mapping, Sequence

from localagent.code.source_text import line_starts, parse_or_none, read_source
from localagent.code.spans import Function, first_line, last_line
from localagent.domain.paths import RepoPath


def conftests_of(path: RepoPath, files: Mapping[RepoPath, bytes]) -> tuple[RepoPath, ...]:
    """The conftest files that pytest loads for a test file, outermost first."""
    folders = ["/".join(path.parts[:depth]) for depth in range(len(path.parts))]
    names = [RepoPath(f"{folder}/conftest.py" if folder else "conftest.py") for folder in folders]
    return tuple(name for name in names if name in files)


def merged(conftests: Sequence[bytes], test: bytes) -> bytes | None:
    """One source; None where a part does not parse, or a conftest file has hooks or names plugins."""
    future: list[bytes] = []
    parts: list[bytes] = []
    for number, source in enumerate((*conftests, test)):
        text = read_source(source)
        tree = parse_or_none(source)
        if text is None or tree is None:
            return None
        is_test = number == len(conftests)
        if not is_test and any(map(_steers_pytest, tree.body)):
            return None
        imports, rest = _without_future(text.utf8, tree)
        future += imports
        parts.append(rest)
    return b"".join(dict.fromkeys(future)) + b"\n\n".join(parts)


def _steers_pytest(statement: ast.stmt) -> bool:
    if isinstance(statement, Function):
        return statement.name.startswith("pytest_")
    return any(isinstance(n, ast.Name) and n.id.startswith("pytest_plugins") for n in ast.walk(statement))


def _without_future(source: bytes, tree: ast.Module) -> tuple[list[bytes], bytes]:
    starts = (*line_starts(source), len(source))
    found: list[bytes] = []
    rest = source
    for statement in reversed(tree.body):
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            begin, end = starts[first_line(statement) - 1], starts[last_line(statement)]
            found.insert(0, source[begin:end])
            rest = rest[:begin] + rest[end:]
    return found, rest
