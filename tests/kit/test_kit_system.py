"""An installation for the machine: its users, folders, settings and units come, change and go with the version in use.

On a machine of its own (support/kit_machine.py), so nothing of this one is touched; without root only the tables are
held against each other.
"""

import re
import shlex
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.kit_builder import MAKER, PUBLIC, ROOT, payload, script
from support.kit_machine import Machine, possible, with_units

system = script("system")
UNITS = sorted(p for p in (ROOT / "systemd").iterdir() if p.suffix in script("units").SUFFIXES)
FOR_UNITS = "usr/local/lib/systemd/system"


def named_by_units() -> set[str]:
    """Users and groups that units run under or give their sockets to."""
    lines = [line for path in UNITS for line in path.read_text(encoding="utf-8").splitlines()]
    return {m[1] for line in lines if (m := re.fullmatch(r"(?:User|Group|SocketUser|SocketGroup)=(.*)", line))}


def rows(name: str) -> list[list[str]]:
    lines = (ROOT / "systemd" / name).read_text(encoding="utf-8").splitlines()
    return [shlex.split(line) for line in lines if line and not line.startswith("#")]


def calls_of(name: str, tmp_path: Path, *args: str) -> list[list[str]]:
    """Every command that one of the package's scripts runs on a machine without our users; none is really run."""
    place = tmp_path / "commands"
    place.mkdir()
    log = tmp_path / "log"
    for tool in ("groupadd", "useradd", "chown", "chmod", "mkdir", "rm", "rmdir", "find", "systemctl", "readlink"):
        (place / tool).write_text(f'#!/bin/sh\necho {tool} "$*" >>"{log}"\n', encoding="utf-8")
    for tool in ("userdel", "groupdel"):
        (place / tool).write_text(f'#!/bin/sh\necho {tool} "$*" >>"{log}"\n', encoding="utf-8")
    (place / "getent").write_text(f"#!/bin/sh\nexit {0 if name == 'postrm' else 2}\n", encoding="utf-8")
    (place / "deb-systemd-invoke").write_text(f'#!/bin/sh\necho invoke "$*" >>"{log}"\n', encoding="utf-8")
    for path in place.iterdir():
        path.chmod(0o755)
    ran = subprocess.run(
        ["/bin/sh", str(ROOT / "scripts" / "deb" / name), *args],
        env={"PATH": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [line.split() for line in log.read_text(encoding="utf-8").splitlines()]


def test_both_installers_make_every_user_that_a_unit_names(tmp_path: Path) -> None:
    wanted = named_by_units()
    assert {"localagent", "localagent-audit"} <= wanted
    assert set(system.USERS) == {row[1] for row in rows("sysusers.conf")} == wanted
    assert {row[1]: row[4] for row in rows("sysusers.conf")} == system.USERS
    calls = calls_of("postinst", tmp_path, "configure", "")
    assert {call[-1] for call in calls if call[0] == "useradd"} == wanted
    assert {call[-1] for call in calls if call[0] == "groupadd"} == wanted
    homes = {call[-1]: call[call.index("--home-dir") + 1] for call in calls if call[0] == "useradd"}
    assert homes == system.USERS


def test_both_installers_make_the_folders_of_tmpfiles_with_their_modes(tmp_path: Path) -> None:
    told = {row[1]: (int(row[2], 8), row[3]) for row in rows("tmpfiles.conf") if row[1].startswith("/var")}
    assert {name: system.FOLDERS[name] for name in told} == told
    states = {f"/var/lib/{m[1]}" for p in UNITS for m in re.finditer(r"^StateDirectory=(.*)$", p.read_text(), re.M)}
    assert states == {name for name in system.FOLDERS if name.startswith("/var/lib")} == set(told)
    for path in UNITS:
        text = path.read_text(encoding="utf-8")
        folder = re.search(r"^StateDirectory=(.*)$", text, re.M)
        mode = re.search(r"^StateDirectoryMode=(.*)$", text, re.M)
        assert (folder is None) == (mode is None)
        if folder and mode:
            assert int(mode[1], 8) == system.FOLDERS[f"/var/lib/{folder[1]}"][0], path.name
    calls = calls_of("postinst", tmp_path, "configure", "")
    modes = {call[2]: int(call[1], 8) for call in calls if call[0] == "chmod"}
    owners = {call[2]: call[1] for call in calls if call[0] == "chown"}
    assert modes == {name: mode for name, (mode, _) in system.FOLDERS.items()}
    assert owners == {name: f"{user}:{user}" for name, (_, user) in system.FOLDERS.items()}


def test_both_purges_remove_what_was_made(tmp_path: Path) -> None:
    folders = set(system.FOLDERS)
    source = (ROOT / "scripts" / "kit" / "places.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in source for name in folders)
    calls = calls_of("postrm", tmp_path, "purge")
    assert set(next(call[2:] for call in calls if call[0] == "rm")) == folders
    assert [call[1] for call in calls if call[0] == "userdel"] == list(system.USERS)
    names = [call[0] for call in calls]
    assert names.index("userdel") < names.index("rm")  # who cannot be removed keeps his data


def test_the_package_stops_every_unit() -> None:
    text = (ROOT / "scripts" / "deb" / "prerm").read_text(encoding="utf-8")
    assert set(re.findall(r"localagent[a-z-]*\.(?:socket|service|timer)", text)) == {path.name for path in UNITS}


# --- on a machine of its own ----------------------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    if not possible():
        pytest.skip("needs root, and a kernel that lets overlays be mounted")
    made = Machine(tmp_path / "machine")
    try:
        yield made
    finally:
        made.end()


def real_units() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in [*UNITS, ROOT / "systemd" / "daemon.toml"]}


def sealed(folder: Path, version: str, units: dict[str, str]) -> Path:
    payload(folder, version)
    with_units(folder, units)
    script("kit_seal").seal(folder, MAKER)
    return folder


@pytest.mark.long
def test_what_a_unit_needs_is_there_and_all_of_it_goes(machine: Machine, tmp_path: Path) -> None:
    kit = sealed(tmp_path / "kit", "1.0", real_units())
    ended = machine.kit(kit, "install", "--key", PUBLIC)
    assert (ended.returncode, machine.version()) == (0, "localagent 1.0"), ended.stderr
    assert {p.name for p in machine.path(f"/{FOR_UNITS}").iterdir()} == {path.name for path in UNITS}
    for user in named_by_units():
        assert machine.run("getent", "passwd", user).returncode == machine.run("getent", "group", user).returncode == 0
    for name, (mode, user) in system.FOLDERS.items():
        found = machine.run("stat", "--format=%a %U:%G", name).stdout.strip()
        assert found == f"{mode:o} {user}:{user}", name
    (machine.path("/var/lib/localagent-audit") / "journal").write_text("kept")
    assert machine.kit(kit, "uninstall").returncode == 0
    assert machine.left() == ["etc/localagent/daemon.toml", "var/lib/localagent-audit/journal"]
    assert machine.kit(kit, "uninstall", "--purge").returncode == 0
    assert (machine.left(), machine.accounts()) == ([], [])


@pytest.mark.long
def test_units_go_forward_and_back_with_their_version(machine: Machine, tmp_path: Path) -> None:
    machine.with_systemd()
    one = sealed(tmp_path / "one", "1.0", {"localagent.service": "one", "localagent-old.timer": "one"})
    two = sealed(tmp_path / "two", "2.0", {"localagent.service": "two", "localagent-new.socket": "two"})
    folder = machine.path(f"/{FOR_UNITS}")

    def units() -> dict[str, str]:
        return {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir()}

    assert machine.kit(one, "install", "--key", PUBLIC).returncode == 0
    assert units() == {"localagent.service": "one", "localagent-old.timer": "one"}
    assert stat.S_IMODE((folder / "localagent.service").stat().st_mode) == 0o644
    machine.asked()
    assert machine.run("/usr/local/bin/localagent-kit", "upgrade", "--system", two).returncode == 0
    assert units() == {"localagent.service": "two", "localagent-new.socket": "two"}
    asked = machine.asked()
    assert asked[0] == "stop localagent-old.timer"
    assert asked[-1] == "try-restart localagent-new.socket localagent.service"
    assert "daemon-reload" in asked[asked.index("stop localagent-old.timer") : -1]
    # killed after the switch, before the units: the next command brings them
    (folder / "localagent.service").write_text("one")
    (folder / "localagent-new.socket").unlink()
    (folder / "localagent-old.timer").write_text("one")
    assert machine.kit(two, "upgrade").returncode == 0
    assert units() == {"localagent.service": "two", "localagent-new.socket": "two"}
    machine.asked()
    assert machine.run("/usr/local/bin/localagent-kit", "rollback", "--system").returncode == 0
    assert machine.asked()[-1] == "try-restart localagent-old.timer localagent.service"  # the newer daemon has ended
    assert units() == {"localagent.service": "one", "localagent-old.timer": "one"}
    assert machine.version() == "localagent 1.0"


@pytest.mark.long
def test_what_was_enabled_is_stopped_and_disabled_or_nothing_is_removed(machine: Machine, tmp_path: Path) -> None:
    machine.with_systemd()
    kit = sealed(tmp_path / "kit", "1.0", {"localagent.service": "unit"})
    assert machine.kit(kit, "install", "--key", PUBLIC).returncode == 0
    wants = machine.path("/etc/systemd/system/multi-user.target.wants")
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "localagent.service").symlink_to(f"/{FOR_UNITS}/localagent.service")
    (wants / "somebody.service").symlink_to("/elsewhere/localagent.service")
    machine.path("/run/systemctl-fails").touch()
    ended = machine.kit(kit, "uninstall", "--purge")
    assert (ended.returncode, machine.version()) == (1, "localagent 1.0")
    assert "systemctl stop localagent.service failed" in ended.stderr
    assert (wants / "localagent.service").is_symlink()
    machine.path("/run/systemctl-fails").unlink()
    machine.asked()
    assert machine.kit(kit, "uninstall", "--purge").returncode == 0
    assert machine.asked() == ["stop localagent.service", "daemon-reload"]
    assert machine.left() == ["etc/systemd/system/multi-user.target.wants/somebody.service"]


@pytest.mark.long
def test_a_purge_waits_for_processes_of_its_users(machine: Machine, tmp_path: Path) -> None:
    kit = sealed(tmp_path / "kit", "1.0", real_units())
    assert machine.kit(kit, "install", "--key", PUBLIC).returncode == 0
    (machine.path("/var/lib/localagent-audit") / "journal").write_text("kept")
    user = machine.run("id", "-u", "localagent-audit").stdout.strip()
    enter = f"echo $$ >/run/pid; exec setpriv --reuid {user} --clear-groups sleep 300"
    running = subprocess.Popen(machine.argv("sh", "-c", enter))
    try:
        while user not in machine.run("ps", "-eo", "uid").stdout.split():
            assert running.poll() is None
        ended = machine.kit(kit, "uninstall", "--purge")
        assert (ended.returncode, machine.version()) == (1, "localagent 1.0")
        assert "end them, then run this again" in ended.stderr
        assert (machine.path("/var/lib/localagent-audit") / "journal").read_text() == "kept"
    finally:
        machine.run("kill", "-KILL", machine.path("/run/pid").read_text().strip())
        running.wait()
    assert machine.kit(kit, "uninstall", "--purge").returncode == 0
    assert (machine.left(), machine.accounts()) == ([], [])


@pytest.mark.long
def test_a_link_in_the_place_of_a_folder_is_not_followed(machine: Machine, tmp_path: Path) -> None:
    kit = sealed(tmp_path / "kit", "1.0", {"localagent.service": "unit"})
    machine.path("/var/lib/localagent").symlink_to("/etc")
    before = machine.run("stat", "--format=%a %U", "/etc").stdout
    ended = machine.kit(kit, "install", "--key", PUBLIC)
    assert (ended.returncode, machine.version()) == (1, "")
    assert "/var/lib/localagent is no folder of its own" in ended.stderr
    assert machine.run("stat", "--format=%a %U", "/etc").stdout == before
