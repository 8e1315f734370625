"""What docs/security.md and the README say of the attack suite is what the suite holds."""

import re
from pathlib import Path

from localagent.app.inventory.attack_suite import kinds

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def test_the_table_counts_what_is_there() -> None:
    section = PAGE.split("## Attacks tried\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([a-z ]+) \| (\d+) \| .+ \|$", section, re.MULTILINE)
    assert tuple((name, int(count)) for name, count in rows) == kinds().counts
    assert f"{kinds().total} attacks" in section


def test_the_readme_tells_the_same_number() -> None:
    told = re.findall(r"tries (\d+) attacks", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert told == [str(kinds().total)]
