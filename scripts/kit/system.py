"""What belongs to an installation for the machine alone: a user and group, folders with modes, settings, units.

Settings that are there are never overwritten. Units are put in place, not enabled: that is the administrator's word.
"""

import grp
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from places import Impossible, Place

USER = "localagent"
UNITS = Path("/usr/local/lib/systemd/system")
UNIT_SUFFIXES = (".service", ".socket", ".timer")
FOLDERS = {"/var/lib/localagent": 0o711, "/var/cache/localagent": 0o750}
SETTINGS = Path("/etc/localagent")


def prepare(place: Place, shared: Path, say: Callable[[str], None]) -> None:
    """Makes what is missing. `shared` holds the new version's policies and units."""
    account()
    user, group = pwd.getpwnam(USER).pw_uid, grp.getgrnam(USER).gr_gid
    for name, mode in FOLDERS.items():
        folder = Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, user, group, follow_symlinks=False)
        folder.chmod(mode)
    (SETTINGS / "policies").mkdir(parents=True, exist_ok=True)
    for source in sorted((shared / "policies").glob("*")):  # built in: a file of that name there would be refused
        target = SETTINGS / "policies" / source.name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            target.unlink()  # put there by an earlier kit, and never changed
    brought = sorted((shared / "systemd").glob("*")) if (shared / "systemd").is_dir() else []
    daemon = SETTINGS / "daemon.toml"
    if (shared / "systemd" / daemon.name).is_file() and not daemon.exists():
        shutil.copyfile(shared / "systemd" / daemon.name, daemon)
        daemon.chmod(0o644)
    units = [path for path in brought if path.suffix in UNIT_SUFFIXES]
    for unit in units:
        UNITS.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(unit, UNITS / unit.name)
        (UNITS / unit.name).chmod(0o644)
    if units:
        say(f"units in {UNITS}, not enabled: systemctl daemon-reload, then systemctl enable --now NAME")
    place.prefix.chmod(0o755)


def account() -> None:
    """The group and user of the appliance, without a password, a shell or a home to log in to."""
    for known, make in (
        (grp.getgrnam, ["groupadd", "--system", USER]),
        (
            pwd.getpwnam,
            ["useradd", "--system", "--gid", USER, "--home-dir", "/var/lib/localagent", "--no-create-home",
             "--shell", "/usr/sbin/nologin", USER],
        ),
    ):  # fmt: skip
        try:
            known(USER)
        except KeyError:
            tool(make)


def tool(argv: list[str]) -> None:
    """One of the system's own programs. Impossible with its words where it fails or is missing."""
    environ = {"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"}
    where = shutil.which(argv[0], path=environ["PATH"])
    if where is None:
        raise Impossible(f"{argv[0]} is missing: make the user and group {USER} by hand, then run this again")
    ended = subprocess.run([where, *argv[1:]], env=environ, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise Impossible(f"{' '.join(argv)} failed: {ended.stderr.strip()}")


def withdraw(place: Place, say: Callable[[str], None]) -> None:
    """Removes the units that the installed versions brought."""
    names = {unit.name for unit in place.versions.glob("*/share/systemd/*")}
    for name in sorted(names):
        (UNITS / name).unlink(missing_ok=True)
    if names:
        say("units removed: systemctl daemon-reload")


def forget(say: Callable[[str], None]) -> None:
    """Removes the user and group."""
    for known, argv in ((pwd.getpwnam, ["userdel", USER]), (grp.getgrnam, ["groupdel", USER])):
        try:
            known(USER)
        except KeyError:
            continue
        tool(argv)
        say(f"{argv[0]} {USER}")
