"""The worker's first process: owns the channel, runs nothing of the repository, starts and ends sessions and commands.

Every message carries the nonce that came with the first one, and the request's number. Code under test never shares a
process with the channel.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from time import monotonic as _monotonic
from typing import Any, Dict, List, Optional, Set

from . import child_limits
from .check_command import run_command
from .failures import plain
from .json_frames import Reader, WireClosed, WireFault, WireTimeout, send
from .pytest_preload import borrow, preload

_EXTRA_WAIT_SECONDS = 6.0
_NEVER_SECONDS = 1e9
_LOG_TAIL_BYTES = 6000


class RunningSession:
    """A session process as the supervisor sees it."""

    def __init__(self, root: str, request: Dict[str, Any]) -> None:
        ours, theirs = socket.socketpair()
        self.log = _scratch_file()
        self._socket = ours
        self.pid = os.fork()
        if self.pid == 0:
            try:
                child_limits.guard_session()
                ours.close()
                os.setsid()
                _become_session(root, theirs.detach(), self.log, request)
            finally:
                os._exit(95)
        theirs.close()
        self.reader = Reader(ours.fileno())

    def send(self, message: Dict[str, Any]) -> None:
        """Raises OSError when the session is gone."""
        send(self._socket.fileno(), message)

    def log_tail(self) -> str:
        """The end of what the session printed."""
        try:
            size = os.fstat(self.log).st_size
            data = os.pread(self.log, _LOG_TAIL_BYTES, max(0, size - _LOG_TAIL_BYTES))
        except OSError:
            return ""
        return data.decode("utf-8", "replace")

    def end(self) -> int:
        """Kill the session and all it left; its wait status."""
        status = -1
        for target in (-self.pid, self.pid):
            try:
                os.kill(target, signal.SIGKILL)
            except OSError:
                continue
        try:
            status = os.waitpid(self.pid, 0)[1]
        except OSError:
            status = -1
        self._socket.close()
        os.close(self.log)
        return status


def _ended(status: int) -> str:
    """A wait status in words."""
    if status >= 0 and os.WIFSIGNALED(status):
        return "signal %d" % os.WTERMSIG(status)
    return "exit status %d" % (os.WEXITSTATUS(status) if status >= 0 else -1)


def _scratch_file() -> int:
    try:
        return os.open("/tmp", os.O_TMPFILE | os.O_RDWR | os.O_APPEND, 0o600)
    except OSError:
        return os.memfd_create("log")


def _become_session(root: str, fd: int, log: int, request: Dict[str, Any]) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    top = os.sysconf("SC_OPEN_MAX")
    for low, high in ((3, fd), (fd + 1, min(int(top), 4096))):
        os.closerange(low, high)
    from .pytest_session import CollectedSession

    CollectedSession(root, fd, request).main()


class Supervisor:
    """Answers requests from the host, one at a time. Sessions have names; opening a name again ends the old one."""

    def __init__(self, channel: int) -> None:
        self._channel = channel
        self._reader = Reader(channel)
        self._nonce = ""
        self._root = ""
        self._sessions: Dict[str, RunningSession] = {}
        self._scratch: List[Any] = []
        self._state = child_limits.state()

    def main(self) -> None:
        """Serve until the host closes the channel. A frame with a wrong nonce ends the worker."""
        hello = self._reader.receive()
        self._nonce = str(hello["nonce"])
        self._root = os.path.realpath(str(hello["root"]))
        lent = borrow()
        version = preload(self._root)
        self._scratch = child_limits.scratch_entries()
        self._answer(hello, {"kind": "ready", "python": list(sys.version_info[:3]), "pytest": version, "lent": lent})
        while True:
            try:
                request = self._reader.receive()
            except (WireClosed, WireFault):
                break
            if request.get("nonce") != self._nonce:
                break
            self._answer(request, self._handle(request))
        for name in list(self._sessions):
            self._close(name)

    def _answer(self, request: Dict[str, Any], answer: Dict[str, Any]) -> None:
        answer["nonce"], answer["seq"] = self._nonce, request["seq"]
        try:
            send(self._channel, answer)
        except WireFault:
            send(
                self._channel,
                {"nonce": self._nonce, "seq": request["seq"], "kind": "too-long"},
            )

    def _handle(self, request: Dict[str, Any]) -> Dict[str, Any]:
        op = request["op"]
        if op == "open":
            return self._open(request)
        if op == "run":
            return self._run(request)
        if op in ("behave", "differ", "trace", "collect-run"):
            return self._behave(request)
        if op == "command":
            answer = run_command(self._root, request)
            self._tidy()
            return answer
        if op == "close":
            self._close(str(request["session"]))
            return {"kind": "closed"}
        return {"kind": "unknown"}

    def _close(self, name: str) -> int:
        session = self._sessions.pop(name, None)
        status = session.end() if session is not None else 0
        self._tidy()
        return status

    def _tidy(self) -> None:
        """End what nobody owns any more; scratch files of a session that is still open stay."""
        keep: Set[int] = {session.pid for session in self._sessions.values()}
        if not child_limits.end_leftovers(keep) or not child_limits.clean_scratch(self._scratch):
            os._exit(94)

    def _open(self, request: Dict[str, Any]) -> Dict[str, Any]:
        name = str(request["session"])
        self._close(name)
        session = RunningSession(self._root, request)
        self._sessions[name] = session
        deadline, at = _monotonic() + float(request["wall_seconds"]), ""
        try:
            record = session.reader.receive(deadline)
            while record.get("k") == "at":
                at = str(record.get("path"))
                record = session.reader.receive(deadline)
        except WireTimeout:
            self._close(name)
            return {"kind": "refused", "why": "hung", "text": "", "failure": plain("TimeLimit", "collection hung")}
        except (WireClosed, WireFault) as fault:
            log = session.log_tail()
            status = self._close(name)
            text = "collection ended the interpreter (%s, %s)" % (_ended(status), fault)
            place = os.path.join(self._root, at) if at else ""
            failure = plain("InterpreterExit", text)
            return {"kind": "refused", "why": "died", "text": log, "path": place, "failure": failure}
        kind = record.pop("k", None)
        if kind == "collected":
            record["kind"] = "collected"
            if request["swap"]:
                self._scratch = child_limits.scratch_entries()
            return record
        log = session.log_tail()
        self._close(name)
        if kind == "done":
            return {"kind": "refused", "why": "hung", "text": log, "failure": record.get("failure")}
        if kind == "refused":
            record["why"] = record.pop("kind", "stopped")
            record["kind"] = "refused"
            record["log"] = log
            return record
        return {"kind": "refused", "why": "died", "text": log, "failure": plain("Garbage", "not a record")}

    def _behave(self, request: Dict[str, Any]) -> Dict[str, Any]:
        session = self._sessions.get(str(request["session"]))
        if session is None:
            return {"kind": "behaved", "rows": []}
        deadline = _monotonic() + float(request["wall_seconds"]) + _EXTRA_WAIT_SECONDS
        try:
            session.send({k: v for k, v in request.items() if k != "nonce"})
            record = session.reader.receive(deadline)
            session.reader.receive(deadline)
        except (WireTimeout, WireClosed, WireFault, OSError):
            self._close(str(request["session"]))
            return {"kind": "behaved", "rows": []}
        if request["op"] == "trace":
            return {
                "kind": "traced",
                **{k: record[k] for k in ("paths", "events", "values", "cut", "frames", "threads") if k in record},
            }
        if request["op"] == "collect-run":
            return {"kind": "collect-ran", **{k: record.get(k, []) for k in ("results", "errors")}}
        if request["op"] == "differ":
            return {"kind": "differed", **{k: record[k] for k in ("calls", "live", "missed") if k in record}}
        return {"kind": "behaved", **{k: record.get(k, []) for k in ("rows", "kept", "seen", "crashes", "shown")}}

    def _run(self, request: Dict[str, Any]) -> Dict[str, Any]:
        name = str(request["session"])
        session = self._sessions.get(name)
        if session is None:
            return {"kind": "session-ended", "why": "closed", "results": [], "started": None}
        results: List[Dict[str, Any]] = []
        started: Optional[int] = None
        wait = float(request["wall_seconds"]) + (0.0 if request["inline"] else _EXTRA_WAIT_SECONDS)
        give_up_at = _monotonic() + (float(request["budget_seconds"]) if request["hard_budget"] else _NEVER_SECONDS)
        try:
            session.send({k: v for k, v in request.items() if k != "nonce"})
            while True:
                if _monotonic() >= give_up_at:
                    raise WireTimeout("the budget is used up")
                record = session.reader.receive(min(_monotonic() + wait, give_up_at))
                kind = record.pop("k", None)
                if kind == "end" and child_limits.state() == self._state:
                    return {"kind": "ran", "results": results}
                if kind == "cannot-swap":
                    session.reader.receive(_monotonic() + wait)
                    return {"kind": "cannot-swap", "why": record.get("why")}
                if kind == "start":
                    started = record.get("i")
                elif kind == "done":
                    results.append(record)
                    started = None
                else:
                    raise WireFault("not a record")
        except WireTimeout:
            why = "hung"
            if _monotonic() >= give_up_at:
                why, started = "budget", None  # the test that was cut off is not to blame
        except (WireClosed, WireFault, OSError):
            why = "died"
        self._close(name)
        return {"kind": "session-ended", "why": why, "results": results, "started": started}


def main(arguments: List[str]) -> None:
    """`arguments[0]` is the channel's descriptor."""
    channel = int(arguments[0])
    os.set_inheritable(channel, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    child_limits.guard_supervisor()
    try:
        Supervisor(channel).main()
    except (OSError, KeyError, ValueError, WireClosed, WireFault):
        os._exit(93)
    os._exit(0)
