"""One version, built at its own place and tried there before anything leads to it: it is complete, or it is nothing.

Nothing outside the version's folder is written. Not promised: that a version which was complete still is; nobody looks
for what was altered since.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import verify
from places import Impossible
from placing import written
from taking import taken, wheels

COMPLETE = "complete"
TRIED_SECONDS = 120.0
SHARED = ("docs", "licences", "policies", "systemd", "sbom.cdx.json", "README.txt")


def say(text: str) -> None:
    """One line of progress."""
    print(f"localagent-kit: {text}", flush=True)


def fits(kit: dict[str, Any]) -> None:
    """Impossible, with every reason, where this machine cannot run the kit."""
    here = f"cp{sys.version_info.major}{sys.version_info.minor}"
    why = []
    if kit["python"] != here:
        wanted = f"{kit['python'][2]}.{kit['python'][3:]}"
        why.append(f"the kit is for Python {wanted}, this is {platform.python_version()} (set PYTHON)")
    if kit["machine"] != platform.machine():
        why.append(f"the kit is for {kit['machine']}, this machine is {platform.machine()}")
    name, version = (*platform.libc_ver(), "")[:2]
    if name != "glibc" or numbers(version) < numbers(kit["glibc"]):
        why.append(f"the kit needs glibc {kit['glibc']} or newer, here is {name or 'another libc'} {version}".rstrip())
    if why:
        raise Impossible("\nlocalagent-kit: ".join(why))


def numbers(version: str) -> tuple[int, ...]:
    """A version of the C library, for comparing."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def build(kit: verify.Sound, about: dict[str, Any], target: Path) -> None:
    """A complete version at `target`: environment, packages by hash, model, documents; each tried before it counts."""
    dropped(target)
    target.mkdir(parents=True, mode=0o755)
    say(f"building {target}")
    python = target / "bin" / "python"
    run([sys.executable, "-I", "-m", "venv", "--without-pip", target])
    parts = target / "parts"
    found = wheels(kit, parts / "wheels")
    pip_wheel = next(iter(sorted(found.glob("pip-*.whl"))))
    lock = taken(kit, "locks/installed.txt", parts / "installed.txt")
    options = ("--isolated", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--quiet")
    run([python, "-I", pip_wheel / "pip", *options, "install", "--no-index", "--no-deps", "--require-hashes",
         "--find-links", found, "-r", lock])  # fmt: skip
    shutil.rmtree(parts)
    data = next(target.glob("lib/python*/site-packages")) / "localagent" / "_data" / "models"
    for name in about["models"]:
        taken(kit, f"models/{name}", data / name)
    for name in kit.files:
        first, _, rest = name.partition("/")
        if first == "program" or (not rest and name in (*SHARED, "kit.json")):
            taken(kit, name, target / name)
        elif rest and first in SHARED:
            taken(kit, name, target / "share" / name)
    for argv in about["tried"]:
        say(f"trying {' '.join(argv)[:70]}")
        run([target / "bin" / argv[0], *argv[1:]])
    os.sync()
    written(target / COMPLETE, "")


def dropped(version: Path) -> None:
    """A version's folder is gone; killed on the way, it counts as unfinished."""
    (version / COMPLETE).unlink(missing_ok=True)
    if version.exists():
        shutil.rmtree(version)


def run(argv: list[str | Path]) -> None:
    """One command of the kit with nothing of the caller's environment; Impossible with its last words if it fails."""
    environ = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "PIP_CONFIG_FILE": os.devnull}
    try:
        ended = subprocess.run(
            [str(part) for part in argv],
            cwd="/",
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRIED_SECONDS * 5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise Impossible(f"{argv[0]}: {fault}; what stood before stands") from None
    if ended.returncode != 0:
        last = (ended.stderr or ended.stdout).decode("utf-8", "replace").strip().splitlines()[-8:]
        words = "\n    ".join(["", *last])
        raise Impossible(
            f"{' '.join(map(str, argv))[:200]} failed ({ended.returncode}); what stood before stands{words}"
        )
