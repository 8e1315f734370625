"""A Dask cluster for tests: a scheduler and workers on loopback, processes of their own, over TLS."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from localagent.batch.certificates import make_certificates
from support.fix_builder import CHECKOUT

HTTP = ("--dashboard-address", "127.0.0.1:0")  # there even without a dashboard


@dataclass
class Cluster:
    """Where its scheduler listens, its certificates, and its processes, the scheduler first."""

    root: Path
    address: str
    processes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def certificates(self) -> Path:
        return self.root / "certs"

    @property
    def table(self) -> str:
        """What a fleet says of it."""
        return f'[cluster]\nscheduler = "{self.address}"\ncertificates = "{self.certificates}"\n'

    def start(self, role: str, *arguments: str) -> None:
        home = self.root / f"{role}{len(self.processes)}"
        (home / "tmp").mkdir(parents=True)
        home.chmod(0o755)
        names = {"--tls-ca-file": "ca.pem", "--tls-cert": f"{role}.pem", "--tls-key": f"{role}.key"}
        tls = [text for option, name in names.items() for text in (option, str(self.certificates / name))]
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "PYTHONPATH": str(CHECKOUT)}
        env |= {"DASK_CONFIG": str(self.certificates / "dask.yaml")}
        env |= self.settings
        env |= {"XDG_STATE_HOME": str(home / "state"), "TMPDIR": str(home / "tmp")}
        argv = [sys.executable, "-m", f"distributed.cli.dask_{role}", "--no-dashboard", *HTTP, *arguments, *tls]
        with (self.root / f"{home.name}.log").open("wb") as log:
            self.processes.append(subprocess.Popen(argv, env=env, stdout=log, stderr=log, start_new_session=True))

    def log(self) -> str:
        """What its processes wrote."""
        return "".join(path.read_text() for path in sorted(self.root.glob("*.log")))

    def start_worker(self) -> None:
        options = ("--nworkers", "1", "--nthreads", "1", "--local-directory", str(self.root / "spill"))
        said = self.log().count("Registered to")
        self.start("worker", self.address, *options)
        until = time.monotonic() + 60
        while self.log().count("Registered to") == said:
            assert time.monotonic() < until, self.log()
            time.sleep(0.1)


@contextlib.contextmanager
def cluster(root: Path, workers: int, **settings: str) -> Iterator[Cluster]:
    """A cluster with so many workers of one thread each; gone at the end, with all it started.

    `settings` are Dask's, over those of ours (`SCHEDULER__WORKER_TTL`).
    """
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        made = Cluster(root=root, address=f"tls://127.0.0.1:{free.getsockname()[1]}")
    made.settings = {f"DASK_DISTRIBUTED__{name}": value for name, value in settings.items()}
    make_certificates(made.certificates, ["127.0.0.1"], 2)
    try:
        made.start("scheduler", "--host", made.address, "--no-show")
        for _ in range(workers):
            made.start_worker()
        yield made
    finally:
        for process in reversed(made.processes):
            process.terminate()
        for process in made.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
