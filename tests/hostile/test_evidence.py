"""Evidence of real tasks: no secret gets into the audit journal, what is altered is told, and a replay is a replay."""

import json
from pathlib import Path

import pytest
from support.fix_builder import Home, home

CANARY = "canary7f3a91c2"
FILES = {
    f"{CANARY}_lib/__init__.py": "",
    f"{CANARY}_lib/adder.py": (
        f"TOKEN = '{CANARY}-token'\n\n\ndef add(a, b):\n    # {CANARY} in a comment\n    return a - b\n"
    ),
    "test_adder.py": (
        f"from {CANARY}_lib.adder import TOKEN, add\n\n\ndef test_{CANARY}():\n    print(TOKEN)\n"
        f"    assert add(2, 3) == 5, '{CANARY} message'\n\n\ndef test_more():\n    assert add(7, 4) == 11\n\n\n"
        "def test_zero():\n    assert add(4, 0) == 4\n"
    ),
}


def audit_bytes(h: Home) -> bytes:
    return b"".join(p.read_bytes() for p in sorted((h.root / "state/localagent/audit").rglob("*")) if p.is_file())


def task_of(h: Home) -> Path:
    (found,) = h.tasks.iterdir()
    return found


@pytest.mark.long
def test_a_task_leaves_evidence_without_its_secrets_and_goes_the_same_way_again() -> None:
    with home(FILES) as h:
        assert h.run("key", "new").code == 0
        ran = h.fix("--task", f"please {CANARY} mend", "--check", f"python -c 'import sys; \"{CANARY}\"'")
        assert ran.code == 0, ran
        assert ran.report["attestation"]["file"] == "attestation.intoto.jsonl"
        task = task_of(h)
        assert CANARY.encode() in (task / "journal.jsonl").read_bytes()  # the control: it was there to be copied
        assert CANARY.encode() not in audit_bytes(h)
        assert h.run("attest", "verify", str(task / "attestation.intoto.jsonl")).code == 0
        again = h.run("replay", task.name, "--json")
        answer = json.loads(again.out)
        assert (again.code, answer["confirmed"], answer["same_patch"]) == (0, True, True), answer
        assert answer["verified"] == {"check": "passes", "reasons": []}
        assert h.run("apply", task.name).code == 0
        refused = h.run("replay", task.name)
        assert refused.code == 1
        assert "is not the tree that task" in refused.err
        assert "adder.py" in refused.err
        assert CANARY.encode() not in audit_bytes(h)
        kinds = [json.loads(row)["kind"] for row in audit_of(h)]
        wanted = ["key-made", "head-signed", "task-started", "task-ended", "attested", "reported", "head-signed"]
        wanted += ["replayed", "applying", "applied"]
        assert kinds == wanted
        assert h.run("audit", "verify").code == 0


def audit_of(h: Home) -> list[str]:
    (segment,) = (h.root / "state/localagent/audit").glob("audit-*.jsonl")
    return segment.read_text("ascii").splitlines()


@pytest.mark.long
def test_over_a_damaged_journal_no_task_starts_and_no_altered_task_is_replayed() -> None:
    with home() as h:
        assert h.fix().code == 0
        task = task_of(h)
        journal = task / "journal.jsonl"
        whole = journal.read_bytes()
        journal.write_bytes(b"".join(whole.splitlines(keepends=True)[:-3]))
        ran = h.run("replay", task.name)
        assert ran.code == 1
        assert "does not end as the audit journal says" in ran.err
        journal.write_bytes(whole)
        (task / "policy.json").write_bytes((task / "policy.json").read_bytes() + b"\n")
        ran = h.run("replay", task.name)
        assert ran.code == 1
        assert "is not the policy" in ran.err
        head = h.root / "state/localagent/audit/head.json"
        head.write_bytes(head.read_bytes().replace(b'"seq":2', b'"seq":7'))
        ran = h.run(*h.arguments("--no-model"))
        assert ran.code == 1
        assert "the head names entry 7" in ran.err
        assert len(list(h.tasks.iterdir())) == 1


def test_an_encrypted_key_without_its_passphrase_ends_a_task_before_anything_runs() -> None:
    with home() as h:
        word = h.root / "word"
        word.write_bytes(b"open sesame")
        word.chmod(0o600)
        assert h.run("key", "new", "--passphrase-file", str(word)).code == 0
        ran = h.fix()
        assert (ran.code, ran.report["outcome"]) == (2, "fault")
        assert "encrypted and no passphrase was given" in ran.reason
        assert not h.tasks.exists()
