"""The init of nsjail's jails: a program of some hundred bytes for x86-64 Linux, assembled here, pure.

nsjail starts a command as process 1 of its pid namespace, where signals without a handler do nothing and orphans pile
up, and it answers 128+n for a signal. This program stands in between, as bubblewrap's own init does: it says that it
is there, waits for the go-ahead, puts on the seccomp filter (the same BPF that bubblewrap gets), forks, executes the
command in the child (found along PATH and handed to /bin/sh as execvp does), reaps everything and reports the wait
status of the command as the kernel gave it. Nothing inside may look into it (not dumpable).

Each step below is one instruction: its bytes, and in the comment what they say. A test disassembles it.
Not promised: another processor; `supported` says so and the backend then counts as faulty.
"""

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

BASE = 0x400000
_HEADERS = 64 + 2 * 56
_SHELL = b"/bin/sh"
_DEFAULT_PATH = "/bin:/usr/bin"  # glibc's, when PATH is not set


class Word(IntEnum):
    """First half of an 8-byte record on the status descriptor; the second half is its value."""

    READY = 1
    ENDED = 2  # value: the command's wait status
    NO_FOLDER = 3  # value: errno of chdir
    NO_EXEC = 4  # value: errno of execve
    NO_FILTER = 5  # value: errno of the seccomp call
    NO_FORK = 6  # value: errno of fork


RECORD = struct.Struct("<Ii")


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What one init is made for. `seccomp` is a BPF program or None; descriptors are numbers inside."""

    argv0: str
    path: str | None
    cwd: str
    status: int
    block: int
    seccomp: bytes | None


def supported() -> bool:
    """True on the processor that the program is written for."""
    return os.uname().machine == "x86_64"


def places(argv0: str, path: str | None) -> tuple[str, ...]:
    """The files that execvp would try, in order."""
    if "/" in argv0 or not argv0:
        return (argv0,)
    folders = (_DEFAULT_PATH if path is None else path).split(":")
    return tuple(f"{folder}/{argv0}" if folder else argv0 for folder in folders)


class _Text:
    """Machine code under construction, with labels; jumps are 32 bits wide."""

    def __init__(self) -> None:
        self.code = bytearray()
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []

    def label(self, name: str) -> None:
        self._labels[name] = len(self.code)

    def op(self, code: str, value: int | None = None) -> None:
        """One instruction; `value` is its 32-bit operand."""
        self.code += bytes.fromhex(code)
        if value is not None:
            self.code += struct.pack("<I", value & 0xFFFFFFFF)

    def jump(self, code: str, label: str) -> None:
        self.op(code, 0)
        self._jumps.append((len(self.code), label))

    def call(self, number: int) -> None:
        self.op("b8", number)  # mov eax, number
        self.op("0f05")  # syscall

    def done(self) -> bytes:
        for after, label in self._jumps:
            self.code[after - 4 : after] = struct.pack("<i", self._labels[label] - after)
        return bytes(self.code)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Data:
    """Addresses in the finished image."""

    cwd: int
    table: int
    shell: int
    filter: int


@lru_cache(64)
def program(plan: Plan) -> bytes:
    """The whole ELF image. Kept: most jails of one process differ in nothing that matters here."""
    size = len(_code(plan, _Data(cwd=0, table=0, shell=0, filter=0)))
    start = BASE + _HEADERS + size
    start += -start % 8
    files = [os.fsencode(place) for place in places(plan.argv0, plan.path)]
    strings, at = bytearray(), {}
    for text in dict.fromkeys((os.fsencode(plan.cwd), _SHELL, *files)):
        at[text] = len(strings)
        strings += text + b"\0"
    strings += b"\0" * (-len(strings) % 8)
    table = start + len(strings)
    pointers = b"".join(struct.pack("<Q", start + at[file]) for file in files) + struct.pack("<Q", 0)
    header = table + len(pointers)
    code = plan.seccomp or b""
    fprog = struct.pack("<HxxxxxxQ", len(code) // 8, header + 16)
    data = _Data(cwd=start + at[os.fsencode(plan.cwd)], table=table, shell=start + at[_SHELL], filter=header)
    text = _code(plan, data)
    body = text + b"\0" * (-(_HEADERS + len(text)) % 8) + bytes(strings) + pointers + fprog + code
    return _elf(len(body)) + body


def _elf(size: int) -> bytes:
    """Header of a static program: one segment to read and execute, a stack that is not executable."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    whole = _HEADERS + size
    head = struct.pack("<16sHHIQQQIHHHHHH", ident, 2, 62, 1, BASE + _HEADERS, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, whole, whole, 0x1000)
    stack = struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)
    return head + load + stack


def _code(plan: Plan, data: _Data) -> bytes:
    text = _Text()
    _begin(text, plan)
    if plan.seccomp is not None:
        _filter(text, data)
    _fork_and_wait(text, plan)
    _child(text, data)
    _script(text, data)
    _failures(text)
    _report(text, plan)
    return text.done()


def _begin(text: _Text, plan: Plan) -> None:
    text.op("488b0424")  # mov rax, [rsp]           argc
    text.op("4c8d74c410")  # lea r14, [rsp+rax*8+16]  envp
    text.op("488d5c2408")  # lea rbx, [rsp+8]         argv
    for option, value in ((1, 9), (4, 0)):  # PR_SET_PDEATHSIG SIGKILL; PR_SET_DUMPABLE 0
        text.op("bf", option)  # mov edi, option
        text.op("be", value)  # mov esi, value
        text.op("31d2")  # xor edx, edx
        text.call(157)  # prctl
    text.op("bf", plan.status)  # mov edi, status
    text.op("be", 2)  # mov esi, F_SETFD
    text.op("ba", 1)  # mov edx, FD_CLOEXEC
    text.call(72)  # fcntl
    text.op("4531ff")  # xor r15d, r15d
    text.op("bf", Word.READY)  # mov edi, READY
    text.jump("e8", "report")  # call report
    text.op("6a00")  # push 0
    text.op("bf", plan.block)  # mov edi, block
    text.op("4889e6")  # mov rsi, rsp
    text.op("ba", 1)  # mov edx, 1
    text.call(0)  # read
    text.op("415f")  # pop r15
    text.op("3d", 1)  # cmp eax, 1
    text.jump("0f85", "leave")  # jne leave: those who would have said go are gone
    text.op("bf", plan.block)  # mov edi, block
    text.call(3)  # close


def _filter(text: _Text, data: _Data) -> None:
    text.op("bf", 22)  # mov edi, PR_SET_SECCOMP
    text.op("be", 2)  # mov esi, SECCOMP_MODE_FILTER
    text.op("ba", data.filter)  # mov edx, filter
    text.call(157)  # prctl
    text.op("f7d8")  # neg eax
    text.op("4189c7")  # mov r15d, eax
    text.op("bf", Word.NO_FILTER)  # mov edi, NO_FILTER
    text.op("85c0")  # test eax, eax
    text.jump("0f85", "told")  # jne told


def _fork_and_wait(text: _Text, plan: Plan) -> None:
    text.call(57)  # fork
    text.op("85c0")  # test eax, eax
    text.jump("0f84", "child")  # je child
    text.jump("0f88", "no_fork")  # js no_fork
    text.op("4189c4")  # mov r12d, eax
    for first, last in ((0, plan.status - 1), (plan.status + 1, 0xFFFFFFFF)):
        text.op("bf", first)  # mov edi, first
        text.op("be", last)  # mov esi, last
        text.op("31d2")  # xor edx, edx
        text.call(436)  # close_range
    text.label("wait")
    text.op("6a00")  # push 0
    text.op("bf", 0xFFFFFFFF)  # mov edi, -1
    text.op("4889e6")  # mov rsi, rsp
    text.op("31d2")  # xor edx, edx
    text.op("4531d2")  # xor r10d, r10d
    text.call(61)  # wait4
    text.op("415f")  # pop r15
    text.op("4439e0")  # cmp eax, r12d
    text.jump("0f84", "ended")  # je ended
    text.op("3d", -10)  # cmp eax, -ECHILD
    text.jump("0f85", "wait")  # jne wait
    text.jump("e9", "leave")  # jmp leave
    text.label("ended")
    text.op("bf", Word.ENDED)  # mov edi, ENDED
    text.jump("e9", "told")  # jmp told


def _child(text: _Text, data: _Data) -> None:
    text.label("child")
    text.op("bf", data.cwd)  # mov edi, cwd
    text.call(80)  # chdir
    text.op("f7d8")  # neg eax
    text.op("4189c7")  # mov r15d, eax
    text.op("bf", Word.NO_FOLDER)  # mov edi, NO_FOLDER
    text.op("85c0")  # test eax, eax
    text.jump("0f85", "told")  # jne told
    text.op("4531e4")  # xor r12d, r12d             no file was refused yet
    text.op("41bd", data.table)  # mov r13d, table
    text.label("next")
    text.op("498b7d00")  # mov rdi, [r13]
    text.op("4885ff")  # test rdi, rdi
    text.jump("0f84", "nowhere")  # je nowhere
    text.op("4889de")  # mov rsi, rbx
    text.op("4c89f2")  # mov rdx, r14
    text.call(59)  # execve: comes back only when it fails
    text.op("f7d8")  # neg eax
    text.op("4189c7")  # mov r15d, eax
    text.op("3d", 8)  # cmp eax, ENOEXEC
    text.jump("0f84", "script")  # je script
    for code in (2, 20, 116, 19, 110):  # ENOENT ENOTDIR ESTALE ENODEV ETIMEDOUT: look further
        text.op("3d", code)  # cmp eax, code
        text.jump("0f84", "further")  # je further
    text.op("3d", 13)  # cmp eax, EACCES
    text.jump("0f85", "no_exec")  # jne no_exec
    text.op("41bc", 13)  # mov r12d, EACCES
    text.label("further")
    text.op("4983c508")  # add r13, 8
    text.jump("e9", "next")  # jmp next
    text.label("nowhere")
    text.op("4585e4")  # test r12d, r12d
    text.jump("0f84", "no_exec")  # je no_exec
    text.op("4589e7")  # mov r15d, r12d
    text.jump("e9", "no_exec")  # jmp no_exec


def _script(text: _Text, data: _Data) -> None:
    text.label("script")
    text.op("498b7d00")  # mov rdi, [r13]
    text.op("48893b")  # mov [rbx], rdi             argv: /bin/sh FILE the rest
    text.op("bf", data.shell)  # mov edi, shell
    text.op("48897bf8")  # mov [rbx-8], rdi
    text.op("488d73f8")  # lea rsi, [rbx-8]
    text.op("4c89f2")  # mov rdx, r14
    text.call(59)  # execve
    text.op("f7d8")  # neg eax
    text.op("4189c7")  # mov r15d, eax


def _failures(text: _Text) -> None:
    text.label("no_exec")
    text.op("bf", Word.NO_EXEC)  # mov edi, NO_EXEC
    text.jump("e9", "told")  # jmp told
    text.label("no_fork")
    text.op("f7d8")  # neg eax
    text.op("4189c7")  # mov r15d, eax
    text.op("bf", Word.NO_FORK)  # mov edi, NO_FORK
    text.label("told")
    text.jump("e8", "report")  # call report
    text.label("leave")
    text.op("bf", 127)  # mov edi, 127
    text.call(231)  # exit_group


def _report(text: _Text, plan: Plan) -> None:
    text.label("report")  # edi: the word, r15d: its value
    text.op("49c1e720")  # shl r15, 32
    text.op("4909ff")  # or r15, rdi
    text.op("4157")  # push r15
    text.op("bf", plan.status)  # mov edi, status
    text.op("4889e6")  # mov rsi, rsp
    text.op("ba", RECORD.size)  # mov edx, 8
    text.call(1)  # write
    text.op("415f")  # pop r15
    text.op("c3")  # ret


def parse(stream: bytes) -> Sequence[tuple[int, int]]:
    """The whole records of a status stream, (word, value)."""
    whole = len(stream) - len(stream) % RECORD.size
    return [RECORD.unpack_from(stream, at) for at in range(0, whole, RECORD.size)]
