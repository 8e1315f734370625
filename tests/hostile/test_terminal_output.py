"""Names, test ids, messages and subjects made to drive a terminal or to forge lines of ours, shown on a real one."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.git_builder import Repo

EVIL = "\x1b]0;owned\x07\x9b31m\u202e\u2800"
FORGED = f"{EVIL}\nFORGED: accepted"
TESTS = f"""import pytest
from calc import add
@pytest.mark.parametrize("s", [{FORGED!r}])
def test_add(s):
    assert add(1, 2) == 3, s
def test_boom():
    raise ValueError({FORGED!r})
"""
SLOPPY = "def f(x=[]):\n    if x == None:\n        return 1\n    return x\n"


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("terminal") / "repo"
    made = Repo(root)
    (root / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (root / f"m{FORGED}.py").write_text(SLOPPY)
    (root / f"test_{FORGED}.py").write_text(TESTS)
    (root / "shown.txt").write_text(
        f'Traceback (most recent call last):\n  File "calc.py", line 2, in add{EVIL}\nValueError: {EVIL}\n'
    )
    made.git("add", "-A")
    made.git("commit", "-q", "-m", f"subject {EVIL}")
    return root


def on_a_terminal(repo: Path, *arguments: str) -> str:
    """Everything that `localagent` wrote to a terminal of its own."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "XDG_STATE_HOME": str(repo.parent / "state"), "COLUMNS": "120"}
    program = [sys.executable, "-m", "localagent", *arguments]
    with subprocess.Popen(program, cwd=repo, env=environ, stdin=theirs, stdout=theirs, stderr=theirs) as child:
        os.close(theirs)
        said = b""
        while True:
            try:
                said += (data := os.read(ours, 65536))
            except OSError:  # the terminal's last writer is gone
                break
            if not data:
                break
    os.close(ours)
    assert child.returncode in (0, 1, 2), said
    return said.decode("utf-8", "surrogateescape")


@pytest.mark.long
def test_nothing_from_a_repository_drives_the_terminal_or_forges_a_line(repo: Path) -> None:
    tests = f"test_{FORGED}.py"
    for arguments, quoted in (
        (["hook", "check", f"m{FORGED}.py"], "mutable-default"),
        (["map"], "calc.py"),
        (["search", "add"], "test_add"),
        (["explain", "shown.txt"], "ValueError"),
        (
            [
                "fix",
                "--test",
                tests,
                "--python",
                sys.executable,
                "--max-seconds",
                "40",
                "--max-candidates",
                "1",
                "--no-model",
            ],
            "test_boom",
        ),
        (["show"], "test_boom"),
        (["skeleton", f"gone{FORGED}"], "FORGED"),
        (["gate", "x.diff", f"--{EVIL}"], "unrecognized"),
    ):
        said = on_a_terminal(repo, *arguments)
        assert quoted in said, (arguments, said)
        assert not [c for c in ("\x1b]", "\x07", "\x9b", "\u202e", "\u2800") if c in said], (arguments, said)
        assert not re.search(r"(?m)^FORGED", said), (arguments, said)
