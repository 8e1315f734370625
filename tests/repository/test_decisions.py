"""The list of decisions names each page once, in the order of their numbers."""

import re
from pathlib import Path

PAGES = Path(__file__).resolve().parents[2] / "docs" / "adr"


def test_every_decision_is_listed_under_its_number() -> None:
    listed = re.findall(r"^\| \[(\d{4})\]\((\S+)\) \|", (PAGES / "README.md").read_text("utf-8"), re.MULTILINE)
    assert [page for _, page in listed] == sorted(page.name for page in PAGES.glob("0*.md"))
    assert all(page.startswith(f"{number}-") for number, page in listed)
