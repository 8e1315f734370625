"""A fleet on a real Dask cluster on loopback: the same answers, over TLS alone, also when a worker dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_builder import MISTAKE, Batch, states
from cluster_builder import Cluster, cluster
from fix_builder import ADDER, home, tree_of

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


def test_a_worker_that_dies_costs_no_answer(tmp_path: Path) -> None:
    hangs = {"conftest.py": "import time\n\ntime.sleep(6)\n", "test_x.py": "def test_x():\n    assert True\n"}
    with home({}) as h, cluster(tmp_path, 1) as dask:
        batch = Batch(h)
        batch.add("one", hangs)
        fleet = batch.write_all(each=EACH.replace('"codemods"', '"failing-tests"'))
        fleet.write_text(fleet.read_text() + dask.table)
        with h.start("batch", "run", str(fleet)) as process:
            state = dask.root / "worker1" / "state" / "localagent" / "batch" / "runs"
            until = time.monotonic() + 60
            while not list(state.glob("*/run.json")):
                assert time.monotonic() < until, dask.log()
                time.sleep(0.1)
            os.killpg(dask.processes[1].pid, signal.SIGKILL)
            dask.start_worker()
            process.communicate(timeout=150)
        assert states(batch.report()) == {"one": "clean"}
