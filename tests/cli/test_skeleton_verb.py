"""`localagent skeleton`: a patch that git applies, exit codes, and nothing written."""

import json
import subprocess
from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.cli.main import main


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "r")
    made.stage("shop/__init__.py", "")
    made.stage("shop/util.py", "def other():\n    pass\n")
    test = "from shop.cart import Cart\nfrom shop.util import other, rate\n\n\n"
    test += "def test_it():\n    assert Cart(1).sum() == rate(2)\n"
    made.stage("tests/test_shop.py", test + "    other()\n")
    made.commit()
    return made


def test_the_patch_applies_and_then_nothing_is_missing(
    repo: Repo, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    where = ["tests/test_shop.py", "--repo", str(repo.folder)]
    assert main(["skeleton", *where]) == 0
    patch = capsysbinary.readouterr().out
    assert not (repo.folder / "shop/cart.py").exists()
    subprocess.run(["git", "apply"], cwd=repo.folder, input=patch, check=True)
    assert (repo.folder / "shop/cart.py").read_text().startswith("class Cart:\n")
    assert "def rate(number):" in (repo.folder / "shop/util.py").read_text()
    assert main(["skeleton", *where]) == 1
    assert main(["skeleton", "tests", "--repo", str(repo.folder), "--json"]) == 1
    assert json.loads(capsysbinary.readouterr().out)["missing"] == {}
    out = tmp_path / "s.patch"
    (repo.folder / "shop/cart.py").unlink()
    assert main(["skeleton", *where, "--out", str(out)]) == 0
    assert out.read_bytes().startswith(b"diff --git a/shop/cart.py b/shop/cart.py\nnew file mode 100644\n")


def test_what_is_not_there_is_a_usage_fault(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skeleton", "tests/none.py", "--repo", str(repo.folder)]) == 2
    assert "tests/none.py: no Python file" in capsys.readouterr().err
