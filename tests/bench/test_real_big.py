"""The generated repository of bench/big.py and its memory gauge."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench import big  # noqa: E402


@pytest.mark.long
def test_the_repository_is_big_enough_and_has_one_failing_test(tmp_path: Path) -> None:
    files, lines = big.make_repository(tmp_path / "r", 3_000)
    sources = list((tmp_path / "r/library").rglob("*.py"))
    assert files == len(sources) - 1
    assert lines >= 3_000
    assert all(ast.parse(p.read_bytes()) for p in sources)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "r",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 3 passed" in done.stdout, done.stdout


def test_another_text_of_the_faulty_module_is_told() -> None:
    with pytest.raises(SystemExit, match="change FAULT"):
        big._broken(b"def median(): ...\n")


def test_memory_counts_children_and_keeps_jails_apart(tmp_path: Path) -> None:
    jail = tmp_path / "bwrap"
    jail.write_text("#!/bin/sh\nsleep 30 & echo ready; wait\n")
    jail.chmod(0o755)
    with subprocess.Popen([jail], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        own, jails = big._sizes(process.pid)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGTERM)
    assert own == 0
    assert jails > 0
