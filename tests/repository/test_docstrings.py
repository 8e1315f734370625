"""Every module says what it is for."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VAGUE = {"utils", "util", "common", "helpers", "helper", "misc", "manager", "base", "core", "stuff"}
MODULES = sorted(p for folder in ("localagent", "bench", "scripts") for p in (ROOT / folder).rglob("*.py"))


@pytest.mark.long
@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_module_docstring_and_name(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if tree.body:
        assert ast.get_docstring(tree), "a module without a docstring"
    assert path.stem not in VAGUE


def test_there_are_modules() -> None:
    assert len(MODULES) > 50
