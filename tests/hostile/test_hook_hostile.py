"""A repository that attacks the hook: through git's configuration, through files, through names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.git_builder import ENVIRON, Repo

from localagent.cli.main import main
from localagent.repo.git import Git
from localagent.repo.staged_index import staged_files

BAD = b"a = not x in y\n"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    repo = Repo(tmp_path / "repo")
    monkeypatch.chdir(repo.folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return repo


def trap(repo: Repo, tmp_path: Path) -> tuple[str, Path]:
    """A program that leaves a mark when it runs."""
    mark = tmp_path / "ran"
    program = tmp_path / "trap"
    program.write_text(f'#!/bin/sh\necho "$0 $@" >> {mark}\ncat\n')
    program.chmod(0o755)
    return str(program), mark


def test_nothing_of_the_configuration_runs(repo: Repo, tmp_path: Path) -> None:
    program, mark = trap(repo, tmp_path)
    repo.stage("a.py", BAD)
    repo.write(".gitattributes", "b.py filter=x diff=x merge=x\n")
    for key in (
        "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.alternateRefsCommand",
        "diff.external", "diff.x.textconv", "diff.x.command", "filter.x.clean", "filter.x.smudge", "filter.x.process",
        "pager.diff-index", "uploadpack.packObjectsHook",
        "core.askPass", "credential.helper", "gpg.program", "interactive.diffFilter", "merge.x.driver",
    ):  # fmt: skip
        repo.git("config", key, program)
    for name in ("pre-commit", "post-index-change", "post-checkout", "reference-transaction", "fsmonitor-watchman"):
        hook = repo.write(f".git/hooks/{name}", Path(program).read_bytes())
        hook.chmod(0o755)
    repo.git("config", "filter.x.required", "true")
    assert main(["hook", "fix"]) == 1
    assert main(["hook", "check"]) == 0
    assert not mark.exists(), mark.read_text()
    assert Git(repo.folder, {}).run("show", ":a.py") == b"a = x not in y\n"
    repo.git("status", "--short")
    assert mark.exists(), "the trap does not work: git itself does not start it"


def test_a_missing_object_is_not_fetched(repo: Repo, tmp_path: Path) -> None:
    program, mark = trap(repo, tmp_path)
    repo.stage("a.py", BAD)
    blob = repo.git("rev-parse", ":a.py").decode().strip()
    (repo.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    repo.git("config", "core.repositoryFormatVersion", "1")
    repo.git("config", "extensions.partialClone", "origin")
    repo.git("config", "remote.origin.promisor", "true")
    repo.git("config", "remote.origin.url", f"ext::{program}")
    repo.git("config", "protocol.ext.allow", "always")
    (found,) = staged_files(Git(repo.folder, {}))
    assert (found.data, "its object is missing" in found.reason) == (None, True)
    assert not mark.exists()


def test_a_working_tree_elsewhere(repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "a.py").write_bytes(BAD)
    repo.stage("a.py", BAD)
    repo.git("config", "core.worktree", str(tmp_path / "victim"))
    assert main(["hook", "fix"]) == 1
    assert "is not around" in capsys.readouterr().err
    assert (tmp_path / "victim" / "a.py").read_bytes() == BAD


def test_folders_that_are_links(repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repo.stage("pkg/a.py", BAD)
    outside = tmp_path / "outside"
    (repo.folder / "pkg").rename(outside)
    (repo.folder / "pkg").symlink_to(outside)
    assert main(["hook", "fix"]) == 1
    assert "its working file cannot be read" in capsys.readouterr().err
    assert (outside / "a.py").read_bytes() == BAD


def test_a_fifo_is_not_waited_for(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    repo.stage("a.py", BAD)
    (repo.folder / "a.py").unlink()
    os.mkfifo(repo.folder / "a.py")
    assert main(["hook", "fix"]) == 1
    assert "not a regular file" in capsys.readouterr().err
    assert main(["hook", "check", "a.py"]) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"(" * 50_000, "too many nested parentheses"),
        (b"x = " + b"-" * 90_000 + b"1\n", "nested too deeply"),
        (b"if 1:\n" + b"".join(b" " * n + b"if 1:\n" for n in range(1, 300)), "does not parse"),
        (b"x = 1\0\n", "NUL"),
        (b"x = " + b"1 + " * 30_000 + b"1\n", "longer than 100,000 bytes"),
        (b"x = (" + b"1 +\n" * 30_000 + b"1)\n", "nested too deeply"),
        (b"# coding: utf-7\nx = '+AGE-'\n", "not text"),
        (b"# coding: idna\nx = 1\n", ""),
        (b"\xff\xfex\0 \0", "NUL"),
    ],
)
def test_hostile_files(repo: Repo, raw: bytes, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    repo.stage("a.py", raw)
    repo.stage("b.py", BAD)
    assert main(["hook", "fix"]) == 1
    told = capsys.readouterr().out
    assert not reason or reason in next(line for line in told.splitlines() if line.startswith("a.py"))
    assert repo.read("a.py") == raw
    assert repo.read("b.py") == b"a = x not in y\n"


def test_names_cannot_drive_the_terminal(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    name = "\x1b[2J\r\nevil\x07.py"
    (repo.folder / name).write_bytes(BAD)
    repo.git("add", "-A")
    assert main(["hook", "check"]) == 1
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "\x07" not in told


@pytest.mark.long
def test_modules_of_the_repository_are_not_imported(repo: Repo, tmp_path: Path) -> None:
    """The installed hook, in a repository whose modules are named like ours and like the standard library's."""
    assert main(["hook", "install"]) == 0
    mark = tmp_path / "ran"
    for name in (
        "ast.py",
        "argparse.py",
        "localagent/__init__.py",
        "localagent/cli/main.py",
        "sitecustomize.py",
        "libcst.py",
    ):
        repo.stage(name, f"open({str(mark)!r}, 'w').close()\n")
    environ = {**ENVIRON, "PYTHONPATH": str(repo.folder), "HOME": str(tmp_path), "PYTHONSTARTUP": "ast.py"}
    done = subprocess.run(["git", "commit", "-m", "x"], cwd=repo.folder, env=environ, capture_output=True, check=False)
    assert b" checked, " in done.stderr, done.stderr
    assert not mark.exists()
    assert sys.executable.encode() in repo.read(".git/hooks/pre-commit")
