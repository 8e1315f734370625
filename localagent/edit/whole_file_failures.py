"""Which failures speak of a whole file: a name that cannot be imported, one undefined at import, a lost function.

Not promised: that such a failure has its cause in the file.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from localagent.code.symbols import FileFacts
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath

_NO_IMPORT = re.compile(r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'")
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_NO_MEMBER = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
MUTABLE_FIELD = re.compile(r"mutable default <class '[\w.]+'> for field (\w+) is not allowed")
_NO_DECORATOR = re.compile(r"<bound method |'method'|method object|\(\) (?:missing \d+ required|takes \d+) positional")
_NO_NAME = re.compile(r"name '(\w+)' is not defined")
_NO_METHOD = re.compile(r"(?:type object '(\w+)'|'(\w+)' object) has no attribute '(\w+)'")
_STRAY = re.compile(r"'(?:return|yield(?: from)?|await)' outside function|'break' outside loop|'continue' not properly")
_UNRETURNED = frozenset({"AssertionError", "TypeError", "AttributeError"})


def wanted_names(path: RepoPath, failures: Sequence[Failure]) -> list[str]:
    """Names that somebody wanted from this module in vain."""
    out: dict[str, None] = {}
    stem = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    for failure in failures:
        for found in _NO_IMPORT.finditer(failure.message):
            if f".{stem}".endswith(f".{found.group(2)}"):
                out.setdefault(found.group(1))
        for found in _NO_MEMBER.finditer(failure.message):
            if f".{stem}".endswith(f".{found.group(1)}"):
                out.setdefault(found.group(2))
    return list(out)


class FailedImport(NamedTuple):
    """What a file wanted to import in vain: a name of a module, or the module (`name` is empty)."""

    module: str
    name: str


def failed_import(path: RepoPath, failure: Failure) -> FailedImport | None:
    """What an import of this file wanted in vain; None where the failure tells of no such import."""
    inner = failure.frames[-1] if failure.frames else None
    if failure.exception not in ("ImportError", "ModuleNotFoundError") or inner is None or inner.path != path:
        return None
    name = _NO_IMPORT.search(failure.message)
    if name is not None:
        return FailedImport(module=name.group(2), name=name.group(1))
    module = _NO_MODULE.search(failure.message)
    return FailedImport(module=module.group(1), name="") if module is not None else None


def _speaks_of_imports(path: RepoPath, failure: Failure) -> bool:
    """Whether a failure that came through this file tells of an import, or of a module's attribute."""
    through = any(frame.path == path for frame in failure.frames)
    told = "circular import" in failure.message or _NO_MEMBER.search(failure.message) is not None
    return failed_import(path, failure) is not None or (through and told)


def lost_methods(facts: FileFacts, failures: Sequence[Failure]) -> list[tuple[str, str]]:
    """(class, function): functions of this module that somebody looked for in one of its classes."""
    out: dict[tuple[str, str], None] = {}
    for failure in failures:
        found = _NO_METHOD.search(failure.message) if failure.exception == "AttributeError" else None
        if found and {found.group(1) or found.group(2), found.group(3)} <= facts.module_names.keys():
            out.setdefault((found.group(1) or found.group(2), found.group(3)))
    return list(out)


def _unused_function(facts: FileFacts) -> bool:
    """Whether some function follows another of its class and is named nowhere else in the file."""
    for a, b in pairwise(facts.units):
        if a.is_function and b.is_function and a.class_path == b.class_path:
            name = b.function
            if not facts.names[name] and not facts.attributes[name] and not name.startswith("__"):
                return True
    return False


def looks_wide(path: RepoPath, facts: FileFacts, failures: Sequence[Failure]) -> bool:
    """Whether the failures are of a kind that operators of this family answer."""
    if wanted_names(path, failures) or any(undefined_at_import(path, f) or stray_line(path, f) for f in failures):
        return True
    if lost_methods(facts, failures) or any(_speaks_of_imports(path, f) for f in failures):
        return True
    if any(MUTABLE_FIELD.search(f.message) for f in failures):
        return True
    if facts.classes and any(_NO_DECORATOR.search(f"{f.message}\n{f.left}\n{f.right}") for f in failures):
        return True
    return any(f.exception in _UNRETURNED for f in failures) and _unused_function(facts)


def undefined_at_import(path: RepoPath, failure: Failure) -> str:
    """The name whose absence stopped the import of this file, or an empty text."""
    found = _NO_NAME.search(failure.message) if failure.exception == "NameError" else None
    inner = failure.frames[-1] if failure.frames else None
    at_import = inner is not None and inner.path == path and inner.function in ("<module>", "")
    return found.group(1) if found and at_import else ""


def stray_line(path: RepoPath, failure: Failure) -> int:
    """The line of a `return` or `yield` outside functions, or a `break` or `continue` outside loops; 0 if none."""
    inner = failure.frames[-1] if failure.frames else None
    if failure.exception != "SyntaxError" or inner is None or inner.path != path:
        return 0
    return inner.line if _STRAY.search(failure.message) else 0
