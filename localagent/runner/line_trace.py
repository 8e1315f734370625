"""Which lines of the repository ran, by `sys.settrace`, for files below the root only.

A test that sets a trace function of its own loses lines until the next test begins; nothing else depends on them. Code
below the root that asks whether somebody traces (a debugger) is told of others alone.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Dict, List, Optional, Set

from .failures import relative_path


class LineTracer:
    """Collects executed lines by relative path."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._by_file: Dict[str, Optional[Set[int]]] = {}
        self._names: Dict[str, str] = {}
        self._asked = sys.gettrace

    def start(self) -> None:
        """Trace this thread and those it starts."""
        sys.gettrace = self._others
        threading.settrace(self._call)
        sys.settrace(self._call)

    def stop(self) -> None:
        """Trace no more in this thread."""
        sys.settrace(None)
        threading.settrace(None)
        sys.gettrace = self._asked

    def take(self) -> Dict[str, List[int]]:
        """Lines since the last `take`."""
        found: Dict[str, List[int]] = {}
        for name, lines in self._by_file.items():
            if lines:
                found.setdefault(self._names[name], []).extend(lines)
                lines.clear()
        return {path: sorted(set(numbers)) for path, numbers in found.items()}

    def _others(self) -> Any:
        """`sys.gettrace`, without this one where the project asks."""
        found = self._asked()
        asking = sys._getframe(1).f_code.co_filename
        return None if found == self._call and relative_path(self._root, asking) is not None else found

    def _call(self, frame: Any, event: str, argument: Any) -> Any:
        code = frame.f_code
        name = code.co_filename
        try:
            lines = self._by_file[name]
        except KeyError:
            path = relative_path(self._root, name)
            lines = None if path is None else set()
            self._by_file[name] = lines
            if path is not None:
                self._names[name] = path
        if lines is None:
            return None
        add = lines.add

        def line(frame: Any, event: str, argument: Any) -> Any:
            if event == "line":
                add(frame.f_lineno)
            return line

        return line
