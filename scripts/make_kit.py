"""Makes a kit: one folder and one .tar that install localagent where there is no network, no index and no compiler.

    make kit [OUT=DIR] [KEY=FILE]        after `make setup`, on a machine that reaches a package index; docs/kit.md

Everything fetched is checked against requirements/*.txt by SHA-256, and the kit holds what git tracks at HEAD, nothing
else of the checkout. llama.cpp is compiled for the plain baseline of the processor's family with all faster variants
beside it, chosen at run time. One checkout makes the same kit of the same commit again. Not promised: that two makers'
kits are equal byte for byte (compilers differ). A kit fits the Python, the processor family and the C library that
kit.json names.
"""

import argparse
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import bootstrap
import chat_shim
from bootstrap import BUILD, DOWNLOADS, LOCKS, ROOT, SetupError, need, pip, say
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from kit_licences import canonical, licences
from kit_seal import maker_key, packed, seal

sys.path.insert(0, str(ROOT))
from localagent.app.inventory.kit_sbom import bill_of_kit
from localagent.errors import LocalagentError
from localagent.record.state_schema import SCHEMA

PORTABLE = {
    "GGML_NATIVE": "OFF",  # never what only this processor knows
    "GGML_BACKEND_DL": "ON",
    "GGML_CPU_ALL_VARIANTS": "ON",  # baseline to newest, each a library of its own; the best that runs is loaded
    "GGML_OPENMP": "OFF",  # libgomp is not part of every system
    "LLAVA_BUILD": "OFF",
    "CMAKE_PLATFORM_NO_VERSIONED_SONAME": "ON",  # wheels hold no links: each library would come three times
    "CMAKE_INSTALL_BINDIR": "llama_cpp/lib",
    "CMAKE_INSTALL_LIBDIR": "llama_cpp/lib",
    "CMAKE_INSTALL_INCLUDEDIR": "llama_cpp/include",
}
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
TRIED = (
    ["localagent", "--version"],
    ["localagent", "policy", "show"],
    ["localagent", "model", "verify"],
    ["python", "-I", "-c", "from localagent.llm.model.llama_build import backend_name; print(backend_name())"],
)


def git(*args: str) -> str:
    """What git answers about the checkout."""
    argv = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *args]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def download() -> None:
    """Every locked wheel and pip itself lie in DOWNLOADS."""
    names = ("build.txt", "runtime.txt", "dev.txt", "kit.txt")
    locks = [part for name in names for part in ("-r", LOCKS / name)]
    say("bringing the locked packages")
    need(
        "downloading",
        pip(
            "download",
            "--dest",
            DOWNLOADS,
            "--find-links",
            DOWNLOADS,
            "--require-hashes",
            "--only-binary",
            ":all:",
            *locks,
        ),
        remedy="give this machine access to a package index (pip's own configuration applies)",
    )


def portable_wheel() -> Path:
    """llama-cpp-python for every processor of this machine's family."""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    flags = " ".join(f"-D{name}={value}" for name, value in PORTABLE.items())
    built = hashlib.sha256(f"{flags} {bootstrap.KEEPS_STORES}".encode()).hexdigest()[:8]
    version = bootstrap.locked_version("llama.txt")
    folder = BUILD / "wheels" / f"llama-cpp-python-{version}-portable-{tag}-{platform.machine()}-{built}"
    return bootstrap.sealed_wheel(folder) or bootstrap.compile_llama(folder, "for any processor", flags)


def own_wheel(work: Path) -> Path:
    """Localagent's wheel, made of what git tracks at HEAD; its times are the commit's, so it is the same again."""
    copy = work / "source"
    with tarfile.open(fileobj=io.BytesIO(archive("tar"))) as tracked:
        tracked.extractall(copy, filter="data")
    tracked_root = copy / f"localagent-{git('rev-parse', '--short=12', 'HEAD')}"
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir")
    made_of = {"SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct")}
    need("making localagent's wheel", pip("wheel", *options, "--wheel-dir", work, tracked_root), made_of)
    return next(work.glob("localagent-*.whl"))


def archive(form: str) -> bytes:
    """Git's archive of HEAD."""
    prefix = f"--prefix=localagent-{git('rev-parse', '--short=12', 'HEAD')}/"
    argv = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "archive", f"--format={form}", prefix, "HEAD"]
    return subprocess.run(argv, capture_output=True, check=True).stdout


def gather(kit: Path, work: Path) -> None:
    """Everything of the kit but its programs and its list of files."""
    if git("status", "--porcelain", "--untracked-files=no"):
        raise SetupError("files of the checkout differ from HEAD: commit them first, a kit is made of a commit")
    download()
    wheels = kit / "wheels"
    wheels.mkdir(parents=True)
    found = wanted_wheels(("build.txt", "runtime.txt", "dev.txt", "kit.txt"))
    for wheel in [*found, own_wheel(work)]:
        shutil.copyfile(wheel, wheels / wheel.name)
    llama = portable_wheel()
    if why := chat_shim.copy_wheel(llama, wheels / llama.name, DOWNLOADS):
        say(f"no chat shim in the kit: {why}; models there call tools in localagent's own format")
    (kit / "source").mkdir()
    (kit / "source" / f"localagent-{git('rev-parse', '--short=12', 'HEAD')}.tar.gz").write_bytes(archive("tar.gz"))
    shutil.copytree(LOCKS, kit / "locks")
    (kit / "locks" / "installed.txt").write_text(installed(wheels), encoding="utf-8")
    for name in ("policies", "docs", "systemd"):
        if (ROOT / name).is_dir():
            tracked(name, kit)
    models(kit)
    licences(kit, wheels)
    say_what_it_is(kit)


def say_what_it_is(kit: Path) -> None:
    """kit.json, the bill of what the kit's own wheels install and of what it carries beside, and the page on top."""
    (kit / "kit.json").write_text(json.dumps(description(kit), indent=1) + "\n", encoding="utf-8")
    (kit / "sbom.cdx.json").write_text(bill_of_kit(kit), encoding="utf-8")
    (kit / "README.txt").write_text(readme(), encoding="utf-8")


def tracked(folder: str, kit: Path) -> None:
    """Copies what git tracks below a folder."""
    for name in git("ls-files", folder).splitlines():
        (kit / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, kit / name)


def wanted_wheels(locks: Iterable[str]) -> list[Path]:
    """The downloaded wheels of these locks' versions; SetupError names a locked package of which none is there.

    Markers leave some packages out on some machines: pip resolved them when it downloaded.
    """
    pins = {canonical(n): v for lock in locks for n, v in PIN.findall((LOCKS / lock).read_text(encoding="utf-8"))}
    text = "".join((LOCKS / lock).read_text(encoding="utf-8") for lock in locks)
    found = []
    for wheel in sorted(DOWNLOADS.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        if pins.get(canonical(name)) == version:
            if hashlib.sha256(wheel.read_bytes()).hexdigest() not in text:
                raise SetupError(f"{wheel} is not a file that the locks name: delete it and run make kit again")
            found.append(wheel)
    return found


def installed(wheels: Path) -> str:
    """The lock of what an installation gets: run-time packages, llama.cpp, pip and localagent, each by its one hash."""
    pins = {
        canonical(n) for lock in ("runtime.txt", "kit.txt") for n, _ in PIN.findall((LOCKS / lock).read_text("utf-8"))
    }
    lines = []
    for wheel in sorted(wheels.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        if canonical(name) in {*pins, "llama-cpp-python", "localagent"}:
            lines.append(
                f"{canonical(name)}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
            )
    return "".join(lines)


def models(kit: Path) -> None:
    """Weights with manifest and card; the digest is verified by localagent's own registry."""
    tool = bootstrap.VENV / "bin" / "localagent"
    place = bootstrap.find_model(tool)
    if not place:
        raise SetupError("the bundled model is not there or not sound: run make setup, then `localagent model verify`")
    tracked("models", kit)
    shutil.copyfile(place, kit / "models" / Path(place).name)


def description(kit: Path) -> dict[str, object]:
    """kit.json: what the kit is and what it needs."""
    own = next((kit / "wheels").glob("localagent-*.whl"))
    return {
        "schema": 1,
        "name": "localagent",
        "version": own.name.split("-")[1],
        "commit": git("rev-parse", "HEAD"),
        "commit_time": int(git("log", "-1", "--format=%ct")),
        "python": f"cp{sys.version_info.major}{sys.version_info.minor}",
        "machine": platform.machine(),
        "glibc": least_glibc((kit / "wheels").glob("*.whl")),
        "models": sorted(path.name for path in (kit / "models").glob("*.gguf")),
        "state_schema": SCHEMA,
        "tried": TRIED,
    }


def least_glibc(wheels: Iterable[Path]) -> str:
    """The oldest C library that runs all of them: by their tags, and for one compiled here by what it links."""
    needed = {(2, 17)}
    for wheel in wheels:
        tags = re.findall(r"manylinux_(\d+)_(\d+)", wheel.name)
        if tags:
            needed.add(min((int(major), int(minor)) for major, minor in tags))
        elif "-linux_" in wheel.name:
            with zipfile.ZipFile(wheel) as packed:
                for name in packed.namelist():
                    if name.endswith(".so"):
                        found = re.findall(rb"GLIBC_(\d+)\.(\d+)\b", packed.read(name))
                        needed |= {(int(major), int(minor)) for major, minor in found}
    return ".".join(map(str, max(needed)))


def readme() -> str:
    """The one page on top of the kit."""
    return (
        "An installation kit of localagent. docs/kit.md says everything; in short:\n\n"
        "  sh verify  --key KEY            is it what its maker signed? nothing is unpacked or run before\n"
        "  sh install --key KEY            for this user; no root, no network, no compiler\n"
        "  sh install --key KEY --system   for the machine, as root\n"
        "  sh rollback, sh uninstall       back to the kit before; away with all but data (--purge: with data)\n\n"
        "KEY is the maker's public key, 64 hexadecimal digits. Learn it another way than from this kit.\n"
    )


def sizes(kit: Path) -> Iterator[str]:
    """Megabytes by folder."""
    for part in sorted(kit.iterdir()):
        total = sum(p.stat().st_size for p in part.rglob("*") if p.is_file()) if part.is_dir() else part.stat().st_size
        if total > 1 << 20:
            yield f"{part.name} {total / 1e6:.0f} MB"


def make(out: Path, key: Ed25519PrivateKey) -> Path:
    """The kit below `out`, whole: a folder that is not finished has another name."""
    commit = git("rev-parse", "--short=12", "HEAD")
    name = f"localagent-kit-{commit}-cp{sys.version_info.major}{sys.version_info.minor}-{platform.machine()}"
    out.mkdir(parents=True, exist_ok=True)
    partial = out / f".{name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "work").mkdir(parents=True)
    kit = partial / name
    kit.mkdir()
    gather(kit, partial / "work")
    public = seal(kit, key)
    shutil.rmtree(out / name, ignore_errors=True)
    kit.rename(out / name)
    shutil.rmtree(partial)
    archive_file = packed(out / name, key, int(git("log", "-1", "--format=%ct")))
    say(f"{out / name} ({', '.join(sizes(out / name))})")
    say(f"{archive_file} ({archive_file.stat().st_size / 1e6:.0f} MB)")
    say(f"the maker's public key, to be told another way than with the kit: {public}")
    return out / name


def main() -> int:
    """Entry point; 0 when the kit is made."""
    home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder to write to (default: dist)")
    parser.add_argument(
        "--key", type=Path, default=home / "localagent-maker" / "maker.pem", help="the maker's private key"
    )
    args = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    os.umask(0o022)  # modes are part of the wheel that is made
    try:
        make(args.out.absolute(), maker_key(args.key))
    except SetupError as failed:
        print(f"kit: {failed}", file=sys.stderr)
        return 1
    except LocalagentError as failed:
        print(f"kit: {failed}\n  what to do: {failed.remedy or 'see docs/kit.md'}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kit: interrupted; run make kit again", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
