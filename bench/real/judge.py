"""Judges a tree by the project's own tests, in a bubblewrap jail of its own: nothing of localagent takes part.

Not promised: safety against a hostile project. The clones are the user's choice; the jail keeps accidents in.
"""

import ast
import resource
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_ADDRESS_SPACE_BYTES = 2 << 30
_CPU_SECONDS = 300


class NoJailError(Exception):
    """There is no bubblewrap to judge in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdicts:
    """Test (`classname::name`) -> passed, failed or skipped; `log` is the end of what pytest said."""

    tests: Mapping[str, str]
    log: str

    def bad(self) -> frozenset[str]:
        """Tests that failed."""
        return frozenset(t for t, v in self.tests.items() if v == "failed")

    def good(self) -> frozenset[str]:
        """Tests that passed."""
        return frozenset(t for t, v in self.tests.items() if v == "passed")


def bwrap() -> str:
    """A bubblewrap binary."""
    found = shutil.which("bwrap")
    if found is None:
        raise NoJailError("no bwrap on PATH; install bubblewrap to judge in a jail")
    return found


def jail_argv(command: Sequence[str], *, tree: Path, python: Path, out: Path) -> list[str]:
    """Read-only system, the environment read-only, the tree and `out` writable, no network."""
    home = python.parent.parent
    argv = [bwrap(), "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    for top in ("/usr", "/lib", "/lib64", "/bin", "/etc"):
        argv += ["--ro-bind-try", top, top]
    argv += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for seen in dict.fromkeys((sys.base_prefix, str(home), str(Path(sys.base_prefix).resolve()))):
        argv += ["--ro-bind", seen, seen]
    argv += ["--bind", str(tree), str(tree), "--bind", str(out), str(out), "--chdir", str(tree)]
    env = {"PATH": f"{home}/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    for key, value in env.items():
        argv += ["--setenv", key, value]
    return [*argv, "--", *command]


def _limits() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE_BYTES, _ADDRESS_SPACE_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_tests(tree: Path, python: Path, tests: Sequence[str], *, wall_seconds: float = 300.0) -> Verdicts:
    """Runs pytest once. A run that crashes or is too slow has no tests and says so in its log."""
    with tempfile.TemporaryDirectory(prefix="judge-") as name:
        out = Path(name)
        report = out / "junit.xml"
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
        argv = jail_argv(command, tree=tree, python=python, out=out)
        try:
            done = subprocess.run(
                argv,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=wall_seconds,
                preexec_fn=_limits,
            )
        except subprocess.TimeoutExpired:
            return Verdicts(tests={}, log=f"no end after {wall_seconds:.0f} s")
        log = (done.stdout + done.stderr)[-2000:]
        if not report.is_file():
            return Verdicts(tests={}, log=f"status {done.returncode}: {log}")
        try:
            return Verdicts(tests=_parse(report), log=log)
        except ET.ParseError as fault:  # killed while it wrote
            return Verdicts(tests={}, log=f"status {done.returncode}, {fault}: {log}")


def _parse(report: Path) -> dict[str, str]:
    tests: dict[str, str] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        kinds = {child.tag for child in case}
        verdict = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        if tests.get(name) != "failed":
            tests[name] = verdict
    return tests


def same_code(left: bytes, right: bytes) -> bool:
    """True when two files have the same syntax tree, docstrings and layout aside."""
    return _shape(left) == _shape(right)


def _shape(data: bytes) -> str:
    tree = ast.parse(data)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:]
    return ast.dump(tree)
