"""Small but whole kits for tests: a wheel that answers its version, the pip that runs here, a few bytes of model."""

import base64
import hashlib
import importlib
import importlib.util
import json
import marshal
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ROOT = Path(__file__).resolve().parents[2]
MAKER = Ed25519PrivateKey.from_private_bytes(b"the maker of the kits of a test.")
PUBLIC = MAKER.public_key().public_bytes_raw().hex()
MODEL = b"GGUF, but not really"


@cache
def script(name: str) -> Any:
    """A program of scripts/ or scripts/kit/ as a module."""
    folders = [str(ROOT / "scripts"), str(ROOT / "scripts" / "kit")]
    sys.path[:0] = folders
    try:
        return importlib.import_module(name)
    finally:
        for folder in folders:
            sys.path.remove(folder)


def wheel(folder: Path, name: str, version: str, files: dict[str, str], more_metadata: str = "") -> Path:
    """A pure wheel with a right RECORD."""
    info = f"{name}-{version}.dist-info"
    all_files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more_metadata}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    record = []
    for path, text in all_files.items():
        data = text.encode()
        seal = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={seal},{len(data)}")
    all_files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    target = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w") as packed:
        for path, text in all_files.items():
            packed.writestr(path, text)
    return target


@cache
def installed_pip() -> dict[str, bytes]:
    """The files of the pip that runs these tests, compiled: from source, each installation would compile it anew."""
    place = Path(importlib.import_module("pip").__file__ or "").parent
    files = {
        f"pip/{path.relative_to(place).as_posix()}": path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    sources = {name: data for name, data in files.items() if name.endswith(".py")}
    return files | {f"{name}c": _compiled(data, name) for name, data in sources.items()}


def _compiled(source: bytes, name: str) -> bytes:
    """As Python keeps it; which source it was made of is not to be checked."""
    code = compile(source, name, "exec", dont_inherit=True)
    return importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)


STATEFUL = """
import os
import pathlib
from localagent.record.state_schema import live, ready

def shout(folder):
    words = folder / "words"
    words.write_text(words.read_text().upper())

def main():
    base = pathlib.Path(os.environ["HOME"], ".local", "state", "localagent")
    words = ready(base, {schema}, {{1: shout}}) / "words"
    print("localagent {version}", words.read_text() if words.exists() else "without state")
"""


def payload(kit: Path, version: str, *, broken: bool = False, schema: int = 0) -> None:
    """What `make kit` gathers, small. A broken one installs but cannot start."""
    for name in ("wheels", "locks", "models", "docs", "policies"):
        (kit / name).mkdir(parents=True)
    answer = "raise SystemExit(9)" if broken else f"print('localagent {version}')"
    files = {"localagent/__init__.py": f"def main():\n    {answer}\n", "localagent/_data/models/m.toml": "\n"}
    if schema:  # the real code for state, and a migration from 1 to 2
        files["localagent/__init__.py"] = STATEFUL.format(schema=schema, version=version)
        files["localagent/record/__init__.py"] = ""
        for name in ("errors.py", "record/state_schema.py"):
            files[f"localagent/{name}"] = (ROOT / "localagent" / name).read_text()
    own = wheel(kit / "wheels", "localagent", version, files)
    with zipfile.ZipFile(kit / "wheels" / "pip-99-py3-none-any.whl", "w") as packed:
        for path, data in installed_pip().items():
            packed.writestr(path, data)
        packed.writestr("pip-99.dist-info/METADATA", "Metadata-Version: 2.1\nName: pip\nVersion: 99\n")
    seal = hashlib.sha256(own.read_bytes()).hexdigest()
    (kit / "locks" / "installed.txt").write_text(f"localagent=={version} --hash=sha256:{seal}\n")
    (kit / "models" / "m.gguf").write_bytes(MODEL)
    (kit / "docs" / "kit.md").write_text(f"The kit of {version}.\n" * 20)
    (kit / "policies" / "default.toml").write_text("[policy]\n")
    about = {
        "version": version,
        "commit": f"{version:0<40}",
        "commit_time": 1_000_000_000,
        "python": f"cp{sys.version_info.major}{sys.version_info.minor}",
        "machine": platform.machine(),
        "glibc": "2.17",
        "models": ["m.gguf"],
        "state_schema": schema or 1,
        "tried": [["localagent", "--version"]],
    }
    (kit / "kit.json").write_text(json.dumps(about))


def make_kit(kit: Path, version: str, *, broken: bool = False, schema: int = 0, key: Ed25519PrivateKey = MAKER) -> Path:
    """A sealed kit."""
    payload(kit, version, broken=broken, schema=schema)
    script("kit_seal").seal(kit, key)
    return kit


@dataclass(frozen=True)
class Home:
    """A user's empty home, and the kit's commands run in it. `python` is what a kit's scripts find as PYTHON."""

    path: Path
    python: str = sys.executable

    @property
    def prefix(self) -> Path:
        return self.path / ".local" / "share" / "localagent-kit"

    def run(self, *argv: str | Path) -> subprocess.CompletedProcess[str]:
        environ = {"HOME": str(self.path), "PATH": "/usr/bin:/bin", "PYTHON": self.python}
        return subprocess.run(
            [str(a) for a in argv],
            env=environ,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=300,
        )

    def kit(self, kit: Path, command: str, *args: str) -> subprocess.CompletedProcess[str]:
        return self.run("sh", kit / command, *args)

    def version(self) -> str:
        """What the installed command answers, or "" where there is none."""
        tool = self.path / ".local" / "bin" / "localagent"
        return self.run(tool).stdout.strip() if tool.exists() else ""

    def left(self) -> list[str]:
        """Every file and link in the home."""
        return sorted(
            os.path.relpath(Path(place, name), self.path) for place, _, names in os.walk(self.path) for name in names
        )


def copied(kit: Path, target: Path) -> Path:
    """A copy that may be spoiled."""
    shutil.copytree(kit, target, symlinks=True)
    return target
