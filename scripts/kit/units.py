"""The systemd units of the version in use: written whole, renamed, and withdrawn with what was started of them.

Which version is in use one link says; units follow it, and every command of the kit first brings what a kill left
undone. Nothing is enabled or started here: that is the administrator's word. What runs already is restarted, so that
it is of the version in use. Not promised: units that an administrator copied to /etc/systemd/system; they stay his.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from places import Impossible
from placing import leftovers, placed

UNITS = Path("/usr/local/lib/systemd/system")
ENABLED = Path("/etc/systemd/system")
RUNNING = Path("/run/systemd/system")  # there while systemd is the first process
SUFFIXES = (".service", ".socket", ".timer")
PATH = "/usr/sbin:/sbin:/usr/bin:/bin"


def brought(share: Path) -> dict[str, bytes]:
    """The units of a version, by name."""
    return {p.name: p.read_bytes() for p in sorted((share / "systemd").glob("*")) if p.suffix in SUFFIXES}


def follow(share: Path, known: Iterable[str], say: Callable[[str], None]) -> None:
    """The units are those of the version whose `share` this is; of `known`, others are withdrawn.

    Nothing is done where they are already, so this is also what ends an interrupted switch.
    """
    wanted = brought(share)
    withdraw(set(known) - set(wanted), say)
    other = [name for name, data in wanted.items() if current(name) != data]
    for name in other:
        UNITS.mkdir(parents=True, exist_ok=True)
        placed(UNITS / name, wanted[name], 0o644)
    if other and not RUNNING.is_dir():
        say(f"units in {UNITS}, not enabled: systemctl daemon-reload, then systemctl enable --now NAME")
    elif other:
        told(["daemon-reload"], say)
        say(f"units in {UNITS}; those that were enabled still are: systemctl enable --now NAME for others")


def current(name: str) -> bytes:
    """The unit as it stands, or b""."""
    try:
        return (UNITS / name).read_bytes()
    except FileNotFoundError:
        return b""


def restart(share: Path, say: Callable[[str], None]) -> None:
    """What runs of these units begins anew with the version in use; what does not run stays so.

    A run that is to end by itself goes on to its end.
    """
    names = [name for name, data in brought(share).items() if b"\nType=oneshot\n" not in data]
    if names and RUNNING.is_dir():
        told(["try-restart", *names], say)


def told(words: list[str], say: Callable[[str], None]) -> None:
    """Something that systemctl is to do once the switch is made: where it cannot, that is said and nothing undone."""
    try:
        tool(["systemctl", *words])
    except Impossible as no:
        say(f"{no}; the switch stands: `systemctl status 'localagent*'` says more")


def withdraw(names: Iterable[str], say: Callable[[str], None]) -> None:
    """These units are stopped, disabled and gone. Impossible, with nothing removed, where one cannot be stopped."""
    there = sorted(name for name in names if (UNITS / name).is_file())
    if there and RUNNING.is_dir():
        tool(["systemctl", "stop", *there])
    for name in sorted(names):
        for link in (*ENABLED.glob(f"*.wants/{name}"), *ENABLED.glob(f"*.requires/{name}")):
            if link.is_symlink() and link.readlink() == UNITS / name:
                link.unlink()
                emptied(link.parent)
        (UNITS / name).unlink(missing_ok=True)
        for scratch in leftovers([UNITS / name]):
            scratch.unlink()
    for folder in (UNITS, UNITS.parent):
        emptied(folder)
    if there and RUNNING.is_dir():
        told(["daemon-reload"], say)
    if there:
        say("units removed: " + ", ".join(there))


def emptied(folder: Path) -> None:
    """A folder is gone, if nothing is in it."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def tool(argv: list[str]) -> None:
    """One of the system's own programs. Impossible with its words where it fails or is missing."""
    where = shutil.which(argv[0], path=PATH)
    if where is None:
        raise Impossible(f"{argv[0]} is missing: do by hand what `{' '.join(argv)}` does, then run this again")
    environ = {"PATH": PATH, "LANG": "C.UTF-8"}
    ended = subprocess.run(
        [where, *argv[1:]], env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        raise Impossible(
            f"{' '.join(argv)} failed ({ended.returncode}): {ended.stderr.strip() or ended.stdout.strip()}"
        )


def processes(users: Iterable[int]) -> list[str]:
    """Numbers of the processes of these users."""
    wanted, found = set(users), []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            lines = (place / "status").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:  # ended meanwhile
            continue
        told_ids = next((line.split()[1:] for line in lines if line.startswith("Uid:")), [])
        if wanted & {int(number) for number in told_ids}:
            found.append(place.name)
    return sorted(found, key=int)
