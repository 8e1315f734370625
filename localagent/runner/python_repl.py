"""The Python interpreter of a kept session: one namespace, one step after the other, the last expression echoed.

Started as `python python_repl.py FD` on the interpreter that was asked for (3.8 or later). Everything here shares a
process with the code of the steps: nothing it says is believed beyond the step it says it about.
"""

from __future__ import annotations

import ast
import builtins
import fcntl
import linecache
import os
import signal
import socket
import sys
import threading
import traceback
import types
from typing import Any, Dict, List, Optional, Tuple

HEAD_LIMIT_BYTES = 64
FRAME_LIMIT = 1000  # data frames of one session that are written as files
_START = threading.Thread.start


class OutputGate:
    """Stands for stdout or stderr: a thread that an earlier step started writes nowhere any more."""

    def __init__(self, stream: Any, number: int, steps: "Namespace") -> None:
        self._stream = stream
        self._number = number
        self._steps = steps

    def reopen(self) -> None:
        """A step that closed its streams closed its own, not the next one's."""
        if self._stream.closed:
            self._stream = open(self._number, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115

    def write(self, text: str) -> int:
        """As a text stream's."""
        if getattr(threading.current_thread(), "_localagent_step", self._steps.number) == self._steps.number:
            return int(self._stream.write(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """As a text stream's."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Namespace:
    """The names that steps share."""

    def __init__(self, control: socket.socket) -> None:
        self.number = 0
        self._control = control
        self._pid = os.getpid()
        self._frames = 0
        self._module = types.ModuleType("__main__")
        sys.modules["__main__"] = self._module
        self._module.__dict__["__builtins__"] = builtins
        self._gates = (OutputGate(sys.stdout, 1, self), OutputGate(sys.stderr, 2, self))
        sys.stdout, sys.stderr = self._gates

    def serve(self) -> None:
        """Until the other end is gone."""
        while True:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            step = self._receive()
            if step is None:
                return
            self.number, code, streams = step
            high: List[int] = []
            for number in streams:  # a step may have closed 1 and 2: then these have their numbers
                high.append(fcntl.fcntl(number, fcntl.F_DUPFD, 3))
                os.close(number)
            for target, number in zip((1, 2), high):  # noqa: B905 - Python 3.8
                os.dup2(number, target)
                os.close(number)
            for gate in self._gates:
                gate.reopen()
            status = 130
            try:
                status = self._run(code)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            except KeyboardInterrupt:  # it came while the step was ending
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            except BaseException:  # its streams are gone, so that not even the fault can be told
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                status = 1
            if os.getpid() != self._pid:  # a fork of the step's came back here
                self._flush()
                os._exit(status)
            self._flush()
            self._control.sendall(b"%d %d\n" % (self.number, status))

    def _receive(self) -> Optional[Tuple[int, str, List[int]]]:
        """(number, code, descriptors) of the next step."""
        head = b""
        streams: List[int] = []
        while not head.endswith(b"\n") and len(head) < HEAD_LIMIT_BYTES:
            piece, ancillary, _, _ = self._control.recvmsg(1, socket.CMSG_SPACE(8))
            if not piece:
                return None
            head += piece
            for _, _, data in ancillary:
                streams += [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data) // 4 * 4, 4)]
        number, size = (int(word) for word in head.split())
        data = b""
        while len(data) < size:
            piece = self._control.recv(min(size - len(data), 1 << 16))
            if not piece:
                return None
            data += piece
        return number, data.decode("utf-8", "surrogatepass"), streams

    def _run(self, code: str) -> int:
        """The step's exit status: 0, 1 for an exception, what `sys.exit` says, 130 for an interrupt."""
        name = "<step %d>" % self.number
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            tree = ast.parse(code, name)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, name, "exec"), self._module.__dict__)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), name, "eval"), self._module.__dict__)
                self._echo(value)
        except SystemExit as leaving:
            return self._left(leaving.code)
        except BaseException as fault:  # whatever a step raises is its answer
            self._tell(fault)
            return 130 if isinstance(fault, KeyboardInterrupt) else 1
        return 0

    def _echo(self, value: Any) -> None:
        """As an interactive interpreter does; a data frame becomes a file as well."""
        if value is None:
            return
        self._module.__dict__["_"] = value
        sys.stdout.write(repr(value) + "\n")
        write = frame_writer(value)
        if write is not None and self._frames < FRAME_LIMIT:
            self._frames += 1
            path = "frame-%d.csv" % self._frames
            while os.path.lexists(path) and self._frames < FRAME_LIMIT:
                self._frames += 1
                path = "frame-%d.csv" % self._frames
            write(path)
            sys.stdout.write("[the data frame is in %s]\n" % path)

    @staticmethod
    def _left(code: Any) -> int:
        if code is None or isinstance(code, int):
            return (code or 0) & 0xFF
        sys.stderr.write("%s\n" % (code,))
        return 1

    @staticmethod
    def _tell(fault: BaseException) -> None:
        """The traceback without this file's frames."""
        place = fault.__traceback__
        while place is not None and place.tb_frame.f_code.co_filename == __file__:
            place = place.tb_next
        sys.stderr.write("".join(traceback.format_exception(type(fault), fault, place)))

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr, *self._gates):
            try:
                stream.flush()
            except Exception:  # a stream that a step put there, or a reader that is gone
                continue


def frame_writer(value: Any) -> Any:
    """What writes a data frame as CSV, where its library is one that was imported already; else None."""
    for library, names, method in (
        ("pandas", ("DataFrame", "Series"), "to_csv"),
        ("polars", ("DataFrame",), "write_csv"),
    ):
        module: Dict[str, Any] = vars(sys.modules[library]) if library in sys.modules else {}
        kinds = tuple(module[name] for name in names if isinstance(module.get(name), type))
        if kinds and isinstance(value, kinds):
            return getattr(value, method)
    return None


def main(control: int) -> None:
    """Serve on the socket with this descriptor."""
    connection = socket.socket(fileno=control)
    connection.set_inheritable(False)
    space = Namespace(connection)

    def start(thread: Any) -> None:
        thread._localagent_step = space.number
        _START(thread)

    threading.Thread.start = start  # type: ignore
    sys.argv = [""]
    sys.path[0] = ""  # as in an interactive interpreter: the working folder, not this file's
    space.serve()


if __name__ == "__main__":
    main(int(sys.argv[1]))
