"""Put a patched function's code into the live function objects of a collected session.

A swap is refused (the reason is told, the host then runs the candidate from scratch) whenever it could differ from an
import of the patched file: nothing live matches, closures differ, the text does not compile.
"""

from __future__ import annotations
import __future__

import ast
import gc
import importlib
import os
import sys
import types
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

_FUTURE_FLAGS = 0
for _name in __future__.all_feature_names:
    _FUTURE_FLAGS |= getattr(__future__, _name).compiler_flag


class CannotSwap(Exception):  # noqa: N818 - named for what happened
    """Why the candidate has to be run from scratch."""


Key = Tuple[str, int, str]


class SwapIndex:
    """Live functions of files below the root, by file, first line and name. Made once after collection."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._functions: Dict[Key, List[types.FunctionType]] = {}
        self.files: Set[str] = set()
        self._prefix = prefix = root.rstrip("/") + "/"
        real: Dict[str, str] = {}
        for found in gc.get_objects():
            if type(found) is types.FunctionType:
                code = found.__code__
                name = real.get(code.co_filename)
                if name is None:
                    name = real[code.co_filename] = os.path.realpath(code.co_filename)
                if name.startswith(prefix):
                    key = (name[len(prefix) :], code.co_firstlineno, code.co_name)
                    self._functions.setdefault(key, []).append(found)
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str):
                name = os.path.realpath(file)
                if name.startswith(prefix):
                    self.files.add(name[len(prefix) :])

    def with_modules(self, paths: Iterable[str]) -> SwapIndex:
        """An index in which the modules of some files are live too that nothing imported yet; where they import."""
        wanted = {path for path in paths if path not in self.files}
        if not wanted:
            return self
        for path in sorted(wanted):
            name = self._module_name(path)
            if name:
                try:
                    importlib.import_module(name)
                except (Exception, SystemExit):  # of the code under test: what nobody could import is not live
                    continue
        return SwapIndex(self._root)

    def _module_name(self, path: str) -> str:
        """By which a file is imported, "" where it lies in no folder of `sys.path`, or is a program."""
        file = self._prefix + path
        for folder in sorted(map(os.path.realpath, sys.path), key=len, reverse=True):
            inside = os.path.relpath(file, folder)
            parts = inside[: -len(".py")].split(os.sep)
            if inside.endswith(".py") and all(part.isidentifier() for part in parts) and parts[-1] != "__main__":
                return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        return ""

    def live(self, path: str, old_line: int, name: str) -> Optional[types.FunctionType]:
        """The live function there, or None when there is none or more than one."""
        found = self._functions.get((path, old_line, name), [])
        return found[0] if len(found) == 1 else None

    def codes(self, path: str, line: int, name: str) -> List[types.CodeType]:
        """The code of all live functions there: a function made more than once has one, a module read twice has two."""
        return list({f.__code__: None for f in self._functions.get((path, line, name), [])})

    def owner(self, code: types.CodeType) -> Optional[types.FunctionType]:
        """The one live function that runs this code, or None."""
        path = os.path.realpath(code.co_filename)
        if not path.startswith(self._prefix):
            return None
        found = self.live(path[len(self._prefix) :], code.co_firstlineno, code.co_name)
        return found if found is not None and found.__code__ is code else None

    def apply(self, swap: Dict[str, Any]) -> None:
        """Replace one function's code; raises CannotSwap before anything is changed."""
        path = str(swap["path"])
        live = self._functions.get((path, int(swap["old_line"]), str(swap["name"])))
        if not live:
            if path not in self.files:
                return  # not imported yet: whoever imports it reads the patched file
            raise CannotSwap("no live function %s at line %s of %s" % (swap["name"], swap["old_line"], path))
        changed = [(f, _matching_code(f, swap), _new_defaults(f, swap.get("defaults"))) for f in live]
        for function, code, (positional, keyword) in changed:
            function.__code__ = code
            function.__defaults__ = positional
            function.__kwdefaults__ = keyword


def _compile(text: str, class_name: Any, first_line: int, filename: str, flags: int) -> types.CodeType:
    indented = text[:1] in (" ", "\t")
    if class_name or indented:
        if first_line < 2:
            raise CannotSwap("no line above the function")
        head = "class %s:" % class_name if class_name else "if True:"
        text = "\n" * (first_line - 2) + head + "\n" + (text if indented else " " + text)
    else:
        text = "\n" * (first_line - 1) + text
    try:
        module: types.CodeType = compile(text, filename, "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as fault:
        raise CannotSwap("does not compile on its own: %s" % fault) from None
    return module


def _matching_code(function: types.FunctionType, swap: Dict[str, Any]) -> types.CodeType:
    old = function.__code__
    first_line, name = int(swap["line"]), str(swap["name"])
    module = _compile(str(swap["text"]), swap.get("class"), first_line, old.co_filename, old.co_flags & _FUTURE_FLAGS)
    found = [c for c in _codes(module) if c.co_name == name and c.co_firstlineno == first_line]
    if len(found) != 1:
        raise CannotSwap("%d functions %s in the text" % (len(found), name))
    code = found[0]
    if code.co_freevars != old.co_freevars:
        raise CannotSwap("closure of %s differs" % name)
    qualname = getattr(old, "co_qualname", None)
    if qualname is not None:
        code = code.replace(co_qualname=qualname)  # type: ignore[call-arg,unused-ignore]
    return code


def _new_defaults(function: types.FunctionType, wanted: Any) -> Tuple[Any, Any]:
    """The function's defaults after the swap: as they are, or made of those and of literals."""
    positional, keyword = function.__defaults__, function.__kwdefaults__
    if wanted is None:
        return positional, keyword
    try:
        new = tuple(_default(entry, function) for entry in wanted["positional"])
        named = {name: _default(entry, function) for name, entry in wanted["keyword"].items()}
    except (LookupError, TypeError, ValueError, SyntaxError) as fault:
        raise CannotSwap("defaults of %s: %s" % (function.__name__, fault)) from None
    return new or None, named or None


def _default(entry: Dict[str, Any], function: types.FunctionType) -> Any:
    if "literal" in entry:
        return ast.literal_eval(entry["literal"])
    keep = entry["keep"]
    return (function.__kwdefaults__ or {})[keep] if isinstance(keep, str) else (function.__defaults__ or ())[keep]


def _codes(code: types.CodeType) -> List[types.CodeType]:
    """The code objects at the top of a module or of its one class."""
    found = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    for inner in list(found):
        if not inner.co_flags & 0x2:  # CO_NEWLOCALS is set for functions and not for class bodies
            found += [c for c in inner.co_consts if isinstance(c, types.CodeType)]
    return found
