"""Runs the command line in a process of its own, with state, data, cache and scratch folders of its own.

A whole run is forked off a process that has done the imports (`warm_start`); `start` gives an interpreter of its own.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from localagent.app import Settings
from localagent.llm.model.registry import Registry
from support.warm_start import parent

CHECKOUT = Path(__file__).resolve().parents[2]
Files = Mapping[str, str | bytes]

# the smallest repository with one fault: the operator is wrong, and two tests tell
ADDER: Mapping[str, str] = {
    "adder.py": "def add(a, b):\n    return a - b\n",
    "test_adder.py": (
        "from adder import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
        "def test_more():\n    assert add(7, 4) == 11\n\n\ndef test_zero():\n    assert add(4, 0) == 4\n"
    ),
}
ADDED = b"    return a + b\n"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How one run ended. `report` is what `--report` wrote."""

    code: int
    out: str
    err: str
    report: dict[str, Any]

    @property
    def reason(self) -> str:
        return str(self.report["reason"])


@dataclass(frozen=True, kw_only=True)
class Home:
    """A user's folders below `root`, and the repository."""

    root: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def scratch(self) -> Path:
        return self.root / "tmp"

    @property
    def tasks(self) -> Path:
        return self.root / "state" / "localagent" / "tasks"

    def environment(self) -> dict[str, str]:
        names = {"XDG_STATE_HOME": "state", "XDG_DATA_HOME": "data", "XDG_CACHE_HOME": "cache", "TMPDIR": "tmp"}
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "home"),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(CHECKOUT),
            **{name: str(self.root / folder) for name, folder in names.items()},
            **self.extra,
        }

    def write(self, files: Files) -> None:
        for name, text in files.items():
            path = self.repo / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def start(self, *args: str, within: Sequence[str] = (), **popen: Any) -> "subprocess.Popen[bytes]":
        """Start a verb, by way of another program if one is given; the caller waits for it."""
        argv = (*within, sys.executable, "-m", "localagent", *args)
        popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **popen}
        return subprocess.Popen(argv, cwd=self.root, env=self.environment(), **popen)

    def run(self, *args: str, **popen: Any) -> Ran:
        """Run a verb to its end; by itself from its first instruction on if `popen` asks for something."""
        done = None if popen else parent().run(args, self.environment(), self.root)
        if done is not None:
            return Ran(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode(), report={})
        with self.start(*args, **popen) as process:
            out, err = process.communicate(timeout=300)
        return Ran(code=process.returncode, out=out.decode(), err=err.decode(), report={})

    def fix(self, *args: str, model: Sequence[str] = ("--no-model",), **more: Any) -> Ran:
        """`fix` with a small budget, without a model unless `model` says otherwise; reads the report."""
        place = self.root / "report.json"
        place.unlink(missing_ok=True)
        budget = {name: more.pop(name) for name in ("seconds", "candidates") if name in more}
        ran = self.run(*self.arguments(*args, *model, **budget), **more)
        report = json.loads(place.read_bytes()) if place.exists() else {}
        if report:
            assert (report["exit"], report["schema"]) == (ran.code, "localagent/report/2"), (ran, report)
        return Ran(code=ran.code, out=ran.out, err=ran.err, report=report)

    def arguments(self, *args: str, seconds: float = 120, candidates: int = 60) -> tuple[str, ...]:
        """The command line of `fix`."""
        budget = ("--max-seconds", str(seconds), "--max-candidates", str(candidates), "--jobs", "1")
        named = () if "--report" in args else ("--report", str(self.root / "report.json"))
        return ("fix", "--repo", str(self.repo), *budget, *named, *args)


def bundled_model() -> Path:
    """The file of the bundled model, as `make setup` installed it."""
    found = Registry(CHECKOUT / "models", Settings.from_environ().data_dir).verify("")
    assert found.path is not None
    return found.path


def model_place(h: Home) -> Path:
    """Where the default model's file belongs in a home; its folder is made."""
    folder = h.root / "data" / "localagent" / "models"
    folder.mkdir(parents=True)
    return folder / bundled_model().name


def processes_with(word: bytes) -> list[str]:
    """Command lines of this machine that hold a word."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes()
        except OSError:
            continue
        if word in line:
            found.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return found


def tree_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, mtime and bytes (or target) of everything below a folder; the size alone of what we may not read."""
    found = {}
    for base, folders, files in os.walk(folder):
        for path in (Path(base, name) for name in (*folders, *files)):
            facts = path.lstat()
            data = b""
            if stat.S_ISLNK(facts.st_mode):
                data = os.fsencode(path.readlink())
            elif stat.S_ISREG(facts.st_mode):
                data = path.read_bytes() if os.access(path, os.R_OK) else b"closed, %d bytes" % facts.st_size
            found[str(path)] = (facts.st_mode, facts.st_mtime_ns, data)
    return found


@contextmanager
def home(files: Files = ADDER, **extra: str) -> Iterator[Home]:
    """A fresh home with a repository; at the end nothing may be left in its scratch folder."""
    root = Path(mkdtemp(prefix="la-fix-"))
    root.chmod(0o755)
    made = Home(root=root, extra=extra)
    try:
        for name in ("repo", "state", "data", "cache", "tmp", "home"):
            (root / name).mkdir()
        made.write(files)
        yield made
    finally:
        shutil.rmtree(root, ignore_errors=True)
