"""Makes a Debian package of the system install out of a verified kit: nothing is fetched or compiled.

    make deb KIT=DIR KEY=KEY [OUT=dist]        docs/kit.md; needs dpkg-deb

The package holds an environment of its own below /usr/lib/localagent, settings in /etc/localagent as conffiles, units
that are not enabled, and scripts that make user, group and state directories. Not promised: that it fits another
release of Debian than one with the kit's Python and a C library as new; dpkg refuses it elsewhere.
"""

import argparse
import base64
import csv
import email.utils
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PARTS = ROOT / "scripts" / "deb"
sys.path.insert(0, str(ROOT / "scripts" / "kit"))
import building  # noqa: E402 - the kit's own programs, beside this one
import places  # noqa: E402
import taking  # noqa: E402
import units  # noqa: E402
import verify  # noqa: E402

PLACE = Path("/usr/lib/localagent")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CHANGED = {"/usr/local/bin/localagent": "/usr/bin/localagent", "/opt/localagent/current/bin:": ""}


def environment(kit: verify.Sound, about: dict[str, Any], stage: Path) -> None:
    """The kit's environment below `stage`, tried there, then told that it stands at PLACE."""
    target = stage / PLACE.relative_to("/")
    building.build(kit, about, target)
    for name in ("program", building.COMPLETE):
        path = target / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(target / "share")
    for cache in list(target.rglob("__pycache__")):
        shutil.rmtree(cache)
    python = f"python{about['python'][2]}.{about['python'][3:]}"
    for link in (target / "bin").iterdir():
        if link.is_symlink() and link.name.startswith("python"):
            link.unlink()
    for name in ("python", "python3", python):
        (target / "bin" / name).symlink_to(f"../../../bin/{python}")
    shutil.rmtree(target / "include", ignore_errors=True)
    (target / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n", encoding="utf-8")
    for activate in (target / "bin").glob("[Aa]ctivate*"):
        activate.unlink()  # they name the folder that this was built in
    moved(target)


def moved(target: Path) -> None:
    """The first lines of scripts, and what packages say of them, as they are at PLACE."""
    old, new = f"#!{target}/bin/".encode(), f"#!{PLACE}/bin/".encode()
    seals = {}
    for script in (target / "bin").iterdir():
        if script.is_symlink():
            continue
        data = script.read_bytes()
        if data.startswith(old):
            data = new + data[len(old) :]
            script.write_bytes(data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            seals[script.name] = (f"sha256={digest}", str(len(data)))
    site = next(target.glob("lib/python*/site-packages"))
    for record in site.glob("*.dist-info/RECORD"):
        with record.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.reader(stream))
        out = io.StringIO()
        for row in rows:
            name = Path(row[0]).name
            own = row[0].startswith("../") and f"/bin/{name}" in row[0] and name in seals
            csv.writer(out, lineterminator="\n").writerow([row[0], *seals[name]] if own else row)
        record.write_text(out.getvalue(), encoding="utf-8")


def surroundings(kit: verify.Sound, stage: Path) -> None:
    """Command, settings, units, documents."""
    (stage / "usr" / "bin").mkdir(parents=True)
    (stage / "usr" / "bin" / "localagent").symlink_to("../lib/localagent/bin/localagent")
    settings, unit_folder = stage / "etc" / "localagent", stage / "lib" / "systemd" / "system"
    (settings / "policies").mkdir(parents=True)
    unit_folder.mkdir(parents=True)
    for name in kit.files:
        path = Path(name)
        if name == "systemd/daemon.toml":
            taking.taken(kit, name, settings / path.name)
        elif path.parent == Path("systemd") and path.suffix in units.SUFFIXES:
            text = taking.contents(kit, name).decode("utf-8")
            for old, new in CHANGED.items():
                text = text.replace(old, new)
            (unit_folder / path.name).write_text(text, encoding="utf-8")
    docs = stage / "usr" / "share" / "doc" / "localagent"
    docs.mkdir(parents=True)
    for name in ("docs", "licences"):
        taking.below(kit, name, docs / name)
    for name in ("sbom.cdx.json", "kit.json"):
        if name in kit.files:
            taking.taken(kit, name, docs / name)
    shutil.copyfile(PARTS / "copyright", docs / "copyright")
    overrides = stage / "usr" / "share" / "lintian" / "overrides"
    overrides.mkdir(parents=True)
    shutil.copyfile(PARTS / "lintian-overrides", overrides / "localagent")


def package_version(about: dict[str, Any]) -> tuple[str, datetime]:
    """VERSION+gitTIME.COMMIT-1, which grows with the history, and the time of the kit's commit."""
    try:
        when = datetime.fromtimestamp(about["commit_time"], UTC)
        return f"{about['version']}+git{when:%Y%m%d%H%M%S}.{about['commit'][:12]}-1", when
    except KeyError as field:
        raise places.Impossible(
            f"kit.json has no {field}, of which the package's version is made: make the kit anew with this make_kit.py"
        ) from None


def architecture(about: dict[str, Any]) -> str:
    """Debian's word for the kit's machine."""
    try:
        return ARCHITECTURES[about["machine"]]
    except KeyError:
        raise places.Impossible(f"no Debian architecture is known for {about['machine']}") from None


def control(kit: verify.Sound, about: dict[str, Any], stage: Path, maintainer: str) -> str:
    """DEBIAN/, and the changelog that Debian wants; the file name of the package."""
    version, when = package_version(about)
    machine = architecture(about)
    python = f"python{about['python'][2]}.{about['python'][3:]}"
    size = sum(p.stat().st_size for p in stage.rglob("*") if p.is_file() and not p.is_symlink()) // 1024
    fields = (PARTS / "control").read_text(encoding="utf-8")
    for word, value in {
        "@VERSION@": version,
        "@ARCHITECTURE@": machine,
        "@SIZE@": str(size),
        "@PYTHON@": python,
        "@GLIBC@": about["glibc"],
        "@MAINTAINER@": maintainer,
    }.items():
        fields = fields.replace(word, value)
    place = stage / "DEBIAN"
    place.mkdir()
    (place / "control").write_text(fields, encoding="utf-8")
    conffiles = sorted(f"/{p.relative_to(stage)}" for p in (stage / "etc").rglob("*") if p.is_file())
    (place / "conffiles").write_text("".join(f"{name}\n" for name in conffiles), encoding="utf-8")
    for name in ("postinst", "prerm", "postrm"):
        shutil.copyfile(PARTS / name, place / name)
        (place / name).chmod(0o755)
    words = (
        f"localagent ({version}) unstable; urgency=medium\n\n  * Made of the kit whose SHA256SUMS is\n"
        f"    {kit.sums},\n    signed by\n    {kit.key}.\n\n"
        f" -- {maintainer}  {email.utils.format_datetime(when)}\n"
    )
    changes = stage / "usr" / "share" / "doc" / "localagent" / "changelog.Debian.gz"
    changes.write_bytes(gzip.compress(words.encode(), 9, mtime=0))
    sums = sorted(p for p in stage.rglob("*") if p.is_file() and not p.is_symlink() and place not in p.parents)
    lines = (f"{hashlib.md5(p.read_bytes()).hexdigest()}  {p.relative_to(stage)}\n" for p in sums)  # dpkg's own format
    (place / "md5sums").write_text("".join(lines), encoding="utf-8")
    return f"localagent_{version}_{machine}.deb"


def modes(stage: Path) -> None:
    """0755 for folders and programs, 0644 for all else, whatever the maker's umask and a wheel's own modes."""
    for path in [stage, *stage.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or program(path) else 0o644)


def program(path: Path) -> bool:
    """Whether a file may be run: its maker says so, it is no shared library, and the kernel would know how."""
    if not path.stat().st_mode & 0o100 or ".so" in path.suffixes:
        return False
    with path.open("rb") as stream:
        return stream.read(4).startswith((b"#!", b"\x7fELF"))


def make(kit_folder: Path, key: str, out: Path, maintainer: str) -> Path:
    """The package below `out`. Impossible or NotSound with the reason."""
    if shutil.which("dpkg-deb") is None:
        raise places.Impossible("dpkg-deb is missing: apt install dpkg, or make it on a Debian machine")
    kit = verify.checked(kit_folder.resolve(), verify.read_key(key))
    about = taking.about_kit(kit)
    building.fits(about)
    package_version(about), architecture(about)  # before minutes are spent on what could not be named
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="localagent-deb-", dir=out) as name:
        stage = Path(name) / "stage"
        stage.mkdir()
        environment(kit, about, stage)
        surroundings(kit, stage)
        target = out / control(kit, about, stage, maintainer)
        modes(stage)
        argv = ["dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", str(stage), str(target)]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    print(f"deb: {target} ({target.stat().st_size / 1e6:.0f} MB)")
    return target


def main() -> int:
    """Entry point; 0 when the package is made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kit", type=Path, help="a kit's folder")
    parser.add_argument("--key", required=True, help="the maker's public key, or a file that holds it")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--maintainer", default="localagent <localagent@localhost>", help="NAME <ADDRESS> of the maker")
    args = parser.parse_args()
    os.umask(0o022)
    try:
        make(args.kit, args.key, args.out.absolute(), args.maintainer)
    except (verify.NotSound, places.Impossible, subprocess.CalledProcessError, OSError) as no:
        print(f"deb: {no}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
