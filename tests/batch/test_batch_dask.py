"""A fleet on a real Dask cluster on loopback: the same answers, over TLS alone, also when a worker dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.batch_builder import MISTAKE, Batch, states
from support.cluster_builder import Cluster, cluster
from support.fix_builder import ADDER, home, tree_of

from localagent.app import Settings
from localagent.batch import cluster as cluster_module
from localagent.batch.run import BatchRun, begin
from localagent.batch.task_result import RepositoryState
from localagent.cli.batch_cluster import work_one
from localagent.cli.batch_worker import ways

pytest.importorskip("distributed", reason="needs the extra `cluster`", exc_type=ImportError)
pytestmark = pytest.mark.slow

EACH = '[each]\nwork = ["codemods"]\nmodel = false\nmax_candidates = 12\nmax_seconds = 150\n'
QUICK = {"work.py": MISTAKE}


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("dask"), 1) as made:
        yield made


def test_the_answers_are_those_of_one_machine(dask: Cluster) -> None:
    with home({}) as h:
        batch = Batch(h)
        batch.add("one", {**ADDER, "more.py": MISTAKE})
        batch.add("two", QUICK)
        batch.add("fork", QUICK)
        batch.add_mirror("far", {**QUICK, "x.py": "x = 1\n"})
        before = tree_of(batch.folder)
        work = 'work = ["failing-tests", "codemods"]\n'
        text = (
            batch.write_all(each=EACH)
            .read_text()
            .replace(f'path = "{batch.folder}/one"\n', f'path = "{batch.folder}/one"\n{work}')
        )
        fleet = batch.home.root / "cluster.toml"
        fleet.write_text(text + dask.table)
        ran = batch.run(str(fleet))
        assert ran.code == 0, (ran, dask.log())
        far = batch.report()
        assert states(far) == {"one": "fixed", "two": "improved", "fork": "improved", "far": "improved"}
        assert sorted(row["same_as"] != "" for row in far["repositories"]) == [False, False, False, True]
        fleet.write_text(text.replace("[each]", "[each]\nseed = 0"))
        (h.root / "state" / "localagent" / "batch" / "kept").rename(h.root / "away")
        assert batch.run(str(fleet)).code == 0
        assert batch.report()["digest"] == far["digest"]
        assert tree_of(batch.folder) == before
        assert list(h.scratch.iterdir()) == []


def test_another_authority_is_turned_away(dask: Cluster, tmp_path: Path) -> None:
    with home({}) as h:
        batch = Batch(h)
        batch.add("one", QUICK)
        assert h.run("batch", "certs", str(tmp_path / "other")).code == 0
        fleet = batch.write_all(each=EACH)
        fleet.write_text(fleet.read_text() + dask.table.replace(str(dask.certificates), str(tmp_path / "other")))
        ran = batch.run(str(fleet))
        assert ran.code == 4
        assert "no scheduler answers at tls://" in ran.err


def test_nobody_without_a_certificate_is_heard(dask: Cluster) -> None:
    """The scheduler ends a TLS handshake that shows none: nothing is unpickled for strangers."""
    address = dask.address.removeprefix("tls://")
    program = (
        "import socket, ssl, sys; host, port = sys.argv[1].split(':')\n"
        "context = ssl.create_default_context(cafile=sys.argv[2]); context.check_hostname = False\n"
        "s = context.wrap_socket(socket.create_connection((host, int(port)), 10)); s.settimeout(20)\n"
        "print(s.recv(1))"
    )
    argv = [sys.executable, "-c", program, address, str(dask.certificates / "ca.pem")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "certificate required" in done.stderr.lower() or "handshake" in done.stderr.lower(), done.stderr


def listeners(session: int) -> set[tuple[str, int]]:
    """(address in hex, port) of every TCP listener of a session's processes."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) != session:
                continue
            held = {str(link.readlink()) for link in (entry / "fd").iterdir()}
            tables = [(entry / "net" / name).read_text() for name in ("tcp", "tcp6")]
        except OSError:
            continue
        for row in (line.split() for table in tables for line in table.splitlines()):
            if row[3] == "0A" and f"socket:[{row[9]}]" in held:
                address, port = row[1].split(":")
                found.add((address, int(port, 16)))
    return found


def test_nothing_is_told_without_tls(dask: Cluster) -> None:
    """Of the ports that Dask opens those without TLS lie on the loopback, and have nothing to say."""
    heard = {at for process in dask.processes for at in listeners(process.pid)}
    assert len(heard) >= 3, "scheduler, nanny, worker"
    program = (
        "import socket, sys\n"
        "with socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10) as s:\n"
        "    s.settimeout(20); s.sendall(b'GET ' + sys.argv[2].encode() + b' HTTP/1.0\\r\\n\\r\\n')\n"
        "    try: print(s.recv(1000))\n"
        "    except ConnectionResetError: print(b'')\n"
    )
    plain = set()
    for address, port in sorted(heard):
        for target in ("/", "/metrics", "/health", "/info/main/workers.html", "/json/counts.json"):
            argv = [sys.executable, "-c", program, str(port), target]
            told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
            assert "HTTP/1.1 404" in told or "HTTP" not in told, (port, target, told)
            plain |= {address} if "HTTP" in told else set()
    assert plain == {"0100007F"}


HANGS = {"conftest.py": "import time\n\ntime.sleep(6)\n", "test_x.py": "def test_x():\n    assert True\n"}


def began(dask: Cluster) -> None:
    """Until the first worker works on something."""
    state = dask.root / "worker1" / "state" / "localagent" / "batch" / "runs"
    until = time.monotonic() + 120
    while not list(state.glob("*/run.json")):
        assert time.monotonic() < until, dask.log()
        time.sleep(0.1)


def undisturbed(batch: Batch, fleet: Path) -> dict[str, Any]:
    """The report of the same fleet by processes of this machine, whose kept answers go."""
    assert batch.run(str(fleet)).code in (0, 1)
    report = batch.report()
    (batch.home.root / "state" / "localagent" / "batch" / "kept").rename(batch.home.root / "away")
    return report


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_worker_that_is_lost_costs_no_answer(how: signal.Signals, tmp_path: Path) -> None:
    """Its connection breaks, or the scheduler hears nothing of it: another does what it had, also what waited there."""
    with home({}) as h, cluster(tmp_path, 1, SCHEDULER__WORKER_TTL="5s") as dask:
        batch = Batch(h)
        batch.add("one", HANGS)
        batch.add("two", QUICK)
        fleet = batch.write_all(each=EACH.replace('"codemods"', '"failing-tests", "codemods"'))
        alone = undisturbed(batch, fleet)
        fleet.write_text(fleet.read_text() + dask.table)
        with h.start("batch", "run", str(fleet)) as process:
            began(dask)
            os.killpg(dask.processes[1].pid, how)
            dask.start_worker()
            process.communicate(timeout=600)
        report = batch.report()
        assert states(report) == {"one": "clean", "two": "refused"}
        assert report["digest"] == alone["digest"]
        assert list(h.scratch.iterdir()) == []


def test_a_straggler_is_given_up_and_another_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that Dask takes for alive and that never answers: the run itself loses patience."""
    with home({}) as h, cluster(tmp_path, 1) as dask:
        for name, value in h.environment().items():
            monkeypatch.setenv(name, value)
        batch = Batch(h)
        batch.add("one", HANGS)
        fleet = batch.write_all(each=EACH.replace('"codemods"', '"failing-tests"'))
        fleet.write_text(fleet.read_text() + dask.table)
        settings = Settings.from_environ()
        begun = begin(fleet, settings, ways(), anytime=True)
        assert begun.fleet.cluster is not None
        monkeypatch.setattr(cluster_module, "STRAGGLE_SECONDS", 600.0)
        notes: list[str] = []
        with cluster_module.connected(begun.fleet.cluster) as client:
            crew = cluster_module.ClusterCrew(client, work_one, begun.run, begun.fleet, settings, 0)
            crew.start(0, 150.0)
            began(dask)
            os.killpg(dask.processes[1].pid, signal.SIGSTOP)
            dask.start_worker()
            crew._sent[0].deadline = 0.0  # as if its time had come
            (lost,) = crew.wait(60.0)
            assert (lost.number, lost.code, lost.seconds) == (0, 1, 0.0)
            assert begun.run.answer(0) is None
            assert BatchRun(begun, settings, ways(), jobs=1, told=notes.append, crew=crew).work(anytime=True) == ""
        answer = begun.run.answer(0)
        assert answer is not None
        assert (answer.state, notes) == (RepositoryState.CLEAN, [f"one: clean: {answer.reason}"])


def test_one_that_is_given_up_and_answers_all_the_same_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stood still, lost its task to another, and goes on where it stood: the report is that of one machine."""
    with home({}) as h, cluster(tmp_path, 1) as dask:
        for name, value in h.environment().items():
            monkeypatch.setenv(name, value)
        batch = Batch(h)
        batch.add("one", HANGS)
        batch.add("two", QUICK)
        fleet = batch.write_all(each=EACH.replace('"codemods"', '"failing-tests", "codemods"'))
        alone = undisturbed(batch, fleet)
        fleet.write_text(fleet.read_text() + dask.table)
        settings = Settings.from_environ()
        begun = begin(fleet, settings, ways(), anytime=True)
        assert begun.fleet.cluster is not None
        with cluster_module.connected(begun.fleet.cluster) as client:
            crew = cluster_module.ClusterCrew(client, work_one, begun.run, begun.fleet, settings, 0)
            crew.start(0, 150.0)
            began(dask)
            os.killpg(dask.processes[1].pid, signal.SIGSTOP)
            dask.start_worker()
            crew._sent[0].deadline = 0.0  # as if its time had come
            assert [lost.code for lost in crew.wait(60.0)] == [1]
            os.killpg(dask.processes[1].pid, signal.SIGCONT)
            night = BatchRun(begun, settings, ways(), jobs=1, told=lambda _: None, crew=crew)
            assert night.work(anytime=True) == ""
        assert batch.report()["digest"] == alone["digest"]
        assert list(h.scratch.iterdir()) == []


def test_a_scheduler_that_is_killed_ends_the_run_and_the_run_goes_on(tmp_path: Path) -> None:
    with home({}) as h, cluster(tmp_path, 1) as dask:
        batch = Batch(h)
        batch.add("one", HANGS)
        batch.add("two", QUICK)
        fleet = batch.write_all(each=EACH.replace('"codemods"', '"failing-tests", "codemods"'))
        alone = undisturbed(batch, fleet)
        fleet.write_text(fleet.read_text() + dask.table)
        with h.start("batch", "run", str(fleet)) as process:
            began(dask)
            dask.processes[0].kill()
            _, err = process.communicate(timeout=600)
        assert (process.returncode, b"scheduler is gone" in err, b"batch run --resume" in err) == (4, True, True), err
        dask.start("scheduler", "--host", dask.address, "--no-show")
        dask.start_worker()
        assert batch.run("--resume").code in (0, 1)
        assert batch.report()["digest"] == alone["digest"]
