"""`.pre-commit-hooks.yaml` and docs/hook.md name verbs that exist, and say what the framework must know."""

import argparse
import re
from pathlib import Path

import pytest

from localagent.cli import hook

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
HOOKS = re.split(r"^- ", TEXT, flags=re.MULTILINE)[1:]


def fields(text: str) -> dict[str, str]:
    return dict(line.strip().split(": ", 1) for line in text.strip().splitlines())


def test_both_are_offered() -> None:
    assert [fields(h)["id"] for h in HOOKS] == ["localagent-check", "localagent-fix"]


@pytest.mark.parametrize("text", HOOKS, ids=lambda t: fields(t)["id"])
def test_a_hook(text: str) -> None:
    told = fields(text)
    assert (told["language"], told["types_or"], told["require_serial"]) == ("system", "[python, pyi]", "true")
    program, verb, *arguments = told["entry"].split()
    assert (program, verb) == ("localagent", "hook")
    parser = argparse.ArgumentParser()
    hook.add_arguments(parser)
    assert parser.parse_args([*arguments, "a.py"]).files == ["a.py"]


def test_the_page_uses_the_same_entry() -> None:
    page = (ROOT / "docs" / "hook.md").read_text(encoding="utf-8")
    assert "entry: localagent hook fix" in page
