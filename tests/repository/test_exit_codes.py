"""docs/errors.md and localagent/errors.py say the same."""

import re
from pathlib import Path

from localagent import errors

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
ROW = re.compile(r"^\| (\d+) \| (?:`(\w+)`)? ?\|", re.MULTILINE)


def documented() -> dict[str, int]:
    return {name: int(code) for code, name in ROW.findall(PAGE.read_text(encoding="utf-8"))}


def kinds() -> dict[str, int]:
    return {kind.__name__: kind.exit_code for kind in errors.LocalagentError.__subclasses__()}


def test_page_and_code_agree() -> None:
    page = documented()
    assert page.pop("") == 0
    assert page == kinds()


def test_five_kinds_with_codes_of_their_own() -> None:
    assert len(kinds()) == 5
    assert len(set(kinds().values())) == 5


def test_an_unknown_fault_is_our_bug() -> None:
    assert errors.LocalagentError.exit_code == errors.InternalFault.exit_code
