"""The verbs about symbols, on a real git repository."""

import importlib.util
import io
import json
from pathlib import Path
from typing import Any

import pytest
from support.git_builder import Repo

from localagent.cli.main import main
from localagent.code.index.languages import LANGUAGES, is_installed

FILES = {
    "pkg/__init__.py": "from .core import run\n",
    "pkg/core.py": 'class Base:\n    """What runs."""\n    def step(self): ...\n\nclass Task(Base):\n    def step(self):\n'  # noqa: E501
    "        return helper()\n\ndef helper():\n    return 1\n\ndef run():\n    return Task().step()\n",
    "tests/test_core.py": "from pkg import run\n\ndef test_run():\n    token = 'ghp_"
    + "a" * 36
    + "'; assert run() == 1\n",
    "README.md": "Call `run` first.\n",
    "evil.py": "x = '\\x1b[31m'\ndef \u0440un(): ...\n",
    "broken.py": "def run(:\n",
}


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Repo(tmp_path / "repo")
    for name, text in FILES.items():
        (made.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (made.folder / name).write_text(text, encoding="utf-8")
    made.git("add", "-A")
    made.git("commit", "-qm", "the first commit")
    return made.folder


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_every_verb_answers_and_redacts(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ("--repo", str(repo))
    code, found = answer(capsys, "refs", "core.run", *where)
    kinds = [(r["path"], r["kind"], r["certainty"]) for r in found["references"]]
    assert (code, kinds) == (
        0,
        [
            ("pkg/__init__.py", "import", "certain"),
            ("pkg/core.py", "definition", "certain"),
            ("tests/test_core.py", "import", "certain"),
            ("tests/test_core.py", "call", "certain"),
            ("README.md", "documentation", "possible"),
        ],
    )
    assert "[redacted:github-token]" in found["references"][3]["text"]
    assert answer(capsys, "references", "core.run", *where)[1]["references"] == found["references"]

    (step,) = answer(capsys, "symbol", "Task.step", *where)[1]["definitions"]
    assert [one["name"] for one in step["overrides"]] == ["Base.step"]
    assert [one["name"] for one in step["tests"]] == ["test_run"]
    assert step["commit"].endswith("the first commit")

    assert [c["caller"]["name"] for c in answer(capsys, "callers", "helper", *where)[1]["calls"]] == ["Task.step"]
    assert [c["callee"]["name"] for c in answer(capsys, "callees", "run", *where)[1]["calls"]] == ["Task.step"]
    diff = repo.parent / "change.diff"
    diff.write_text(
        "diff --git a/pkg/core.py b/pkg/core.py\n--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -9,2 +9,2 @@\n"
        " def helper():\n-    return 1\n+    return 2\n"
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(diff.read_bytes())))
    for change in ("pkg/core.py:10", str(diff), "-"):
        code, found = answer(capsys, "impact", change, *where)
        assert [t["name"] for t in found["tests"]] == ["test_run"]
    assert main(["impact", "pkg/core.py:10", "--tests", *where]) == 0
    assert capsys.readouterr().out == "tests/test_core.py::test_run\n"
    for verb in ("symbol", "refs", "callers", "callees"):
        assert main([verb, "no_such_name", *where]) == 1
    assert main(["impact", str(repo / "README.md"), *where]) == 1
    capsys.readouterr()
    assert main(["impact", "pkg/nope.py:3", *where]) == 1
    assert "pkg/nope.py: no such Python file in the index" in "".join(capsys.readouterr())


@pytest.mark.long
def test_symbols_of_other_languages(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the extra [languages] and without it."""
    (repo / "web.js").write_text("// Opens the door.\nfunction openDoor(key) {\n  return key;\n}\n")
    where = ("--repo", str(repo))
    if is_installed(LANGUAGES[".js"]):
        (door,) = answer(capsys, "symbol", "web.js:openDoor", *where)[1]["definitions"]
        assert (door["kind"], door["first_line"], door["signature"], door["summary"]) == (
            "function",
            2,
            "function openDoor(key)",
            "Opens the door.",
        )
        assert main(["refs", "openDoor", *where]) == 1
        assert "nothing is called 'openDoor' in Python" in capsys.readouterr().err
        assert answer(capsys, "index", "--status", *where)[1]["as_text"] == {}

    is_installed.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    try:
        code, status = answer(capsys, "index", "--rebuild", *where)
        assert (code, status["as_text"]) == (0, {"JavaScript": 1})
        assert main(["index", "--status", *where]) == 0
        assert "1 of JavaScript; the extra [languages]" in capsys.readouterr().out
        assert main(["symbol", "openDoor", *where]) == 1
        assert answer(capsys, "search", "openDoor", *where)[1]["hits"][0]["path"] == "web.js"
    finally:
        is_installed.cache_clear()
