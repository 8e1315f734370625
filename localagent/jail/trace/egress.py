"""Judges traced calls: which sockets were asked for, what was written where, what was read of the user's home.

Processes in namespaces of their own are told apart: with own mounts their files are the jail's to judge (its wall is
tried by `doctor --attack`), and with an own network they may ask the kernel (AF_NETLINK) for a loopback. Any other
family but AF_UNIX is a finding wherever it was asked for, whether or not the kernel granted it.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localagent.jail.trace.syscall_trace import (
    CHANGING,
    CHILDREN,
    NETWORK,
    OPENING,
    REACHING,
    RUNNING,
    TOUCHING,
    Syscall,
)
from localagent.text.visible_text import shortened

_FAMILY = re.compile(r"\b(?:sa_family=)?((?:AF|PF)_[A-Z0-9]+|0x[0-9a-f]+ /\* AF_\?\?\? \*/)")
_CHILD = re.compile(r"\s*/\* (\d+) in strace's PID NS \*/")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_AT = re.compile(r"(?:AT_FDCWD|\d+)<((?:[^>\\]|\\.)*)>, $")
_HELD = re.compile(r"\d+<((?:[^>\\]|\\.)*)>")
_AT_NOTHING = re.compile(r"\d+<(?:[^>\\]|\\.)*>, (?:NULL|\"\")")  # futimens, AT_EMPTY_PATH: the descriptor itself
_BY_DESCRIPTOR = frozenset({"fchmod", "fchown", "fsetxattr", "fremovexattr"})
_FD = re.compile(r"<((?:[^>\\]|\\.)*)>")
_ESCAPED = re.compile(r"\\([0-7]{1,3}|x[0-9a-f]{2}|.)")
_DEVICE = re.compile(r"<(?:char|block) \d+:\d+$|(?: \(deleted\))$")
_WRITING = re.compile(r"\bO_(?:WRONLY|RDWR|CREAT|TRUNC)\b")
_SINGLE = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f"}
_DEVICES = ("/dev/null", "/dev/tty", "/dev/ptmx", "/dev/pts", "/proc", "/sys/fs/cgroup")
MAX_FINDINGS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class EgressFinding:
    """What must not have happened: of which kind (egress, write, read, trace), and what exactly."""

    kind: str
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowedPaths:
    """Where may be written, and what of `home` may be read beside that; a folder stands for all below it."""

    writable: tuple[str, ...]
    home: str
    readable: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class EgressReport:
    """Sockets as (call, family, whose namespace) with how often, and every finding once."""

    sockets: Mapping[tuple[str, str, str], int]
    findings: tuple[EgressFinding, ...]
    processes: int


@dataclass(kw_only=True, slots=True)
class _ThreadState:
    """What a thread inherited: where it stands, and which namespaces are not the host's."""

    cwd: str
    own_files: bool = False
    own_network: bool = False


@dataclass(kw_only=True, slots=True)
class _Court:
    calls: Mapping[int, Sequence[Syscall]]
    ways: AllowedPaths
    sockets: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    findings: dict[EgressFinding, None] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    def walk(self, pid: int, place: _ThreadState) -> None:
        """A thread and, as it starts them, its children; each with what it inherits."""
        waiting = [(pid, place)]
        while waiting:
            pid, place = waiting.pop()
            if pid in self.seen:
                continue
            self.seen.add(pid)
            for call in self.calls.get(pid, ()):
                if call.name in CHILDREN:
                    self.children(call)
                    waiting += [(child, _inherited(call, place)) for child in _child(call)]
                elif call.name in REACHING:
                    self.note("trace", f"{call.name}({shortened(call.arguments, 160)}): reaches into another process")
                elif call.name in NETWORK:
                    self.network(call, place)
                elif call.name in ("unshare", "setns"):
                    self.namespaces(call, place)
                elif call.name in ("chdir", "fchdir"):
                    place.cwd = _moved(call, place.cwd)
                elif not place.own_files and call.result >= 0:
                    for path, writes in _paths(call, place.cwd):
                        self.file(call, path, writes=writes)

    def children(self, call: Syscall) -> None:
        """Each has a trace of its own, if only of its end: without one, what it did was not seen."""
        for child in _child(call):
            if child not in self.calls:
                self.note("trace", f"{call.name} = {child}: nothing of this child was traced")

    def namespaces(self, call: Syscall, place: _ThreadState) -> None:
        """New ones are its own from here on; joining others' is what nothing of ours does."""
        if call.name == "setns":
            self.note("egress", f"setns({shortened(call.arguments, 160)}): joined a namespace that may be any")
        elif call.result == 0:
            place.own_files |= "CLONE_NEWNS" in call.arguments
            place.own_network |= "CLONE_NEWNET" in call.arguments

    def network(self, call: Syscall, place: _ThreadState) -> None:
        """Counts the call; anything but AF_UNIX, or a jail's own loopback, is a finding."""
        where = "a jail's own" if place.own_network else "the host's"
        found = _FAMILY.search(call.arguments)
        family = found[1].replace("PF_", "AF_", 1) if found else ""
        if call.name.startswith("send") and not family:
            return  # over a socket that was counted when it was made and connected
        if call.name in ("connect", "bind", "sendto") and call.arguments.rpartition(", ")[0].endswith(", NULL"):
            return  # without an address, likewise
        self.sockets[call.name, family or "?", where] += 1
        if family in ("AF_UNIX", "AF_LOCAL") or (family == "AF_NETLINK" and place.own_network):
            return
        self.note("egress", f"{call.name}({shortened(call.arguments, 160)}) in {where} network namespace")

    def file(self, call: Syscall, path: str, *, writes: bool) -> None:
        """A path of the host that was written or read."""
        readable = _below(path, (*self.ways.readable, *self.ways.writable))
        if writes and not _below(path, (*self.ways.writable, *_DEVICES)):
            if not (readable and "/__pycache__" in path):  # the interpreter keeps what it compiled beside the code
                self.note("write", f"{call.name} {path}")
        elif not writes and not readable and _below(path, (self.ways.home,)):
            self.note("read", f"{call.name} {path}")

    def note(self, kind: str, what: str) -> None:
        """A finding, once, and not without end."""
        if len(self.findings) < MAX_FINDINGS:
            self.findings[EgressFinding(kind=kind, what=what)] = None


def judge(
    calls: Mapping[int, Sequence[Syscall]], *, cwd: Path, ways: AllowedPaths, reached: Sequence[str] = ()
) -> EgressReport:
    """All threads of a trace. One whose beginning was not seen is judged as the host's own.

    `reached` are lines where something reached for the trace itself: each is a finding.
    """
    court = _Court(calls=calls, ways=ways)
    for line in reached:
        court.note("trace", line)
    started = {child for thread in calls.values() for call in thread if call.name in CHILDREN for child in _child(call)}
    for pid in [*sorted(set(calls) - started), *sorted(calls)]:
        court.walk(pid, _ThreadState(cwd=str(cwd)))
    return EgressReport(sockets=dict(court.sockets), findings=tuple(court.findings), processes=len(court.seen))


def _child(call: Syscall) -> Iterator[int]:
    if call.result > 0:
        found = _CHILD.match(call.remark)
        yield int(found[1]) if found else call.result


def _inherited(call: Syscall, place: _ThreadState) -> _ThreadState:
    return _ThreadState(
        cwd=place.cwd,
        own_files=place.own_files or "CLONE_NEWNS" in call.arguments,
        own_network=place.own_network or "CLONE_NEWNET" in call.arguments,
    )


def _moved(call: Syscall, cwd: str) -> str:
    if call.result != 0:
        return cwd
    if call.name == "fchdir":
        found = _FD.search(call.arguments)
        return _plain(found[1]) if found else cwd
    quoted = _QUOTED.search(call.arguments)
    return os.path.normpath(os.path.join(cwd, _plain(quoted[1]))) if quoted else cwd  # noqa: PTH118 - text, not a file


def _paths(call: Syscall, cwd: str) -> Iterator[tuple[str, bool]]:
    """Every path of a call that succeeded, absolute, and whether it is written. A symlink's target is only text."""
    if call.name in OPENING:
        writes = call.name == "creat" or _WRITING.search(call.arguments) is not None
        opened = _FD.match(call.remark)
        if opened and opened[1].startswith("/"):
            yield _DEVICE.sub("", _plain(opened[1])), writes
            return
        yield from ((path, writes) for path in _named(call, cwd))
    elif call.name in (*TOUCHING, *RUNNING):
        yield from ((path, call.name in TOUCHING) for path in [_first(call, cwd)] if path is not None)
    elif call.name in CHANGING:
        named = list(_named(call, cwd))
        yield from ((path, True) for path in (named[1:] if call.name.startswith("symlink") else named))


def _first(call: Syscall, cwd: str) -> str | None:
    """The one file that a call is about: its first path, or what its first descriptor stands for."""
    descriptor = _HELD.match(call.arguments)
    named = None if call.name in _BY_DESCRIPTOR else next(_named(call, cwd), None)
    if descriptor is not None and (named is None or _AT_NOTHING.match(call.arguments)):
        held = _plain(descriptor[1])
        return _DEVICE.sub("", held) if held.startswith("/") else None
    return named


def _named(call: Syscall, cwd: str) -> Iterator[str]:
    for quoted in _QUOTED.finditer(call.arguments):
        at = _AT.search(call.arguments[: quoted.start()])
        base = _plain(at[1]) if at else cwd
        yield os.path.normpath(os.path.join(base, _plain(quoted[1])))  # noqa: PTH118 - text, not a file


def _plain(text: str) -> str:
    """A text without the escapes of strace."""

    def single(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "01234567":
            return chr(int(code, 8))
        return chr(int(code[1:], 16)) if code[0] == "x" and len(code) == 3 else _SINGLE.get(code, code)

    return _ESCAPED.sub(single, text)


def _below(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)
