"""One writer a repository."""

import subprocess
import sys
from pathlib import Path

import pytest

from localagent.errors import AnswerIsNo
from localagent.repo.apply_patch import repository_lock

HOLD = """
import sys
from pathlib import Path
from localagent.repo.apply_patch import repository_lock
with repository_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_second_one_is_refused_while_the_first_holds_and_let_in_when_it_is_killed(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == b"held\n"
    with pytest.raises(AnswerIsNo, match="another localagent"), repository_lock(tmp_path, wait_seconds=0.1):
        pass
    child.kill()
    child.wait()
    child.stdout.close()
    child.stdin.close()
    with repository_lock(tmp_path, wait_seconds=5):
        assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AnswerIsNo, match="cannot enter"), repository_lock(tmp_path / "no"):
        pass
