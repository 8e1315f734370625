import io
import json
import os
import sys
from pathlib import Path

import pytest

from localagent.cli.main import main
from localagent.domain.edit import digest_of
from localagent.record.audit.verify_chain import check_audit

GOOD = "--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1,2 +1,2 @@\n def f(x):\n-    return x\n+    return -x\n"
BAD = GOOD.replace("-x\n", "eval(x)\n")
PERSON = "--- a/requirements.txt\n+++ b/requirements.txt\n@@ -1 +1,2 @@\n a==1\n+b==2\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "r"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg/a.py").write_text("def f(x):\n    return x\n")
    (root / "requirements.txt").write_text("a==1\n")
    return root


def gate(repo: Path, patch: str | bytes, *args: str) -> int:
    path = repo.parent / "p.patch"
    path.write_bytes(patch if isinstance(patch, bytes) else patch.encode())
    return main(["gate", str(path), "--repo", str(repo), *args])


def tree(repo: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in repo.rglob("*") if p.is_file()}


@pytest.mark.long
@pytest.mark.parametrize(
    ("patch", "code", "said"),
    [
        (GOOD, 0, "Patch allowed"),
        (BAD, 1, "run-text"),
        (PERSON, 1, "needs a person"),
        ("no diff", 1, "patch-empty"),
        ("", 1, "patch-empty"),
        (GOOD.replace("return x", "return y"), 1, "patch-does-not-apply"),
        (GOOD.replace("pkg/a.py", "../a.py"), 1, "patch-path"),
        (b"\xff\xfe\0", 1, "patch-empty"),
    ],
)
def test_the_answer_is_the_exit_code_and_the_tree_stays(
    repo: Path, patch: str | bytes, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(repo)
    assert gate(repo, patch) == code
    assert said in capsys.readouterr().out
    assert tree(repo) == before


@pytest.mark.long
def test_a_refusal_is_on_the_record_and_an_answer_stays_one_without_it(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(repo, GOOD) == 0
    assert not (tmp_path / "state").exists()
    assert gate(repo, BAD) == gate(repo, PERSON) == 1
    entries = check_audit(tmp_path / "state" / "localagent" / "audit").entries
    assert [(e.kind, e.data["what"], e.data["verdict"], e.data["rules"]) for e in entries] == [
        ("refused", "gate", "refused", ["run-text"]),
        ("refused", "gate", "needs-person", ["dependency-edit"]),
    ]
    assert entries[0].data["patch"] == digest_of(BAD.encode())
    assert entries[0].data["policy"].startswith("sha256:")
    assert b"eval" not in (tmp_path / "state" / "localagent" / "audit" / "audit-000000000000.jsonl").read_bytes()
    capsys.readouterr()
    (tmp_path / "state" / "localagent" / "audit" / "head.json").write_text("{}")
    assert gate(repo, BAD) == 1
    told = capsys.readouterr()
    assert "run-text" in told.out
    assert "warning: this refusal is not on the record" in told.err


def test_standard_input_is_read(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert main(["gate", "-", "--repo", str(repo)]) == 1
    assert "run-text" in capsys.readouterr().out


def test_json_names_rule_place_why_and_remedy(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(repo, BAD, "--json", "--all") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "localagent/gate/1"
    assert (told["verdict"], told["exit"]) == ("refused", 1)
    first = told["findings"][0]
    assert (first["rule"], first["path"], first["line"], first["severity"]) == ("run-text", "pkg/a.py", 2, "high")
    assert first["why"]
    assert first["remedy"]
    assert {g["answer"] for g in told["gates"]} <= {"allow", "deny"}


def test_without_all_the_first_refusal_ends_the_review(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate(repo, BAD, "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["gates"][-1] == {"gate": "weakness", "answer": "not-reached"}


def test_a_question_for_a_person_is_no_refusal_and_no_leave(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(repo, PERSON, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "needs-person"
    assert all(f["asks_person"] for f in told["findings"])
    both = BAD + PERSON
    assert gate(repo, both, "--json") == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "refused"


def test_files_are_written_where_they_are_wanted(repo: Path, tmp_path: Path) -> None:
    out = [tmp_path / n for n in ("o.sarif", "o.xml", "o.html")]
    assert gate(repo, BAD, "--sarif", str(out[0]), "--junit", str(out[1]), "--html", str(out[2])) == 1
    assert json.loads(out[0].read_text())["runs"][0]["results"]
    assert out[1].read_text().startswith("<?xml")
    assert out[2].read_text().startswith("<!DOCTYPE html>")


def test_every_fault_of_the_arguments_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = str(tmp_path / "o")
    gone = str(tmp_path / "gone")
    assert main(["gate", gone, "--repo", gone, "--html", same, "--junit", same]) == 2
    err = capsys.readouterr().err
    assert "is not a directory" in err
    assert "cannot be read" in err
    assert "the same file for two outputs" in err


def test_a_wrong_policy_is_a_usage_fault(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.toml").write_text("schema = 'x'\n")
    assert gate(repo, GOOD, "--policy", str(tmp_path / "p.toml")) == 2
    assert "patches.editable: is missing" in capsys.readouterr().err


def test_without_bandit_nothing_is_allowed(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bandit.core.node_visitor", None)
    assert gate(repo, GOOD) == 4


def test_nothing_of_the_repository_runs(repo: Path) -> None:
    mark = repo.parent / "ran"
    for name in ("sitecustomize.py", "conftest.py", "ast.py", "pkg/__init__.py"):
        (repo / name).write_text(f"open({str(mark)!r}, 'w').close()\n")
    here = Path.cwd()
    os.chdir(repo)
    try:
        assert gate(repo, GOOD) == 0
    finally:
        os.chdir(here)
    assert not mark.exists()
