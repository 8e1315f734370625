"""What the model reads in front of the source: the visible tests, what the source says about itself, what is wanted.

Byte-stable: equal inputs give equal text, and the part that is the same for every place of a task comes first, so that
it is decoded once. All of it is repository text, hence data: it is shown as a program's comments and code, and nothing
in it is ever obeyed. Not promised: that a small model makes any use of it.
"""

import ast
from collections.abc import Sequence

from localagent.code.source_text import parse_or_none
from localagent.code.spans import functions, last_line
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath

TESTS_BYTES = 1400
FAILING_BYTES = 600
DOCSTRING_BYTES = 500
FAILURE_BYTES = 160
TASK_BYTES = 400
_PARSE_LIMIT_BYTES = 1 << 18


def build_context(
    tests: Sequence[tuple[RepoPath, bytes]],
    failures: Sequence[Failure],
    path: RepoPath,
    *,
    task: str = "",
    source: bytes = b"",
) -> str:
    """Text that ends right before the source of `path`. `source` offers the texts that follow its functions."""
    share = TESTS_BYTES // max(1, min(2, len(tests)))
    parts = [_clipped(_text(data), share) for _, data in tests[:2]]
    parts += [_comment(f"Task: {task}", TASK_BYTES)] if task else []
    parts += [_comment(f"{f.exception}: {f.steady}", FAILURE_BYTES) for f in failures[:2] if f.exception]
    parts += [_late_docstring(source)]
    parts += [f"# {_one_line(path, 200)}"]
    return "".join(part.rstrip("\n") + "\n" for part in parts if part.strip())


def build_failing(
    tests: Sequence[tuple[RepoPath, bytes, Sequence[str]]], failures: Sequence[Failure], *, task: str = ""
) -> str:
    """A shorter text for places where the model writes: the failing test functions themselves, and their complaints.

    `tests` are files with the names of their functions that fail, as pytest's ids end.
    """
    share = FAILING_BYTES // max(1, min(2, len(tests)))
    parts = [_clipped(_functions(_text(data), names), share) for _, data, names in tests[:2]]
    parts += [_comment(f"Task: {task}", TASK_BYTES)] if task else []
    parts += [_comment(f"{f.exception}: {f.steady}", FAILURE_BYTES) for f in failures[:1] if f.exception]
    return "".join(part.rstrip("\n") + "\n" for part in parts if part.strip())


def _functions(text: str, names: Sequence[str]) -> str:
    """The functions of a module that are called so, in the order of the names; all of it where none can be found."""
    wanted = [name.partition("[")[0].rpartition("::")[2] for name in names]
    tree = parse_or_none(text)
    if tree is None:
        return text
    lines = text.split("\n")
    nodes = sorted((f.node for f in functions(tree) if f.node.name in wanted), key=lambda n: n.col_offset)
    found = {node.name: "\n".join(lines[node.lineno - 1 : last_line(node)]) for node in nodes}
    return "\n".join(found[name] for name in dict.fromkeys(wanted) if name in found) or text


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _clipped(text: str, limit_bytes: int) -> str:
    """Whole lines from the beginning, at most so many bytes; blank lines left out."""
    out: list[str] = []
    room = limit_bytes
    for line in text.split("\n"):
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            if not out:
                out.append(line[:limit_bytes])
            break
        if line.strip():
            out.append(line)
    return "\n".join(out)


def _one_line(text: str, limit: int) -> str:
    return " ".join(text[: limit * 4].split())[:limit]


def _comment(text: str, limit: int) -> str:
    return f"# {_one_line(text, limit)}"


def _late_docstring(source: bytes) -> str:
    """A module-level string below the first statement: the model reads forward only, so it comes first."""
    if not source or len(source) > _PARSE_LIMIT_BYTES:
        return ""
    tree = parse_or_none(source)
    texts = [
        node.value.value
        for node in (tree.body[1:] if tree is not None else ())
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    return f'"""\n{_clipped(texts[0], DOCSTRING_BYTES)}\n"""' if texts else ""
