"""pip, in a jail, unpacks wheels that were judged; what it leaves is compared with them byte by byte.

The jail has no network and sees our interpreter, the copies of the wheels (read-only) and one folder to write into.
Not promised: that pip's resolver is used: versions are chosen before, and every file is named with its digest.
"""

import hashlib
import importlib.util
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from localagent.deps.archive import MOST_DEPTH
from localagent.deps.choose import ChosenWheel, NotInstallable
from localagent.deps.wheel import FileTarget
from localagent.domain.jailspec import Access, Bind, JailLimits, JailResult, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.errors import CannotEnforce
from localagent.fs.openat import open_regular
from localagent.jail.api import interpreter_binds
from localagent.ports import Jail

WHEELS = "/wheels"
OUT = "/out"
SITE = "site"
_BOOKKEEPING = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json")
_NOT_OURS = ("bin", "include")  # what pip writes or rewrites there is not taken
_ENV = (("HOME", OUT), ("TMPDIR", OUT), ("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("PIP_CONFIG_FILE", os.devnull))
_OPTIONS = (
    "--isolated", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--quiet", "install", "--no-index",
    "--find-links", WHEELS, "--only-binary", ":all:", "--require-hashes", "--no-deps", "--no-compile",
    "--no-warn-script-location", "--target", f"{OUT}/{SITE}", "--requirement", f"{WHEELS}/requirements.txt",
)  # fmt: skip
_SAID_BYTES = 2000


def require_pip() -> None:
    """CannotEnforce when our interpreter has no pip."""
    if importlib.util.find_spec("pip") is None:
        raise CannotEnforce(
            f"pip is missing in {sys.executable}, so nothing can be installed",
            remedy=f"{sys.executable} -m ensurepip, or run `make setup` again",
        )


def unpack(jail: Jail, chosen: Sequence[ChosenWheel], wheels: Path, out: Path) -> Path:
    """Run pip over the copies in `wheels`; the folder that it filled, below `out`, holds what the wheels say, no more.

    NotInstallable when pip refuses, CannotEnforce when what it left is not what the wheels hold.
    """
    require_pip()
    expected = merged(chosen)
    lines = (f"{one.wheel.name}=={one.wheel.version} --hash=sha256:{one.sha256}\n" for one in chosen)
    (wheels / "requirements.txt").write_text("".join(lines), encoding="ascii")
    (wheels / "requirements.txt").chmod(0o644)
    python, binds = interpreter_binds(sys.executable)
    total = sum(file.size for file in expected.values())
    limits = JailLimits(
        wall_seconds=900, cpu_seconds=900, tmp_bytes=(256 << 20) + 3 * total, file_bytes=(64 << 20) + 2 * total
    )
    spec = JailSpec(
        argv=(python, "-I", "-B", "-m", "pip", *_OPTIONS),
        cwd=OUT,
        binds=(
            *binds,
            Bind(source=str(wheels), target=WHEELS),
            Bind(source=str(out), target=OUT, access=Access.READ_WRITE, untrusted=True),
        ),
        env=_ENV,
        limits=limits,
    )
    result = _run(jail, spec)
    if result.ending is not JailOutcome.EXITED or result.returncode:
        said = (result.stderr or result.stdout)[-_SAID_BYTES:].decode(errors="replace").strip()
        raise NotInstallable(f"pip refused ({result.ending}, exit {result.returncode}): {said}")
    site = out / SITE
    _compare(site, expected, {one.wheel.dist_info for one in chosen})
    return site


def _run(jail: Jail, spec: JailSpec) -> JailResult:
    """Run to the end; when we are interrupted the jail is ended first, so that nobody writes while we clean up."""
    process = jail.start(spec)
    with process.channel:
        try:
            return process.wait()
        finally:
            if process.alive:
                process.kill()


def merged(chosen: Sequence[ChosenWheel]) -> dict[str, FileTarget]:
    """Every file of the chosen wheels by its place. NotInstallable when two would write the same one."""
    found: dict[str, FileTarget] = {}
    owner: dict[str, str] = {}
    faults = []
    for one in chosen:
        for file in one.wheel.files:
            if file.path in found:
                faults.append(f"{owner[file.path]} and {one.wheel.name} both bring {file.path}")
            found[file.path], owner[file.path] = file, one.wheel.name
    if faults:
        raise NotInstallable("nothing was installed: " + "; ".join(faults[:20]))
    return found


def _compare(site: Path, expected: Mapping[str, FileTarget], dist_infos: set[str]) -> None:
    """CannotEnforce unless the tree holds exactly what was expected, beside what pip is known to write."""
    kept = {f"{folder}/{name}" for folder in dist_infos for name in _BOOKKEEPING}
    missing = dict(expected)
    try:
        for path in _walk(site, "", 0):
            file = missing.pop(path, None)
            if file is not None:
                if sha256_below(site / path) != file.sha256:
                    raise CannotEnforce(
                        f"what pip unpacked as {path} is not what the wheel holds; nothing was installed"
                    )
            elif path not in kept and path.split("/")[0] not in _NOT_OURS:
                raise CannotEnforce(f"pip left {path!r}, which no wheel holds; nothing was installed")
    except OSError as error:
        raise CannotEnforce(f"what pip unpacked cannot be read: {error.strerror or error}") from error
    if missing:
        raise CannotEnforce(f"pip did not unpack {', '.join(sorted(missing)[:5])}; nothing was installed")


def _walk(root: Path, prefix: str, depth: int) -> Iterator[str]:
    """The regular files of a tree that nobody writes any more; CannotEnforce for anything but files and folders."""
    with os.scandir(root / prefix) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = f"{prefix}{entry.name}"
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode) and depth <= MOST_DEPTH:
            yield from _walk(root, f"{path}/", depth + 1)
        elif stat.S_ISREG(mode):
            yield path
        else:
            raise CannotEnforce(f"pip left {path!r}, which is neither a file nor a folder; nothing was installed")


def sha256_below(path: Path) -> str:
    """SHA-256 of a regular file that is no link; OSError otherwise."""
    with os.fdopen(open_regular(path), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
