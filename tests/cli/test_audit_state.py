"""`audit --state`: the journal of a daemon or its recorder, read by whoever may."""

import json
from pathlib import Path

from support.fix_builder import home

from localagent.record.audit.entry import AuditKind
from localagent.record.audit.log import AuditLog


def test_another_state_s_journal_is_read(tmp_path: Path) -> None:
    entry = AuditLog(tmp_path / "other").append(AuditKind.REPORTED, {"task": "t", "by": 7})
    with home() as place:
        holds = place.run("audit", "verify", "--state", str(tmp_path / "other"), "--head", entry.digest, "--json")
        assert (holds.code, json.loads(holds.out)["entries"]) == (0, 1), holds
        out = tmp_path / "export.jsonl"
        assert place.run("audit", "export", "--state", str(tmp_path / "other"), "--out", str(out)).code == 0
        assert place.run("audit", "verify", "--file", str(out), "--head", entry.digest).code == 0
        assert place.run("audit", "verify", "--head", entry.digest).code == 1, "our own journal was read"


def test_no_journal_is_no_journal_that_holds(tmp_path: Path) -> None:
    (tmp_path / "empty" / "audit").mkdir(parents=True)
    with home() as place:
        for folder, why in (("none", "No such file"), ("empty", "is empty")):
            ran = place.run("audit", "verify", "--state", str(tmp_path / folder))
            assert (ran.code, why in ran.err) == (2, True)
