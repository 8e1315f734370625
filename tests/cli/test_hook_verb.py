"""`localagent hook`: exit codes, reports, and what becomes of the index and the working tree."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.git_builder import Repo

from localagent.cli.main import main
from localagent.record.audit.verify_chain import check_audit

BAD = b"a = not x in y\n\n\n\n\nb = 1\n"
FIXED = b"a = x not in y\n\n\n\n\nb = 1\n"
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    repo = Repo(tmp_path / "repo")
    monkeypatch.chdir(repo.folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    return repo


@pytest.fixture
def hook(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str]:
        code = main(["hook", *arguments])
        told = capsys.readouterr()
        return code, told.out + told.err

    return run


def test_check_reports_and_changes_nothing(repo: Repo, hook: Run) -> None:
    repo.stage("a.py", BAD)
    code, out = hook("check")
    assert (code, out.splitlines()[0]) == (1, "a.py:1:5: [not-in] use `not in` (safe repair)")
    assert (repo.staged("a.py"), repo.read("a.py")) == (BAD, BAD)
    assert hook("check", "--ignore", "not-in")[0] == 0
    assert hook("check", "--select", "zip-strict,not-is")[0] == 0


def test_suggestions_fail_a_strict_check_only(repo: Repo, hook: Run) -> None:
    repo.stage("a.py", b"mask = column == None\n")
    code, out = hook("check")
    assert (code, "[none-comparison] compare with None using `is` (suggestion)" in out) == (0, True)
    assert hook("check", "--strict")[0] == 1
    repo.stage("a.py", BAD)
    assert (hook("check")[0], hook("check", "--strict")[0]) == (1, 1)
    repo.stage("a.py", b"a = {'x': 1, 'x': 2}\n")  # nobody can repair it but a person: no suggestion
    assert hook("check")[0] == 1


def test_what_the_projects_linters_ignore_does_not_run(repo: Repo, hook: Run) -> None:
    repo.write("pyproject.toml", "[tool.ruff.lint.per-file-ignores]\n'a.py' = ['E713']\n")
    repo.stage("a.py", BAD)
    repo.stage("b.py", BAD)
    code, out = hook("check")
    assert (code, "a.py:1" in out, "b.py:1" in out) == (1, False, True)
    assert hook("fix", "a.py")[0] == 0
    assert hook("check", "a.py", "--select", "not-in")[0] == 1


def test_fix_writes_index_and_file_then_is_done(repo: Repo, hook: Run) -> None:
    repo.stage("a.py", BAD).chmod(0o755)
    repo.git("add", "a.py")
    code, out = hook("fix")
    assert (code, "a.py:1: repaired [not-in]" in out) == (1, True)
    assert (repo.staged("a.py"), repo.read("a.py")) == (FIXED, FIXED)
    assert (repo.folder / "a.py").stat().st_mode & 0o777 == 0o755
    assert repo.git("status", "--short") == b"A  a.py\n"
    assert hook("fix")[0] == 0
    assert list((repo.folder.parent / "state" / "localagent" / "hook").iterdir()) == []


def test_what_is_written_is_on_the_record_and_nothing_is_written_without(repo: Repo, hook: Run) -> None:
    audit = repo.folder.parent / "state" / "localagent" / "audit"
    repo.stage("a.py", BAD)
    repo.write("b.py", BAD)
    assert (hook("check")[0], hook("fix")[0], hook("fix", "b.py")[0]) == (1, 1, 1)
    entries = check_audit(audit).entries
    assert [(e.kind, e.data["hook"], e.data["rules"]) for e in entries] == [
        ("applying", "fix", ["not-in"]),
        ("applied", "fix", ["not-in"]),
    ] * 2
    assert entries[0].data["patch"] == entries[1].data["patch"] != entries[2].data["patch"]
    (audit / "head.json").write_text("{}")
    repo.stage("c.py", BAD)
    code, out = hook("fix")
    assert (code, "head.json" in out) == (1, True)
    assert (repo.staged("c.py"), repo.read("c.py")) == (BAD, BAD)
    assert hook("fix", "c.py")[0] == 1
    assert repo.read("c.py") == BAD


def test_unstaged_changes_stay_unstaged(repo: Repo, hook: Run) -> None:
    repo.stage("a.py", BAD)
    repo.write("a.py", BAD + b"c = 2\n")
    assert hook("fix")[0] == 1
    assert (repo.staged("a.py"), repo.read("a.py")) == (FIXED, FIXED + b"c = 2\n")


def test_unstaged_changes_at_the_place(repo: Repo, hook: Run) -> None:
    repo.stage("a.py", BAD)
    other = BAD.replace(b"a =", b"aa =")
    repo.write("a.py", other)
    code, out = hook("fix")
    assert (code, "unstaged changes, or other line ends" in out) == (1, True)
    assert (repo.staged("a.py"), repo.read("a.py")) == (BAD, other)


def test_the_working_file_is_gone_or_a_link(repo: Repo, hook: Run, tmp_path: Path) -> None:
    repo.stage("a.py", BAD)
    outside = tmp_path / "outside.py"
    outside.write_bytes(BAD)
    (repo.folder / "a.py").unlink()
    code, out = hook("fix")
    assert (code, "its working file cannot be read" in out) == (1, True)
    (repo.folder / "a.py").symlink_to(outside)
    code, out = hook("fix")
    assert (code, "not a regular file" in out) == (1, True)
    assert (repo.staged("a.py"), outside.read_bytes()) == (BAD, BAD)


def test_filters_are_refused(repo: Repo, hook: Run) -> None:
    repo.stage("a.py", BAD)
    repo.write(".gitattributes", "*.py filter=lfs\n")
    code, out = hook("fix")
    assert (code, "filter=lfs changes its bytes" in out) == (1, True)
    assert (repo.staged("a.py"), repo.read("a.py")) == (BAD, BAD)


def test_one_index_write_fails_and_files_are_as_before(repo: Repo, hook: Run) -> None:
    repo.stage("a.py", BAD)
    (repo.folder / ".git" / "index.lock").write_bytes(b"")
    code, out = hook("fix")
    assert (code, "index.lock" in out) == (1, True)
    (repo.folder / ".git" / "index.lock").unlink()
    assert (repo.staged("a.py"), repo.read("a.py")) == (BAD, BAD)


def test_commit_of_named_paths(repo: Repo, hook: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.stage("a.py", BAD)
    index = repo.folder / ".git" / "next-index-7.lock"
    index.write_bytes((repo.folder / ".git" / "index").read_bytes())
    monkeypatch.setenv("GIT_INDEX_FILE", str(index))
    code, out = hook("fix")
    assert (code, "an index of its own" in out) == (1, True)
    assert repo.read("a.py") == BAD


def test_named_files(repo: Repo, hook: Run) -> None:
    repo.write("pkg/a.py", BAD)
    repo.write("script", BAD)
    assert hook("check", "pkg/a.py", "script")[0] == 1
    assert hook("fix", "pkg/a.py", "script")[0] == 1
    assert (repo.read("pkg/a.py"), repo.read("script")) == (FIXED, FIXED)
    assert repo.git("ls-files") == b""
    assert hook("fix", "pkg/a.py")[0] == 0


def test_wrong_names_are_all_told(repo: Repo, hook: Run, tmp_path: Path) -> None:
    (tmp_path / "out.py").write_bytes(BAD)
    code, out = hook("fix", "missing.py", "../out.py", ".git")
    assert code == 2
    assert [word in out for word in ("missing.py: no such file", "../out.py: not below", "name files")] == [True] * 3
    assert hook("check", "--select", "nonsense")[0] == 2
    assert hook("check", "--staged", "a.py")[0] == 2


def test_links_are_not_written_through(repo: Repo, hook: Run, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_bytes(BAD)
    (repo.folder / "link.py").symlink_to(outside)
    code, out = hook("check", "link.py")
    assert (code, "[unreadable] not a regular file" in out) == (1, True)
    hook("fix", "link.py")
    assert outside.read_bytes() == BAD


def test_json_and_suggestions(repo: Repo, hook: Run) -> None:
    repo.stage("a.py", "def f(x=[]):\n    return not x in y\n")
    code, out = hook("fix", "--suggestions", "--json")
    told: dict[str, Any] = json.loads(out)
    assert (code, told["looked_at"]) == (1, 1)
    (file,) = told["files"]
    assert [f["rule"] for f in file["applied"]] == ["not-in"]
    assert [(f["rule"], f["grade"]) for f in file["findings"]] == [("mutable-default", "suggestion")]
    (diff,) = file["suggestions"]
    assert "+    if x is None:\n+        x = []\n" in diff
    repo.git("apply", "--check", stdin=diff.encode())


def test_what_the_gates_deny_is_not_written(repo: Repo, hook: Run) -> None:
    many = b"".join(b"a%d = not x in y\n\n\n" % n for n in range(61))
    repo.stage("a.py", many)
    code, out = hook("fix")
    assert (code, "not repaired: size-hunks" in out) == (1, True)
    assert (repo.staged("a.py"), repo.read("a.py")) == (many, many)


def test_conflict_markers_are_reported(repo: Repo, hook: Run) -> None:
    repo.stage("a.py", "<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> b\n")
    code, out = hook("check")
    assert (code, "[unreadable] does not parse" in out) == (1, True)
    assert hook("fix")[0] == 0


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python parses it")
def test_a_file_for_a_newer_python_is_left_alone_and_the_rest_goes_on(repo: Repo, hook: Run) -> None:
    repo.stage("new.py", "x = t'{a}'\nb = not a in x\n")
    code, out = hook("check")
    assert (code, "[newer-python] needs Python ≥ 3.14; localagent runs on " in out) == (0, True)
    repo.stage("a.py", BAD)
    assert hook("check")[0] == 1
    assert hook("fix")[0] == 1
    assert (repo.staged("a.py"), hook("fix")[0]) == (FIXED, 0)


def test_rules_are_listed(repo: Repo, hook: Run) -> None:
    assert "none-comparison" in hook("check", "--rules")[1]
    assert {"id", "grade", "standard", "why"} == set(json.loads(hook("check", "--rules", "--json")[1])[0])


@pytest.mark.long
def test_the_installed_hook_stops_a_commit(repo: Repo, hook: Run) -> None:
    assert hook("install")[0] == 0
    repo.stage("a.py", BAD)
    repo.git("commit", "-m", "bad", check=False)
    assert repo.git("log", "--oneline", "--all") == b""
    assert hook("fix")[0] == 1
    repo.git("commit", "-m", "good")
    assert repo.git("show", "HEAD:a.py") == FIXED
    assert hook("uninstall")[0] == 0
    repo.stage("a.py", BAD)
    repo.git("commit", "-m", "bad")


@pytest.mark.long
def test_the_installed_hook_that_fixes(repo: Repo, hook: Run) -> None:
    hook("install", "--fix")
    repo.stage("a.py", BAD)
    repo.write("a.py", BAD + b"c = 2\n")
    repo.git("commit", "-m", "x", check=False)
    assert (repo.staged("a.py"), repo.read("a.py")) == (FIXED, FIXED + b"c = 2\n")
    repo.git("commit", "-m", "x")
    assert repo.git("show", "HEAD:a.py") == FIXED


@pytest.mark.long
def test_the_installed_hook_that_fixes_with_commit_all(repo: Repo, hook: Run) -> None:
    repo.stage("a.py", "x = 1\n")
    repo.commit()
    hook("install", "--fix")
    repo.write("a.py", BAD)
    repo.git("commit", "-a", "-m", "x", check=False)
    assert repo.read("a.py") == FIXED
    repo.git("commit", "-a", "-m", "x")
    assert repo.git("show", "HEAD:a.py") == FIXED
    assert repo.git("status", "--short") == b""


@pytest.mark.long
def test_the_installed_hook_that_suggests_blocks_no_more_than_the_check(repo: Repo, hook: Run) -> None:
    assert hook("install", "--suggest")[0] == 0
    assert hook("install", "--suggest", "--fix")[0] == 2
    assert "'--staged' '--suggest'" in repo.read(".git/hooks/pre-commit").decode()
    repo.stage("a.py", BAD)
    repo.git("commit", "-m", "bad", check=False)
    assert repo.git("log", "--oneline", "--all") == b""
    repo.stage("a.py", FIXED)
    repo.git("commit", "-m", "good")
    assert repo.git("show", "HEAD:a.py") == FIXED


def test_in_a_subfolder_and_outside_a_repository(
    repo: Repo, hook: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repo.stage("pkg/a.py", BAD)
    monkeypatch.chdir(repo.folder / "pkg")
    assert hook("fix")[0] == 1
    assert (repo.staged("pkg/a.py"), repo.read("pkg/a.py")) == (FIXED, FIXED)
    assert hook("check", "a.py")[0] == 0
    monkeypatch.chdir(tmp_path)
    assert hook("check")[0] == 1
