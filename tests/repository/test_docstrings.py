"""Every module says what it is for."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VAGUE = {"utils", "util", "common", "helpers", "helper", "misc", "manager", "base", "core", "stuff"}
MODULES = sorted(p for folder in ("localagent", "bench", "scripts") for p in (ROOT / folder).rglob("*.py"))


def test_module_docstring_and_name() -> None:
    without = [p for p in MODULES if (tree := ast.parse(p.read_bytes())).body and not ast.get_docstring(tree)]
    assert [str(p.relative_to(ROOT)) for p in without] == [], "modules without a docstring"
    assert [str(p.relative_to(ROOT)) for p in MODULES if p.stem in VAGUE] == []


def test_there_are_modules() -> None:
    assert len(MODULES) > 50
