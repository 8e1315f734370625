"""The Debian package: made of a sound kit alone, its fields and files are what dpkg needs, its scripts do as they say.

Out of a small kit, with the real dpkg-deb. The scripts run here with the places that they name below a folder of the
test's and with stand-ins for accounts and systemd; whether dpkg itself takes the package bench/kit_root.sh tries.
"""

import base64
import csv
import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.kit_builder import MAKER, PUBLIC, ROOT, copied, payload, script
from support.kit_machine import with_units

deb, verify, places, system = (script(name) for name in ("make_deb", "verify", "places", "system"))
MAINTAINER = "A Maker <maker@example.org>"
UNITS = sorted(p for p in (ROOT / "systemd").iterdir() if p.suffix in script("units").SUFFIXES)
needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")
PLACE = "usr/lib/localagent"


def sealed(folder: Path, **change: object) -> Path:
    """A small kit with the real units; `change` alters kit.json, None takes a field out."""
    payload(folder, "1.0")
    with_units(folder, {p.name: p.read_text(encoding="utf-8") for p in [*UNITS, ROOT / "systemd" / "daemon.toml"]})
    about = {**json.loads((folder / "kit.json").read_text(encoding="utf-8")), **change}
    (folder / "kit.json").write_text(json.dumps({k: v for k, v in about.items() if v is not None}), encoding="utf-8")
    (folder / "licences").mkdir()
    (folder / "licences" / "SOURCES.txt").write_text("sources\n", encoding="utf-8")
    (folder / "sbom.cdx.json").write_text("{}\n", encoding="utf-8")
    script("kit_seal").seal(folder, MAKER)
    return folder


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sealed(tmp_path_factory.mktemp("maker") / "kit")


@pytest.fixture(scope="module")
def package(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    before = os.umask(0o077)  # what a careful maker has: the package must be readable all the same
    try:
        made = deb.make(kit, PUBLIC, out, MAINTAINER)
    finally:
        os.umask(before)
    assert [path.name for path in out.iterdir()] == [made.name]
    assert isinstance(made, Path)
    return made


@pytest.fixture(scope="module")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's files, and its own folder in DEBIAN/."""
    target = tmp_path_factory.mktemp("unpacked") / "root"
    subprocess.run(["dpkg-deb", "--raw-extract", package, target], check=True)
    return target


def field(package: Path, name: str) -> str:
    ended = subprocess.run(["dpkg-deb", "--field", package, name], capture_output=True, text=True, check=True)
    return ended.stdout.rstrip("\n")


# --- the package ------------------------------------------------------------------------------------------------------


@pytest.mark.long
@needs_dpkg
def test_the_fields(kit: Path, package: Path, unpacked: Path) -> None:
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    when = datetime.fromtimestamp(1_000_000_000, UTC)
    machine = deb.ARCHITECTURES[platform.machine()]
    assert field(package, "Package") == "localagent"
    assert field(package, "Version") == f"1.0+git{when:%Y%m%d%H%M%S}.{'1.0' + '0' * 9}-1"
    assert field(package, "Architecture") == machine
    assert field(package, "Maintainer") == MAINTAINER
    assert package.name == f"localagent_{field(package, 'Version')}_{machine}.deb"
    depends = field(package, "Depends").split(", ")
    assert {f"python{minor}", "python3", "libc6 (>= 2.17)", "libstdc++6", "passwd"} <= set(depends)
    files = [p for p in unpacked.rglob("*") if p.is_file() and not p.is_symlink()]
    size = sum(p.stat().st_size for p in files if unpacked / "DEBIAN" not in p.parents) // 1024
    assert abs(int(field(package, "Installed-Size")) - size) <= 1
    assert "@" not in (unpacked / "DEBIAN" / "control").read_text().replace("maker@example.org", "")


@needs_dpkg
def test_dpkg_checks_every_file_and_asks_about_settings(unpacked: Path) -> None:
    lines = (unpacked / "DEBIAN" / "md5sums").read_text(encoding="utf-8").splitlines()
    told = {line.split("  ", 1)[1]: line.split("  ", 1)[0] for line in lines}
    files = [p for p in unpacked.rglob("*") if p.is_file() and not p.is_symlink() and p.parent.name != "DEBIAN"]
    assert told == {str(p.relative_to(unpacked)): hashlib.md5(p.read_bytes()).hexdigest() for p in files}
    conffiles = (unpacked / "DEBIAN" / "conffiles").read_text(encoding="utf-8").splitlines()
    assert conffiles == ["/etc/localagent/daemon.toml"]
    assert (unpacked / "etc" / "localagent" / "policies").is_dir()


@needs_dpkg
def test_owner_and_modes_are_roots_whatever_the_makers(package: Path, unpacked: Path) -> None:
    ended = subprocess.run(["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True)
    assert {line.split()[1] for line in ended.stdout.splitlines()} == {"root/root"}
    programs = [unpacked / "DEBIAN" / name for name in ("postinst", "prerm", "postrm")]
    programs += (unpacked / PLACE / "bin").iterdir()
    for path in unpacked.rglob("*"):
        if not path.is_symlink():
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o755 if path.is_dir() or path in programs else 0o644), path


@needs_dpkg
def test_the_environment_stands_at_its_place_and_knows_nothing_of_where_it_was_made(
    package: Path, unpacked: Path
) -> None:
    place = unpacked / PLACE
    assert (unpacked / "usr" / "bin" / "localagent").readlink() == Path("../lib/localagent/bin/localagent")
    assert (place / "bin" / "localagent").read_text().splitlines()[0] == f"#!/{PLACE}/bin/python"
    minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name in ("python", "python3", minor):
        assert (place / "bin" / name).readlink() == Path(f"../../../bin/{minor}")
    assert not any(
        (place / name).exists() for name in ("program", "complete", "share", "came-from", "parts", "kit.json.new")
    )
    assert not list(place.rglob("__pycache__"))
    where = str(package.parent).encode()
    assert [p for p in unpacked.rglob("*") if p.is_file() and not p.is_symlink() and where in p.read_bytes()] == []
    (weights,) = place.glob("lib/python*/site-packages/localagent/_data/models/m.gguf")
    assert weights.stat().st_size


@needs_dpkg
def test_what_packages_say_of_their_files_is_true_at_the_new_place(unpacked: Path) -> None:
    (record,) = (unpacked / PLACE).glob("lib/python*/site-packages/localagent-1.0.dist-info/RECORD")
    site = record.parent.parent
    with record.open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.reader(stream) if row[1]]
    assert any(row[0].endswith("/bin/localagent") for row in rows)
    for name, seal, size in rows:
        data = (site / name).read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert (seal, size) == (f"sha256={digest}", str(len(data))), name


@needs_dpkg
def test_units_run_the_packages_program_and_none_is_enabled(unpacked: Path) -> None:
    folder = unpacked / "lib" / "systemd" / "system"
    assert {path.name for path in folder.iterdir()} == {path.name for path in UNITS}
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "/usr/local/bin/localagent" not in text, path.name
        assert "/opt/" not in text, path.name
    assert "/usr/bin/localagent" in (folder / "localagent.service").read_text(encoding="utf-8")
    assert not list(unpacked.rglob("*.wants"))


@needs_dpkg
def test_the_changelog_says_of_which_kit_it_is(kit: Path, unpacked: Path, package: Path) -> None:
    docs = unpacked / "usr" / "share" / "doc" / "localagent"
    words = gzip.decompress((docs / "changelog.Debian.gz").read_bytes()).decode()
    assert hashlib.sha256((kit / "SHA256SUMS").read_bytes()).hexdigest() in words
    assert PUBLIC in words
    assert f"localagent ({field(package, 'Version')})" in words
    assert {"sbom.cdx.json", "kit.json", "copyright", "docs", "licences"} <= {p.name for p in docs.iterdir()}
    for path in (docs / "licences").iterdir():
        assert path.read_bytes() == (kit / "licences" / path.name).read_bytes()


def test_a_later_commit_is_a_later_version() -> None:
    about = {"version": "0.1.0", "commit": "f" * 40, "commit_time": 1_700_000_000}
    older = deb.package_version(about)[0]
    newer = deb.package_version({**about, "commit": "0" * 40, "commit_time": 1_700_000_001})[0]
    assert re.fullmatch(r"0\.1\.0\+git20231114221320\.f{12}-1", older)
    if shutil.which("dpkg"):
        assert subprocess.run(["dpkg", "--compare-versions", older, "lt", newer], check=False).returncode == 0
        released = deb.package_version({**about, "version": "0.2.0", "commit_time": 1})[0]
        assert subprocess.run(["dpkg", "--compare-versions", newer, "lt", released], check=False).returncode == 0


# --- what is refused --------------------------------------------------------------------------------------------------


def stranger() -> str:
    return Ed25519PrivateKey.generate().public_key().public_bytes_raw().hex()


def flipped(kit: Path) -> None:
    path = kit / "policies" / "default.toml"
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)


@needs_dpkg
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (flipped, "policies/default.toml: altered"),
        (lambda kit: (kit / "docs" / "kit.md").unlink(), "docs/kit.md: missing"),
        (lambda kit: (kit / "wheels" / "more.whl").touch(), "'wheels/more.whl': not part of the kit"),
        (lambda kit: (kit / "SHA256SUMS.sig").write_text("ed25519"), "not a signature"),
    ],
)
def test_an_altered_kit_makes_no_package(
    kit: Path, tmp_path: Path, spoil: Callable[[Path], None], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spoiled = copied(kit, tmp_path / "kit")
    spoil(spoiled)
    assert asked(spoiled, PUBLIC, tmp_path / "out") == 1
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@needs_dpkg
def test_a_kit_of_an_unknown_key_makes_no_package(
    kit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = stranger()
    assert asked(kit, other, tmp_path / "out") == 1
    assert f"signed by the key {PUBLIC}, not by {other}" in capsys.readouterr().err
    assert asked(kit, "no key", tmp_path / "out") == 1
    assert "neither 64 hexadecimal digits nor a file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def asked(kit: Path, key: str, out: Path) -> int:
    """The program as `make deb` runs it."""
    before, mask = sys.argv, os.umask(0o022)
    sys.argv = ["make_deb.py", str(kit), "--key", key, "--out", str(out)]
    try:
        code = deb.main()
    finally:
        sys.argv = before
        os.umask(mask)
    assert isinstance(code, int)
    return code


@needs_dpkg
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"commit_time": None}, "no 'commit_time'.*make the kit anew"),
        ({"commit": None}, "no 'commit'.*make the kit anew"),
        ({"python": "cp38"}, "the kit is for Python 3.8"),
        ({"machine": "vax"}, "the kit is for vax"),
        ({"glibc": "99.1"}, "the kit needs glibc 99.1 or newer"),
    ],
)
def test_an_older_kit_and_one_for_another_machine_are_refused_before_anything_is_built(
    tmp_path: Path, change: dict[str, str | None], reason: str
) -> None:
    older = sealed(tmp_path / "kit", **change)
    with pytest.raises(places.Impossible, match=reason):
        deb.make(older, PUBLIC, tmp_path / "out", MAINTAINER)
    assert not (tmp_path / "out").exists()


@needs_dpkg
def test_a_machine_that_debian_has_no_name_for(kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deb, "ARCHITECTURES", {"another": "other"})
    with pytest.raises(places.Impossible, match=f"no Debian architecture is known for {platform.machine()}"):
        deb.make(kit, PUBLIC, tmp_path / "out", MAINTAINER)
    assert not (tmp_path / "out").exists()


def test_without_dpkg_deb_nothing_is_begun(kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(places.Impossible, match="dpkg-deb is missing"):
        deb.make(kit, PUBLIC, tmp_path / "out", MAINTAINER)
    assert not (tmp_path / "out").exists()


# --- its scripts ------------------------------------------------------------------------------------------------------

STAND_INS = ("groupadd", "useradd", "userdel", "groupdel", "chown", "systemctl", "deb-systemd-invoke", "getent")


class Debian:
    """A machine's places below a folder; accounts and systemd are programs that note what they are asked."""

    def __init__(self, root: Path, *, accounts: bool = False, fails: str = "") -> None:
        self.root = root
        self.log = root / "asked"
        for name in ("run/systemd/system", "var/lib", "var/cache", "etc/systemd/system", "commands", PLACE):
            (root / name).mkdir(parents=True, exist_ok=True)
        for name in STAND_INS:
            code = 1 if name == fails or (name == "getent" and not accounts) else 0
            tool = root / "commands" / name
            tool.write_text(f'#!/bin/sh\necho {name} "$*" >>"{self.log}"\nexit {code}\n', encoding="utf-8")
            tool.chmod(0o755)

    def run(self, name: str, *args: str) -> subprocess.CompletedProcess[str]:
        text = (ROOT / "scripts" / "deb" / name).read_text(encoding="utf-8")
        moved = re.sub(r"(?<=[ \"])/(?=(?:run|var|etc|usr/lib/localagent)\b)", f"{self.root}/", text)
        environ = {"PATH": f"{self.root / 'commands'}:/usr/bin:/bin"}
        return subprocess.run(
            ["/bin/sh", "-c", moved, name, *args], env=environ, capture_output=True, text=True, check=False
        )

    def asked(self, tool: str) -> list[str]:
        """What one of the stand-ins was asked so far."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [line.removeprefix(f"{tool} ") for line in lines if line.split()[0] == tool]

    def path(self, name: str) -> Path:
        return self.root / name.lstrip("/")


@pytest.fixture
def debian(tmp_path: Path) -> Debian:
    return Debian(tmp_path / "machine")


def restarted() -> set[str]:
    """The units that run on: one that ends by itself is not begun anew."""
    return {p.name for p in UNITS if "\nType=oneshot\n" not in p.read_text(encoding="utf-8")}


def test_installing_makes_folders_and_starts_nothing(debian: Debian) -> None:
    ended = debian.run("postinst", "configure", "")
    assert ended.returncode == 0, ended.stderr
    for name, (mode, user) in system.FOLDERS.items():
        assert stat.S_IMODE(debian.path(name).stat().st_mode) == mode, name
        assert f"{user}:{user} {debian.path(name)}" in debian.asked("chown")
    assert debian.asked("systemctl") == ["--system daemon-reload"]
    assert debian.run("postinst", "configure", "").returncode == 0  # and once more


def test_an_upgrade_restarts_what_runs_and_says_what_it_could_not(debian: Debian, tmp_path: Path) -> None:
    assert debian.run("postinst", "configure", "0.0.9").returncode == 0
    assert debian.asked("systemctl") == ["--system daemon-reload"]
    (again,) = debian.asked("deb-systemd-invoke")
    assert again.split()[0] == "try-restart"
    assert set(again.split()[1:]) == restarted()
    ended = Debian(tmp_path / "other").run("postinst", "abort-upgrade", "1")
    assert (ended.returncode, Debian(tmp_path / "other").asked("systemctl")) == (0, [])


def test_installing_follows_no_link_in_the_place_of_a_folder(debian: Debian) -> None:
    other = debian.path("/somewhere")
    other.mkdir(mode=0o700)
    debian.path("/var/lib/localagent-audit").symlink_to(other)
    ended = debian.run("postinst", "configure", "")
    assert ended.returncode == 1
    assert "is a link: move it away" in ended.stderr
    assert stat.S_IMODE(other.stat().st_mode) == 0o700
    assert not [line for line in debian.asked("chown") if "audit" in line]


def test_removing_stops_every_unit_and_an_upgrade_stops_none(debian: Debian) -> None:
    cache = debian.path(PLACE) / "lib" / "__pycache__"
    cache.mkdir(parents=True)
    assert debian.run("prerm", "upgrade", "2").returncode == 0
    assert (debian.asked("deb-systemd-invoke"), cache.exists()) == ([], False)
    assert debian.run("prerm", "remove").returncode == 0
    (stopped,) = debian.asked("deb-systemd-invoke")
    assert stopped.split()[0] == "stop"
    assert set(stopped.split()[1:]) == {path.name for path in UNITS}


def with_data(debian: Debian) -> list[Path]:
    """Data of every kind, and a setting of the owner's."""
    files = [debian.path(name) / "kept" for name in (*system.FOLDERS, "/etc/localagent/policies")]
    for path in files:
        path.parent.mkdir(parents=True)
        path.write_text("kept", encoding="utf-8")
    return files


def test_removing_keeps_data_and_a_purge_takes_it_with_what_was_enabled(tmp_path: Path) -> None:
    debian = Debian(tmp_path / "machine", accounts=True)
    *data, setting = with_data(debian)
    wants = debian.path("/etc/systemd/system/multi-user.target.wants")
    wants.mkdir()
    (wants / "localagent.service").symlink_to("/lib/systemd/system/localagent.service")
    (wants / "localagent-mine.service").symlink_to("/home/me/localagent-mine.service")
    assert debian.run("postrm", "remove").returncode == 0
    assert all(path.is_file() for path in data)
    assert debian.asked("userdel") == []
    ended = debian.run("postrm", "purge")
    assert ended.returncode == 0, ended.stderr
    assert not any(debian.path(name).exists() for name in system.FOLDERS)
    assert debian.asked("userdel") == debian.asked("groupdel") == list(system.USERS)
    assert [path.name for path in wants.iterdir()] == ["localagent-mine.service"]
    assert setting.is_file()  # the owner's own, which dpkg knows nothing of
    setting.unlink()
    assert debian.run("postrm", "purge").returncode == 0
    assert not debian.path("/etc/localagent").exists()


def test_a_purge_that_cannot_remove_a_user_loses_no_data(tmp_path: Path) -> None:
    debian = Debian(tmp_path / "machine", accounts=True, fails="userdel")
    data = with_data(debian)
    assert debian.run("postrm", "purge").returncode != 0
    assert all(path.is_file() for path in data)
