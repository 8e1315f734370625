"""The init of our jails: a program of some hundred bytes for x86-64 Linux, assembled here, pure.

nsjail starts a command as process 1 of its pid namespace, where signals without a handler do nothing and orphans pile
up. bubblewrap has an init, but both answer 128+n for a signal n, as for a command that exits with that number. This
program stands in between instead: it says that it is there, waits for the go-ahead and puts on the seccomp filter
(under nsjail: bubblewrap does both itself), forks, executes the command in the child (found along PATH and handed to
/bin/sh as execvp does), reaps everything and reports the wait status of the command as the kernel gave it. Nothing
inside may look into it (not dumpable).

Each step below is one instruction: its bytes, and in the comment what they say. A test disassembles it.
Not promised: another processor; `machine_code.supported` says so: nsjail then counts as faulty, and bubblewrap has its
own init, whose answers above 128 mean either.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from localagent.jail.launcher import x86_assembler
from localagent.jail.launcher.x86_assembler import Assembler, Data, exec_candidates

_SHELL = "/bin/sh"


class InitStatus(IntEnum):
    """First half of an 8-byte record on the status descriptor; the second half is its value."""

    READY = 1
    ENDED = 2  # value: the command's wait status
    NO_FOLDER = 3  # value: errno of chdir
    NO_EXEC = 4  # value: errno of execve
    NO_FILTER = 5  # value: errno of the seccomp call
    NO_FORK = 6  # value: errno of fork


@dataclass(frozen=True, kw_only=True, slots=True)
class InitPlan:
    """What one init is made for; descriptors are numbers inside.

    `block` is where the go-ahead comes, `seccomp` a BPF program: None where the backend has seen to it already.
    `image` is this program itself where it was executed by that name, which then comes before the command's arguments.
    """

    argv0: str
    path: str | None
    cwd: str
    status: int
    block: int | None
    seccomp: bytes | None
    image: int | None = None


@lru_cache(64)
def program(plan: InitPlan) -> bytes:
    """The whole ELF image. Kept: most jails of one process differ in nothing that matters here."""
    return x86_assembler.image(lambda data: _code(plan, data))


def _code(plan: InitPlan, data: Data) -> bytes:
    text = Assembler()
    _begin(text, plan)
    if plan.seccomp is not None:
        _filter(text, data.add(plan.seccomp), len(plan.seccomp), data)
    _fork_and_wait(text, plan)
    _child(text, data.text(plan.cwd))
    x86_assembler.try_files(text, data.pointer_row(exec_candidates(plan.argv0, plan.path)), _refused)
    text.jump("e9", "no_exec")  # jmp no_exec
    _script(text, data.text(_SHELL))
    _failures(text)
    x86_assembler.report(text, plan.status)
    return text.done()


def _begin(text: Assembler, plan: InitPlan) -> None:
    text.op("488b0424")  # mov rax, [rsp]           argc
    text.op("4c8d74c410")  # lea r14, [rsp+rax*8+16]  envp
    if plan.image is None:
        text.op("488d5c2408")  # lea rbx, [rsp+8]         argv
    else:
        text.op("488d5c2410")  # lea rbx, [rsp+16]        argv of the command, which follows our own name
        text.op("bf", plan.image)  # mov edi, image
        text.call(3)  # close
    for option, value in ((1, 9), (4, 0)):  # PR_SET_PDEATHSIG SIGKILL; PR_SET_DUMPABLE 0
        text.op("bf", option)  # mov edi, option
        text.op("be", value)  # mov esi, value
        text.op("31d2")  # xor edx, edx
        text.call(157)  # prctl
    x86_assembler.close_on_exec(text, plan.status)
    text.op("4531ff")  # xor r15d, r15d
    text.op("bf", InitStatus.READY)  # mov edi, READY
    text.jump("e8", "report")  # call report
    if plan.block is not None:
        _wait(text, plan.block)


def _wait(text: Assembler, block: int) -> None:
    text.op("6a00")  # push 0
    text.op("bf", block)  # mov edi, block
    text.op("4889e6")  # mov rsi, rsp
    text.op("ba", 1)  # mov edx, 1
    text.call(0)  # read
    text.op("415f")  # pop r15
    text.op("3d", 1)  # cmp eax, 1
    text.jump("0f85", "leave")  # jne leave: those who would have said go are gone
    text.op("bf", block)  # mov edi, block
    text.call(3)  # close


def _filter(text: Assembler, rules: int, size: int, data: Data) -> None:
    fprog = data.add(struct.pack("<HxxxxxxQ", size // 8, rules))
    text.op("bf", 22)  # mov edi, PR_SET_SECCOMP
    text.op("be", 2)  # mov esi, SECCOMP_MODE_FILTER
    text.op("ba", fprog)  # mov edx, fprog
    text.call(157)  # prctl
    text.op("f7d8")  # neg eax
    text.op("4189c7")  # mov r15d, eax
    text.op("bf", InitStatus.NO_FILTER)  # mov edi, NO_FILTER
    text.op("85c0")  # test eax, eax
    text.jump("0f85", "told")  # jne told


def _fork_and_wait(text: Assembler, plan: InitPlan) -> None:
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
    text.op("bf", InitStatus.ENDED)  # mov edi, ENDED
    text.jump("e9", "told")  # jmp told


def _child(text: Assembler, cwd: int) -> None:
    text.label("child")
    text.op("bf", cwd)  # mov edi, cwd
    text.call(80)  # chdir
    text.op("f7d8")  # neg eax
    text.op("4189c7")  # mov r15d, eax
    text.op("bf", InitStatus.NO_FOLDER)  # mov edi, NO_FOLDER
    text.op("85c0")  # test eax, eax
    text.jump("0f85", "told")  # jne told


def _refused(text: Assembler) -> None:
    text.op("3d", 8)  # cmp eax, ENOEXEC
    text.jump("0f84", "script")  # je script
    for code in (2, 20, 116, 19, 110):  # ENOENT ENOTDIR ESTALE ENODEV ETIMEDOUT: look further
        text.op("3d", code)  # cmp eax, code
        text.jump("0f84", "further")  # je further
    text.op("3d", 13)  # cmp eax, EACCES
    text.jump("0f85", "no_exec")  # jne no_exec
    text.op("41bc", 13)  # mov r12d, EACCES


def _script(text: Assembler, shell: int) -> None:
    text.label("script")
    text.op("498b7d00")  # mov rdi, [r13]
    text.op("48893b")  # mov [rbx], rdi             argv: /bin/sh FILE the rest
    text.op("bf", shell)  # mov edi, shell
    text.op("48897bf8")  # mov [rbx-8], rdi
    text.op("488d73f8")  # lea rsi, [rbx-8]
    text.op("4c89f2")  # mov rdx, r14
    text.call(59)  # execve
    text.op("f7d8")  # neg eax
    text.op("4189c7")  # mov r15d, eax


def _failures(text: Assembler) -> None:
    text.label("no_exec")
    text.op("bf", InitStatus.NO_EXEC)  # mov edi, NO_EXEC
    text.jump("e9", "told")  # jmp told
    text.label("no_fork")
    text.op("f7d8")  # neg eax
    text.op("4189c7")  # mov r15d, eax
    text.op("bf", InitStatus.NO_FORK)  # mov edi, NO_FORK
    text.label("told")
    text.jump("e8", "report")  # call report
    text.label("leave")
    x86_assembler.leave(text, 127)
