"""The index of a repository: what is in it, how it follows the tree, what damage and kills do to it."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.git_builder import Repo
from support.index_builder import answers, index_of, settings_in

from localagent.app.code.repository_index import HitKind, index_path
from localagent.app.code.search_code import search_expression, search_text

QUERIES = ("parse the date", "price_total", "retry", "zzz")
TOKEN = "ghp_" + "a1B2" * 10


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "r")
    made.stage("shop/prices.py", 'def price_total(items):\n    """Sum what the items cost."""\n    return sum(items)\n')
    made.stage(
        "shop/dates.py",
        "# parse the date of an order\nclass OrderDate:\n    def parse(self, text):\n        return text\n",
    )
    made.stage("README.md", "# Shop\n\nHow retries work.\n")
    made.commit("fix the retry of orders")
    return made


@pytest.mark.long
def test_any_series_of_edits_answers_as_an_index_from_nothing(repo: Repo, tmp_path: Path) -> None:
    drawn = random.Random(7)
    names = ["a.py", "b/c.py", "b/d.txt", "e.toml"]
    texts = [
        "def parse_date(x):\n    return x\n",
        "retry = 3\n",
        "x = (\n",
        "class Price:\n    'price total'\n",
        "a\0b",
    ]
    for round_number in range(6):
        for _ in range(3):
            path = repo.folder / drawn.choice(names)
            path.parent.mkdir(exist_ok=True)
            if path.exists() and drawn.random() < 0.3:
                path.unlink()
            else:
                path.write_text(drawn.choice(texts))
        index = index_of(repo.folder, tmp_path / "grown")
        _nothing_is_left_of_removed_files(index.status().path)
        grown = answers(index, *QUERIES)
        assert grown == answers(index_of(repo.folder, tmp_path / f"new{round_number}"), *QUERIES)


def _nothing_is_left_of_removed_files(path: Path) -> None:
    connection = sqlite3.connect(path)
    orphans = "SELECT count(*) FROM {} WHERE {} NOT IN (SELECT id FROM {})"
    for table, column, owner in (("term_place", "doc", "chunk"), ("chunk", "file", "file")):
        assert connection.execute(orphans.format(table, column, owner)).fetchone() == (0,)
    connection.close()


@pytest.mark.long
def test_exact_symbols_come_first_and_what_is_unlike_is_not_found(repo: Repo, tmp_path: Path) -> None:
    repo.write("shop/use.py", "from shop.prices import price_total\n" + "price_total([1])\n" * 20)
    index = index_of(repo.folder, tmp_path)
    first = index.search("price_total").hits[0]
    assert (first.path, first.name, first.reasons[0]) == ("shop/prices.py", "price_total", "defines price_total")
    assert index.search("what items cost", kind=HitKind.FUNCTION).hits[0].name == "price_total"
    assert index.search("zebra quagga").hits == ()
    repo.write("shop/area.py", "area = 1\n")
    assert index_of(repo.folder, tmp_path).search("where are zebras").hits == (), "`are` is not what is looked for"
    wide = index.search("pri")
    assert wide.broadened
    assert wide.hits[0].name == "price_total"


@pytest.mark.long
def test_ignore_files_of_all_kinds_leave_out_and_untracked_files_are_in(repo: Repo, tmp_path: Path) -> None:
    for name in (".gitignore", ".aiignore", ".aiexclude", ".agentsignore"):
        repo.write(name, f"secret{name}.py\n")
        repo.write(f"secret{name}.py", "hidden = 1\n")
    repo.write("sub/.aiignore", "!../secret.gitignore.py\nown.txt\n")
    repo.write("sub/own.txt", "hidden\n")
    repo.write("untracked.py", "open_word = 1\n")
    index = index_of(repo.folder, tmp_path)
    assert not [path for path in index.files() if "secret" in path or path.endswith("own.txt")]
    assert index.search("open_word").hits[0].path == "untracked.py"


@pytest.mark.long
def test_secrets_do_not_come_out_and_expressions_have_lines(repo: Repo, tmp_path: Path) -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nwombat/material\n-----END RSA PRIVATE KEY-----\n"
    repo.write("conf.py", f'wombat_token = "{TOKEN}"\ndef f(wombat="{TOKEN}"):\n    pass\n')
    repo.write("key.txt", key)
    index = index_of(repo.folder, tmp_path)
    shown = [search_text(index, "wombat", None, 10), search_text(index, "wombat_token", None, 10)]
    shown += [search_expression(index, "wombat", None, 10, literal=literal) for literal in (True, False)]
    assert all(answer.hits for answer in shown)
    assert TOKEN not in repr(shown)
    assert "wombat/material" not in repr(shown)
    places = {(hit.path, hit.line, hit.column) for hit in shown[2].hits}
    assert places == {("conf.py", 1, 1), ("conf.py", 2, 7), ("key.txt", 2, 1)}


@pytest.mark.long
def test_a_damaged_index_is_built_anew_and_worktrees_share_one(repo: Repo, tmp_path: Path) -> None:
    index = index_of(repo.folder, tmp_path)
    before = answers(index, *QUERIES)
    path = index.status().path
    index.close()
    path.write_bytes(b"not a database at all" * 100)
    again = index_of(repo.folder, tmp_path)
    assert again.status().rebuilt
    assert answers(again, *QUERIES) == before
    repo.git("worktree", "add", "-q", str(tmp_path / "other"))
    other = index_of(tmp_path / "other", tmp_path)
    assert other.status().path == path
    assert other.status().updated == 0
    assert str(index_path(repo.folder, None, settings_in(tmp_path).state_dir)) != str(path)
    assert repo.git("status", "--porcelain") == b""


_BUILD = """
import sys
from pathlib import Path
from support.index_builder import index_of
index_of(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def _building(root: Path, state: Path) -> "subprocess.Popen[bytes]":
    here = str(Path(__file__).resolve().parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", _BUILD, str(root), str(state)], env={**os.environ, "PYTHONPATH": here}
    )


@pytest.mark.long
def test_killed_builders_and_two_at_once_leave_it_whole(repo: Repo, tmp_path: Path) -> None:
    for number in range(120):
        repo.write(f"many/m{number}.py", f"def price_{number}(retry):\n    return retry\n" * 20)
    for seconds in (0.4, 0.8, 1.2, 1.6):
        builder = _building(repo.folder, tmp_path / "a")
        time.sleep(seconds)
        builder.send_signal(signal.SIGKILL)
        builder.wait()
    both = [_building(repo.folder, tmp_path / "a") for _ in range(2)]
    assert [builder.wait() for builder in both] == [0, 0]
    index = index_of(repo.folder, tmp_path / "a")
    assert not index.status().rebuilt
    assert answers(index, *QUERIES) == answers(index_of(repo.folder, tmp_path / "b"), *QUERIES)


@pytest.mark.long
def test_what_was_removed_takes_no_room_and_heads_are_told(repo: Repo, tmp_path: Path) -> None:
    """Heads of Python's definitions lie in the facts, of what does not parse in the file's own row."""
    for number in range(30):
        words = " ".join(f"word{number}_{at}" for at in range(400))
        repo.write(
            f"shop/many{number}.py", f'async def many{number}():\n    """Sum {number}."""\n    return "{words}"\n'
        )
    index = index_of(repo.folder, tmp_path)
    path = index.status().path
    (hit,) = index.search("many7", kind=HitKind.FUNCTION).hits
    assert (hit.signature, hit.summary) == ("async def many7()", "Sum 7.")
    assert index.search("OrderDate").hits[0].signature == "class OrderDate"
    assert index.search("retries").hits[0].summary == "Shop"
    index.close()
    before = path.stat().st_size
    for number in range(30):
        (repo.folder / f"shop/many{number}.py").unlink()
    index_of(repo.folder, tmp_path).close()
    assert sqlite3.connect(path).execute("PRAGMA freelist_count").fetchone() == (0,)
    assert path.stat().st_size < before / 2
