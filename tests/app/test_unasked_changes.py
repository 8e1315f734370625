"""Places that a change alters and of which the instruction does not speak."""

import pytest

from localagent.app.agent.unasked_changes import code_beside_text, unasked_changes
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
    assert unasked_changes(*changes, WORDS) == ("pkg/limits.json: lines",)
    assert unasked_changes(*changes, WORDS + " Raise the lines of limits.json.") == ()
    assert unasked_changes({PATH: BEFORE.encode(), data: None, guide: b""}, changes[1], WORDS) == ()  # a new file


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            "a.json",
            '{"item": {"size": {"max": 9}, "name": {"must": true}}}',
            '{"item": {"size": {"max": 20}, "name": {"must": false}}}',
        ),
        ("a.toml", "[size]\nmax = 9\n[name]\nmust = 1\n", "[name]\nmust = 2\n[size]\nmax = 20\n"),
        ("a.cfg", "[size]\nmax = 9\n[name]\nmust = 1\n", "[size]\nmax = 20\n[name]\nmust = 2\n"),
    ],
)
def test_a_key_of_a_file_that_was_named_is_a_place_of_its_own(name: str, before: str, after: str) -> None:
    path = RepoPath(name)
    (found,) = unasked_changes({path: before.encode()}, {path: after.encode()}, f"In {name} allow a size of 20.")
    assert found.endswith("name.must")
    assert found in unasked_changes({path: after.encode()}, {path: before.encode()}, f"In {name} allow a size of 20.")


def test_what_is_gone_was_asked_for_by_its_name() -> None:
    without = ASKED.replace("def due(now, last):\n    return now - last >= 3\n\n\n", "")
    (told,) = unasked_changes({PATH: BEFORE.encode()}, {PATH: without.encode()}, WORDS)
    assert told == "pkg/mod.py:9: due"
    assert unasked_changes({PATH: BEFORE.encode()}, {PATH: without.encode()}, WORDS + " `due` can go.") == ()
    inlined = without.replace("due(len(write_rows(rows)), LIMIT)", "len(write_rows(rows)) >= LIMIT")
    assert unasked_changes({PATH: BEFORE.encode()}, {PATH: inlined.encode()}, WORDS + " Inline in `report`.") == ()


@pytest.mark.parametrize(("least", "found"), [("3", ()), ("4", ("pkg/clock.py:1: due",))])
def test_what_moves_to_another_file_stays_as_it_was(least: str, found: tuple[str, ...]) -> None:
    due, other = "def due(now, last):\n    return now - last >= 3\n", RepoPath("pkg/clock.py")
    rest = BEFORE.replace(due, "").replace("line.lower()", "line.lower().strip()")
    after = {PATH: rest.encode(), other: due.replace("3", least).encode()}
    words = "Move `due` to pkg/clock.py, and have `lower` strip."
    assert unasked_changes({PATH: BEFORE.encode(), other: None}, after, words) == found


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("def due(now, last):\n", "def due(now: int, last: int):\n    '''Whether.'''\n", ()),
        ("def due(", "@overload\ndef due(now: int, last: int): ...\ndef due(", ()),
        ("def lower(lines):\n    return [line.lower() for line in lines]\n", "", ()),
        (">= 3", "> 3", ("pkg/mod.py:9: due",)),
    ],
)
def test_text_alone_leaves_the_code_as_it_is(old: str, new: str, found: tuple[str, ...]) -> None:
    changes = {PATH: BEFORE.encode()}, {PATH: BEFORE.replace(old, new).encode()}
    words = "Describe `due` in pkg/mod.py, and take out the dead `lower`. "
    assert code_beside_text(*changes, words + "Only documentation, no code.") == found
    assert code_beside_text(*changes, words + "No change at runtime.") == found
    assert code_beside_text(*changes, words) == ()


def test_a_source_nested_too_deep_is_one_place() -> None:
    deep = f"X = {' + '.join(['1'] * 700)}\n"
    table = RepoPath("pkg/table.py")
    changes = ({PATH: BEFORE.encode(), table: deep.encode()}, {PATH: ASKED.encode(), table: b"Y = 0\n" + deep.encode()})
    assert unasked_changes(*changes, WORDS) == ("pkg/table.py",)


def test_what_a_file_defined_that_is_named_to_go_is_known() -> None:
    old, gone = b"def f(x):\n    return to_text(x)\n", b"def to_text(x):\n    return str(x)\n"
    before = {PATH: old, RepoPath("pkg/compat.py"): gone}
    after = {PATH: old.replace(b"to_text(x)", b"x")}
    assert unasked_changes(before, after, "Get rid of `pkg/compat.py`.") == ()
    elsewhere = {PATH: old.replace(b"to_text(x)", b"x + 1")}
    words = "Get rid of `pkg/other.py`."
    more = {**before, RepoPath("pkg/other.py"): b"Z = 1\n"}
    assert unasked_changes(more, elsewhere, words) == ("pkg/mod.py:1: f",)


@pytest.mark.parametrize(
    ("old", "new", "words", "found"),
    [
        ("to_text(line)", "line", "Delete pkg/compat.py.", ()),
        ("compat.to_text(line)", "line", "Delete pkg/compat.py.", ()),
        ("to_text(line + '!') * 2", "(line + '!') * 2", "Delete pkg/compat.py.", ()),
        ("to_text(line + '!') * 2", "line + '!' * 2", "Delete pkg/compat.py.", ("pkg/show.py:2: show",)),
        ("[to_text(x) for x in line]", "line", "Delete pkg/compat.py.", ()),
        ("[to_text(x) for x in line]", "line[1:]", "Delete pkg/compat.py.", ("pkg/show.py:2: show",)),
        ("to_text(line)", "line.strip()", "Delete pkg/compat.py.", ("pkg/show.py:2: show",)),
        ("to_text(line)", "''", "Delete pkg/compat.py.", ("pkg/show.py:2: show",)),
        ("other.to_text(line)", "line", "Delete pkg/compat.py.", ("pkg/show.py:2: show",)),
        ("line", "to_text(line)", "Delete pkg/compat.py.", ("pkg/show.py:2: show",)),
        ("to_text(line)", "line", "Take out what is old.", ("pkg/show.py:2: show",)),
    ],
)
def test_what_follows_from_a_deleted_file_is_no_change(old: str, new: str, words: str, found: tuple[str, ...]) -> None:
    show = "import os\ndef show(line):\n    return {}\n"
    compat, path = RepoPath("pkg/compat.py"), RepoPath("pkg/show.py")
    before = {PATH: BEFORE.encode(), path: show.format(old).encode(), compat: b"def to_text(x):\n    return x\n"}
    after = {PATH: ASKED.encode(), path: show.format(new).encode()}
    assert unasked_changes(before, after, f"{WORDS} {words}") == found
