"""What belongs to an installation for the machine alone: users and groups, folders with modes, settings.

Settings that are there are never overwritten. systemd/sysusers.conf and tmpfiles.conf say the same for those who place
units by hand, and scripts/deb/ for the package. Not promised: that a user of one of these names who was there before
has no password or shell; he is taken as he is.
"""

import grp
import os
import pwd
from collections.abc import Callable
from pathlib import Path

from places import Impossible, Place
from placing import leftovers, placed
from units import processes, tool

USERS = {"localagent": "/var/lib/localagent", "localagent-audit": "/var/lib/localagent-audit"}  # and where they live
FOLDERS = {
    "/var/lib/localagent": (0o711, "localagent"),
    "/var/cache/localagent": (0o750, "localagent"),
    "/var/lib/localagent-audit": (0o700, "localagent-audit"),  # the daemon's user must not write to its own record
}
SETTINGS = Path("/etc/localagent")


def prepare(place: Place, shared: Path) -> None:
    """Makes what is missing. `shared` holds the new version's policies and settings."""
    for name in USERS:
        account(name)
    for name, (mode, user) in FOLDERS.items():
        owned(Path(name), mode, user)
    (SETTINGS / "policies").mkdir(parents=True, exist_ok=True)
    for source in sorted((shared / "policies").glob("*")):  # built in: a file of that name there would be refused
        target = SETTINGS / "policies" / source.name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            target.unlink()  # put there by an earlier kit, and never changed
    daemon = SETTINGS / "daemon.toml"
    if (shared / "systemd" / daemon.name).is_file() and not daemon.exists():
        placed(daemon, (shared / "systemd" / daemon.name).read_bytes(), 0o644)
    place.prefix.chmod(0o755)


def owned(folder: Path, mode: int, user: str) -> None:
    """The folder of a user and his group with this mode. Impossible where something else stands in its place."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not os.path.lexists(folder):
        folder.mkdir(mode=0o700)
    try:
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as fault:
        raise Impossible(f"{folder} is no folder of its own ({fault.strerror}): move it away") from None
    try:
        os.fchown(number, pwd.getpwnam(user).pw_uid, grp.getgrnam(user).gr_gid)
        os.fchmod(number, mode)
    finally:
        os.close(number)


def account(user: str) -> None:
    """A user of the appliance and his group, without a password, a shell or a home to log in to."""
    shell = ["--home-dir", USERS[user], "--no-create-home", "--shell", "/usr/sbin/nologin"]
    for known, make in (
        (grp.getgrnam, ["groupadd", "--system", user]),
        (pwd.getpwnam, ["useradd", "--system", "--gid", user, *shell, user]),
    ):
        try:
            known(user)
        except KeyError:
            tool(make)


def unused() -> None:
    """Impossible where processes of the appliance's users run: who has processes cannot be removed."""
    numbers = []
    for name in USERS:
        try:
            numbers.append(pwd.getpwnam(name).pw_uid)
        except KeyError:
            continue
    if running := processes(numbers):
        raise Impossible(
            f"processes of {' or '.join(USERS)} run (pid {', '.join(running)}): end them, then run this again;"
            " nothing but units was removed so far"
        )


def forget(say: Callable[[str], None]) -> None:
    """Removes the users and groups, and what a kill left of settings that were being written."""
    for name in USERS:
        for known, argv in ((pwd.getpwnam, ["userdel", name]), (grp.getgrnam, ["groupdel", name])):
            try:
                known(name)
            except KeyError:
                continue
            tool(argv)
            say(" ".join(argv))
    for scratch in leftovers([SETTINGS / "daemon.toml"]):
        scratch.unlink()
