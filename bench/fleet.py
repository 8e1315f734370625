"""A generated fleet for `localagent batch`: how long it takes, and whether killing it changes what it reports.

    python bench/fleet.py --repositories 20 --kills 5        # a small fleet, twice: undisturbed, and killed five times
    python bench/fleet.py --kills 20 --jobs 4                # 200: 30 broken, 10 hostile, 5 huge, forks, mirrors
    python bench/fleet.py --repositories 40 --make DIR       # only write the fleet
    python bench/fleet.py --repositories 40 --cluster        # Dask with two workers beside two bare processes

With `--cluster` (needs the extra) the same fleet is worked off by both in turn, twice; the bar is 0.85 of the speed. No
repository is hostile there unless asked: what hangs until its budget is spent takes as long in both and hides the rest.
Ends with 1 where the two reports differ, a repository was changed, or a process or a file was left. Seeded.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
GIT = {
    "PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}  # fmt: skip

Files = dict[str, str | bytes]

# (source, tests): each with one small mistake that two tests show and one does not
BROKEN: tuple[tuple[str, str], ...] = (
    (
        "def add(a, b):\n    return a - b\n",
        "from work import add\n\n\ndef test_a():\n    assert add(2, 3) == 5\n\n\n"
        "def test_b():\n    assert add(7, 4) == 11\n\n\ndef test_c():\n    assert add(4, 0) == 4\n",
    ),
    (
        "def last(items):\n    return items[len(items)]\n",
        "from work import last\n\n\ndef test_a():\n    assert last([1, 2]) == 2\n\n\n"
        "def test_b():\n    assert last('xyz') == 'z'\n\n\ndef test_c():\n    assert callable(last)\n",
    ),
    (
        "def grown(x):\n    if x > 18:\n        return True\n    return False\n",
        "from work import grown\n\n\ndef test_a():\n    assert grown(18) is True\n\n\n"
        "def test_b():\n    assert grown(17) is False\n\n\ndef test_c():\n    assert grown(40) is True\n",
    ),
    (
        "def join(parts):\n    out = ''\n    for part in parts:\n        out = part\n    return out\n",
        "from work import join\n\n\ndef test_a():\n    assert join(['a', 'b']) == 'ab'\n\n\n"
        "def test_b():\n    assert join('xyz') == 'xyz'\n\n\ndef test_c():\n    assert join([]) == ''\n",
    ),
)
FINE = (
    "def double(x):\n    return 2 * x\n",
    "from work import double\n\n\ndef test_a():\n    assert double(2) == 4\n",
)
MISTAKES = "\n\ndef absent(name, names):\n    return not name in names\n"
HOSTILE: tuple[tuple[str, Files], ...] = (
    ("hangs", {"conftest.py": "import time\n\nwhile True:\n    time.sleep(1)\n"}),
    ("spins", {"test_x.py": "def test_x():\n    while True:\n        pass\n"}),
    ("forks", {"conftest.py": "import os\n\nwhile 1:\n    try: os.fork()\n    except OSError: pass\n"}),
    ("eats", {"test_x.py": "def test_x():\n    x = []\n    while True:\n        x.append(bytearray(1 << 24))\n"}),
    ("floods", {"test_x.py": "import os\n\n\ndef test_x():\n    while True:\n        os.write(2, b'x' * 65536)\n"}),
    ("kills", {"conftest.py": "import os\nimport signal\n\nos.kill(-1, signal.SIGKILL)\n"}),
    (
        "names",
        {
            "<script>alert(1)</script>.py": "x = (\n",
            "\x1b[31mred\u202e.py": "y = 1\n",
            "test_x.py": "def test_x():\n    assert '<script>alert(2)</script>' == '\\x1b]0;x\\x07'\n",
        },
    ),
    ("nested", {"deep.py": "x = " + "(" * 50_000 + ")" * 50_000 + "\n", "long.py": "y = " + "-" * 90_000 + "1\n"}),
    ("forges", {"conftest.py": "import os\n\nprint('5 passed')\nos._exit(0)\n", "test_x.py": "def test_x(): assert 0"}),
    ("links", {"test_x.py": "def test_x():\n    open('/etc/localagent-was-here', 'w')\n"}),
)  # fmt: skip


def build(root: Path, count: int, seed: int, hostile: int | None = None) -> Path:
    """Write a fleet of so many repositories below `root`; answers its FLEET.toml. The same for the same seed."""
    chance = random.Random(seed)
    share = count / 200
    broken, huge = max(2, round(30 * share)), max(1, round(5 * share))
    hostile = max(2, round(10 * share)) if hostile is None else hostile
    text = [
        'schema = "localagent/fleet/1"\nname = "generated"\n[each]\nwork = ["failing-tests", "codemods"]',
        "model = false\nmax_candidates = 40\nmax_seconds = 240\n[polite]\ndisk = 'normal'",
    ]
    makers: list[tuple[str, Callable[[Path], str]]] = []
    makers += [("broken", lambda p: _broken(p, chance)) for _ in range(broken)]
    first = chance.randrange(len(HOSTILE))
    picked = [HOSTILE[(first + n) % len(HOSTILE)] for n in range(hostile)]
    makers += [(f"hostile-{name}", lambda p, f=files: _hostile(p, f)) for name, files in picked]
    makers += [("huge", lambda p: _huge(p, chance)) for _ in range(huge)]
    makers += [("fine", lambda p: _fine(p, chance)) for _ in range(count - len(makers))]
    chance.shuffle(makers)
    for n, (kind, make) in enumerate(makers):
        name = f"{n:03}-{kind}"
        folder = root / name
        folder.mkdir(parents=True)
        extra = make(folder)
        text.append(f'[[repository]]\nname = "{name}"\n{extra or f"path = {name!r}"}')
    fleet = root / "fleet.toml"
    fleet.write_text("\n".join(text) + "\n")
    return fleet


def _write(folder: Path, files: Files) -> None:
    for name, data in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data if isinstance(data, bytes) else data.encode())


def _broken(folder: Path, chance: random.Random) -> str:
    source, tests = chance.choice(BROKEN)
    mistakes = MISTAKES if chance.random() < 0.5 else ""
    _write(folder, {"work.py": source + mistakes, "test_work.py": tests})
    return _mirrored(folder) if chance.random() < 0.3 else ""


def _fine(folder: Path, chance: random.Random) -> str:
    source, tests = FINE
    own = (
        "" if chance.random() < 0.2 else f"\n\nNUMBER = {chance.randrange(10**9)}\n"
    )  # a fifth are forks of each other
    mistakes = MISTAKES if chance.random() < 0.2 else ""
    _write(folder, {"work.py": source + own + mistakes, "test_work.py": tests})
    return _mirrored(folder) if chance.random() < 0.2 else ""


def _hostile(folder: Path, files: Files) -> str:
    _write(folder, files)
    (folder / "fifo.py").parent.mkdir(exist_ok=True)
    os.mkfifo(folder / "fifo.py")
    (folder / "passwd.py").symlink_to("/etc/passwd")
    seconds = 12 if "hangs" in folder.name else 150  # what ends by itself must end alike on a busy machine
    return f"path = {folder.name!r}\nmax_seconds = {seconds}"


def _huge(folder: Path, chance: random.Random) -> str:
    source, tests = FINE
    _write(folder, {"work.py": source, "test_work.py": tests, "data.bin": chance.randbytes(8 << 20)})
    for n in range(1500):
        body = "".join(f"def f{m}(a, b={m}):\n    return a * {chance.randrange(99)} + b\n\n\n" for m in range(20))
        _write(folder, {f"package{n % 30}/module{n}.py": body})
    return f"path = {folder.name!r}"


def _mirrored(folder: Path) -> str:
    """The same as a bare mirror, the working tree gone."""

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=folder, env=GIT, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "-m", "m")
    bare = folder.with_suffix(".git")
    git("clone", "-q", "--mirror", ".", str(bare))
    shutil.rmtree(folder)
    return f'mirror = "{bare.name}"\nrevision = "main"'


class Home:
    """State and scratch folders of their own."""

    def __init__(self, root: Path, jobs: int) -> None:
        self.root, self.jobs = root, jobs
        for name in ("state", "tmp"):
            (root / name).mkdir(parents=True)
        root.chmod(0o755)

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """A batch run, in a session of its own."""
        env = {
            "PATH": os.environ["PATH"], "HOME": str(self.root), "LANG": "C.UTF-8", "PYTHONPATH": str(CHECKOUT),
            "XDG_STATE_HOME": str(self.root / "state"), "TMPDIR": str(self.root / "tmp"),
        }  # fmt: skip
        argv = [sys.executable, "-m", "localagent", "batch", *arguments]
        return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def report(self) -> dict[str, object]:
        """What the newest run reports."""
        with self.start("report", "--json") as process:
            out, err = process.communicate()
        if process.returncode not in (0, 1):
            raise SystemExit(err.decode())
        found: dict[str, object] = json.loads(out)
        return found

    def workers(self) -> list[int]:
        """Workers and launchers of ours that live."""
        needle = str(self.root).encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                command, environ = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"batch_worker" in command and (needle in command or needle in environ):
                found.append(int(entry.name))
        return found


def undisturbed(home: Home, fleet: Path) -> float:
    """Seconds of a run that nobody kills."""
    began = time.monotonic()
    with home.start("run", str(fleet), "--jobs", str(home.jobs)) as process:
        told(home, process)
    return time.monotonic() - began


def told(home: Home, process: "subprocess.Popen[bytes]") -> None:
    """Wait for a run, and say every half minute how far it is."""
    began = time.monotonic()
    while True:
        try:
            _, err = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            answers = len(list((home.root / "state").glob("localagent/batch/runs/*/answers/*[0-9].json")))
            print(f"  {home.root.name}: {answers} answers after {time.monotonic() - began:.0f} s", flush=True)
            continue
        if process.returncode not in (0, 1):
            raise SystemExit(err.decode())
        return


def processor(session: int) -> float:
    """Processor seconds that the processes of a session have used, with children that they waited for."""
    ticks = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15])) if int(fields[3]) == session else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def children() -> float:
    """Processor seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def killed(home: Home, fleet: Path, kills: int, seconds: float, chance: random.Random) -> tuple[int, int]:
    """A run that is killed at random moments and resumed: (kills of the run, kills of a worker)."""
    of_run = of_worker = 0
    process = home.start("run", str(fleet), "--jobs", str(home.jobs))
    while True:
        moment = chance.uniform(0.05, 1.2 * seconds / (kills + 1))
        try:
            process.communicate(timeout=moment if of_run + of_worker < kills else None)
        except subprocess.TimeoutExpired:
            workers = home.workers()
            if workers and chance.random() < 0.3:
                _kill(chance.choice(workers))
                of_worker += 1
                continue
            _kill(process.pid)
            process.communicate()
            of_run += 1
            process = home.start("run", "--resume", "--jobs", str(home.jobs))
            if not list((home.root / "state").glob("localagent/batch/runs/*/run.json")):  # killed before it had begun
                process.communicate()
                process = home.start("run", str(fleet), "--jobs", str(home.jobs))
            continue
        if process.returncode not in (0, 1):
            raise SystemExit(f"the run ended with {process.returncode}")
        return of_run, of_worker


class Dask:
    """A scheduler and two workers on loopback, over TLS, each worker with a home of its own."""

    def __init__(self, root: Path) -> None:
        self.certificates, self._logs, self._processes = root / "certs", root / "logs", list[subprocess.Popen[bytes]]()
        self._logs.mkdir(parents=True)
        argv = [sys.executable, "-m", "localagent", "batch", "certs", str(self.certificates), "--host", "127.0.0.1"]
        subprocess.run(argv, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, check=True, capture_output=True)
        with contextlib.closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tls://127.0.0.1:{free.getsockname()[1]}"
        self._start(
            "scheduler",
            "--host",
            self.address,
            "--no-dashboard",
            "--dashboard-address",
            "127.0.0.1:0",
            "--no-show",
            home=root / "scheduler",
        )
        for n in range(2):
            options = (
                "--nworkers",
                "1",
                "--nthreads",
                "1",
                "--no-dashboard",
                "--dashboard-address",
                "127.0.0.1:0",
                "--local-directory",
                str(root / f"w{n}"),
            )
            self._start("worker", self.address, *options, home=root / f"worker{n}")
        for n in range(2):
            while b"Registered to" not in (self._logs / f"worker{n}.log").read_bytes():
                time.sleep(0.2)
        time.sleep(1)

    def _start(self, role: str, *arguments: str, home: Path) -> None:
        (home / "tmp").mkdir(parents=True)
        home.chmod(0o755)
        tls = ("--tls-ca-file", self.certificates / "ca.pem", "--tls-cert", self.certificates / f"{role}.pem")
        argv = [sys.executable, "-m", "distributed.cli.dask_" + role, *arguments, *map(str, tls)]
        env = {
            "PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "PYTHONPATH": str(CHECKOUT),
            "XDG_STATE_HOME": str(home / "state"), "TMPDIR": str(home / "tmp"),
            "DASK_CONFIG": str(self.certificates / "dask.yaml"),
        }  # fmt: skip
        argv += ["--tls-key", str(self.certificates / f"{role}.key")]
        with (self._logs / f"{home.name}.log").open("wb") as log:
            self._processes.append(subprocess.Popen(argv, env=env, stdout=log, stderr=log, start_new_session=True))

    def used(self) -> list[float]:
        """Processor seconds of the scheduler and of each worker with what it started."""
        return [processor(process.pid) for process in self._processes]

    def end(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def compared(root: Path, args: argparse.Namespace) -> int:
    """The same fleet by two processes and by two workers, in turn, each with an empty state; reports must agree."""
    fleet = build(root / "fleet", args.repositories, args.seed, args.hostile or 0)
    dask = Dask(root / "dask")
    far = fleet.with_name("far.toml")
    where = f'[cluster]\nscheduler = "{dask.address}"\ncertificates = "{dask.certificates}"\n'
    taken: dict[str, list[float]] = {"processes": [], "dask": []}
    spent: dict[str, list[float]] = {"processes": [], "dask": []}
    digests = set()
    try:
        for turn in range(2):
            # another seed each turn: a worker that kept its answers would be beside the point
            text = fleet.read_text().replace("[each]", f"[each]\nseed = {turn}")
            far.write_text(text + where)
            near = fleet.with_name("near.toml")
            near.write_text(text)
            for kind, path in (("processes", near), ("dask", far)):
                home = Home(root / f"{kind}{turn}", 2)
                before, far_before = children(), dask.used()
                taken[kind].append(undisturbed(home, path))
                used = [children() - before, *(b - a for a, b in zip(far_before, dask.used(), strict=True))]
                spent[kind].append(sum(used))
                report = home.report()
                names = "run, scheduler, workers" if kind == "dask" else "run"
                told_used = " ".join(f"{seconds:.1f}" for seconds in (used if kind == "dask" else used[:1]))
                print(f"{kind}: {taken[kind][-1]:.1f} s; processor seconds ({names}): {told_used}", flush=True)
                print(f"  {json.dumps(report['summary'])}", flush=True)
                digests.add((turn, str(report["digest"])))
    finally:
        dask.end()
    ratio = sum(taken["processes"]) / sum(taken["dask"])
    of_processor = sum(spent["processes"]) / sum(spent["dask"])
    same = len(digests) == 2
    print(f"of the processor's seconds: {of_processor:.2f} (what other work on the machine alters least)")
    print(
        f"load {os.getloadavg()[0]:.1f}; Dask with two workers has {ratio:.2f} of the speed of two processes (bar 0.85)"
    )
    print("the same reports" if same else "FAULT: the reports differ")
    return 0 if same else 1


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def digest_of_tree(root: Path) -> str:
    """Names, kinds, modes, times and bytes of everything below."""
    hashed = hashlib.sha256()
    for base, folders, files in os.walk(root):
        folders.sort()
        for name in sorted((*folders, *files)):
            path = Path(base, name)
            seen = path.lstat()
            hashed.update(
                f"{path}\0{seen.st_mode}\0{seen.st_size}\0{seen.st_mtime_ns}\0".encode("utf-8", "surrogateescape")
            )
            if path.is_file() and not path.is_symlink():
                hashed.update(path.read_bytes())
    return hashed.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repositories", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hostile", type=int, help="how many are hostile (5 %%, of ten kinds; none with --cluster)")
    parser.add_argument("--make", type=Path, help="write the fleet there and end")
    parser.add_argument("--cluster", action="store_true", help="Dask with two workers beside two bare processes")
    args = parser.parse_args()
    if args.make:
        print(build(args.make, args.repositories, args.seed, args.hostile))
        return 0
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))  # what was started ends with us
    root = Path(tempfile.mkdtemp(prefix="la-fleet-"))
    root.chmod(0o755)
    try:
        return compared(root, args) if args.cluster else measure(root, args)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def measure(root: Path, args: argparse.Namespace) -> int:
    fleet = build(root / "fleet", args.repositories, args.seed, args.hostile)
    before = digest_of_tree(fleet.parent)
    quiet, loud = Home(root / "quiet", args.jobs), Home(root / "loud", args.jobs)
    seconds = undisturbed(quiet, fleet)
    first = quiet.report()
    again = undisturbed(quiet, fleet)
    kept = quiet.report()["summary"]
    print(f"load {os.getloadavg()[0]:.1f}, {args.jobs} at once, seed {args.seed}")
    print(f"undisturbed: {seconds:.0f} s; {json.dumps(first['summary'])}")
    print(f"a second night: {again:.0f} s; {kept['kept_from_before']} of {args.repositories} answers kept")  # type: ignore[index]
    faults = []
    if args.kills:
        of_run, of_worker = killed(loud, fleet, args.kills, seconds, random.Random(args.seed))
        second = loud.report()
        print(f"killed: {of_run} times the run, {of_worker} times a worker")
        faults += _differences(first, second)
    if digest_of_tree(fleet.parent) != before:
        faults.append("a repository was changed")
    time.sleep(1)
    for home in (quiet, loud):
        faults += [f"a process is left: {pid}" for pid in home.workers()]
        faults += [f"a file is left: {path}" for path in (home.root / "tmp").iterdir()]
    for fault in faults:
        print(f"FAULT: {fault}")
    print("the same report" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


def _differences(first: dict[str, object], second: dict[str, object]) -> list[str]:
    if first["digest"] == second["digest"]:
        return []
    rows = [{r["name"]: r for r in report["repositories"]} for report in (first, second)]  # type: ignore[attr-defined]
    out = ["the digests differ"]
    for name, row in rows[0].items():
        for key in ("state", "reason", "tree", "commit"):
            if row[key] != rows[1][name][key]:
                out.append(f"{name}: {key}: {row[key]!r}, then {rows[1][name][key]!r}")
        for one, other in zip(row["steps"], rows[1][name]["steps"], strict=False):
            for key in one:
                if one[key] != other[key] and key not in ("evidence", "task", "seconds", "kept_passing", "failing"):
                    out.append(f"{name}: {one['work']}: {key}: {one[key]!r:.300}, then {other[key]!r:.300}")
    return out


if __name__ == "__main__":
    sys.exit(main())
