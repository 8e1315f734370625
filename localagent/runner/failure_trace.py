"""One test under a tracer: which statements ran in which frame, what they wrote, and the locals where it failed.

Standard library only, runs in the jail on the project's own Python. Bounded: the last `EVENTS_LIMIT` events are kept.
Of other threads only the exceptions that end them are kept. Not promised: tests that set a trace function of their own.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from .failures import bounded, first_member, message_of, relative_path
from .safe_repr import show

EVENTS_LIMIT = 60_000
VALUES_LIMIT = 4_000
LOCALS_LIMIT = 30
FRAMES_LIMIT = 30
VALUE_TEXT = 160
THREADS_LIMIT = 3
LINE, CALL, RETURN = 0, 1, 2
RETURN_NAME = "return"
_THREAD: Any = threading.Thread  # whose `start` is another one meanwhile


class FailureTrace:
    """Records files below the root. `writes` are the names that lines bind, by path and line."""

    def __init__(self, root: str, writes: Dict[str, Dict[str, List[str]]]) -> None:
        self._root = root
        self._writes = {path: {int(n): names for n, names in lines.items()} for path, lines in writes.items()}
        self._paths: List[str] = []
        self._number: Dict[str, Optional[int]] = {}
        self.events: Deque[Tuple[int, int, int, int]] = deque(maxlen=EVENTS_LIMIT)
        self.values: Deque[Tuple[int, int, str, str]] = deque(maxlen=VALUES_LIMIT)
        self.seen = 0
        self._frames = 0
        self._ended = _EndedThreads(root)

    def start(self) -> None:
        self._ended.start()
        sys.settrace(self._call)

    def stop(self) -> None:
        sys.settrace(None)
        self._ended.stop()

    def take(self) -> Dict[str, List[int]]:
        """Lines, as the tracer of lines tells them: none, `told` says what ran."""
        return {}

    def _call(self, frame: Any, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        number = self._number.get(name, -1)
        if number == -1:
            path = relative_path(self._root, name)
            number = None if path is None else len(self._paths)
            if path is not None:
                self._paths.append(path)
            self._number[name] = number
        if number is None:
            return None
        self._frames += 1
        serial, file = self._frames, number
        writes = self._writes.get(self._paths[file], {})
        before = [0]
        self._add(file, frame.f_lineno, serial, CALL)

        def local(frame: Any, event: str, argument: Any) -> Any:
            if event in ("line", "return"):
                names = writes.get(before[0])
                if names:
                    self._written(file, before[0], names, frame.f_locals)
                    if event == "return" and RETURN_NAME in names:
                        self.values.append((file, before[0], RETURN_NAME, _text(argument)))
                before[0] = frame.f_lineno
                self._add(file, frame.f_lineno, serial, LINE if event == "line" else RETURN)
            elif event == "exception":
                before[0] = 0  # the statement wrote and returned nothing
            return local

        return local

    def _add(self, file: int, line: int, serial: int, kind: int) -> None:
        self.seen += 1
        self.events.append((file, line, serial, kind))

    def _written(self, file: int, line: int, names: List[str], values: Dict[str, Any]) -> None:
        for name in names:
            base, dot, attribute = name.partition(".")
            held = _attributes(values.get(base)) if dot else values
            wanted = attribute if dot else base
            if wanted in held:
                self.values.append((file, line, name, _text(held[wanted])))

    def record(self, raised: Optional[BaseException]) -> Dict[str, Any]:
        """Everything, as JSON types."""
        return {
            "paths": self._paths,
            "events": [n for event in self.events for n in event],
            "values": [list(value) for value in self.values],
            "cut": self.seen > len(self.events),
            "frames": frames_with_values(self._root, raised),
            "threads": self._ended.told,
        }


class _EndedThreads:
    """Exceptions that end the threads which a test starts: name, exception, message and frames of each."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._started: Any = None
        self._let_go: Callable[[], None] = lambda: None
        self.told: List[List[Any]] = []

    def start(self) -> None:
        """From the next `Thread.start` on: pytest sets a hook of its own before a test's body, which ours calls."""
        self._started = started = _THREAD.start
        before: List[Any] = []

        def ended(args: Any) -> None:
            if args.exc_value is not None and len(self.told) < THREADS_LIMIT:
                name = bounded(getattr(args.thread, "name", ""), 100)
                kind = bounded(type(args.exc_value).__name__, 200)
                frames = frames_with_values(self._root, args.exc_value)
                self.told.append([name, kind, message_of(args.exc_value), frames])
            before[-1](args)

        def start(thread: Any) -> None:
            if threading.excepthook is not ended:
                before.append(threading.excepthook)
                threading.excepthook = ended
            started(thread)

        def let_go() -> None:
            if threading.excepthook is ended:
                threading.excepthook = before[-1]

        _THREAD.start = start
        self._let_go = let_go

    def stop(self) -> None:
        _THREAD.start = self._started
        self._let_go()


def frames_with_values(root: str, raised: Optional[BaseException]) -> List[List[Any]]:
    """Path, line, function and locals of the frames below the root, outermost first.

    Those of a group's first member follow its own. Of more than `FRAMES_LIMIT` the innermost ones.
    """
    found: List[List[Any]] = []
    member = first_member(raised) if raised is not None else None
    for one in (raised, member):
        traceback = one.__traceback__ if one is not None else None
        while traceback is not None:
            frame = traceback.tb_frame
            path = relative_path(root, frame.f_code.co_filename)
            if path is not None:
                names = [n for n in frame.f_locals if not n.startswith(("@", "__"))][:LOCALS_LIMIT]
                values = [[bounded(n, 100), _text(frame.f_locals[n])] for n in names]
                found.append([path, traceback.tb_lineno or 1, bounded(frame.f_code.co_name, 200), values])
            traceback = traceback.tb_next
    return found[-FRAMES_LIMIT:]


def _attributes(value: Any) -> Dict[str, Any]:
    """What an object's own dictionary holds; nothing where its class does something else there."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except Exception:
        return {}
    return held if type(held) is dict else {}


def _text(value: Any) -> str:
    try:
        return bounded(show(value), VALUE_TEXT)
    except Exception:
        return "(it cannot be shown)"
