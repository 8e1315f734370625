"""`localagent search`, `index` and `map`: what they print, their exit codes, and that the repository stays as it is."""

import json
from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.cli.main import main


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Repo(tmp_path / "r")
    made.stage("shop.py", 'def price_total(items):\n    """Sum what the items cost."""\n    return sum(items)\n')
    made.commit()
    made.write("escape.py", "def price_shown():\n    return '\x1b[2J price_total'\n")
    return made


@pytest.mark.long
def test_the_verbs_answer(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--repo", str(repo.folder)]
    assert main(["index", "--status", *where]) == 1
    assert main(["search", "price_total", "--json", *where]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["hits"][0]["path"], answer["hits"][0]["first_line"]) == ("shop.py", 1)
    assert answer["hits"][0]["reason"].startswith("defines price_total")
    assert main(["search", "items cost", "--format", "path:line:col", *where]) == 0
    assert capsys.readouterr().out.startswith("shop.py:2:5: ")
    assert main(["search", "--literal", "price_total", *where]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert main(["search", "zebra quagga", *where]) == 1
    assert main(["search", "--regex", "(", *where]) == 2
    assert main(["search", "x", "--limit", "0", *where]) == 2
    assert main(["index", "--rebuild", *where]) == 0
    assert main(["index", "--status", *where]) == 0
    capsys.readouterr()
    assert main(["map", "--tokens", "50", *where]) == 0
    assert "def price_total(items)" in capsys.readouterr().out
    assert main(["map", "--tokens", "1", *where]) == 1
    assert repo.git("status", "--porcelain") == b"?? escape.py\n"
