"""Places that a change alters and of which the instruction does not speak."""

import pytest

from localagent.app.agent.unasked_changes import unasked_changes
from localagent.domain.paths import RepoPath

PATH = RepoPath("pkg/mod.py")
BEFORE = """LIMIT = 64


def write_rows(rows):
    \"\"\"Writes.\"\"\"
    return [row for row in rows]


def due(now, last):
    return now - last >= 3


def lower(lines):
    return [line.lower() for line in lines]


def report(rows):
    return due(len(write_rows(rows)), LIMIT)
"""
ASKED = BEFORE.replace("for row in rows]", "for row in rows if row]")
WORDS = "`write_rows` leaves empty rows out."


@pytest.mark.parametrize(
    ("old", "new", "words", "found"),
    [
        (">= 3", "> 3", WORDS, ["due"]),
        ("LIMIT = 64", "LIMIT = 6400000", WORDS, ["LIMIT"]),
        ("LIMIT = 64", "LIMIT = 65", WORDS + " The limit is 65.", []),
        (">= 3", "> 3", WORDS + " That is due soon.", ["due"]),  # a common word is not yet its name
        (">= 3", "> 3", WORDS + " `due` asks for more.", []),
        (">= 3", "> 3", "In pkg/mod.py: " + WORDS, []),
        (">= 3", ">= 3 + write_rows([])", WORDS, []),
        (">= 3", "> 3", WORDS + " So does due().", []),
        ("LIMIT = 64", "LIMIT = 6.5", WORDS + " As of 6.5.", []),
        ("    return now", "    import os\n    return now", WORDS, []),  # the gates look at imports
        ("write_rows(rows)), LIMIT", "write_rows(rows, 1)), LIMIT", WORDS, []),  # it calls what was asked for
        ("def due(now, last):\n", "def due(now, last):\n    '''Whether.'''\n", WORDS, []),
        ("def due(now, last):", "def due(now: int, last: int) -> bool:", WORDS, []),
        (
            "    return [line.lower() for line in lines]",
            "    for line in lines:\n        yield line.lower()",
            WORDS,
            ["lower"],
        ),
        (
            "    return [line.lower() for line in lines]",
            "    for line in lines:\n        yield line.lower()",
            WORDS + " All functions become generators.",
            [],
        ),
    ],
)
def test_what_the_instruction_speaks_of(old: str, new: str, words: str, found: list[str]) -> None:
    assert BEFORE.count(old) == 1
    told = unasked_changes({PATH: BEFORE.encode()}, {PATH: ASKED.replace(old, new).encode()}, words)
    assert [one.rpartition(" ")[2] for one in told] == found
    assert all(one.startswith("pkg/mod.py:") for one in told)


def test_where_no_place_was_asked_for_none_is_named() -> None:
    assert unasked_changes({PATH: BEFORE.encode()}, {PATH: BEFORE.replace(">=", ">").encode()}, "Mend the delay.") == ()


def test_a_file_of_data_that_nobody_spoke_of() -> None:
    before, after = b'{"lines": 100}\n', b'{"lines": 1000000000}\n'
    data, guide = RepoPath("pkg/limits.json"), RepoPath("README.md")
    changes = ({PATH: BEFORE.encode(), data: before, guide: b"a\n"}, {PATH: ASKED.encode(), data: after, guide: b"b\n"})
    assert unasked_changes(*changes, WORDS) == ("pkg/limits.json",)
    assert unasked_changes(*changes, WORDS + " Raise the lines of limits.json.") == ()
    assert unasked_changes({PATH: BEFORE.encode(), data: None, guide: b""}, changes[1], WORDS) == ()  # a new file


def test_a_source_nested_too_deep_is_one_place() -> None:
    deep = f"X = {' + '.join(['1'] * 700)}\n"
    table = RepoPath("pkg/table.py")
    changes = ({PATH: BEFORE.encode(), table: deep.encode()}, {PATH: ASKED.encode(), table: b"Y = 0\n" + deep.encode()})
    assert unasked_changes(*changes, WORDS) == ("pkg/table.py",)
