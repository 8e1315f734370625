"""`fix` finds the failing test of a project however it is laid out, or says why not and what to pass."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.fix_builder import Home
from support.layout_builder import LAYOUTS, UNFOUND


def _home(tmp_path: Path, files: Mapping[str, str]) -> Home:
    home = Home(root=tmp_path)
    for folder in (home.repo, home.scratch, tmp_path / "home"):
        folder.mkdir()
    home.write(files)
    return home


@pytest.mark.long
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_failing_test_is_found_and_linked_to_its_source(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    ran = _home(tmp_path, layout.files).fix(*layout.args, candidates=1, seconds=90)
    assert f"1 fail: {layout.expected}" in ran.err, ran
    assert f"most suspicious: {layout.source}:" in ran.err, ran


@pytest.mark.long
@pytest.mark.parametrize("name", UNFOUND)
def test_what_is_missing_is_said_and_what_to_pass(name: str, tmp_path: Path) -> None:
    layout = UNFOUND[name]
    ran = _home(tmp_path, layout.files).fix(*layout.args, candidates=1, seconds=90)
    assert ran.code == 1
    assert layout.expected in f"{ran.reason}; {ran.report['remedy']}"
