"""The verbs about symbols, on a real git repository."""

import json
from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.cli.main import main

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


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    code = main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_every_verb_answers_and_redacts(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert [one["name"] for one in step["overrides"]] == ["Base.step"]  # type: ignore[index]
    assert [one["name"] for one in step["tests"]] == ["test_run"]  # type: ignore[index]
    assert step["commit"].endswith("the first commit")

    assert [c["caller"]["name"] for c in answer(capsys, "callers", "helper", *where)[1]["calls"]] == ["Task.step"]  # type: ignore[index]
    assert [c["callee"]["name"] for c in answer(capsys, "callees", "run", *where)[1]["calls"]] == ["Task.step"]  # type: ignore[index]
    diff = repo.parent / "change.diff"
    diff.write_text(
        "diff --git a/pkg/core.py b/pkg/core.py\n--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -9,2 +9,2 @@\n"
        " def helper():\n-    return 1\n+    return 2\n"
    )
    for change in ("pkg/core.py:10", str(diff)):
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
