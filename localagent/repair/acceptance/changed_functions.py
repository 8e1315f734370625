"""The functions that a patch touches, each before and after.

Limitations: a function that was renamed, added or dropped is no pair; of functions with one qualified name the
last counts.
"""

import ast
from dataclasses import dataclass

from localagent.code.spans import Function, functions
from localagent.domain.edit import FileChange
from localagent.domain.paths import RepoPath
from localagent.repair.acceptance.effect import PatchEffect
from localagent.repair.acceptance.effects import effects_of
from localagent.repair.search.enclosing_function import parsed


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionPair:
    """One function before and after, and the effects that lie in it, not in a function inside it."""

    qualname: str
    class_name: str
    old: Function
    new: Function
    effects: tuple[PatchEffect, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TouchedFile:
    """One changed Python file whose both versions parse."""

    path: RepoPath
    before: bytes
    after: bytes
    old: ast.Module
    new: ast.Module
    effects: tuple[PatchEffect, ...]
    functions: tuple[FunctionPair, ...]


def touched_file(change: FileChange) -> TouchedFile | None:
    """What a change touches; None for a file that is not Python's, or of which one version does not parse."""
    if not change.path.is_python:
        return None
    old, new = parsed(change.before), parsed(change.after)
    if old is None or new is None:
        return None
    effects = effects_of(change.before, change.after)
    touched = {e.function for e in effects}
    was = {f.qualname: f.node for f in functions(old) if f.qualname in touched}
    now = {f.qualname: f.node for f in functions(new) if f.qualname in touched}
    pairs = tuple(
        FunctionPair(
            qualname=name,
            class_name=next((e.class_name for e in effects if e.function == name), ""),
            old=node,
            new=now[name],
            effects=tuple(e for e in effects if e.function == name),
        )
        for name, node in was.items()
        if name in now
    )
    return TouchedFile(
        path=change.path, before=change.before, after=change.after, old=old, new=new, effects=effects, functions=pairs
    )
