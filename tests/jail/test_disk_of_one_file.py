"""What a writable bind of one file takes."""

from pathlib import Path

from localagent.jail.limits.disk_usage import DiskWatch


def test_the_bind_of_one_file_is_counted_like_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "target"
    file.write_bytes(b"")
    watch = DiskWatch((str(file),), 1 << 20)
    assert watch._changed(str(file)) == 0
    file.write_bytes(b"x" * (3 << 20))
    assert watch._changed(str(file)) == file.stat().st_blocks * 512 >= 3 << 20
    file.unlink()
    assert watch._changed(str(file)) == 0
