"""That tests leave the user's own state, data and configuration alone: sessions of them in a home that is looked at."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOME = (
    "tests/hostile/test_gate_floods.py::test_hostile_names_and_contents_stay_text_in_every_output",
    "tests/gate/test_gate_own_packages.py",
    "tests/cli/test_remediate_verb.py::test_apply_and_undo",
    "tests/cli/test_gate_verb.py",
)
SINNER = """
from pathlib import Path
from localagent.fs.atomic_files import write_private
def test_sinner():
    folder = Path.home() / ".local" / "state" / "localagent"
    folder.mkdir(parents=True, exist_ok=True)
    write_private(folder / "a", b"")
"""


def session(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A session of tests whose user has this home and no folders named otherwise."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "PYTEST_"))}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environ = {**kept, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


def own(home: Path) -> list[str]:
    below = (".local/state", ".local/share", ".config")
    return sorted(str(p.relative_to(home)) for name in below for p in (home / name).rglob("*"))


@pytest.mark.long
def test_a_session_leaves_nothing_in_the_users_own_folders(tmp_path: Path) -> None:
    ran = session(tmp_path, *SOME)
    assert ran.returncode == 0, ran.stdout
    assert [name for name in own(tmp_path) if "localagent" in name] == []


@pytest.mark.long
@pytest.mark.parametrize("inside", [True, False], ids=["in a test", "while imported"])
def test_a_session_that_writes_there_fails(tmp_path: Path, *, inside: bool) -> None:
    place = ROOT / "tests" / f"test_sinner_{os.getpid()}.py"
    place.write_text(SINNER if inside else SINNER + "test_sinner()\ndel test_sinner\ndef test_nothing(): pass\n")
    try:
        ran = session(tmp_path, str(place))
    finally:
        place.unlink()
    assert (ran.returncode, ".local/state/localagent" in ran.stdout) == (1, True), ran.stdout
