"""docs/architecture.md names every room once, and draws the layers that the contract has."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
OUTSIDE = {"__init__.py", "__main__.py", "_data/", "__pycache__/"}
_ROW = re.compile(r"^\| `localagent/([^`]+)` \|", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#:]+)\)")
_MODULE = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.py)`")


def rows(page: str) -> list[str]:
    """What the table of rooms names, in its order."""
    return _ROW.findall(page)


def drawn(page: str) -> list[set[str]]:
    """The layers as the page draws them, the highest first."""
    below = page.split("(import-linter) says so:\n```\n", 1)[1]
    return [{name.strip() for name in line.split("|")} for line in below.split("\n```", 1)[0].splitlines()]


def test_every_room_has_one_line() -> None:
    there = {p.name + ("/" if p.is_dir() else "") for p in (ROOT / "localagent").iterdir()}
    assert sorted(rows(PAGE)) == sorted(there - OUTSIDE)


def test_the_drawn_layers_are_the_contract() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = table["tool"]["importlinter"]["contracts"][0]["layers"]
    assert drawn(PAGE) == [{name.strip("() ") for name in layer.split("|")} for layer in layers]


def test_rooms_come_from_the_lowest_layer_up() -> None:
    height = {name: -at for at, layer in enumerate(drawn(PAGE)) for name in layer}
    heights = [height[row.removesuffix("/").removesuffix(".py")] for row in rows(PAGE)]
    assert heights == sorted(heights)


def test_what_the_page_points_at_is_there() -> None:
    gone = [link for link in _LINK.findall(PAGE) if not (ROOT / "docs" / link).exists()]
    named = [path.removeprefix("localagent/") for path in _MODULE.findall(PAGE)]
    gone += [path for path in named if not (ROOT / "localagent" / path).exists()]
    assert gone == []
