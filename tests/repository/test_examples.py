"""The examples are broken in exactly the way their page says, and a person's repair mends them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
REPAIRS = {
    "ledger": [("src/ledger/journal.py", "entry.day < last)", "entry.day <= last)")],
    "wordcount": [("wordcount.py", "result.frequencies.get(word, 0)", "result.frequencies.get(word.lower(), 0)")],
    "inventory": [
        ("inventory/warehouse.py", "if quantity >= available:", "if quantity > available:"),
        ("inventory/reorder.py", "missing = item.minimum - available", "missing = item.target - available"),
    ],
}


def failures(repo: Path) -> int:
    argv = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(repo)]
    ended = subprocess.run(argv, cwd=repo, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1), ended.stdout
    return ended.stdout.count("\nFAILED ")


@pytest.mark.slow
@pytest.mark.parametrize("name", REPAIRS)
def test_broken_until_every_repair_is_made(name: str, tmp_path: Path) -> None:
    repo = tmp_path / name
    shutil.copytree(EXAMPLES / name, repo, ignore=shutil.ignore_patterns("__pycache__"))
    left = failures(repo)
    assert left
    for path, wrong, right in REPAIRS[name]:
        text = (repo / path).read_text()
        assert text.count(wrong) == 1
        (repo / path).write_text(text.replace(wrong, right))
        before, left = left, failures(repo)
        assert left < before
    assert left == 0


def test_every_example_is_listed() -> None:
    folders = {p.name for p in EXAMPLES.iterdir() if p.is_dir()}
    page = (EXAMPLES / "README.md").read_text()
    assert folders == set(REPAIRS)
    assert all(f"`{name}/`" in page for name in folders)
