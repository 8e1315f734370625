"""What an instruction asks for in so many words, and whether a change answers it."""

import pytest

from localagent.app.agent.demands.changed_tree import ChangedTree
from localagent.app.agent.demands.unmet_demands import unanswered_demands
from localagent.domain.paths import RepoPath

CODE = '''import logging

LIMIT = 90
MESSAGE = "no such row"


class RowError(ValueError):
    """A bad row."""


def check_name(name):
    if not name:
        raise ValueError("no name")
    return name


def load(rows, limit=10):
    print("loading", rows)
    for row in rows:
        if row is None:
            raise RowError(MESSAGE)
    return list(rows)[:limit]


def save(rows):
    print("saving", rows)
    return load(rows)
'''
TREE = {
    "shop/rows.py": CODE,
    "shop/__init__.py": "from shop.rows import load\n",
    "README.md": "# Shop\n\n`load` reads rows.\n",
    "CHANGES": "# 1.0\n",
    "settings.json": '{"limit": 90}\n',
    "tests/test_rows.py": "from shop.rows import load\n\n\ndef test_load():\n    assert load([1]) == [1]\n",
}
TEST = "def test_new():\n    assert 1 + 1 == 2\n"


def _unanswered(instruction: str, *edits: tuple[str, str, str]) -> list[str]:
    """Of a change that puts texts in the place of others; a file that is not there is made of them."""
    tree = dict(TREE)
    for name, old, new in edits:
        assert old in tree.get(name, ""), old
        tree[name] = tree.get(name, "").replace(old, new) if old else tree.get(name, "") + new
    after = {RepoPath(p): t.encode() for p, t in tree.items() if TREE.get(p) != t}
    before = {p: TREE[p].encode() if p in TREE else None for p in after}
    rest = [RepoPath(p) for p in tree if p not in after]
    change = ChangedTree(before, after, rest, lambda p: TREE[p].encode(), lambda p: p.startswith("tests/"))
    return list(unanswered_demands(instruction, change))


def _code(old: str, new: str) -> tuple[str, str, str]:
    return ("shop/rows.py", old, new)


RESULT = _code("return list(rows)[:limit]", "return sorted(rows)[:limit]")
GUARD = '    print("loading", rows)\n'


@pytest.mark.parametrize(
    ("words", "lacking", "answered", "found"),
    [
        (
            "`load` sorts; an empty list is a ValueError.",
            [],
            _code(GUARD, GUARD + "    if not rows:\n        raise ValueError(rows)\n"),
            "ValueError, which nothing new raises",
        ),
        (
            "`load` sorts; an empty name raises ValueError.",
            [],
            _code(GUARD, GUARD + "    check_name(rows)\n"),
            "ValueError, which nothing new raises",
        ),
        (
            "`load` should raise a ValueError for a row that is no number.",
            [_code(GUARD, GUARD + "    try:\n        int(rows)\n    except ValueError:\n        pass\n")],
            _code(GUARD, GUARD + "    rows = [int(row) for row in rows]\n"),
            "ValueError, which nothing new raises",
        ),
        (
            "Raise `BadRow`, a new subclass of RowError, instead of an IndexError.",
            [],
            _code("class RowError", "class BadRow(ValueError):\n    pass\n\n\nclass RowError"),
            "`BadRow`",
        ),
        (
            "`load` takes a keyword `reverse`.",
            [],
            _code("limit=10):", "limit=10, reverse=False):\n    rows = rows[::-1] if reverse else rows"),
            "`reverse`",
        ),
        (
            "`load` takes a keyword `reverse`.",
            [_code("limit=10):", "limit=10, reverse=False):")],
            _code(GUARD, GUARD + "    rows = rows[::-1] if reverse else rows\n"),
            "`reverse`, which load takes and never uses",
        ),
        (
            "Give the command an option --sorted.",
            [],
            _code(GUARD, "    print('--sorted', rows)\n"),
            "the option --sorted",
        ),
        (
            "Read the folder from SHOP_FOLDER.",
            [],
            _code(GUARD, GUARD + "    rows = rows or environ['SHOP_FOLDER']\n"),
            "`SHOP_FOLDER`",
        ),
        (
            "With `order: up` in the configuration the rows are sorted.",
            [],
            _code(GUARD, GUARD + "    limit = config['order']\n"),
            "the key `order`",
        ),
        (
            "The JSON of a row gets `size_cents` and `size`.",
            [],
            _code(GUARD, GUARD + "    row = {'size': 1, 'size_cents': 2}\n"),
            "the key `size_cents`",
        ),
        (
            "An empty list prints `there is nothing to load`.",
            [],
            _code(GUARD, GUARD + "    print('there is nothing to load')\n"),
            "the text `there is nothing to load`",
        ),
        (
            "Failures should be logged at level ERROR with the traceback.",
            [_code(GUARD, "    logging.info(rows)\n")],
            _code("logging.info(rows)", "logging.exception(rows)"),
            "a log at level ERROR",
        ),
        ("`save` is deprecated.", [], _code(GUARD, "    warnings.warn('old')\n"), "a warning of what is deprecated"),
        (
            "Replace the prints by a logger.",
            [_code('    print("saving", rows)\n', "    log(rows)\n")],
            _code(GUARD, "    log(rows)\n"),
            "all calls of print in shop/rows.py to be replaced, and some are left",
        ),
        (
            "Remove the function `check_name`.",
            [],
            _code("def check_name(", "def other("),
            "`check_name` to go, and it is still there",
        ),
        (
            "Write docstrings for every function in shop/rows.py.",
            [
                _code("def check_name(name):", "def check_name(name):\n    '''Checks.'''"),
                _code("def load(rows, limit=10):", "def load(rows, limit=10):\n    '''Loads.'''"),
            ],
            _code("def save(rows):", "def save(rows):\n    '''Saves.'''"),
            "a docstring of every function, and save has none",
        ),
        (
            "`save` and `check_name` should strip names.",
            [_code("return load(rows)", "return load(rows or ())")],
            _code("return name", "return name.strip()"),
            "a change of `check_name`, and nothing that it does differs",
        ),
        (
            "`load` sorts. README and changelog, please.",
            [("README.md", "reads", "sorts")],
            ("CHANGES", "", "Sorts.\n"),
            "a change of changelog",
        ),
        (
            "Mention `sorted_rows` in the README.",
            [("README.md", "reads", "sorts"), _code("LIMIT =", "sorted_rows =")],
            ("README.md", "rows", "`sorted_rows`"),
            "`sorted_rows` in README",
        ),
        ("In settings.json set the limit to 90.", [], ("settings.json", "90", "90.0"), "a change of settings.json"),
        ("Create shop/prices.py.", [], ("shop/prices.py", "", "A = 1\n"), "the file shop/prices.py"),
        ("`load` sorts; add a test.", [], ("tests/test_new.py", "", TEST), "a test"),
        (
            "Sort them, and export it from the package.",
            [],
            ("shop/__init__.py", "load", "load, save"),
            "a name that the package exports",
        ),
    ],
)
def test_what_a_change_leaves_out_is_named_until_it_is_there(
    words: str, lacking: list[tuple[str, str, str]], answered: tuple[str, str, str], found: str
) -> None:
    assert found in _unanswered(words, RESULT, *lacking)
    assert found not in _unanswered(words, RESULT, *lacking, answered)


@pytest.mark.parametrize(
    "words",
    [
        "`load([])` raises an IndexError; it should give an empty list.",
        "Sort the rows instead of raising a ValueError.",
        "`load` sorts rows as the README says.",
        "`load` prints `no such row` today, but rows should be sorted.",
        "Sort rows like in shop/__init__.py, with 400 rows of 3.10 in about 20 s.",
        "`Foo_Bar` and `foo-bar` are the same row: sort them.",
        "`load` sorts, as `git log --oneline` does.",
        "Remove `limit` from `load`.",
        "For example `a b c` comes before `b c d` when it is sorted.",
        "Sort rows by their `typing.get_type_hints`.",
    ],
)
def test_what_is_only_told_of_is_no_demand(words: str) -> None:
    assert _unanswered(words, RESULT) == []
