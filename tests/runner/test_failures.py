"""Failures of the worker: where files lie is settled before any child is forked."""

import os
import sys
from pathlib import Path

import pytest

from localagent.runner import failures


def test_where_a_loaded_module_lies_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(Path(__file__).parents[2])
    failures.know_loaded_files(root)
    asked: list[str] = []
    monkeypatch.setattr(os.path, "realpath", lambda path, **_: asked.append(str(path)) or str(path))  # type: ignore[func-returns-value]
    assert failures.relative_path(root, failures.__file__) == "localagent/runner/failures.py"
    assert failures.relative_path(root, sys.modules["json"].__file__) is None
    assert asked == []
    failures.relative_path(root, f"{root}/never_seen.py")
    assert asked == [f"{root}/never_seen.py"]
