"""`localagent train`: exit codes and output, as a user sees them."""

import io
import json
from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.cli import main as entry
from localagent.cli.render import Render

BROKEN = """\
def least(items, limit):
    found = limit
    for item in items:
        if item > found:
            found = item
    return found
"""


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "shop")
    for message, text in (("Begin", BROKEN), ("Fix the comparison", BROKEN.replace(">", "<"))):
        made.stage("shop.py", text)
        made.git("commit", "-q", "-m", message)
    return made


def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(entry, "Render", lambda: Render(out=out, err=err))
    return entry.main(["train", *arguments]), out.getvalue(), err.getvalue()


@pytest.mark.long
def test_too_few_fixes_are_shown_judged_and_not_believed(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = call(monkeypatch, tmp_path, "--from", str(repo.folder), "--no-model", "--json")
    told = json.loads(out)
    (found,) = told["found"].values()
    assert (code, told["registered"], found["real"]) == (1, None, 1)
    assert told["data"].startswith("sha256:")
    assert "1 real" in err
    code, out, _ = call(monkeypatch, tmp_path, "--from", str(repo.folder), "--no-model")
    assert (code, "nothing is kept" in out) == (1, True)
    kept = list((tmp_path / "data").rglob("*.json.gz"))
    assert kept
    code, out, _ = call(monkeypatch, tmp_path, "--forget")
    assert (code, list((tmp_path / "data").rglob("*.json.gz"))) == (0, [])


def test_wrong_uses_are_refused_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = call(monkeypatch, tmp_path, "--hours", "0")
    assert (code, "--from" in err, "--hours" in err) == (2, True, True)
    code, _, err = call(monkeypatch, tmp_path, "--from", str(tmp_path))
    assert (code, str(tmp_path) in err) == (2, True)
    code, _, err = call(monkeypatch, tmp_path, "--from", str(tmp_path), "--preset", "cuda")
    assert (code, "adapter cannot be learned" in err) == (2, True)
