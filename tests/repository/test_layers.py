"""The layers contract holds, and no room stands outside it."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {"__init__", "__main__", "_data"}


def contract() -> dict[str, Any]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, Any] = table["tool"]["importlinter"]["contracts"][0]
    return found


def test_imports_point_down() -> None:
    tool = Path(sys.executable).parent / "lint-imports"
    ended = subprocess.run([tool, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_room_has_a_place() -> None:
    named = {name.strip("() ") for layer in contract()["layers"] for name in layer.split("|")}
    rooms = {p.stem for p in (ROOT / "localagent").iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert rooms - OUTSIDE <= named


def test_siblings_are_independent() -> None:
    for layer in contract()["layers"]:
        assert ":" not in layer, f"a colon lets siblings import each other: {layer}"
