"""Landing of the hook: all or nothing, and nothing lost where taking back fails."""

from pathlib import Path

import pytest

from localagent.domain.edit import FileChange
from localagent.domain.paths import RepoPath
from localagent.errors import LocalagentError
from localagent.precommit.fix_files import _land

CHANGE = FileChange(path=RepoPath("a.py"), before=b"x = 1\n", after=b"x = 2\n")


class IndexRefusedError(Exception):
    """The second half of a landing that fails."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "a.py").write_bytes(CHANGE.before)
    return folder


def test_a_failure_after_the_files_takes_them_back(root: Path, tmp_path: Path) -> None:
    def refuse() -> None:
        assert (root / "a.py").read_bytes() == CHANGE.after
        raise IndexRefusedError

    with pytest.raises(IndexRefusedError):
        _land(root, [CHANGE], tmp_path / "undo", refuse)
    assert (root / "a.py").read_bytes() == CHANGE.before
    assert list((tmp_path / "undo").iterdir()) == []


def test_what_stood_before_is_kept_where_it_cannot_be_put_back(root: Path, tmp_path: Path) -> None:
    def disturb() -> None:
        (root / "a.py").write_bytes(b"x = 3  # somebody else\n")
        raise IndexRefusedError

    with pytest.raises(LocalagentError, match=r"a\.py"):
        _land(root, [CHANGE], tmp_path / "undo", disturb)
    assert (root / "a.py").read_bytes() == b"x = 3  # somebody else\n"
    kept = [path.read_bytes() for path in (tmp_path / "undo").rglob("*") if path.is_file()]
    assert CHANGE.before in kept
