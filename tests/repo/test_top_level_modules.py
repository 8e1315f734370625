"""Names that a tree owns: by the places of its files, never through a link."""

from pathlib import Path

from localagent.repo.top_level_modules import importable_names


def test_packages_and_modules_at_the_top_and_below_src(tmp_path: Path) -> None:
    for name in (
        "one.py",
        "two/__init__.py",
        "src/three/__init__.py",
        "src/four.py",
        "five/notes.txt",
        "not-a-name.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert importable_names(tmp_path) == {"one", "two", "three", "four"}


def test_a_link_is_no_package_of_the_tree(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "evil").mkdir(parents=True)
    (outside / "evil" / "__init__.py").write_text("")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "evil").symlink_to(outside / "evil")
    (tree / "src").symlink_to(outside)
    (tree / "other.py").symlink_to(outside / "evil" / "__init__.py")
    assert importable_names(tree) == frozenset()
