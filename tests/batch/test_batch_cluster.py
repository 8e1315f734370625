"""What a cluster needs and Dask does not do: certificates, trees and tasks as bytes, and a worker's own judgement."""

import json
import os
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.batch_builder import MISTAKE, Batch
from support.fix_builder import Home, home

from localagent.app import Settings
from localagent.batch.cache_key import basis_of
from localagent.batch.certificates import CertificateRole, faults_of, make_certificates
from localagent.batch.cluster_task import Request, answer_task, parse_request, received, request_of
from localagent.batch.fleet import FleetMember
from localagent.batch.parse_fleet import parse_fleet
from localagent.batch.snapshot_archive import InvalidArchive, pack, unpack
from localagent.batch.task_result import RepositoryResult, RepositoryState, parse_answer
from localagent.cli.batch_worker import ways
from localagent.domain.policy import JailLevel
from localagent.errors import UsageFault
from localagent.jail.api import open_jail
from localagent.repo.snapshot import take_snapshot
from localagent.text.strict_json import dump, load

HEAD = 'schema = "localagent/fleet/1"\nname = "night"\n'
REPOSITORY = '[[repository]]\npath = "."\nname = "one"\n'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster") / "certs"
    make_certificates(folder, ["far.example", "10.0.0.7"], 30)
    return folder


def test_each_role_has_a_certificate_and_a_key_of_its_own(made: Path) -> None:
    keys = sorted(made.glob("*.key"))
    assert [path.stem for path in keys] == ["ca", "client", "scheduler", "worker"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in keys} == {0o600}
    assert len({path.read_bytes() for path in keys}) == 4
    assert [faults_of(made, role) for role in CertificateRole] == [[], [], []]


def test_nothing_is_written_over_and_all_faults_are_told(made: Path) -> None:
    with pytest.raises(UsageFault) as caught:
        make_certificates(made, ["a b", "-x"], 0)
    assert [f.split(":")[0] for f in caught.value.faults][:3] == ["--host", "--host", "--days"]
    assert "is not empty" in caught.value.faults[3]


def test_certificates_that_cannot_serve_are_told(made: Path, tmp_path: Path) -> None:
    late = faults_of(made, CertificateRole.CLIENT, datetime.now(UTC) + timedelta(days=31))
    assert "ran out on" in late[0]
    other = tmp_path / "other"
    make_certificates(other, [], 1)
    (other / "ca.pem").write_bytes((made / "ca.pem").read_bytes())
    assert "is no certificate of" in faults_of(other, CertificateRole.WORKER)[0]
    (other / "client.key").chmod(0o644)
    assert any("may be read by others" in fault for fault in faults_of(other, CertificateRole.CLIENT))
    (other / "worker.key").unlink()
    assert faults_of(other, CertificateRole.WORKER) == [f"{other}/worker.key is not a file"]


def test_a_fleet_goes_to_a_cluster_by_tls_alone(made: Path) -> None:
    def faults(table: str) -> list[str]:
        with pytest.raises(UsageFault) as caught:
            parse_fleet((HEAD + table + REPOSITORY).encode(), "f", made, ())
        return [fault.split(": ", 1)[1] for fault in caught.value.faults]

    (plain,) = faults('[cluster]\nscheduler = "tcp://h:1"\ncertificates = "."\n')
    assert "is no tls://HOST:PORT: nothing goes to a cluster without TLS" in plain
    assert any("is not a file" in f for f in faults('[cluster]\nscheduler = "tls://h:1"\ncertificates = "gone"\n'))
    good = '[cluster]\nscheduler = "tls://h:1"\ncertificates = "."\nlevel = "L2"\n'
    cluster = parse_fleet((HEAD + good + REPOSITORY).encode(), "f", made, ()).cluster
    assert cluster is not None
    assert (cluster.scheduler, cluster.level) == ("tls://h:1", "L2")


def tree(folder: Path) -> Path:
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "a.py").write_text("x = 1\n")
    (folder / "same.py").write_text("x = 1\n")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / os.fsdecode(b"\xff.py")).write_text("y = 2\n")
    (folder / "link").symlink_to("same.py")
    return folder


def test_a_tree_comes_out_as_it_went_in(tmp_path: Path) -> None:
    snapshot = take_snapshot(tree(tmp_path / "t"), tmp_path / "s")
    data = pack(snapshot)
    assert unpack(data, tmp_path / "out") == snapshot.digest
    assert take_snapshot(tmp_path / "out", tmp_path / "s2").digest == snapshot.digest
    assert data.count(b"x = 1\n") == 1


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", ""])
def test_no_name_leads_out(name: str, tmp_path: Path) -> None:
    head, _, rest = pack(take_snapshot(tree(tmp_path / "t"), tmp_path / "s")).partition(b"\n")
    found = load(head)
    found["entries"][-1]["path"] = name
    with pytest.raises(InvalidArchive):
        unpack(dump(found) + rest, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) in (["out", "s", "t"], ["s", "t"])


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "t" / "d").mkdir(parents=True)
    (tmp_path / "t" / "d" / "f.py").write_text("mine\n")
    (tmp_path / "t" / "l").symlink_to("d")
    head, _, rest = pack(take_snapshot(tmp_path / "t", tmp_path / "s")).partition(b"\n")
    found = load(head)
    for entry in found["entries"]:
        if entry["kind"] == "regular":
            entry["path"] = "l/f.py"
    with pytest.raises(InvalidArchive):
        unpack(dump(found) + rest, tmp_path / "out")
    assert not (tmp_path / "f.py").exists()


@pytest.mark.long
@settings(max_examples=20)
@given(st.data())
def test_a_changed_parcel_is_no_parcel_or_another_tree(data: st.DataObject) -> None:
    """Every byte counts: what is changed is refused, or has another digest than it says."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        snapshot = take_snapshot(tree(root / "t"), root / "s")
        good = pack(snapshot)
        at = data.draw(st.integers(0, len(good) - 1))
        bad = good[:at] + bytes([good[at] ^ data.draw(st.integers(1, 255))]) + good[at + 1 :]
        try:
            named = unpack(bad, root / "out")
        except (InvalidArchive, ValueError):
            return
        found = take_snapshot(root / "out", root / "s2").digest
        assert not named == found == snapshot.digest or bad.partition(b"\n")[2] == good.partition(b"\n")[2]


def asked(h: Home, monkeypatch: pytest.MonkeyPatch) -> tuple[Request, bytes, Settings, FleetMember]:
    for name, value in h.environment().items():
        monkeypatch.setenv(name, value)
    at = Settings.from_environ()
    folder = Batch(h).add("one", {"work.py": MISTAKE, "x.py": 'NAME = "\x7f"\n'})
    text = HEAD + '[polite]\nnice = 3\ndisk = "normal"\n[each]\nwork = ["codemods"]\n'
    fleet = parse_fleet(
        (text + f'[[repository]]\npath = "{folder}"\ntests = ["a\\u007fb"]\n').encode(), "f", h.root, ()
    )
    member = fleet.members[0]
    snapshot = take_snapshot(folder, h.root / "seen")
    tool = basis_of((member,), at).tool
    return request_of(fleet, 0, snapshot.digest, 100.0, tool, at), pack(snapshot), at, member


def judged(request: Request, parcel: bytes, at: Settings) -> RepositoryResult:
    return parse_answer(load(answer_task(request.json(), parcel, ways(), at)))


@pytest.mark.long
def test_a_worker_judges_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another tool, policy or tree is refused, and a level that no jail here has; nothing has run then."""
    with home({}) as h:
        request, parcel, at, member = asked(h, monkeypatch)
        assert parse_request(request.json()) == request
        assert parse_fleet(request.fleet.encode(), "f", h.root, (), look=False).nice == 3, "as polite as the fleet says"
        words = request.fleet.replace('["codemods"]', '["instruction"]') + 'instruction = "x"\n'
        changes: tuple[tuple[dict[str, Any], RepositoryState, str], ...] = (
            ({"tool": "other"}, RepositoryState.CANNOT_ENFORCE, "a worker's localagent is not the run's"),
            (
                {"policy_digest": "other"},
                RepositoryState.CANNOT_ENFORCE,
                "the policy that holds on a worker is not the run's",
            ),
            ({"policy": "schema = 1"}, RepositoryState.FAULT, "policy.toml"),
            ({"tree": "sha256:" + "0" * 64}, RepositoryState.FAULT, "the tree that came is"),
            ({"fleet": request.fleet.replace("codemods", "dance")}, RepositoryState.FAULT, "is no work"),
            ({"fleet": request.fleet + "[[repository]]\n"}, RepositoryState.FAULT, "path"),
            (
                {"fleet": words + 'chat_model = "unix:/run/llm.sock"\n'},
                RepositoryState.CANNOT_ENFORCE,
                "names a socket of this machine as its model",
            ),
        )
        for change, state, why in changes:
            answer = judged(replace(request, **change), parcel, at)
            assert (answer.state, answer.name) == (state, "one"), change
            assert why in answer.reason, (change, answer.reason)
        assert "L9" in parse_answer(load(answer_task(replace(request, level="L9").json(), parcel, ways(), at))).reason
        if above := [level.value for level in JailLevel if level.value > open_jail().level]:
            answer = judged(replace(request, level=above[0]), parcel, at)
            assert (answer.state, above[0] in answer.reason) == (RepositoryState.CANNOT_ENFORCE, True)
        assert not list((h.root / "state").rglob("run.json"))
        answer = judged(replace(request, fleet=request.fleet.replace('tests = ["a\\u007fb"]\n', "")), parcel, at)
        assert (answer.state, answer.tree) == (RepositoryState.IMPROVED, request.tree)
        assert received(dump(answer.json()), member, 7, request.tree).number == 7
        for other in (replace(answer, name="two"), replace(answer, tree="sha256:" + "1" * 64)):
            with pytest.raises(ValueError, match="another repository"):
                received(dump(other.json()), member, 7, request.tree)
        assert list(h.scratch.iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"schema":"localagent/batch-task/1"}', b"\x80\x04K\x01."])
def test_what_is_no_task_is_answered(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = parse_answer(json.loads(answer_task(data, b"", ways(), Settings.from_environ())))
    assert (answer.state, answer.name) == (RepositoryState.FAULT, "")
    assert answer.reason.startswith("a task was refused: ")


def test_the_verb_makes_them(tmp_path: Path) -> None:
    with home({}) as h:
        ran = h.run("batch", "certs", str(tmp_path / "c"), "--host", "far.example")
        assert ran.code == 0
        assert ran.out.splitlines()[0] == str(tmp_path / "c" / "ca.key")
        assert "can run anything on every machine" in ran.err
        assert h.run("batch", "certs", str(tmp_path / "c")).code == 2
