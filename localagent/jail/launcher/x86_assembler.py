"""Assembles tiny static programs for x86-64 Linux, pure: instructions, data, the ELF around them, and what they share.

Used for the programs of ours that stand before a command in a jail: nsjail's init (init_stub.py) and the one that
puts up the Landlock wall (landlock_stub.py). Each step is one instruction: its bytes, and in the comment what they say;
a test disassembles them.

Not promised: another processor; `supported` says so.
"""

import os
import struct
from collections.abc import Callable, Sequence

BASE = 0x400000
HEADERS = 64 + 2 * 56
DEFAULT_PATH = "/bin:/usr/bin"  # glibc's and Python's, when PATH is not set
RECORD = struct.Struct("<Ii")  # what the programs tell on a descriptor: a word and its value


def supported() -> bool:
    """True on the processor that the programs are written for."""
    return os.uname().machine == "x86_64"


def exec_candidates(argv0: str, path: str | None) -> tuple[str, ...]:
    """The files that execvp would try, in order."""
    if "/" in argv0 or not argv0:
        return (argv0,)
    folders = (DEFAULT_PATH if path is None else path).split(":")
    return tuple(f"{folder}/{argv0}" if folder else argv0 for folder in folders)


def parse(stream: bytes) -> Sequence[tuple[int, int]]:
    """The whole records of a status stream, (word, value)."""
    whole = len(stream) - len(stream) % RECORD.size
    return [RECORD.unpack_from(stream, at) for at in range(0, whole, RECORD.size)]


class Assembler:
    """Machine code under construction, with labels; jumps are 32 bits wide."""

    def __init__(self) -> None:
        self.code = bytearray()
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []

    def label(self, name: str) -> None:
        """The place of the next instruction."""
        self._labels[name] = len(self.code)

    def op(self, code: str, value: int | None = None) -> None:
        """One instruction; `value` is its 32-bit operand."""
        self.code += bytes.fromhex(code)
        if value is not None:
            self.code += struct.pack("<I", value & 0xFFFFFFFF)

    def jump(self, code: str, label: str) -> None:
        """A jump or a call to a label, which may come later."""
        self.op(code, 0)
        self._jumps.append((len(self.code), label))

    def call(self, number: int) -> None:
        """A system call; rcx and r11 are lost."""
        self.op("b8", number)  # mov eax, number
        self.op("0f05")  # syscall

    def done(self) -> bytes:
        """The code with every jump filled in."""
        for after, label in self._jumps:
            self.code[after - 4 : after] = struct.pack("<i", self._labels[label] - after)
        return bytes(self.code)


class Data:
    """What follows the code in an image, each piece at its address and a multiple of 8."""

    def __init__(self, start: int) -> None:
        self.content = bytearray()
        self._start = start
        self._texts: dict[bytes, int] = {}

    def add(self, content: bytes) -> int:
        """The address of these bytes."""
        at = self._start + len(self.content)
        self.content += content + bytes(-len(content) % 8)
        return at

    def text(self, word: str) -> int:
        """The address of a word as the kernel takes it; the same for the same word."""
        raw = os.fsencode(word)
        if raw not in self._texts:
            self._texts[raw] = self.add(raw + b"\0")
        return self._texts[raw]

    def numbers(self, numbers: Sequence[int]) -> int:
        """The address of a row of 64-bit numbers."""
        return self.add(struct.pack(f"<{len(numbers)}Q", *numbers))

    def pointer_row(self, words: Sequence[str]) -> int:
        """The address of a row of pointers to words, ended by 0."""
        return self.numbers([*(self.text(word) for word in words), 0])


def image(code_of: Callable[[Data], bytes]) -> bytes:
    """The whole program. `code_of` is asked twice: how long the code is does not depend on any address."""
    start = BASE + HEADERS + len(code_of(Data(0)))
    start += -start % 8
    data = Data(start)
    code = code_of(data)
    body = code + bytes(start - BASE - HEADERS - len(code)) + bytes(data.content)
    return _elf(len(body)) + body


def _elf(size: int) -> bytes:
    """Header of a static program: one segment to read and execute, a stack that is not executable."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    whole = HEADERS + size
    head = struct.pack("<16sHHIQQQIHHHHHH", ident, 2, 62, 1, BASE + HEADERS, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, whole, whole, 0x1000)
    stack = struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)
    return head + load + stack


def close_on_exec(text: Assembler, number: int) -> None:
    """The descriptor stays with the program and does not go on to what it executes."""
    text.op("bf", number)  # mov edi, number
    text.op("be", 2)  # mov esi, F_SETFD
    text.op("ba", 1)  # mov edx, FD_CLOEXEC
    text.call(72)  # fcntl


def try_files(text: Assembler, files: int, refused: Callable[[Assembler], None]) -> None:
    """Execute the first of a row of files that lets itself be executed; argv in rbx, the environment in r14.

    `refused` writes what becomes of a refusal (its errno in eax and r15d, the file's place in the row in r13, and in
    r12d the errno to tell in the end, 0 at first): it falls through to go on, or leaves. After the last file the code
    goes on with the errno in r15d: r12d, else the last one.
    """
    text.op("4531e4")  # xor r12d, r12d
    text.op("41bd", files)  # mov r13d, files
    text.label("next")
    text.op("498b7d00")  # mov rdi, [r13]
    text.op("4885ff")  # test rdi, rdi
    text.jump("0f84", "nowhere")  # je nowhere
    text.op("4889de")  # mov rsi, rbx
    text.op("4c89f2")  # mov rdx, r14
    text.call(59)  # execve: comes back only when it fails
    text.op("f7d8")  # neg eax
    text.op("4189c7")  # mov r15d, eax
    refused(text)
    text.label("further")
    text.op("4983c508")  # add r13, 8
    text.jump("e9", "next")  # jmp next
    text.label("nowhere")
    text.op("4585e4")  # test r12d, r12d
    text.op("450f45fc")  # cmovne r15d, r12d


def leave(text: Assembler, code: int) -> None:
    """End with this exit code."""
    text.op("bf", code)  # mov edi, code
    text.call(231)  # exit_group


def report(text: Assembler, descriptor: int) -> None:
    """The routine `report`: tells the record of a word (edi) and its value (r15d)."""
    text.label("report")
    text.op("49c1e720")  # shl r15, 32
    text.op("4909ff")  # or r15, rdi
    text.op("4157")  # push r15
    text.op("bf", descriptor)  # mov edi, descriptor
    text.op("4889e6")  # mov rsi, rsp
    text.op("ba", RECORD.size)  # mov edx, 8
    text.call(1)  # write
    text.op("415f")  # pop r15
    text.op("c3")  # ret
