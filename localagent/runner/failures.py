"""From an exception to bounded JSON: type, message, frames below the root, the two sides of a comparison.

Values of the code under test are shown through guarded, bounded `repr`s. Not promised:
that a hostile `repr` tells the truth.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Dict, List, Optional, Tuple

MESSAGE_LIMIT = 2000
SIDE_LIMIT = 1000
STDERR_LIMIT = 1500
FIRST_FRAMES, LAST_FRAMES = 10, 40
_CHAIN_LIMIT = 8
_DUMPED = re.compile(r'^  File "([^"\n]{1,1000})", line (\d{1,7}) in ([^\n]{1,500})$', re.MULTILINE)

_LIBRARIES = re.compile(r"/(?:site|dist)-packages/")

_relative: Dict[Tuple[str, str], Optional[str]] = {}


def relative_path(root: str, filename: Any) -> Optional[str]:
    """`filename` relative to the root with `/`; None when it lies outside, or in an environment that stands inside."""
    if not isinstance(filename, str) or not filename or filename[0] == "<":
        return None
    key = (root, filename)
    if key not in _relative:
        full = os.path.realpath(os.path.join(root, filename))
        inside = full.startswith(root.rstrip("/") + "/") and not _LIBRARIES.search(full, len(root.rstrip("/")))
        _relative[key] = full[len(root.rstrip("/")) + 1 :] if inside else None
    return _relative[key]


def know_loaded_files(root: str) -> None:
    """Settle once where the loaded modules lie, so that no forked child has to ask again."""
    for module in list(sys.modules.values()):
        code_file = getattr(module, "__file__", None)
        if isinstance(code_file, str):
            relative_path(root, code_file)


def bounded(text: Any, limit: int) -> str:
    """`text` as a plain str of at most `limit` characters, the middle left out."""
    if not isinstance(text, str):
        return ""
    shown: str = str.__str__(text)
    if len(shown) <= limit:
        return shown
    return shown[: limit * 2 // 3] + " ... " + shown[-limit // 3 :]


def side(value: Any) -> str:
    """A bounded repr that never raises."""
    try:
        from _pytest._io.saferepr import saferepr

        return bounded(saferepr(value, maxsize=SIDE_LIMIT), SIDE_LIMIT)
    except ImportError:
        try:
            return bounded(repr(value), SIDE_LIMIT)
        except Exception:
            return ""


def message_of(exception: BaseException) -> str:
    """str() of an exception, bounded, never raising; of a doctest the example, what it gave and what it should give."""
    try:
        if type(exception).__name__ == "DocTestFailure":
            example: Any = getattr(exception, "example", None)
            gave = side(getattr(exception, "got", ""))
            return bounded(
                "%s gives %s instead of %s" % (example.source.strip(), gave, side(example.want)), MESSAGE_LIMIT
            )
        if isinstance(exception, KeyError) and exception.args:
            return bounded(repr(exception.args[0]), MESSAGE_LIMIT)
        return bounded(str(exception) + _child_stderr(exception), MESSAGE_LIMIT)
    except Exception:
        return "(its message could not be read)"


def _child_stderr(exception: BaseException) -> str:
    """How the standard error of a child process ends that `subprocess` reports as failed, "" where it was not read."""
    told: Any = getattr(exception, "stderr", None) if type(exception).__module__ == "subprocess" else None
    text = told.decode("utf-8", "replace") if isinstance(told, bytes) else told
    return "\n" + text[-STDERR_LIMIT:] if isinstance(text, str) and text.strip() else ""


def traceback_frames(root: str, traceback: Any) -> List[List[Any]]:
    """Frames below the root, outermost first."""
    found: List[List[Any]] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        path = relative_path(root, code.co_filename)
        if path is not None:
            found.append([path, traceback.tb_lineno or code.co_firstlineno, bounded(code.co_name, 200)])
        traceback = traceback.tb_next
    return found


WALL_TIME_IS_UP = "did not finish in its wall time"  # whether or not it got a processor


def stack_frames(root: str, frame: Any) -> List[List[Any]]:
    """The running stack below the root, outermost first."""
    found: List[List[Any]] = []
    while frame is not None:
        path = relative_path(root, frame.f_code.co_filename)
        if path is not None:
            found.append([path, frame.f_lineno or frame.f_code.co_firstlineno, bounded(frame.f_code.co_name, 200)])
        frame = frame.f_back
    found.reverse()
    return cut(found)


def imports_library(root: str, frame: Any) -> bool:
    """Whether what runs is the import of a module that is none of the repository's own."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return True
        if relative_path(root, name) is not None:
            return False
        frame = frame.f_back
    return False


def sets_up_for_several(frame: Any) -> bool:
    """Whether what runs is the setup of a fixture that several tests share, as of a database."""
    while frame is not None:
        fixture = frame.f_locals.get("fixturedef") if frame.f_code.co_name == "pytest_fixture_setup" else None
        if getattr(fixture, "scope", "function") != "function":
            return True
        frame = frame.f_back
    return False


def dumped_frames(root: str, text: str) -> List[List[Any]]:
    """The stack below the root that faulthandler wrote when the interpreter died, outermost first."""
    found: List[List[Any]] = []
    for name, line, function in _DUMPED.findall(text):
        path = relative_path(root, name)
        if path is not None:
            found.append([path, int(line), bounded(function, 200)])
    found.reverse()
    return cut(found)


def cut(frames: List[List[Any]]) -> List[List[Any]]:
    """The first and the last frames of a long list."""
    if len(frames) <= FIRST_FRAMES + LAST_FRAMES:
        return frames
    return frames[:FIRST_FRAMES] + frames[-LAST_FRAMES:]


def _asserted_sides(traceback: Any) -> Tuple[str, str]:
    """Operands of a unittest assertion, from the frame of the assert method."""
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_filename.endswith("case.py") and frame.f_code.co_name.startswith("assert"):
            values = frame.f_locals
            for left, right in (("first", "second"), ("member", "container"), ("expr1", "expr2"), ("a", "b")):
                if left in values and right in values:
                    return side(values[left]), side(values[right])
        traceback = traceback.tb_next
    return "", ""


def first_member(exception: BaseException) -> Optional[BaseException]:
    """The first exception in a group that is no group itself; None of what is no group."""
    member: Any = exception
    for _ in range(_CHAIN_LIMIT):
        members = getattr(member, "exceptions", None)
        if not isinstance(members, tuple) or not members or not isinstance(members[0], BaseException):
            break
        member = members[0]
    return None if member is exception else member


def describe(root: str, exception: BaseException, sides: Tuple[str, str] = ("", "")) -> Dict[str, Any]:
    """One failure. Causes come after the frames of the exception itself: the innermost place is last."""
    frames: List[List[Any]] = []
    shown = exception
    current: Optional[BaseException] = exception
    seen: List[BaseException] = []
    while current is not None and len(seen) < _CHAIN_LIMIT and not any(current is s for s in seen):
        seen.append(current)
        for frame in cut(traceback_frames(root, current.__traceback__)):
            if frame not in frames:
                frames.append(frame)
        if isinstance(current, SyntaxError):
            path = relative_path(root, current.filename)
            if path is not None:
                frames.append([path, current.lineno or 1, "<module>"])
        if type(current).__name__ in ("CollectError", "ConftestImportFailure") and type(shown) is type(current):
            shown = current  # replaced below by its cause, which is what went wrong
        following = current.__cause__
        if following is None and not current.__suppress_context__:
            following = current.__context__
        if following is None:
            following = first_member(current)
        cause = getattr(current, "cause", None)
        if following is None and isinstance(cause, BaseException):
            following = cause
        if type(shown).__name__ in ("CollectError", "ConftestImportFailure") and following is not None:
            shown = following
        current = following
    message, member = message_of(shown), first_member(shown)
    if member is not None:
        message = bounded(
            "%s; the first is %s: %s" % (message, type(member).__name__, message_of(member)), MESSAGE_LIMIT
        )
    left, right = sides
    if not left and not right and isinstance(exception, AssertionError):
        left, right = _asserted_sides(exception.__traceback__)
    return {
        "type": bounded(type(shown).__name__, 200),
        "message": message,
        "frames": cut(frames),
        "left": left,
        "right": right,
    }


def plain(kind: str, message: str, frames: Optional[List[List[Any]]] = None) -> Dict[str, Any]:
    """A failure that no exception tells of: a time-out, an ended interpreter."""
    return {"type": kind, "message": bounded(message, MESSAGE_LIMIT), "frames": frames or [], "left": "", "right": ""}
