"""Looks into the programs that we assemble: every comment beside an instruction is held against a disassembler."""

import re
import subprocess
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from localagent.jail.launcher import x86_assembler
from localagent.jail.launcher.x86_assembler import Data

_STEP = re.compile(r'\.(?:op|jump)\("([0-9a-f]+)".*\)\s+# (\w+)')


def disassembled(folder: Path, image: bytes, code_of: Callable[[Data], bytes]) -> list[tuple[str, str]]:
    """(bytes, instruction) in order; nothing of the code is left that is none."""
    path = folder / "image"
    path.write_bytes(image)
    start, size = x86_assembler.HEADERS, len(code_of(Data(0)))
    argv = ("objdump", "-D", "-w", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", f"--start-address={start}")
    done = subprocess.run((*argv, f"--stop-address={start + size}", path), capture_output=True, text=True, check=True)
    assert "(bad)" not in done.stdout
    rows = [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 2]
    seen = [(row[1].replace(" ", ""), row[2].strip()) for row in rows]
    assert "".join(code for code, _ in seen) == image[start : start + size].hex()
    return seen


def assert_comments_say_it(modules: Sequence[ModuleType], seen: Sequence[tuple[str, str]]) -> None:
    """Each step written down in these modules is one of the instructions that were seen, by bytes and by name."""
    for module in modules:
        lines = Path(str(module.__file__)).read_text().splitlines()
        for line in lines:
            if re.search(r'\.(op|jump)\("', line):
                step = _STEP.search(line)
                assert step, line
                code, word = step.groups()
                assert any(made.startswith(code) and text.split()[0] == word for made, text in seen), line


def system_calls(seen: Sequence[tuple[str, str]]) -> list[int]:
    """The numbers of the system calls in the order in which they are written."""
    calls = []
    for (_, before), (_, text) in pairwise(seen):
        if text == "syscall":
            assert before.startswith("mov    eax,0x"), before
            calls.append(int(before.split(",")[1], 16))
    return calls
