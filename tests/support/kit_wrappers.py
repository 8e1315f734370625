"""A kit's scripts with one byte changed: run behind a program whose word is known, to see whom they believe.

The program refuses, or did its work and says so with the code that `--done` names, and leaves that in a file as well;
or it is silent: ends with 0 and did nothing, as a Python does that was given other options. A script that ends with 0
where nothing was said has believed a fault. One fault at a time: a changed script before a program that is sound, or a
sound script before one that is silent. Not promised: that a changed script does no harm, for the program verifies, not
what starts it.
"""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from support.kit_builder import ROOT, script

SCRIPTS: tuple[str, ...] = script("kit_seal").SCRIPTS
SHELLS = tuple(name for name in ("dash", "bash") if shutil.which(name)) or ("sh",)
WORDS = ("refuses", "did it")
PROGRAM = """import pathlib, sys
here = pathlib.Path(__file__).resolve().parent
word, asked = ((here / name).read_text() for name in ("word", "asked"))
if word != "did it":
    sys.exit(1 if word == "refuses" else 0)
done, code, command = (*sys.argv[1:], "", "", "")[:3]
if done != "--done" or not code.isdigit() or command != asked:
    sys.exit(2)
(here / "said").touch()
sys.exit(int(code))
"""
QUICK_PYTHON = """#!/bin/sh
# As Python: some options end with 0 before any program, without one standard input is read, which is empty here.
while [ $# -gt 0 ]; do
    case $1 in
        --version | --help | --help-*) exit 0 ;;
        --*) exit 2 ;;
        -*[Vh?]*) exit 0 ;;
        -*) shift ;;
        */install.py) break ;;
        *) exit 2 ;;
    esac
done
[ $# -gt 0 ] || exit 0
here=${1%/*}
case $(cat "$here/word") in
    refuses) exit 1 ;;
    'is silent') exit 0 ;;
esac
[ "$2" = --done ] && [ "$4" = "$(cat "$here/asked")" ] || exit 2
case $3 in '' | *[!0-9]*) exit 2 ;; esac
: >"$here/said"
exit "$3"
"""


def flips(data: bytes, dice: random.Random, count: int) -> Iterator[tuple[int, bytes]]:
    """Some changes of one byte each: where, and the whole that comes of it."""
    for _ in range(count):
        at = dice.randrange(len(data))
        yield at, data[:at] + bytes([data[at] ^ dice.randrange(1, 256)]) + data[at + 1 :]


class Wrappers:
    """A folder with a kit's scripts before a program that does as it is told, run by `python` or what acts like one."""

    def __init__(self, folder: Path, python: str | None = None) -> None:
        self.kit = folder / "kit"
        self.program = self.kit / "program"
        self.program.mkdir(parents=True)
        (folder / "home").mkdir()
        (self.program / "install.py").write_text(PROGRAM, encoding="utf-8")
        quick = folder / "python"
        quick.write_text(QUICK_PYTHON, encoding="utf-8")
        quick.chmod(0o755)
        self.home = folder / "home"
        self.environ = {"PATH": "/usr/bin:/bin", "PYTHON": python or str(quick), "HOME": str(self.home)}

    def run(self, shell: str, name: str, data: bytes, word: str) -> tuple[int, bool]:
        """The exit status of these bytes as the script `name`, and whether its program said that it did its work."""
        (self.kit / name).write_bytes(data)
        (self.program / "word").write_text(word, encoding="utf-8")
        (self.program / "asked").write_text(name, encoding="utf-8")
        said = self.program / "said"
        said.unlink(missing_ok=True)
        ended = subprocess.run(
            [shell, str(self.kit / name), "--key", "K"],
            cwd=self.home,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return ended.returncode, os.path.lexists(said)


def original(name: str) -> bytes:
    """A script as kits get it."""
    return (ROOT / "scripts" / "kit" / f"{name}.sh").read_bytes()


def believed(place: Wrappers, dice: random.Random, count: int) -> Iterator[str]:
    """Which of `count` changes to each script under each shell end with 0 unsaid. None should."""
    for shell in SHELLS:
        for name in SCRIPTS:
            for at, data in flips(original(name), dice, count):
                word = dice.choice(WORDS)
                code, said = place.run(shell, name, data, word)
                if code == 0 and not said:
                    yield f"{shell} {name}, byte {at}, {data[max(0, at - 20) : at + 20]!r}, the program {word}"
