"""The changelog keeps its format, and the newest entry fits the version."""

import re
from pathlib import Path

from localagent import __version__

TEXT = (Path(__file__).resolve().parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
VERSION = re.compile(r"^## \[(Unreleased|\d+\.\d+\.\d+)\](?: - (\d{4}-\d{2}-\d{2}))?$")
SECTIONS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def headings(level: str) -> list[str]:
    return [line for line in TEXT.splitlines() if line.startswith(level + " ")]


def test_versions_are_dated_and_descend() -> None:
    found = [VERSION.match(line) for line in headings("##")]
    assert found
    assert all(found), headings("##")
    released = [(m[1], m[2]) for m in found if m and m[1] != "Unreleased"]
    assert all(day for _, day in released)
    numbers = [tuple(map(int, version.split("."))) for version, _ in released]
    assert numbers == sorted(numbers, reverse=True)
    assert not released or released[0][0] == __version__ or "[Unreleased]" in TEXT


def test_known_sections_only() -> None:
    assert {line.removeprefix("### ") for line in headings("###")} <= SECTIONS
