"""Installers killed at a moment of their own: before the n-th of the calls that change something, or after some time.

Python tells its own calls (audit events), so rare moments are met as surely as long ones; what a child of it does is
met by time alone. The kill is SIGKILL to the whole process group. Not promised: what a power cut leaves of what was
written and not flushed.
"""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from support.kit_builder import MAKER, PUBLIC, payload, script
from support.kit_machine import Machine, with_units

KILLER = """import atexit, os, pathlib, runpy, signal, sys
here = pathlib.Path(__file__).resolve().parent
moment = (here / "moment").read_text()
left, seen = int(moment or 0), 0
CHANGES = {"os.rename", "os.symlink", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.chown",
           "os.truncate", "subprocess.Popen"}
def changes(event, args):
    global seen
    if event in CHANGES or (event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)):
        seen += 1
        if moment and seen > left:
            os.killpg(0, signal.SIGKILL)
def told():
    if not moment:
        (here / "seen").write_text(str(seen))
sys.argv = sys.argv[1:]
atexit.register(told)
sys.addaudithook(changes)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Killer:
    """A Python for a kit's scripts that kills itself and all of its group before the call number `before`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        (folder / "killer.py").write_text(KILLER, encoding="utf-8")
        python = folder / "python"
        python.write_text(f'#!/bin/sh\nshift 2\nexec "{sys.executable}" -I -B "{folder}/killer.py" "$@"\n', "utf-8")
        python.chmod(0o755)
        self.python = str(python)
        self.before(None)

    def before(self, number: int | None) -> None:
        """From now on it kills before this call; None: never."""
        (self.folder / "moment").write_text("" if number is None else str(number), encoding="utf-8")

    def moments(self) -> int:
        """How many calls the last run had that was not to be killed."""
        return int((self.folder / "seen").read_text(encoding="utf-8"))


def killed(argv: list[str], environ: dict[str, str] | None = None, seconds: float = 300.0) -> bool:
    """Runs it in a group of its own, and kills that after some seconds; whether it was killed, by us or by itself."""
    process = subprocess.Popen(
        argv,
        env=environ,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait() in (-signal.SIGKILL, 128 + signal.SIGKILL)


@dataclass(frozen=True)
class Step:
    """What is done for the machine: from a version to a version ("" is none), by a kit's script with these words."""

    name: str
    old: str
    new: str
    script: str
    words: tuple[str, ...]


STEPS = (
    Step("install", "", "1", "install", ("--key", PUBLIC)),
    Step("upgrade", "1", "2", "upgrade", ()),
    Step("rollback", "2", "1", "rollback", ()),
    Step("uninstall", "1", "", "uninstall", ("--purge",)),
)
UNITS = {  # of each version: one that both have, one that goes with it
    "": {},
    "1": {"localagent.service": "[Service]\nExecStart=/one\n" * 400, "localagent-old.timer": "[Timer]\nOn=1\n"},
    "2": {"localagent.service": "[Service]\nExecStart=/two\n" * 400, "localagent-new.socket": "[Socket]\nOn=2\n"},
}
FOR_UNITS = "/usr/local/lib/systemd/system"


class Appliance:
    """A machine with systemd on which the steps follow each other, each killed once and then done again to its end."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.killer = Killer(folder / "killer")
        self.machine = Machine(folder / "machine")
        self.machine.python = self.killer.python
        self.machine.with_systemd()
        self.kits = {}
        for version in ("1", "2"):
            kit = folder / version
            payload(kit, version)
            with_units(kit, UNITS[version])
            script("kit_seal").seal(kit, MAKER)
            self.kits[version] = kit

    def argv(self, step: Step) -> list[str]:
        kit = self.kits[step.new or step.old]
        return self.machine.argv("sh", kit / step.script, "--system", *step.words)

    def ready(self) -> None:
        """The next upgrade builds its version anew."""
        if self.machine.version() == "localagent 1":
            self.machine.run("sh", "-c", "rm -rf /opt/localagent/versions/2-*")
        self.machine.asked()

    def finished(self, step: Step) -> int:
        """The step without a kill. Answers how many moments it has; AssertionError where it does not end well."""
        self.ready()
        self.killer.before(None)
        ended = subprocess.run(self.argv(step), capture_output=True, text=True, errors="replace", check=False)
        assert ended.returncode == 0, ended.stderr
        assert not self.wrong_at_the_end(step, self.machine.asked())
        return self.killer.moments()

    def struck(self, step: Step, moment: int | None, seconds: float = 300.0) -> tuple[str, list[str]]:
        """The step killed, judged, done again and judged: what stood after the kill, and everything that was wrong."""
        self.ready()
        self.killer.before(moment)
        died = killed(self.argv(step), seconds=seconds)
        self.killer.before(None)
        asked = self.machine.asked()
        answer = self.machine.version().removeprefix("localagent ")
        stood = "new" if answer == step.new else "old" if answer == step.old else repr(answer)
        wrong = [] if answer in (step.old, step.new) else [f"answers {answer!r}"]
        for name, text in self.units().items():
            if not name.startswith(".") and text not in (UNITS[step.old].get(name), UNITS[step.new].get(name)):
                wrong.append(f"{name} is no whole unit: {text[-40:]!r}")
        if died:
            ended = subprocess.run(self.argv(step), capture_output=True, text=True, errors="replace", check=False)
            at_its_end = step.script == "rollback" and answer == step.new and "no earlier kit" in ended.stderr
            if ended.returncode and not at_its_end:
                wrong.append(f"once more: {ended.returncode} {ended.stderr.strip()[-300:]}")
        wrong += self.wrong_at_the_end(step, [*asked, *self.machine.asked()])
        return f"{'killed' if died else 'done'}, {stood}", wrong

    def units(self) -> dict[str, str]:
        """Everything where the machine's units lie, by name."""
        folder = self.machine.path(FOR_UNITS)
        return {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir()} if folder.is_dir() else {}

    def wrong_at_the_end(self, step: Step, asked: list[str]) -> list[str]:
        """What is not as the step leaves it; `asked` is what systemd was told since it began."""
        wrong = []
        answer = self.machine.version().removeprefix("localagent ")
        if answer != step.new:
            wrong.append(f"in the end answers {answer!r}")
        if self.units() != UNITS[step.new]:
            wrong.append(f"in the end units {sorted(self.units())}")
        if step.new:
            restarts = [line for line in asked if line.startswith("try-restart ")]
            if not restarts or set(restarts[-1].split()[1:]) != set(UNITS[step.new]):
                wrong.append(f"what runs was not restarted: {asked}")
            for name, (mode, user) in script("system").FOLDERS.items():
                found = self.machine.run("stat", "--format=%a %U:%G", name).stdout.strip()
                if found != f"{mode:o} {user}:{user}":
                    wrong.append(f"in the end {name} is {found}")
            left = [name for name in self.machine.left() if Path(name).name.startswith(".")]
            wrong += [f"left: {name}" for name in left if name != "opt/.localagent.lock"]
        elif self.machine.left() or self.machine.accounts():
            wrong.append(f"left: {self.machine.left()} {self.machine.accounts()}")
        return wrong

    def end(self) -> None:
        self.machine.end()
