"""Results are there whole, or not at all; nothing that stands there is touched."""

from pathlib import Path

import pytest

from localagent.app.agent.results_folder import publish, results_fault
from localagent.fs.atomic_files import CannotRecord


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    (folder / "plots").mkdir(parents=True)
    (folder / "t.csv").write_bytes(b"a\n")
    (folder / "plots" / "p.png").write_bytes(b"\x89PNG")
    return folder


@pytest.mark.parametrize("there", [False, True])
def test_a_new_or_an_empty_folder_is_filled(there: bool, made: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    if there:
        results.mkdir()
    publish(results, made, {"analysis.py": b"x = 1\n"})
    found = {str(p.relative_to(results)): p.read_bytes() for p in results.rglob("*") if p.is_file()}
    assert found == {"t.csv": b"a\n", "plots/p.png": b"\x89PNG", "analysis.py": b"x = 1\n"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made", "results"]


def test_what_stands_there_is_left_alone(made: Path, tmp_path: Path) -> None:
    for name in ("file", "full", "link"):
        assert results_fault(tmp_path / name) == ""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "in").symlink_to(".git")
    cases = [(name, "git's own") for name in (".git", ".git/hooks", "in/hooks")]
    for name, why in (
        *cases,
        ("file", "no folder"),
        ("full", "not empty"),
        ("link", "no folder"),
        ("none/x", "not exist"),
    ):
        assert why in results_fault(tmp_path / name)
        with pytest.raises(CannotRecord, match=why):
            publish(tmp_path / name, made, {})
    assert (tmp_path / "file").read_text() == (tmp_path / "full" / "x").read_text() == "mine"
    assert not any((tmp_path / "empty").iterdir())


def test_half_of_it_is_nothing(made: Path, tmp_path: Path) -> None:
    with pytest.raises(CannotRecord, match="cannot write"):
        publish(tmp_path / "results", made, {"t.csv/below": b""})
    assert [p.name for p in tmp_path.iterdir()] == ["made"]
