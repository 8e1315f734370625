"""Where a repository begins and which interpreter is its own."""

from pathlib import Path

import pytest

from localagent.repo.discover import GitKind, dangling_environment, default_python, git_kind, repository_root


def test_root_is_the_nearest_git_directory_or_file(tmp_path: Path) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/.git").mkdir()
    assert repository_root(tmp_path / "a/b/c") == tmp_path / "a"
    (tmp_path / "a/b/.git").write_text("gitdir: x\n")
    assert repository_root(tmp_path / "a/b/c") == tmp_path / "a/b"
    assert git_kind(tmp_path / "a") is GitKind.DIRECTORY
    assert git_kind(tmp_path / "a/b") is GitKind.FILE
    assert git_kind(tmp_path / "a/b/c") is GitKind.NONE


def test_a_link_named_git_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "real/.git").mkdir(parents=True)
    (tmp_path / "x").mkdir()
    (tmp_path / "x/.git").symlink_to(tmp_path / "real/.git")
    assert git_kind(tmp_path / "x") is GitKind.NONE


def test_own_interpreter(tmp_path: Path) -> None:
    assert default_python(tmp_path) is None
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    assert default_python(tmp_path) is None  # says nothing of being an environment
    (tmp_path / "venv/pyvenv.cfg").write_text("")
    assert default_python(tmp_path) == str(python)


def test_an_environment_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    assert dangling_environment(tmp_path) is None
    (tmp_path / ".venv").symlink_to(tmp_path / "gone")
    assert dangling_environment(tmp_path) == ".venv"
    (tmp_path / ".venv").unlink()
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = /nowhere\n")
    assert dangling_environment(tmp_path) == "venv"


@pytest.mark.parametrize(("folder", "marker"), [("env", "pyvenv.cfg"), (".pixi/envs/default", "conda-meta/history")])
def test_environments_of_other_tools_are_found(tmp_path: Path, folder: str, marker: str) -> None:
    python = tmp_path / folder / "bin" / "python"
    for path in (python, tmp_path / folder / marker):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o755)
    assert default_python(tmp_path) == str(python)
