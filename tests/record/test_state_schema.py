"""State goes forward in a copy that is renamed into place: killed at any moment, the old one is as it was."""

import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from localagent.errors import CannotEnforce
from localagent.record.state_schema import MIGRATIONS, SCHEMA, Migration, base_of, live, ready

ROOT = Path(__file__).resolve().parents[2]


def shout(folder: Path) -> None:
    (folder / "words").write_text((folder / "words").read_text().upper())


def double(folder: Path) -> None:
    (folder / "words").write_text((folder / "words").read_text() * 2)


TWO: dict[int, Migration] = {1: shout}
THREE: dict[int, Migration] = {1: shout, 2: double}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    state = tmp_path / "localagent"
    (state / "tasks" / "one").mkdir(parents=True)
    (state / "words").write_text("quiet")
    (state / "tasks" / "one" / "journal").write_text("j" * 1000)
    (state / "link").symlink_to("words")
    return state


def test_every_schema_can_be_reached() -> None:
    assert set(MIGRATIONS) == set(range(1, SCHEMA))


def test_the_first_schema_lies_where_it_always_did(base: Path) -> None:
    assert (live(base, 1), base_of(live(base, 1), 1)) == (base, base)
    assert base_of(live(base, 7), 7) == base
    before = sorted(base.rglob("*"))
    assert ready(base, 1, {}) == base
    assert sorted(base.rglob("*")) == before


def test_state_goes_forward_and_the_old_one_stays(base: Path) -> None:
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(base / "sock"))
        place = ready(base, 3, THREE)
    assert (place / "words").read_text() == "QUIETQUIET"
    assert (place / "link").readlink() == Path("words")
    assert (place / "tasks" / "one" / "journal").read_text() == "j" * 1000
    assert not (place / "sock").exists()
    assert (base / "words").read_text() == "quiet"
    (place / "words").write_text("later")
    assert (ready(base, 3, THREE) / "words").read_text() == "later"


def test_the_newest_older_state_is_taken(base: Path) -> None:
    (ready(base, 2, TWO) / "words").write_text("second")
    assert (ready(base, 3, THREE) / "words").read_text() == "secondsecond"


def test_where_there_is_nothing_nothing_is_made(tmp_path: Path) -> None:
    ready(tmp_path / "none", 2, TWO)
    assert not (tmp_path / "none").exists()
    (tmp_path / "empty").mkdir()
    ready(tmp_path / "empty", 2, TWO)
    assert [p.name for p in (tmp_path / "empty").iterdir()] == [".schema.lock"]


def test_a_migration_that_fails_leaves_what_stood(base: Path) -> None:
    def fails(folder: Path) -> None:
        shout(folder)
        raise ValueError("cannot be read")

    with pytest.raises(CannotEnforce, match="cannot be brought to schema 2: ValueError: cannot be read"):
        ready(base, 2, {1: fails})
    assert (base / "words").read_text() == "quiet"
    assert not live(base, 2).exists()
    assert (ready(base, 2, TWO) / "words").read_text() == "QUIET"


PROGRAM = """
import sys
from pathlib import Path
from localagent.record.state_schema import ready

def slowly(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            path.write_text(path.read_text().upper())

ready(Path(sys.argv[1]), 2, {1: slowly})
"""


@pytest.mark.long
def test_killed_at_any_moment_it_is_the_old_state_or_the_whole_new_one(base: Path) -> None:
    for number in range(40):
        (base / "tasks" / f"{number}").write_text("x" * 100)
    before = {p.relative_to(base): p.read_bytes() for p in base.rglob("*") if p.is_file()}
    dice, argv = random.Random(7), [sys.executable, "-S", "-c", PROGRAM, str(base)]
    began = time.monotonic()
    assert subprocess.run(argv, cwd=ROOT, check=False).returncode == 0
    whole = time.monotonic() - began
    after = {p.relative_to(live(base, 2)): p.read_bytes() for p in live(base, 2).rglob("*") if p.is_file()}
    seen = set()
    for _ in range(6):
        subprocess.run(["rm", "-rf", str(live(base, 2))], check=True)
        process = subprocess.Popen(argv, cwd=ROOT)
        time.sleep(dice.uniform(0.3, 1.0) * whole)
        process.send_signal(signal.SIGKILL)
        process.wait()
        there = live(base, 2).is_dir()
        seen.add(there)
        kept = {
            p.relative_to(base): p.read_bytes()
            for p in base.rglob("*")
            if p.is_file() and not {"schema-2", ".schema-2.partial", ".schema.lock"} & set(p.relative_to(base).parts)
        }
        assert kept == before
        if not there:
            assert subprocess.run(argv, cwd=ROOT, check=False).returncode == 0
        found = {p.relative_to(live(base, 2)): p.read_bytes() for p in live(base, 2).rglob("*") if p.is_file()}
        assert found == after
    assert False in seen
