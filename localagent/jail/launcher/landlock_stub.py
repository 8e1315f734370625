"""The program that puts up the Landlock wall on x86-64, first in every jail: assembled here, pure.

The same wall as `runner/landlock.py` puts up where another processor needs an interpreter for it, without an
interpreter's start: it makes the ruleset, adds the rules, restricts itself and executes the command, found along PATH
as that program finds it. Whatever the kernel refuses ends it before the command: no path leads past `refused`.
The command gets its arguments, folder and environment as they came, and neither of our two descriptors.

Each step below is one instruction: its bytes, and in the comment what they say. A test disassembles it.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from localagent.jail.launcher import x86_assembler
from localagent.jail.launcher.x86_assembler import Assembler, Data, exec_candidates
from localagent.runner import landlock as confiner

_RULE_BYTES, _POINTER_BYTES = 24, 8


class LandlockStatus(IntEnum):
    """First half of an 8-byte record on the status descriptor; the second half is its value."""

    WALLED = 1  # value: the ABI whose rights are handled
    AT_RULE = 2  # value: bytes from the first rule to the one that the next record is about
    NO_WALL = 3  # value: errno; the command does not run
    AT_FILE = 4  # value: bytes from the first pointer to a file to the one that the next record is about
    NO_EXEC = 5  # value: errno of execve


@dataclass(frozen=True, kw_only=True, slots=True)
class LandlockPlan:
    """What one program is made for. `rules` are (path inside, grant); `status` and `image` (itself) are descriptors."""

    argv0: str
    path: str | None
    rules: tuple[tuple[str, str], ...]
    abi: int
    loopback: bool
    status: int
    image: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tables:
    """Addresses: the rules, ended by a path 0, and the files to try, ended by 0."""

    rules: int
    files: int


@lru_cache(64)
def program(plan: LandlockPlan) -> bytes:
    """The whole ELF image. Kept: most jails of one process differ in nothing that matters here."""
    return x86_assembler.image(lambda data: _code(plan, data))


def rule_at(plan: LandlockPlan, value: int) -> str:
    """The path of the rule that an AT_RULE tells."""
    return plan.rules[value // _RULE_BYTES][0]


def file_at(plan: LandlockPlan, value: int) -> str:
    """The file that an AT_FILE tells."""
    return exec_candidates(plan.argv0, plan.path)[value // _POINTER_BYTES]


def _rows(plan: LandlockPlan, data: Data) -> Sequence[int]:
    """For each rule its path, its rights over a folder and over anything else."""
    rows: list[int] = []
    for path, grant in plan.rules:
        rights = confiner.GRANTS[grant] & confiner.handled(plan.abi)
        rows += [data.text(path), rights, rights & confiner.ON_FILES]
    return [*rows, 0]


def _code(plan: LandlockPlan, data: Data) -> bytes:
    tables = _Tables(
        rules=data.numbers(_rows(plan, data)), files=data.pointer_row(exec_candidates(plan.argv0, plan.path))
    )
    about = confiner.attributes(plan.abi, plan.loopback)
    text = Assembler()
    _begin(text, plan)
    _ruleset(text, data.add(about), len(about))
    _rules(text, tables)
    _restrict(text, plan)
    x86_assembler.try_files(text, tables.files, _refused_file)
    _no_exec(text, tables)
    _no_wall(text, tables)
    x86_assembler.report(text, plan.status)
    return text.done()


def _begin(text: Assembler, plan: LandlockPlan) -> None:
    text.op("488b0424")  # mov rax, [rsp]           argc
    text.op("4c8d74c410")  # lea r14, [rsp+rax*8+16]  envp
    text.op("488d5c2410")  # lea rbx, [rsp+16]        argv of the command, which follows our own name
    text.op("4881ec", 144)  # sub rsp, 144           struct stat, later struct landlock_path_beneath_attr
    x86_assembler.close_on_exec(text, plan.status)
    text.op("bf", plan.image)  # mov edi, image
    text.call(3)  # close


def _ruleset(text: Assembler, about: int, size: int) -> None:
    text.op("bf", about)  # mov edi, about
    text.op("be", size)  # mov esi, size
    text.op("31d2")  # xor edx, edx
    text.call(444)  # landlock_create_ruleset
    text.op("85c0")  # test eax, eax
    text.jump("0f88", "refused")  # js refused
    text.op("89c5")  # mov ebp, eax


def _rules(text: Assembler, tables: _Tables) -> None:
    text.op("41bd", tables.rules)  # mov r13d, rules
    text.label("rule")
    text.op("498b7d00")  # mov rdi, [r13]
    text.op("4885ff")  # test rdi, rdi
    text.jump("0f84", "restrict")  # je restrict
    text.op("be", os.O_PATH | os.O_CLOEXEC)  # mov esi, flags
    text.op("31d2")  # xor edx, edx
    text.call(2)  # open
    text.op("85c0")  # test eax, eax
    text.jump("0f88", "no_rule")  # js no_rule
    text.op("4189c4")  # mov r12d, eax
    text.op("4489e7")  # mov edi, r12d
    text.op("4889e6")  # mov rsi, rsp
    text.call(5)  # fstat
    text.op("85c0")  # test eax, eax
    text.jump("0f85", "no_rule")  # jne no_rule
    text.op("8b442418")  # mov eax, [rsp+24]        st_mode
    text.op("25", stat.S_IFMT(0xFFFF))  # and eax, S_IFMT
    text.op("3d", stat.S_IFDIR)  # cmp eax, S_IFDIR
    text.op("498b4508")  # mov rax, [r13+8]         rights over a folder
    text.op("490f454510")  # cmovne rax, [r13+16]   over anything else
    text.op("48890424")  # mov [rsp], rax           allowed_access
    text.op("4489642408")  # mov [rsp+8], r12d      parent_fd
    text.op("89ef")  # mov edi, ebp
    text.op("be", 1)  # mov esi, LANDLOCK_RULE_PATH_BENEATH
    text.op("4889e2")  # mov rdx, rsp
    text.op("4531d2")  # xor r10d, r10d
    text.call(445)  # landlock_add_rule
    text.op("85c0")  # test eax, eax
    text.jump("0f85", "no_rule")  # jne no_rule
    text.op("4489e7")  # mov edi, r12d
    text.call(3)  # close
    text.op("4983c518")  # add r13, 24
    text.jump("e9", "rule")  # jmp rule


def _restrict(text: Assembler, plan: LandlockPlan) -> None:
    text.label("restrict")
    text.op("89ef")  # mov edi, ebp
    text.op("31f6")  # xor esi, esi
    text.call(446)  # landlock_restrict_self
    text.op("85c0")  # test eax, eax
    text.jump("0f85", "refused")  # jne refused
    text.op("89ef")  # mov edi, ebp
    text.call(3)  # close
    text.op("41bf", plan.abi)  # mov r15d, abi
    text.op("bf", LandlockStatus.WALLED)  # mov edi, WALLED
    text.jump("e8", "report")  # call report


def _refused_file(text: Assembler) -> None:
    """As Python's execvpe: go on whatever it was; the first refusal other than "not there" is told, else the last."""
    for code in (2, 20):  # ENOENT ENOTDIR
        text.op("3d", code)  # cmp eax, code
        text.jump("0f84", "further")  # je further
    text.op("4585e4")  # test r12d, r12d
    text.jump("0f85", "further")  # jne further
    text.op("4189c4")  # mov r12d, eax
    text.op("4c89ed")  # mov rbp, r13


def _no_exec(text: Assembler, tables: _Tables) -> None:
    text.op("4d8d6df8")  # lea r13, [r13-8]
    text.op("4585e4")  # test r12d, r12d
    text.op("4c0f45ed")  # cmovne r13, rbp
    text.op("4589fc")  # mov r12d, r15d
    text.op("4589ef")  # mov r15d, r13d
    text.op("4181ef", tables.files)  # sub r15d, files
    text.op("bf", LandlockStatus.AT_FILE)  # mov edi, AT_FILE
    text.jump("e8", "report")  # call report
    text.op("4589e7")  # mov r15d, r12d
    text.op("bf", LandlockStatus.NO_EXEC)  # mov edi, NO_EXEC
    text.jump("e8", "report")  # call report
    x86_assembler.leave(text, confiner.NO_COMMAND)


def _no_wall(text: Assembler, tables: _Tables) -> None:
    text.label("no_rule")
    text.op("89c5")  # mov ebp, eax
    text.op("4589ef")  # mov r15d, r13d
    text.op("4181ef", tables.rules)  # sub r15d, rules
    text.op("bf", LandlockStatus.AT_RULE)  # mov edi, AT_RULE
    text.jump("e8", "report")  # call report
    text.op("89e8")  # mov eax, ebp
    text.label("refused")
    text.op("f7d8")  # neg eax
    text.op("4189c7")  # mov r15d, eax
    text.op("bf", LandlockStatus.NO_WALL)  # mov edi, NO_WALL
    text.jump("e8", "report")  # call report
    x86_assembler.leave(text, confiner.FAILED)
