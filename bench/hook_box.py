"""Whether `localagent hook suggest --deadline` ends in its box on a busy machine.

`python bench/hook_box.py [--runs 10] [--deadline 3] [--hogs 0]`. Three staged changes in turn: a failing test whose
repair is searched for, a test that sleeps, and a test that spins in processes of its own. Wall seconds of the whole
program, from before it is started until its output is closed. `--hogs N` starts so many programs that do nothing but
compute, to make the machine busy. Ends with 1 where a run took longer than its box; load is printed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADDER = "def add(a, b):\n    return a - b\n"
SPINS = "import os\nimport adder\n\n\ndef test_it():\n    os.fork()\n    while True:\n        pass\n"
CHANGES = {
    "fails": "from adder import add\n\n\ndef test_it():\n    assert add(2, 3) == 'no edit makes this'\n",
    "sleeps": "import time\nimport adder\n\n\ndef test_it():\n    time.sleep(1000)\n",
    "spins": SPINS,
}


def repository(folder: Path, test: str) -> None:
    (folder / "adder.py").write_text(ADDER)
    (folder / "test_adder.py").write_text(test)
    for argv in (["git", "init", "-q"], ["git", "add", "-A"]):
        subprocess.run(argv, cwd=folder, check=True, capture_output=True)


def seconds_of(folder: Path, deadline: float, home: Path) -> tuple[float, str]:
    """Wall seconds, and the last thing that was said."""
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(home), "XDG_STATE_HOME": str(home / "state"),
        "TMPDIR": str(home / "tmp"), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8",
    }  # fmt: skip
    argv = [sys.executable, "-m", "localagent", "hook", "suggest", "--deadline", f"{deadline:g}s"]
    began = time.monotonic()
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    spent = time.monotonic() - began
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return spent, (done.stderr.strip().splitlines() or ["nothing"])[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--deadline", type=float, default=3.0)
    parser.add_argument("--hogs", type=int, default=0)
    args = parser.parse_args()
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.hogs)]
    late = 0
    try:
        with tempfile.TemporaryDirectory(prefix="la-box-") as name:
            home = Path(name)
            home.chmod(0o755)
            (home / "tmp").mkdir(mode=0o755)
            for kind, test in CHANGES.items():
                folder = home / kind
                folder.mkdir()
                repository(folder, test)
                took = []
                for _ in range(args.runs):
                    seconds, said = seconds_of(folder, args.deadline, home)
                    took.append(seconds)
                over = sum(seconds > args.deadline for seconds in took)
                late += over
                times = f"{min(took):.2f} to {max(took):.2f} s, {over} of {args.runs} late"
                print(f"{kind}: {times}; load {os.getloadavg()[0]:.1f}; {said}", flush=True)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    print(f"{late} of {args.runs * len(CHANGES)} runs took longer than their box of {args.deadline:g} s")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
