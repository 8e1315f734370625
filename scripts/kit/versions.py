"""Versions side by side below one prefix, and the one link that says which of them is used.

A version is built whole (building.py) before `current` leads to it; that link is replaced by rename, so a kill at any
moment leaves the old one or the new one, and the next run clears what was not finished. State of a newer schema
lies in a folder of its own: going back sets it aside, and the older version finds its own as it left it. Not promised:
that an older version sees what a newer one wrote.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import system
import units
import verify
from building import COMPLETE, build, dropped, fits, say
from places import Impossible, Place
from placing import leftovers, linked, written
from taking import RUN_BY_NAME, about_kit

CAME_FROM = "came-from"
GOING_BACK = "going-back"  # while a rollback is under way: the version that it goes back to
TO_RESTART = "to-restart"  # from before a switch until what runs has begun anew: the version that is switched to
COMMANDS = {"localagent": "current/bin/localagent", "localagent-kit": f"current/{RUN_BY_NAME}"}


@contextlib.contextmanager
def alone(place: Place) -> Iterator[None]:
    """One installer at a time for a prefix. The lock lies beside it, so that an uninstall leaves no prefix.

    An uninstall takes the lock's file away: who waited for it sees that it is another one by now, and takes that.
    """
    place.prefix.parent.mkdir(parents=True, exist_ok=True)
    lock = place.prefix.with_name(f".{place.prefix.name}.lock")
    said = False
    while True:
        held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not said:
                    say("another installer is at work here; waiting for it")
                    said = True
                fcntl.flock(held, fcntl.LOCK_EX)
            if not same_file(held, lock):
                continue
            try:
                yield
            finally:
                if not place.prefix.exists():
                    lock.unlink(missing_ok=True)
            return
        finally:
            os.close(held)


def same_file(number: int, path: Path) -> bool:
    """Whether an open file is the one that lies at `path`."""
    try:
        return os.path.samestat(os.fstat(number), path.lstat())
    except FileNotFoundError:
        return False


def known_key(place: Place, given: str | None) -> str:
    """The maker's key: the one that was trusted here before, which a given one must not contradict."""
    pinned = verify.read_key(str(place.key)) if place.key.is_file() else None
    key = verify.read_key(given) if given else pinned
    if key is None:
        raise Impossible(
            "whose kit is it? --key KEY names the maker's public key, 64 hexadecimal digits that you learned another"
            " way than from the kit; it is asked for once"
        )
    if pinned and pinned != key:
        raise Impossible(
            f"kits of the key {pinned} are installed here, and --key names {key}: uninstall first if the maker changed"
        )
    return key


def described(folder: Path) -> dict[str, Any]:
    """kit.json of a complete version; of a kit that is not ours yet, `about_kit` reads it."""
    found = json.loads((folder / "kit.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def used(place: Place) -> str:
    """The version in use, or ""."""
    try:
        name = place.current.readlink().name
    except OSError:
        return ""
    return name if (place.versions / name / COMPLETE).is_file() else ""


def previous(place: Place) -> str:
    """The version that stood before the one in use, if it still stands, or ""."""
    try:
        name = (place.versions / used(place) / CAME_FROM).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
    return name if name and (place.versions / name / COMPLETE).is_file() else ""


def install(place: Place, kit: verify.Sound) -> None:
    """Builds the kit's version beside what stands, tries it, and switches to it."""
    about = about_kit(kit)
    fits(about)
    name = f"{about['version']}-{kit.sums[:16]}"
    target, before = place.versions / name, used(place)
    if not (target / COMPLETE).is_file():
        try:
            build(kit, about, target)
        except (Impossible, OSError, verify.NotSound):
            dropped(target)
            raise
    if before != name:
        written(target / CAME_FROM, before)
    if not place.key.exists():
        written(place.key, f"ed25519 {kit.key}\n")
    if place.system:
        system.prepare(place, target / "share")
    for command, leads in COMMANDS.items():
        linked(place.commands / command, place.prefix / leads)
    if place.system and before != name:
        written(place.prefix / TO_RESTART, name)
    linked(place.current, Path("versions") / name)
    if before != name:
        units_follow(place, restart=True)
        (place.prefix / TO_RESTART).unlink(missing_ok=True)
    for old in place.versions.iterdir():
        if old.name not in (name, previous(place)):
            dropped(old)
    say(
        f"{name} is in use"
        + (f"; `localagent-kit rollback` goes back to {before}" if before and before != name else "")
    )
    if str(place.commands) not in os.environ.get("PATH", "").split(os.pathsep):
        say(f"{place.commands} is not in PATH: add it, or run {place.commands / 'localagent'}")


def units_follow(place: Place, *, restart: bool) -> None:
    """The machine's units are those of the version in use; with `restart`, what runs of them begins anew."""
    name = used(place)
    if place.system and name:
        share = place.versions / name / "share"
        units.follow(share, unit_names(place), say)
        if restart:
            units.restart(share, say)


def unit_names(place: Place) -> set[str]:
    """The names of all units that the versions here brought."""
    found = place.versions.glob("*/share/systemd/*")
    return {path.name for path in found if path.suffix in units.SUFFIXES}


def rollback(place: Place) -> None:
    """Switches to the version before; state that it cannot read is set aside. Impossible where there is none.

    The switch comes first: killed before it, the newer version has its state, and after it the older one has its own.
    """
    before = previous(place)
    if not before:
        raise Impossible(f"no earlier kit stands below {place.versions}")
    written(place.prefix / GOING_BACK, before)
    linked(place.current, Path("versions") / before)
    settled(place)


def settled(place: Place) -> bool:
    """Ends a rollback that has switched: newer state must not lie in the way of a later upgrade. True if there was one.

    One that was killed before its switch is forgotten. After any kill the units become those of the version in use,
    and what runs of them begins anew if it was not told to since the switch.
    """
    units_follow(place, restart=marked(place.prefix / TO_RESTART) == used(place))
    (place.prefix / TO_RESTART).unlink(missing_ok=True)
    mark = place.prefix / GOING_BACK
    name = marked(mark)
    if name is None:
        return False
    done = bool(name) and used(place) == name
    if done:
        units_follow(place, restart=True)  # before its state is set aside, the newer daemon has ended
    for newer in newer_state(place, described(place.versions / name)["state_schema"]) if done else ():
        aside = newer.with_name(f"set-aside-{newer.name}-{time.time_ns()}")
        newer.rename(aside)
        say(f"state that {name} cannot read is kept in {aside}")
    mark.unlink()
    if done:
        say(f"{name} is in use; `localagent-kit upgrade KIT` goes forward again")
    return done


def marked(mark: Path) -> str | None:
    """The version that a mark names; None where there is no mark."""
    try:
        return mark.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None


def newer_state(place: Place, schema: int) -> list[Path]:
    """Folders of state of a newer schema than this one."""
    found = [
        (re.fullmatch(r"schema-(\d+)", path.name), path) for folder in place.data for path in folder.glob("schema-*")
    ]
    return [path for name, path in found if name and int(name[1]) > schema and path.is_dir() and not path.is_symlink()]


def status(place: Place) -> int:
    """Prints what is installed; 1 when nothing is."""
    now = used(place)
    if not now:
        say(f"nothing is installed below {place.prefix}")
        return 1
    say(f"in use: {now} ({place.versions / now})")
    say(f"before: {previous(place) or 'none'}")
    say(f"maker:  {verify.read_key(str(place.key))}")
    return 0


def uninstall(place: Place, *, purge: bool) -> None:
    """Removes links, versions and units; with `purge` data, settings and the appliance's users too.

    What can refuse comes first: units that do not stop, users who have processes.
    """
    if place.system:
        units.withdraw(unit_names(place), say)
        if purge:
            system.unused()
    for command, leads in COMMANDS.items():
        link = place.commands / command
        if link.is_symlink() and link.readlink() == place.prefix / leads:
            link.unlink()
    for scratch in leftovers(place.commands / command for command in COMMANDS):
        if scratch.is_symlink():
            scratch.unlink()
    place.current.unlink(missing_ok=True)
    for version in list(place.versions.iterdir()) if place.versions.is_dir() else ():
        dropped(version)
    if place.versions.is_dir():
        place.versions.rmdir()
    place.key.unlink(missing_ok=True)
    for scratch in place.prefix.glob(".*.new"):
        scratch.unlink()
    if place.prefix.is_dir():
        try:
            place.prefix.rmdir()
        except OSError:
            say(f"{place.prefix} holds files that are not ours; they stay")
    if purge and place.system:
        system.forget(say)
    for folder in place.data if purge else ():
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
    say("removed" + ("" if purge else "; data and settings stay (--purge removes them)"))
