"""Copies of the arguments of calls that are made while tests run.

Standard library only, runs in the jail on the project's own Python.
"""

from __future__ import annotations

import copy
import sys
import threading
import types
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from .structural_key import shape

CALLS_LIMIT = 12
_COPIES_LIMIT = 400
RESUMED = 0x20 | 0x80 | 0x200  # inspect.CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR: frames entered more than once
_AWAITED = 0x80 | 0x200
_VARIADIC, _KEYWORDS = 0x04, 0x08  # inspect.CO_VARARGS, CO_VARKEYWORDS


class CapturedCall:
    """A call seen in a test: which function, with what, and whether it led to a watched function."""

    def __init__(self, function: types.FunctionType, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.reaches = False


class Capture:
    """Copies the arguments of calls that enter the files of the watched functions, and of the watched calls themselves.

    An entry is a call into one of `files` from a file that is none of them: what the tests themselves ask of the code.
    `find` tells the function of a code object, None where that is not clear.
    """

    awaits = False  # whether calls of coroutines are of use to whoever captures them

    def __init__(
        self,
        functions: List[types.FunctionType],
        files: Set[str],
        find: Callable[[types.CodeType], Optional[types.FunctionType]],
    ) -> None:
        self._watched = {f.__code__: f for f in functions}
        self._files, self._find = files, find
        self.entries: List[CapturedCall] = []
        self.inner: List[CapturedCall] = []
        self._seen: Set[str] = set()
        self._copied = 0
        self._open: Optional[CapturedCall] = None
        self._busy = False
        self._resumed: List[Any] = []  # kept, so that no other frame gets the place of one

    def codes(self) -> List[types.CodeType]:
        """The watched functions' code."""
        return list(self._watched)

    def start(self) -> None:
        """Hear of calls in this thread and in those that it starts."""
        threading.setprofile(self._event)
        sys.setprofile(self._event)

    def stop(self) -> None:
        """Hear of no more in this thread, and in none that starts later."""
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type,unused-ignore]

    def _event(self, frame: Any, event: str, _arg: Any) -> None:
        if event != "call" or self._busy:
            return
        code = frame.f_code
        watched = self._watched.get(code)
        if code.co_filename not in self._files:
            return
        caller = frame.f_back
        entry = caller is None or caller.f_code.co_filename not in self._files
        if not entry and watched is None:
            return
        if not self._begins(frame):
            return
        self._busy = True
        try:
            if entry:
                self._open = self._take(code, self._find(code), frame)
            if watched is not None:
                if self._open is not None and not self._open.reaches and len(self.entries) < CALLS_LIMIT:
                    self._open.reaches = True
                    self.entries.append(self._open)
                if not entry and len(self.inner) < CALLS_LIMIT:
                    made = self._take(code, watched, frame)
                    if made is not None:
                        self.inner.append(made)
        except Exception:
            return
        finally:
            self._busy = False

    def _begins(self, frame: Any) -> bool:
        """Whether a call begins here; a frame that gives values or waits is entered again and again."""
        if not frame.f_code.co_flags & RESUMED:
            return True
        if any(frame is f for f in self._resumed) or len(self._resumed) >= _COPIES_LIMIT:
            return False
        self._resumed.append(frame)
        return True

    def _take(self, code: types.CodeType, function: Optional[types.FunctionType], frame: Any) -> Optional[CapturedCall]:
        if function is None or self._copied >= _COPIES_LIMIT or (code.co_flags & _AWAITED and not self.awaits):
            return None
        self._copied += 1
        given, named = arguments_of(frame)
        if any(_keeps_items_elsewhere(value) for value in (*given, *named.values())):
            raise TypeError("a list that keeps its items elsewhere")
        args, kwargs = copy.deepcopy((given, named))  # together: what is one object in several places stays one
        key = "%s:%d %s" % (code.co_filename, code.co_firstlineno, shape((args, kwargs)))
        if key in self._seen:
            return None
        self._seen.add(key)
        return CapturedCall(function, args, kwargs)


def _keeps_items_elsewhere(value: Any) -> bool:
    """Whether a copy is another list: it gets what the object holds, and then each item that it goes through again.

    A shallow one has no end, where `append` adds to what is gone through.
    """
    return isinstance(value, list) and type(value).__iter__ is not list.__iter__


def arguments_of(frame: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """What a call that begins was given, as it can be given to its function again; nothing is copied."""
    code, values = frame.f_code, frame.f_locals
    names, n = code.co_varnames, code.co_argcount
    at = n + code.co_kwonlyargcount
    args = tuple(values[name] for name in names[:n])
    kwargs = {name: values[name] for name in names[n:at]}
    if code.co_flags & _VARIADIC:
        args += tuple(values[names[at]])
        at += 1
    if code.co_flags & _KEYWORDS:
        kwargs.update(values[names[at]])
    return args, kwargs


def without_defaults(
    function: types.FunctionType, args: Tuple[Any, ...], kwargs: Dict[str, Any]
) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """A call as it is written where what equals a default is left out: the very object that is one."""
    code, defaults = function.__code__, function.__defaults__ or ()
    keyword = function.__kwdefaults__ or {}
    named = {name: value for name, value in kwargs.items() if not (name in keyword and keyword[name] is value)}
    if code.co_flags & _VARIADIC:
        return args, named
    first = code.co_argcount - len(defaults)
    many = len(args)
    while many > first and args[many - 1] is defaults[many - 1 - first]:
        many -= 1
    return args[:many], named


def own_arguments(function: types.FunctionType, args: Tuple[Any, ...]) -> int:
    """1 where the first argument is the object (or class) whose method is called: its state is nobody's input."""
    if not args:
        return 0
    first = args[0]
    return int(hasattr(first if isinstance(first, type) else type(first), function.__name__))
