"""A person's word lets in exactly the change that was judged, and nothing that is refused."""

import json
import os
import pwd
from pathlib import Path

import pytest

from localagent.cli.main import main
from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task
from localagent.record.audit.verify_chain import check_audit
from localagent.record.store import TaskRecord, TaskStore

POLICIES = Path(__file__).parents[2] / "policies"
ME = pwd.getpwuid(os.getuid()).pw_name
BEFORE = "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n"
PATCH = "--- a/auth/a.py\n+++ b/auth/a.py\n@@ -1,2 +1,2 @@\n def f(x):\n-    return x\n+    return -x\n"
HARM = PATCH.replace("-x\n", "eval(x)\n")


class House:
    def __init__(self, root: Path) -> None:
        self.root, self.repo, self.state = root, root / "r", root / "state" / "localagent"
        (self.repo / "auth").mkdir(parents=True)
        (self.repo / "auth/a.py").write_text(BEFORE)
        self.file = root / "p.patch"
        self.file.write_text(PATCH)

    def run(self, verb: str, *args: str, patch: str = PATCH) -> int:
        self.file.write_text(patch)
        return main([verb, str(self.file), "--repo", str(self.repo), *args])

    def policy(self, **changes: str) -> str:
        text = (POLICIES / "default.toml").read_text()
        for old, new in (("people", 'people = ["*"]'), ("by_asker", 'by_asker = "allow"')):
            if old in changes:
                assert new in text
                text = text.replace(new, f"{old} = {changes[old]}")
        (self.root / "p.toml").write_text(text)
        return str(self.root / "p.toml")

    def task(self) -> TaskRecord:
        record = TaskStore(self.state).create(Task(id="", repo=str(self.repo)))
        after = BEFORE.replace("return x", "return -x", 1).encode()
        change = FileChange(path=RepoPath("auth/a.py"), before=BEFORE.encode(), after=after)
        record.save_proposal(1, Patch(changes=(change,)))
        return record


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return House(tmp_path)


def test_an_approved_patch_is_allowed_until_it_is_withdrawn(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    assert house.run("gate") == 1
    assert house.run("approve", "--reason", "read it", "--json") == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["who"], told["state"], told["findings"]) == (ME, "approved", ["critical-file 'auth/a.py'"])
    assert house.run("gate", "--json") == 0
    review = json.loads(capsys.readouterr().out)
    assert (review["verdict"], review["approval"]["who"]) == ("allowed", ME)
    assert house.run("gate") == 0
    assert f"approved by {ME}" in capsys.readouterr().out
    assert house.run("approve", "--reason", "a mistake", "--withdraw") == 0
    assert house.run("gate") == 1
    entries = check_audit(house.state / "audit").entries
    assert [entry.kind.value for entry in entries] == ["refused", "approved", "withdrawn", "refused"]
    assert {entry.data["repo"] for entry in entries} == {str(house.repo)}
    assert "read it" not in str([dict(entry.data) for entry in entries])


def test_another_byte_another_tree_another_repository_needs_another_approval(house: House, tmp_path: Path) -> None:
    assert house.run("approve", "--reason", "read it") == 0
    assert house.run("gate", patch=PATCH.replace("-x\n", "+x\n")) == 1
    assert house.run("gate", patch=f"a word before\n{PATCH}") == 1
    (house.repo / "auth/a.py").write_text(BEFORE + "\n\nx = 1\n")
    assert house.run("gate") == 1
    (house.repo / "auth/a.py").write_text(BEFORE)
    assert house.run("gate") == 0
    house.repo.rename(tmp_path / "moved")
    house.repo = tmp_path / "moved"
    assert house.run("gate") == 1


def test_a_finding_that_was_not_asked_about_needs_another_approval(house: House) -> None:
    assert house.run("approve", "--reason", "read it") == 0
    (house.repo / "pyproject.toml").write_text("[tool.localagent.patches]\ndependencies = ['auth/']\n")
    assert house.run("gate") == 1
    assert house.run("approve", "--reason", "read it again") == 0
    assert house.run("gate") == 0


@pytest.mark.parametrize(
    ("patch", "code", "said"),
    [
        (HARM, 1, "refused whoever approves it: bandit, run-text"),
        (PATCH.replace("auth/a.py", "gone/auth.py"), 1, "patch-does-not-apply"),
        ("", 1, "patch-empty"),
    ],
)
def test_what_is_refused_cannot_be_approved(
    house: House, patch: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert house.run("approve", "--reason", "please", patch=patch) == code
    assert said in capsys.readouterr().err
    assert not (house.state / "patches").exists()


def test_what_needs_nobody_is_not_approved(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    (house.repo / "b.py").write_text(BEFORE)
    assert house.run("approve", "--reason", "x", patch=PATCH.replace("auth/a.py", "b.py")) == 1
    assert "needs no person" in capsys.readouterr().err


def test_only_people_whom_the_policy_names(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    others = house.policy(people='["nobody-else"]')
    assert house.run("approve", "--reason", "x", "--policy", others) == 1
    assert f"{ME} may not approve: the policy names nobody-else" in capsys.readouterr().err
    assert house.run("approve", "--reason", "x") == 0
    assert house.run("gate") == 0
    assert house.run("gate", "--policy", house.policy(people='["nobody-else"]')) == 1
    assert house.run("gate", "--policy", house.policy(people=f'["{ME}"]')) == 0


def test_not_the_asker_cannot_be_enforced_here(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    assert house.run("approve", "--reason", "x") == 0
    asker = house.policy(by_asker='"deny"')
    assert house.run("approve", "--reason", "x", "--policy", asker) == 4
    assert "only the service knows who asked" in capsys.readouterr().err
    assert house.run("gate", "--policy", asker) == 1
    record = house.task()
    assert main(["apply", record.id, "--choose", "1", "--policy", asker]) == 4
    assert (house.repo / "auth/a.py").read_text() == BEFORE


def test_apply_writes_a_critical_file_only_when_approved(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    record = house.task()
    assert main(["apply", record.id, "--choose", "1"]) == 1
    assert "nobody approved this change" in capsys.readouterr().err
    assert (house.repo / "auth/a.py").read_text() == BEFORE
    assert main(["approve", record.id, "--reason", "read it"]) == 0
    assert f"localagent apply {record.id} --choose 1" in capsys.readouterr().err
    assert main(["apply", record.id, "--choose", "1"]) == 0
    assert "return -x" in (house.repo / "auth/a.py").read_text()


def test_an_altered_ledger_lets_nothing_in(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    assert house.run("approve", "--reason", "read it") == 0
    assert house.run("approve", "--reason", "once more") == 0
    path = house.state / "patches" / "approvals.jsonl"
    path.write_bytes(path.read_bytes().replace(b"read it", b"read up"))
    assert house.run("gate") == 1
    assert "was altered" in capsys.readouterr().err
    assert house.run("approve", "--reason", "again") == 1


def test_a_reason_is_needed(house: House) -> None:
    assert house.run("approve", "--reason", " ") == 2
    assert house.run("approve") == 2


@pytest.mark.long
def test_verify_knows_the_approval_of_the_repository(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    assert house.run("approve", "--reason", "read it") == 0
    capsys.readouterr()
    report = house.root / "verify.json"
    house.run("verify", "--report", str(report))
    told = json.loads(report.read_bytes())
    assert "nothing ran" not in told["reason"]


def test_verify_refuses_a_check_that_the_policy_denies(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    assert house.run("verify", "--check", "sh -c true") == 2
    assert "no-shell" in capsys.readouterr().err


def test_verify_asks_the_daemon_where_the_asker_may_not_approve(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody is there: that is no approval, and it is said."""
    policy = house.policy(by_asker='"deny"')
    socket = str(house.root / "none.sock")
    assert house.run("verify", "--policy", policy, "--daemon", socket) == 4
    assert f"there is no daemon at {socket}" in capsys.readouterr().out
    assert house.run("gate", "--policy", policy, "--daemon", socket) == 4
