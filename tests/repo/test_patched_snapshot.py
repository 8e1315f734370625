"""A patched copy is what the diff makes of the tree; a diff read backwards takes it back; the snapshot stays."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.verify_builder import patch

from localagent.domain.task import Snapshot
from localagent.errors import AnswerIsNo
from localagent.repo.diff.apply_in_memory import apply_diff
from localagent.repo.diff.parse_diff import parse_diff
from localagent.repo.diff.reverse import reversed_diff
from localagent.repo.patched_snapshot import patched
from localagent.repo.snapshot import take_snapshot

BASE = {"a.py": "one\ntwo\nthree\n", "pkg/b.py": "x\n", "c.txt": "c\n"}


def snapshot(root: Path, files: dict[str, str]) -> Snapshot:
    for name, text in files.items():
        (root / "r" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "r" / name).write_text(text)
    return take_snapshot(root / "r", root / "store")


def files_of(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


def made(root: Path, before: Snapshot, text: str) -> Snapshot:
    return patched(before, root / "after", apply_diff(parse_diff(text.encode()), Path(before.store)))


def test_files_come_go_and_change(tmp_path: Path) -> None:
    before = snapshot(tmp_path, BASE)
    after = made(tmp_path, before, patch(BASE, {"a.py": "one\n2\nthree\n", "pkg/b.py": None, "new/d.py": "d\n"}))
    assert files_of(Path(after.store)) == {"a.py": "one\n2\nthree\n", "new/d.py": "d\n", "c.txt": "c\n"}
    assert sorted(after.entries) == ["a.py", "c.txt", "new/d.py"]
    assert files_of(Path(before.store)) == BASE
    assert after.digest == take_snapshot(Path(after.store), tmp_path / "again").digest


def test_a_folder_that_is_not_empty_stays(tmp_path: Path) -> None:
    files = {**BASE, "pkg/c.py": "y\n"}
    after = made(tmp_path, snapshot(tmp_path, files), patch(files, {"pkg/b.py": None, "a.py": None}))
    assert files_of(Path(after.store)) == {"pkg/c.py": "y\n", "c.txt": "c\n"}
    assert (Path(after.store) / "pkg").is_dir()


def test_a_renamed_file_moves(tmp_path: Path) -> None:
    before = snapshot(tmp_path, BASE)
    text = "diff --git a/a.py b/z.py\nsimilarity index 100%\nrename from a.py\nrename to z.py\n"
    after = made(tmp_path, before, text)
    assert files_of(Path(after.store)) == {"z.py": BASE["a.py"], "pkg/b.py": "x\n", "c.txt": "c\n"}


def test_modes_and_links(tmp_path: Path) -> None:
    before = snapshot(tmp_path, BASE)
    text = "diff --git a/a.py b/a.py\nold mode 100644\nnew mode 100755\n"
    text += "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n"
    text += "+a.py\n\\ No newline at end of file\n"
    after = made(tmp_path, before, text)
    assert (Path(after.store) / "a.py").stat().st_mode & 0o111
    assert str((Path(after.store) / "l").readlink()) == "a.py"
    out = text.replace("+a.py\n", "+../x\n")
    with pytest.raises(AnswerIsNo, match="out of the tree"):
        patched(before, tmp_path / "other", apply_diff(parse_diff(out.encode()), Path(before.store)))


def test_read_backwards_it_knows_the_lines_of_the_text_after(tmp_path: Path) -> None:
    """Many equal lines: only the number tells where a hunk belongs."""
    before = {"f.py": "a\n" * 60}
    after = {"f.py": "new\n" * 9 + "a\n" * 40 + "b\n" + "a\n" * 19}
    store = snapshot(tmp_path, before)
    diff = parse_diff(patch(before, after).encode())
    done = made(tmp_path, store, patch(before, after))
    back = apply_diff(reversed_diff(diff), Path(done.store))
    assert back[0].after.decode() == before["f.py"]
    assert set(back[0].offsets) == {0}


lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "def f():\n", "    return 1\n"]), max_size=12).map("".join)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(lines, lines)
def test_read_backwards_it_takes_back_what_it_brings(old: str, new: str) -> None:
    before, after = {"f.py": old} if old else {}, {"f.py": new or None}
    if old == new:
        return
    text = patch(before, after)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "r").mkdir()
        store = snapshot(root, before)
        done = made(root, store, text)
        back = apply_diff(reversed_diff(parse_diff(text.encode())), Path(done.store))
        again = patched(done, root / "back", back)
        assert files_of(Path(again.store)) == before
