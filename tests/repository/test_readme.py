"""What the README tells people to type exists."""

import argparse
import importlib
import re
from pathlib import Path

import pytest

from localagent.cli.main import VERBS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`|^    .*$", re.MULTILINE | re.DOTALL)


def code_of(page: Path) -> str:
    return "\n".join(CODE.findall(page.read_text(encoding="utf-8")))


def prose_of(page: Path) -> str:
    """A page without its blocks and spans of code, where brackets are no links."""
    lines = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL).splitlines()
    return re.sub(r"`[^`\n]+`", "", "\n".join(line for line in lines if not line.startswith("    ")))


def options(verb: str) -> set[str]:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"localagent.cli.{VERBS[verb][0]}").add_arguments(parser)
    return {name for action in parser._actions for name in action.option_strings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`|\s)make ([a-z][a-z-]+)", code_of(page))) <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_verbs_exist(page: Path) -> None:
    assert set(re.findall(r"(?:bin/|`)localagent ([a-z]+(?:-[a-z]+)*)", code_of(page))) <= set(VERBS)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose_of(page))
    assert [link for link in links if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """Where GitHub lets a link into a page lead: its headings in lower case, without punctuation, blanks as dashes."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_into_pages_lead_to_a_heading(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", prose_of(page))
    assert [link for link in links if link[1] not in anchors(page.parent / link[0] if link[0] else page)] == []


def test_options_of_the_table_exist() -> None:
    table = re.findall(r"^\| `(--.*?)` \|", README, re.MULTILINE)
    named = {name for row in table for name in re.findall(r"--[a-z][a-z-]*", row)}
    assert named
    assert named <= options("fix")


def test_every_verb_is_a_module() -> None:
    for module, _ in VERBS.values():
        assert hasattr(importlib.import_module(f"localagent.cli.{module}"), "run")


def test_two_commands_are_enough() -> None:
    assert re.search(r"^make demo\b", README, re.MULTILINE)
    assert re.search(r"^make test\b", README, re.MULTILINE)
