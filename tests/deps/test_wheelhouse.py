"""The folder of --index: only folders of this machine, only files that are named right."""

from pathlib import Path

import pytest
from support.wheel_builder import write_wheel

from localagent.deps.wheelhouse import index_folder, read_wheelhouse
from localagent.errors import UsageFault


@pytest.mark.parametrize(
    "given", ["https://x/simple", "http://x", "ftp://x", "HTTPS://x", "file://elsewhere/x", "s3:bucket", "git+ssh://x"]
)
def test_nothing_but_a_folder_is_an_index(given: str) -> None:
    with pytest.raises(UsageFault, match="nothing here reaches a network"):
        index_folder(given)


def test_a_folder_is_taken_by_path_or_address(tmp_path: Path) -> None:
    for given in (str(tmp_path), f"file://{tmp_path}", f"file:{tmp_path}", f"file://localhost{tmp_path}"):
        assert index_folder(given) == tmp_path
    for given, reason in (("", "not a dir"), (f"{tmp_path}/no", "not a dir"), (f"file://{tmp_path}/%2e", "escaped")):
        with pytest.raises(UsageFault, match=reason):
            index_folder(given)


def test_wheels_are_found_flat_and_by_name_best_first(tmp_path: Path) -> None:
    write_wheel(tmp_path, "Fr_ob", "1.9")
    (tmp_path / "fr-ob" / "deep").mkdir(parents=True)
    newest = write_wheel(tmp_path / "fr-ob", "Fr_ob", "1.10")
    write_wheel(tmp_path / "fr-ob" / "deep", "Fr_ob", "9.9")
    (tmp_path / "Fr_ob-2.0-cp27-cp27m-win32.whl").write_bytes(b"")
    (tmp_path / "zork-1.0.tar.gz").write_bytes(b"")
    (tmp_path / "nonsense.whl").write_bytes(b"")
    (tmp_path / "link-1.0-py3-none-any.whl").symlink_to(newest)
    house = read_wheelhouse(tmp_path)
    assert [(str(w.version), w.rank is None) for w in house.wheels["fr-ob"]] == [
        ("2.0", True),
        ("1.10", False),
        ("1.9", False),
    ]
    assert set(house.wheels) == {"fr-ob"}
    assert house.sources == {"zork": ("zork-1.0.tar.gz",)}
