"""`fix` finds a repair of a critical file, proves it, and leaves it to a person."""

import json
from pathlib import Path

import pytest

from localagent.cli.main import main

SOURCE = "def allowed(age):\n    return age > 18\n"
TEST = "from auth.ages import allowed\n\n\ndef test_a():\n    assert allowed(18)\n    assert not allowed(17)\n"


@pytest.mark.long
def test_a_repair_of_a_critical_file_waits_for_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("localagent.cli.fix.process_age", lambda: 10_000.0)  # of the tests' process, not of the verb's
    repo = tmp_path / "r"
    (repo / "auth").mkdir(parents=True)
    (repo / "auth/__init__.py").touch()
    (repo / "auth/ages.py").write_text(SOURCE)
    (repo / "test_ages.py").write_text(TEST)
    report = tmp_path / "report.json"
    out = tmp_path / "out.patch"
    args = [
        "--no-model",
        "--quiet",
        "--assume",
        "--apply",
        "--report",
        str(report),
        "--out",
        str(out),
        "--max-candidates",
        "60",
    ]
    assert main(["fix", "--repo", str(repo), *args]) == 1
    told = json.loads(report.read_text())
    assert told["outcome"] == "needs-person"
    assert "auth/ages.py needs a person's approval" in told["reason"]
    assert not out.exists()
    assert (repo / "auth/ages.py").read_text() == SOURCE
    task = told["task"]
    assert main(["apply", task, "--choose", "1"]) == 1
    assert main(["approve", task, "--reason", "read it"]) == 0
    assert main(["apply", task, "--choose", "1"]) == 0
    assert "age >= 18" in (repo / "auth/ages.py").read_text() or "age > 17" in (repo / "auth/ages.py").read_text()
    capsys.readouterr()
