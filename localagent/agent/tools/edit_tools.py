"""Changing the copy: edit, replace_function, create, delete. Exact texts and whole functions; never diffs.

Nothing is guessed: a text that is not there, or there twice, is an error that names the nearest places. A Python file
that parsed still parses afterwards, or the edit is an error.
"""

import ast
import difflib
import textwrap

from localagent.agent.events import FileWrite
from localagent.agent.tools.tool import Action, Arguments, Done, Parameter, Tool, Workshop, bounded, numbered
from localagent.agent.tools.working_copy import MOST_FILE_CHARACTERS, ToolFault, ToolRefusal
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Definition, first_line, last_line
from localagent.domain.paths import RepoPath
from localagent.text.visible_text import shortened

_AROUND = 2
_MOST_PLACES = 6
_NEAR_FILE_LINES = 4_000


def _edit(workshop: Workshop, given: Arguments) -> Action:
    path, text = workshop.copy.text(given["path"])
    old, new = given["old"], given["new"]
    if "\r\n" in text and "\r\n" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    if old == new:
        raise ToolFault("old and new are the same; nothing would change")
    if not old and text:
        raise ToolFault("old is empty: give the exact text to replace, and repeat it in new to insert beside it")
    if (path, given["old"], given["new"]) in workshop.made_edits() and new in text:
        raise ToolFault(f"this edit was made already and stands in {path}; go on")
    count = text.count(old) if old else 1
    if count != 1:
        raise ToolFault(_places(path, text, old) if count else _nearest(path, text, old))
    return _written(workshop, path, text, text.replace(old, new, 1) if old else new)


def _places(path: RepoPath, text: str, old: str) -> str:
    lines, at = [], text.find(old)
    while at >= 0:
        lines.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + 1)
    shown = ", ".join(map(str, lines[:_MOST_PLACES])) + (" …" if len(lines) > _MOST_PLACES else "")
    return f"old occurs {len(lines)} times in {path}, at lines {shown}; add lines around it until it is unique"


def _nearest(path: RepoPath, text: str, old: str) -> str:
    lines, wanted = text.splitlines()[:_NEAR_FILE_LINES], old.splitlines()[:20]
    first = max(wanted, key=lambda line: len(line.strip()), default="").strip()
    if not first:
        return f"old does not occur in {path}; read the file and copy the text exactly"
    scored = sorted(
        ((difflib.SequenceMatcher(None, first, line.strip()).quick_ratio(), n) for n, line in enumerate(lines, 1)),
        key=lambda one: (-one[0], one[1]),
    )[:3]
    near = "\n".join(f"{n}\t{lines[n - 1]}" for score, n in scored if score > 0.6)
    told = f"; the nearest lines are:\n{near}" if near else ""
    return f"old does not occur in {path}; copy it exactly, blanks included, without line numbers{told}"


def _replace_function(workshop: Workshop, given: Arguments) -> Action:
    path, text = workshop.copy.text(given["path"])
    tree = parse_or_none(text) if path.is_python else None
    if tree is None:
        raise ToolFault(f"{path} is not Python that parses; use edit")
    node = _definition(path, tree, given["name"])
    source = textwrap.dedent(given["source"]).strip("\n") + "\n"
    made = parse_or_none(source)
    one = made.body[0] if made is not None and len(made.body) == 1 else None
    if not isinstance(one, Definition) or one.name != node.name:
        raise ToolFault(f"source must be the whole definition of {node.name} that parses, and nothing else")
    lines = text.splitlines(keepends=True)
    first = first_line(node) if one.decorator_list else node.lineno
    dent = " " * node.col_offset
    given_dent = given["source"].lstrip("\n")
    kept = given_dent.startswith(dent + given_dent.lstrip(" ")[:1]) and node.col_offset > 0
    shown = given_dent.rstrip("\n") + "\n" if kept else textwrap.indent(source, dent)
    if "\r\n" in text:
        shown = shown.replace("\r\n", "\n").replace("\n", "\r\n")
    last = last_line(node)
    if not lines[last - 1].endswith("\n"):
        shown = shown.rstrip("\r\n")
    return _written(workshop, path, text, "".join([*lines[: first - 1], shown, *lines[last:]]))


def _definition(path: RepoPath, tree: ast.Module, name: str) -> Definition:
    found: list[tuple[str, Definition]] = []
    todo: list[tuple[str, ast.stmt]] = [("", node) for node in tree.body]
    while todo:
        prefix, node = todo.pop(0)
        if isinstance(node, Definition):
            found.append((prefix + node.name, node))
            todo += [(f"{prefix}{node.name}.", inner) for inner in node.body]
        else:
            todo += [(prefix, inner) for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.stmt)]
    exact = [node for qualified, node in found if qualified == name]
    named = exact or [node for qualified, node in found if qualified.rpartition(".")[2] == name]
    if len(named) == 1:
        return named[0]
    if named:
        where = ", ".join(f"{q} (line {n.lineno})" for q, n in found if n in named)
        raise ToolFault(f"{name} is defined {len(named)} times in {path}: {where}; give the dotted name, or use edit")
    known = ", ".join(q for q, _ in found[:30])
    raise ToolFault(f"{path} defines no {shortened(name, 60)!r}; it defines: {known or 'nothing'}")


def _create(workshop: Workshop, given: Arguments) -> Action:
    path = workshop.copy.path(given["path"])
    if workshop.copy.stands(path):
        raise ToolFault(f"{path} exists; change it with edit or replace_function")
    parents = ["/".join(path.parts[:n]) for n in range(1, len(path.parts))]
    if blocked := [p for p in parents if workshop.copy.stands(RepoPath(p))]:
        raise ToolFault(f"{blocked[0]} is a file, not a folder")
    return _written(workshop, path, None, given["content"])


def _delete(workshop: Workshop, given: Arguments) -> Action:
    path, _ = workshop.copy.text(given["path"])
    write = FileWrite(path=path, text=None)
    return Action(perform=lambda: Done(text=f"deleted {path}"), writes=(write,))


def _written(workshop: Workshop, path: RepoPath, before: str | None, after: str) -> Action:
    """A file with a new text, where it may have that."""
    if len(after) > MOST_FILE_CHARACTERS:
        raise ToolRefusal(f"{path} would have more than {MOST_FILE_CHARACTERS:,} characters")
    if any("\ud800" <= c <= "\udfff" or c == "\0" for c in after):
        raise ToolRefusal("the text holds what is no UTF-8")
    if path.is_python and (before is None or parse_or_none(before) is not None) and (fault := _fault(after)):
        raise ToolFault(f"{path} would not parse: {fault}; nothing was changed")
    shown = _changed(path, before or "", after)

    def perform() -> Done:
        return Done(text=bounded(shown, workshop.limit // 2, "read the file"))

    return Action(perform=perform, writes=(FileWrite(path=path, text=after),))


def _fault(text: str) -> str:
    """Why a text is no Python, "" where it is."""
    if parse_or_none(text) is not None:
        return ""
    try:
        compile(text, "file", "exec", flags=ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return type(error).__name__
    return "it is no Python"


def _changed(path: RepoPath, before: str, after: str) -> str:
    """The changed lines in their surroundings, as they are now."""
    if not before:
        return f"created {path}, {after.count(chr(10))} lines"
    old, new = before.splitlines(), after.splitlines()
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    first, last = max(0, head - _AROUND), min(len(new), len(new) - tail + _AROUND)
    return f"edited {path}:\n{numbered(new[first:last], first + 1)}"


TOOLS = (
    Tool(
        name="edit",
        description="Replace old, which must occur exactly once in the file, by new.",
        parameters=(Parameter(name="path"), Parameter(name="old"), Parameter(name="new")),
        prepare=_edit,
    ),
    Tool(
        name="replace_function",
        description="Replace a function, method (Class.name) or class by a whole new definition.",
        parameters=(Parameter(name="path"), Parameter(name="name"), Parameter(name="source")),
        prepare=_replace_function,
    ),
    Tool(
        name="create",
        description="Make a new file.",
        parameters=(Parameter(name="path"), Parameter(name="content")),
        prepare=_create,
    ),
    Tool(name="delete", description="Delete a file.", parameters=(Parameter(name="path"),), prepare=_delete),
)
