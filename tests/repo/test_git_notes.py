"""Notes in real repositories: one ref changes and nothing else, nothing of theirs runs, what a commit holds counts."""

import shlex
import subprocess
from pathlib import Path

import pytest
from support.fix_builder import tree_of
from support.git_builder import ENVIRON, Repo

from localagent.domain.edit import digest_of
from localagent.errors import AnswerIsNo
from localagent.repo.commit_tree import commit_of
from localagent.repo.git import Git
from localagent.repo.git_notes import REF, command, read_note, unlike, write_note

DATA = b'{"payload":"x"}\n{"a":1}\n'


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "repo")
    made.stage("a.py", "a = 1\n")
    made.stage("sub/b.py", "b = 1\n")
    made.commit()
    return made


def head(repo: Repo, folder: str = ".") -> tuple[Git, str]:
    git = Git(repo.folder / folder, {})
    return git, commit_of(git, "HEAD", option="--note")


def test_a_note_is_kept_byte_for_byte_and_nothing_else_changes(repo: Repo) -> None:
    git, commit = head(repo)
    assert read_note(git, commit) is None
    before = {p: f for p, f in tree_of(repo.folder).items() if "/.git/" not in p and not p.endswith("/.git")}
    refs = repo.git("for-each-ref")
    write_note(git, commit, DATA)
    assert read_note(git, commit) == DATA
    assert repo.git("notes", f"--ref={REF}", "show", commit) == DATA
    assert {p: f for p, f in tree_of(repo.folder).items() if p in before} == before
    added = set(repo.git("for-each-ref").splitlines()) - set(refs.splitlines())
    assert [row.split(b"\t")[1].decode() for row in added] == [REF]
    assert repo.git("status", "--porcelain") == b""


def test_nothing_that_the_repository_configures_runs(repo: Repo, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    evil = repo.write(".git/hooks/reference-transaction", f"#!/bin/sh\ntouch {ran}\n")
    evil.chmod(0o755)
    for name in ("core.editor", "core.pager", "gpg.program", "core.fsmonitor", "core.hooksPath"):
        repo.git("config", name, str(evil if name != "core.hooksPath" else evil.parent))
    repo.git("config", "commit.gpgSign", "true")
    git, commit = head(repo)
    write_note(git, commit, DATA)
    assert not ran.exists()
    repo.git("update-ref", "refs/heads/other", commit)  # the control: an ordinary git runs it
    assert ran.exists()


def test_another_note_is_never_replaced(repo: Repo) -> None:
    git, commit = head(repo)
    write_note(git, commit, DATA)
    write_note(git, commit, DATA)
    with pytest.raises(AnswerIsNo, match="another note"):
        write_note(git, commit, DATA + b"{}\n")
    assert read_note(git, commit) == DATA


def test_the_command_that_is_shown_does_the_same(repo: Repo, tmp_path: Path) -> None:
    git, commit = head(repo)
    file = tmp_path / "it's a file; true"
    file.write_bytes(DATA)
    words = command(git, file, commit)
    subprocess.run(["sh", "-c", words], env=ENVIRON, check=True)
    assert read_note(git, commit) == DATA
    assert shlex.split(words)[0] == "git"


@pytest.mark.parametrize(("folder", "path"), [(".", "sub/b.py"), ("sub", "b.py")])
def test_a_commit_is_held_against_what_is_wanted(repo: Repo, folder: str, path: str) -> None:
    git, commit = head(repo, folder)
    right, wrong = digest_of(b"b = 1\n"), digest_of(b"b = 2\n")
    assert unlike(git, commit, {(path,): right}) == []
    assert unlike(git, commit, {("no such", path): right}) == []
    assert unlike(git, commit, {(path,): wrong}) == [path]
    for other in ("nothing", "../a.py", "a\0b", "", "a\nb"):
        assert unlike(git, commit, {(other,): right}) == [other]
    repo.write("sub/b.py", "b = 2\n")  # the working tree has no say
    assert unlike(git, commit, {(path,): wrong}) == [path]
