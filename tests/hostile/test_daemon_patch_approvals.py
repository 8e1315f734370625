"""A patch that somebody else must approve: who may, what the word covers, and what nobody can make of it.

Every user here is a process that has really become that user. The daemon's policy names two accounts; the asker is
none of them but holds the role, so that only the rule "not the asker" keeps it from approving.
"""

import io
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import pytest
from support.service_builder import CHECKOUT, Served, become, ordered, served

from localagent.app.settings import Settings
from localagent.cli import apply, approve, gate, tasks
from localagent.cli.main import main
from localagent.daemon.processes.patch_review import judge_patches
from localagent.daemon.store.approval_store import ReviewedPatch
from localagent.daemon.store.leases import finish, take
from localagent.daemon.store.task_store import Result
from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task
from localagent.protocol.http_client import Client, DaemonRefuses
from localagent.record.audit.verify_chain import check_audit
from localagent.record.store import TaskRecord, TaskStore
from localagent.repo.diff.write_diff import unified_diff

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
ASKER, FIRST, SECOND, UNNAMED, NO_ROLE = 47110, 47111, 47112, 47113, 47114
VERBS = (apply, approve, gate, tasks)  # loaded here, since the other users may not read this interpreter's folder
POLICIES = CHECKOUT / "policies"
BEFORE = "def f(x):\n    return x\n"
GRANTS = f"""
[[grant]]
users = ["{ASKER}"]
roles = ["submit", "approve"]
[[grant]]
users = ["{FIRST}", "{SECOND}", "{UNNAMED}"]
roles = ["approve"]
"""


def policy_in(folder: Path, people: str) -> Path:
    """The default policy, but that the asker does not approve, and who does."""
    text = (POLICIES / "default.toml").read_text()
    for old, new in (('people = ["*"]', f"people = {people}"), ('by_asker = "allow"', 'by_asker = "deny"')):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (folder / "policy.toml").write_text(text)
    (folder / "known-packages.txt").write_bytes((POLICIES / "known-packages.txt").read_bytes())
    return folder / "policy.toml"


class Ran(NamedTuple):
    """What a verb answered."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A daemon, a task that the asker ordered and that ended with a patch that needs a person, and the asker's home."""

    daemon: Served
    home: Path
    policy: Path
    task: str
    judged: tuple[ReviewedPatch, ...]

    @property
    def repo(self) -> Path:
        return self.home / "repo"

    def run(self, uid: int, *arguments: str) -> Ran:
        """The command line as that user, at the asker's home: `main` in a process that has become it."""

        def call() -> list[Any]:
            os.environ.update({"HOME": str(self.home), "TMPDIR": str(self.daemon.root / "tmp")})
            for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
                os.environ.pop(name, None)
            out, err = io.StringIO(), io.StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                code = main(list(arguments))
            return [code, out.getvalue(), err.getvalue()]

        return Ran(*become(uid, call))

    def approve(self, uid: int, **changes: str) -> dict[str, Any]:
        """A raw word of that user: the answer, or the refusal with its status and kind."""
        body = {"patch": self.judged[0].patch, "change": self.judged[0].change, "reason": "read it", **changes}

        def say() -> dict[str, Any]:
            client = Client(self.daemon.socket)
            try:
                answer = client.post(f"/v1/tasks/{self.task}/approvals", body)
                return {"status": answer.status, **answer.json()}
            except DaemonRefuses as no:
                return {"status": no.status, "kind": no.kind, "why": str(no), "remedy": no.remedy}

        found: dict[str, Any] = become(uid, say)
        return found

    def gate(self) -> Ran:
        patch = self.home / "p.patch"
        patch.write_bytes(self.judged[0].diff)
        arguments = ("--repo", str(self.repo), "--policy", str(self.policy), "--daemon", str(self.daemon.socket))
        return self.run(ASKER, "gate", str(patch), *arguments)

    def apply(self) -> Ran:
        arguments = ("--choose", "1", "--policy", str(self.policy), "--daemon", str(self.daemon.socket))
        return self.run(ASKER, "apply", self.task, *arguments)

    def words(self) -> int:
        with self.daemon.rows() as rows, rows.reading() as database:
            found = database.execute("SELECT count(*) FROM words WHERE task = ?", (self.task,))
            return int(found.fetchone()[0])


def keep(record: TaskRecord, text: str, number: int) -> None:
    """A proposal for `auth/a.py`."""
    after = BEFORE.replace("return x", text)
    record.save_proposal(
        number,
        Patch(changes=(FileChange(path=RepoPath("auth/a.py"), before=BEFORE.encode(), after=after.encode()),)),
    )


@contextmanager
def started() -> Iterator[Served]:
    """A daemon with its policy, at which everybody may knock."""
    with served(start=False, workers=1, hold=True, more=GRANTS) as daemon:
        daemon.options = ("--policy", str(policy_in(daemon.root, f'["{FIRST}", "{SECOND}"]')))
        daemon.start()
        daemon.socket.chmod(0o666)
        yield daemon


@pytest.fixture(scope="module")
def daemon() -> Iterator[Served]:
    with started() as made:
        yield made


@pytest.fixture
def scene(daemon: Served) -> Scene:
    """A task and a home of its own, and the asker's policy too; the daemon is the others' as well."""
    home = Path(mkdtemp(dir=daemon.root, prefix="asker-"))
    return ended(daemon, home, policy_in(home, f'["{FIRST}", "{SECOND}"]'))


@pytest.fixture
def alone() -> Iterator[Scene]:
    """For who ends the daemon, changes its policy or harms what it keeps."""
    with started() as daemon:
        home = daemon.root / "asker"
        home.mkdir()
        yield ended(daemon, home, daemon.root / "policy.toml")


def ended(daemon: Served, home: Path, policy: Path) -> Scene:
    """What the asker ordered, ended with two patches."""
    state, repo = home / ".local" / "state" / "localagent", home / "repo"
    (repo / "auth").mkdir(parents=True)
    (repo / "auth/a.py").write_text(BEFORE)
    task = become(ASKER, lambda: ordered(Client(daemon.socket), {"auth/a.py": BEFORE})["id"])
    record = TaskStore(state).create(Task(id="", repo=str(repo)), named=task)
    keep(record, "return -x", 1)
    keep(record, "return eval(x)", 2)
    judged = judge_patches(record, (1, 2), repo, policy, Settings.from_environ({}))
    with daemon.rows() as rows:
        with rows.writing() as database:
            database.execute("UPDATE tasks SET state = 'queued' WHERE id = ?", (task,))
        while (lease := take(rows)) is None or lease.task != task:
            with rows.writing() as database:  # the daemon's own pool may be quicker
                database.execute("DELETE FROM leases")
                database.execute("UPDATE tasks SET state = 'queued' WHERE id = ?", (task,))
        result = Result(report=b"{}", patch=None, proposals=b"[]")
        finish(rows, lease, result, answer=1, reason="needs a person", judged=judged)
    for base, folders, files in os.walk(home):
        for name in (".", *folders, *files):
            os.chown(Path(base, name), ASKER, ASKER)
    home.chmod(0o755)
    return Scene(daemon=daemon, home=home, policy=policy, task=task, judged=judged)


@pytest.mark.long
def test_who_asked_does_not_approve(scene: Scene) -> None:
    found = scene.approve(ASKER)
    assert (found["status"], found["kind"]) == (403, "own")
    assert "nobody approves a patch that they asked for" in found["why"]
    assert f"localagent approve {scene.task} --daemon --reason WHY" in found["remedy"]
    said = ("--reason", "I like it", "--choose", "1", "--policy", str(scene.policy))
    by_hand = scene.run(ASKER, "approve", scene.task, *said)
    assert (by_hand.returncode, "localagent approve ID --daemon" in by_hand.stderr) == (4, True)
    assert scene.gate().returncode == 1
    no = scene.apply()
    assert (no.returncode, "nobody else approved this change" in no.stderr) == (1, True)
    assert scene.words() == 0


@pytest.mark.long
def test_another_approves_and_the_asker_s_verbs_see_it(scene: Scene) -> None:
    shown = scene.run(FIRST, "tasks", "patches", scene.task, "--daemon", str(scene.daemon.socket))
    assert "critical-file 'auth/a.py'" in shown.stdout
    assert "+    return -x" in shown.stdout
    told = scene.run(
        FIRST, "approve", scene.task, "--daemon", str(scene.daemon.socket), "--reason", "read it", "--choose", "1"
    )
    assert told.returncode == 0, told.stderr
    assert f"approved {scene.judged[0].patch} of task {scene.task} as {FIRST}" in told.stdout
    assert f"localagent apply {scene.task} --choose 1\n" in told.stderr
    gate = scene.gate()
    assert (gate.returncode, f"approved by {FIRST}" in gate.stdout) == (0, True)
    assert scene.apply().returncode == 0
    assert "return -x" in (scene.repo / "auth/a.py").read_text()
    entries = check_audit(scene.daemon.state / "audit").entries
    mine = [e for e in entries if e.data.get("patch") == scene.judged[0].patch]
    assert [(e.kind.value, e.data["by"], e.data["ordered_by"], e.data["ordered_task"]) for e in mine] == [
        ("approved", FIRST, ASKER, scene.task)
    ]
    assert "read it" not in str([dict(e.data) for e in entries])


@pytest.mark.long
@pytest.mark.parametrize(("uid", "status", "why"), [(UNNAMED, 403, "the policy names"), (NO_ROLE, 404, "not yours")])
def test_whom_the_policy_does_not_name_has_no_say(scene: Scene, uid: int, status: int, why: str) -> None:
    found = scene.approve(uid)
    assert (found["status"], why in found["why"]) == (status, True)
    assert scene.words() == 0
    assert scene.gate().returncode == 1


@pytest.mark.long
def test_a_policy_that_names_fewer_since_then_holds(alone: Scene) -> None:
    """What was judged under two names is not approved by the one whom the policy has dropped."""
    alone.daemon.end()
    policy_in(alone.daemon.root, f'["{SECOND}"]')
    alone.daemon.start()
    alone.daemon.socket.chmod(0o666)
    assert alone.approve(FIRST)["kind"] == "people"
    assert alone.approve(SECOND)["status"] == 200


@pytest.mark.long
def test_the_asker_s_policy_must_name_the_approver_too(scene: Scene) -> None:
    assert scene.approve(FIRST)["status"] == 200
    assert scene.gate().returncode == 0
    policy_in(scene.home, f'["{SECOND}"]')
    assert scene.gate().returncode == 1


@pytest.mark.long
def test_a_word_is_for_one_patch_and_one_change(scene: Scene) -> None:
    for changes in ({"patch": f"sha256:{'0' * 64}"}, {"change": f"sha256:{'0' * 64}"}):
        assert scene.approve(FIRST, **changes)["kind"] == "other-patch"
    refused = scene.approve(FIRST, patch=scene.judged[1].patch, change=scene.judged[1].change)
    assert (refused["kind"], scene.judged[1].verdict) == ("refused", "refused")
    crossed = scene.approve(FIRST, patch=scene.judged[0].patch, change=scene.judged[1].change)
    assert crossed["kind"] == "other-patch"
    assert scene.words() == 0
    assert scene.approve(FIRST)["status"] == 200
    (scene.repo / "auth/a.py").write_text(BEFORE + "\n\ny = 1\n")
    assert scene.gate().returncode == 1
    assert scene.apply().returncode == 1


@pytest.mark.long
def test_a_word_is_for_the_repository_of_the_task(scene: Scene) -> None:
    assert scene.approve(FIRST)["status"] == 200
    other = scene.home / "other"
    become(ASKER, lambda: (other / "auth").mkdir(parents=True))
    become(ASKER, lambda: (other / "auth/a.py").write_text(BEFORE))
    patch = scene.home / "p.patch"
    patch.write_bytes(scene.judged[0].diff)
    arguments = ("--policy", str(scene.policy), "--daemon", str(scene.daemon.socket))
    assert scene.run(ASKER, "gate", str(patch), "--repo", str(other), *arguments).returncode == 1
    assert scene.run(ASKER, "gate", str(patch), "--repo", str(scene.repo), *arguments).returncode == 0
    assert scene.run(UNNAMED, "gate", str(patch), "--repo", str(scene.repo), *arguments).returncode != 0


@pytest.mark.long
def test_the_same_word_twice_is_one(scene: Scene) -> None:
    first, again = scene.approve(FIRST), scene.approve(FIRST, reason="once more")
    assert (first["status"], again["status"], again["reason"]) == (200, 200, "read it")
    late = scene.approve(SECOND)
    assert (late["status"], late["kind"], f"{FIRST} approved" in late["why"]) == (409, "approved", True)
    assert scene.words() == 1


@pytest.mark.long
def test_of_two_who_approve_at_once_one_is_the_first(scene: Scene) -> None:
    found: list[dict[str, Any]] = []
    both = [threading.Thread(target=lambda uid=uid: found.append(scene.approve(uid))) for uid in (FIRST, SECOND)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert sorted(x["status"] for x in found) == [200, 409]
    assert scene.words() == 1


@pytest.mark.long
def test_a_word_survives_the_daemon_and_is_taken_back(alone: Scene) -> None:
    assert alone.approve(FIRST)["status"] == 200
    alone.daemon.kill()
    alone.daemon.start()
    alone.daemon.socket.chmod(0o666)
    assert alone.gate().returncode == 0
    alone.daemon.kill()
    gone = alone.gate()
    assert (gone.returncode, "nobody listens" in gone.stderr) == (4, True)
    alone.daemon.start()
    alone.daemon.socket.chmod(0o666)
    said = ("--daemon", str(alone.daemon.socket), "--reason", "a mistake", "--choose", "1", "--withdraw")
    assert alone.run(ASKER, "approve", alone.task, *said).returncode == 1
    assert alone.run(SECOND, "approve", alone.task, *said).returncode == 0
    assert alone.gate().returncode == 1
    assert alone.run(SECOND, "approve", alone.task, *said).returncode == 1
    kinds = [e.kind.value for e in check_audit(alone.daemon.state / "audit").entries]
    assert kinds == ["approved", "withdrawn"]
    assert alone.approve(SECOND)["status"] == 200
    assert alone.gate().returncode == 0


@pytest.mark.long
def test_a_word_without_an_entry_does_not_count(alone: Scene) -> None:
    audit = next((alone.daemon.state / "audit").glob("*.jsonl"), None)
    if audit is None:
        alone.approve(FIRST)
        with alone.daemon.rows() as rows, rows.writing() as database:
            database.execute("DELETE FROM words")
        audit = next((alone.daemon.state / "audit").glob("*.jsonl"))
    audit.write_bytes(audit.read_bytes().replace(b"a", b"b", 3))
    found = alone.approve(FIRST)
    assert (found["status"], found["recorded"]) == (202, False)
    assert alone.gate().returncode == 1


@pytest.mark.long
def test_a_daemon_of_one_s_own_is_not_believed(scene: Scene) -> None:
    """An asker who starts a daemon could make it say anything."""
    assert scene.approve(FIRST)["status"] == 200
    patch = scene.home / "p.patch"
    patch.write_bytes(scene.judged[0].diff)

    def ask() -> list[Any]:
        """A listener of the asker's own, in the process that asks: the kernel says that it runs as the asker."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(scene.home / "fake.sock"))
            listener.listen()
            err = io.StringIO()
            arguments = ["gate", str(patch), "--repo", str(scene.repo), "--policy", str(scene.policy)]
            with redirect_stderr(err), redirect_stdout(io.StringIO()):
                code = main([*arguments, "--daemon", str(scene.home / "fake.sock")])
            return [code, "", err.getvalue()]

    told = Ran(*become(ASKER, ask))
    assert (told.returncode, "runs as you" in told.stderr) == (4, True)


@pytest.mark.long
def test_a_worker_judges_what_it_proposes(scene: Scene) -> None:
    """The digests under which the daemon keeps a patch are those that `gate` works out of its diff."""
    record = TaskStore(scene.home / ".local" / "state" / "localagent").open(scene.task)
    patch = record.proposal(1)
    assert patch is not None
    told = json.loads(_json_of(scene, unified_diff(patch)))
    assert (told["patch"], told["change"]) == (scene.judged[0].patch, scene.judged[0].change)


def _json_of(scene: Scene, diff: bytes) -> str:
    path = scene.home / "q.patch"
    path.write_bytes(diff)
    arguments = ("--repo", str(scene.repo), "--policy", str(POLICIES / "default.toml"), "--json")
    return scene.run(ASKER, "gate", str(path), *arguments).stdout
