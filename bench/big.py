"""A 100,000-line repository with one failing test: seconds to the first candidate, and peak memory of `localagent fix`.

  big.py [--lines 100000] [--max-candidates 500] [--max-seconds 60] [--keep DIR] [--json FILE]

The repository is made of a copy of the standard library of the Python that runs this (package `library`, tests and
`site-packages` left out), with one fault put into `statistics.median`. It runs once without and once with the model.

Memory is the peak, over samples 0.1 s apart, of proportional set sizes (pages that processes share count once): of
localagent's own process, of its jails (the tests' workers and the confined model child), and of all together.
Not promised: equal seconds on another machine or under another load, which is printed.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

AGENT = Path(sys.executable).absolute().parent / "localagent"
LEFT_OUT = {"test", "tests", "idlelib", "lib2to3", "site-packages", "__pycache__", "turtledemo", "ensurepip"}
FAULTY = "statistics.py"
FAULT = ("return (data[i - 1] + data[i]) / 2", "return (data[i - 2] + data[i]) / 2")
TESTS = """\
from library import statistics, textwrap


def test_median_of_odd():
    assert statistics.median([3, 1, 2, 9, 4]) == 3


def test_median_of_even():
    assert statistics.median([4, 1, 2, 9]) == 3


def test_mean():
    assert statistics.mean([1, 2, 3]) == 2


def test_dedent():
    assert textwrap.dedent("  a\\n  b") == "a\\nb"
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One run. `first_candidate_seconds` is None if no candidate ran; counted from the start of the process."""

    model: bool
    exit: int
    first_candidate_seconds: float | None
    wall_seconds: float
    own_peak_mb: float
    jails_peak_mb: float
    peak_mb: float
    verified: int
    outcome: str


def make_repository(where: Path, lines: int) -> tuple[int, int]:
    """Writes the repository; answers (files, lines). Takes modules by name until it is big enough."""
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    package = where / "library"
    package.mkdir(parents=True)
    (where / "tests").mkdir()
    (where / "tests" / "test_library.py").write_text(TESTS, encoding="utf-8")
    (where / "pyproject.toml").write_text(
        "[tool.pytest.ini_options]\npythonpath = ['.']\ntestpaths = ['tests']\n", encoding="utf-8"
    )
    (package / "__init__.py").write_text("", encoding="utf-8")
    needed = [stdlib / FAULTY, stdlib / "textwrap.py"]
    others = [
        p for p in sorted(stdlib.rglob("*.py")) if p not in needed and not LEFT_OUT & set(p.relative_to(stdlib).parts)
    ]
    files = total = 0
    for source in (*needed, *others):
        if total >= lines:
            break
        data = source.read_bytes()
        try:
            ast.parse(data)
        except (SyntaxError, ValueError):
            continue
        if source.name == FAULTY and source.parent == stdlib:
            data = _broken(data)
        target = package / source.relative_to(stdlib)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        files += 1
        total += data.count(b"\n")
    return files, total


def _broken(data: bytes) -> bytes:
    """The fault, put into the first function that has the text (`median`)."""
    before, after = (text.encode() for text in FAULT)
    if before not in data:
        raise SystemExit(f"{FAULTY} of {sys.version.split()[0]} has another text; change FAULT")
    return data.replace(before, after, 1)


class Memory(threading.Thread):
    """Samples a process tree; `own`, `jails` and `both` together are peaks in bytes."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._over = threading.Event()
        self.own = 0
        self.jails = 0
        self.both = 0

    def run(self) -> None:
        """Until `stop`."""
        while not self._over.wait(0.1):
            own, jails = _sizes(self._pid)
            self.own, self.jails = max(self.own, own), max(self.jails, jails)
            self.both = max(self.both, own + jails)

    def stop(self) -> None:
        """Ends the sampling."""
        self._over.set()
        self.join()


def _sizes(root: int) -> tuple[int, int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    own = jails = 0
    stack = [(root, False)]
    while stack:
        pid, jailed = stack.pop()
        jailed = jailed or _is_jail(pid)
        size = _proportional(pid)
        own, jails = (own, jails + size) if jailed else (own + size, jails)
        stack += [(child, jailed) for child in children.get(pid, [])]
    return own, jails


def _is_jail(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() in ("bwrap", "nsjail")
    except OSError:
        return False


def _proportional(pid: int) -> int:
    try:
        found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def measure(repo: Path, args: argparse.Namespace, *, model: bool) -> Measured:
    """One run of `localagent fix`, watched through its events."""
    with tempfile.TemporaryDirectory(prefix="big-") as name:
        home = Path(name)
        argv = [
            str(args.agent),
            "fix",
            "--repo",
            str(repo),
            "--report",
            str(home / "report.json"),
            "--json",
            "--jobs",
            "1",
        ]
        argv += ["--max-candidates", str(args.max_candidates), "--max-seconds", str(args.max_seconds)]
        argv += [] if model else ["--no-model"]
        environ = {**os.environ, "XDG_STATE_HOME": str(home / "state")}
        began = time.monotonic()
        first = None
        with (home / "errors").open("wb") as errors:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environ
            )
            memory = Memory(process.pid)
            memory.start()
            assert process.stdout is not None
            for line in process.stdout:
                if first is None and json.loads(line).get("event") == "checked":
                    first = round(time.monotonic() - began, 2)
            status = process.wait()
            memory.stop()
        wall = round(time.monotonic() - began, 1)
        report_file = home / "report.json"
        if not report_file.is_file():
            sys.stderr.write((home / "errors").read_text(errors="replace")[-2000:])
        report = json.loads(report_file.read_text("utf-8")) if report_file.is_file() else {}
        return Measured(
            model=model,
            exit=status,
            first_candidate_seconds=first,
            wall_seconds=wall,
            own_peak_mb=round(memory.own / 1e6, 1),
            jails_peak_mb=round(memory.jails / 1e6, 1),
            peak_mb=round(memory.both / 1e6, 1),
            verified=report.get("candidates_verified", 0),
            outcome=report.get("outcome", "no report"),
        )


def main() -> int:
    """0 if both runs accepted a patch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--max-candidates", type=int, default=500)
    parser.add_argument("--max-seconds", type=float, default=60.0)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="make the repository here and keep it")
    parser.add_argument("--no-model", action="store_true", help="only the run without a model")
    parser.add_argument("--agent", type=Path, default=AGENT, metavar="FILE", help="the localagent to run")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="big-repository-") as scratch:
        repo = (args.keep or Path(scratch)) / "repository"
        files, lines = make_repository(repo, args.lines)
        print(
            f"{files} files, {lines} lines; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True
        )
        rows = []
        for model in (False,) if args.no_model else (False, True):
            row = measure(repo, args, model=model)
            rows.append(row)
            print(
                f"{'with model' if model else 'no model':10} first candidate {row.first_candidate_seconds} s,"
                f" all {row.wall_seconds} s, peak {row.peak_mb} MB (own {row.own_peak_mb}, jails {row.jails_peak_mb}),"
                f" {row.verified} verified: {row.outcome} (exit {row.exit})",
                flush=True,
            )
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    return int(any(row.exit for row in rows))


if __name__ == "__main__":
    sys.exit(main())
