"""`localagent debug` in a real jail."""

import json
import time
from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.app.review import patch_tests
from localagent.cli.main import main
from localagent.errors import AnswerIsNo

CART = """def unit(price, count):
    return price * count


def total(price, count):
    each = unit(price, count)
    return each + 1
"""
TESTS = f"""from cart import total


def test_none():
    assert total(0, 0) == 0


def test_some():
    password = 'ghp_{"a" * 36}'
    found = total(2, 3)
    import threading
    one = threading.Thread(target=total, args=(password, None), name="beside")
    one.start()
    one.join()
    assert found == 6
"""


@pytest.mark.slow
def test_the_dossier_of_a_failing_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    repo = Repo(tmp_path / "r")
    repo.stage("cart.py", CART)
    repo.stage("test_cart.py", TESTS)
    repo.commit("one")
    before = {p: p.read_bytes() for p in repo.folder.rglob("*") if p.is_file() and ".git" not in p.parts}
    argv = ["debug", "test_cart.py::test_some", "--repo", str(repo.folder), "--json", "--max-seconds", "40"]
    page = tmp_path / "page.html"
    argv += ["--html", str(page)]
    assert main(argv) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["test"] == "test_cart.py::test_some"
    assert told["frames"][-1]["locals"]["found"] == "7"
    assert "ghp_" not in json.dumps(told["frames"])
    (beside,) = told["threads"]
    assert (beside["name"], beside["exception"]) == ("beside", "TypeError")
    assert [frame["line"] for frame in beside["frames"]] == [6, 2]
    assert "ghp_" not in json.dumps(beside)
    assert {"path": "test_cart.py", "line": 10, "name": "found", "value": "7"} in told["writes"]
    assert 7 in [s["line"] for s in told["suspects"][:2]]
    assert (
        "with the result forced to 6 at cart.py:7 (next to 7, the last value there in the failing run) the test passes"
        in [v["shown"] for v in told["values"]]
    )
    assert {h["outcome"] for h in told["hypotheses"]} <= {"confirmed", "possible", "refuted"}
    assert told["departure"] is None  # both tests run the same lines of cart.py
    assert "with the result forced to 6 at cart.py:7" in page.read_text()
    assert "ghp_" not in page.read_text()
    after = {p: p.read_bytes() for p in repo.folder.rglob("*") if p.is_file() and ".git" not in p.parts}
    assert after == before
    repo.write("cart.py", CART.replace("each + 1", "each"))
    assert main(argv) == 1
    assert "passes here" in capsys.readouterr().err
    (tmp_path / "nothing").mkdir()
    assert main(["debug", "--repo", str(tmp_path / "nothing")]) == 1
    said = capsys.readouterr().err
    assert f"no tests found in {tmp_path / 'nothing'}" in said
    assert "localagent debug tests/test_it.py::test_one" in said
    (tmp_path / "nothing" / ".git").mkdir()
    (tmp_path / "nothing" / "src").mkdir()
    assert main(["debug", "--repo", str(tmp_path / "nothing" / "src")]) == 1
    assert f"src is a folder of {tmp_path / 'nothing'}: pass --repo" in capsys.readouterr().err


@pytest.mark.long
def test_the_uncommitted_change_that_breaks_the_test_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    repo = Repo(tmp_path / "r")
    good = CART.replace("each + 1", "each")
    repo.stage("pkg/cart.py", good)
    repo.stage("pkg/test_cart.py", TESTS)
    repo.commit("one")
    repo.write("pkg/cart.py", "MOST = 9\n\n\n" + good.replace("price * count", "price + count"))
    assert main(["debug", "--repo", str(repo.folder / "pkg"), "--json", "--max-seconds", "20"]) == 0
    told = json.loads(capsys.readouterr().out)
    (hunk,) = told["uncommitted"]
    assert (hunk["path"], hunk["line"], hunk["after"]) == ("cart.py", 5, "    return price + count\n")
    assert told["suspects"][0]["line"] == 5
    assert told["look_first"][0].startswith(("cart.py:5 ", "what you changed since the last commit"))
    repo.write("pkg/cart.py", CART)
    repo.git("commit", "-qam", "broken")
    repo.write("pkg/cart.py", f"MOST = 9\n\n\n{CART}")
    assert main(["debug", "--repo", str(repo.folder / "pkg"), "--json", "--max-seconds", "20"]) == 0
    assert json.loads(capsys.readouterr().out)["uncommitted"] == []  # it fails without the change, too


@pytest.mark.long
def test_after_the_baseline_jails_answer_in_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    repo = Repo(tmp_path / "r")
    repo.stage("cart.py", CART)
    repo.stage("test_cart.py", TESTS)
    repo.commit("one")
    due: list[float] = []

    def seen(ground: patch_tests.TestedSnapshot, *_: object) -> None:
        due.append(ground.verifier.worker_pool.until - time.monotonic())
        raise AnswerIsNo("that is all")

    monkeypatch.setattr("localagent.app.debug.debug.localized", seen)
    assert main(["debug", "--repo", str(repo.folder), "--max-seconds", "500"]) == 1
    assert 0 < due[0] <= 1.1 * 500
