"""What a patch changes of a file: lines, statements, touched functions, what stands around them."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.code.source_text import parse_or_none
from localagent.domain.paths import RepoPath
from localagent.verify.evidence.changed_lines import ChangedFile

TEXT = '''"""Doc."""
import os

LIMIT = 3


def f(x):
    """Say it."""
    if x > LIMIT:
        return 1
    return 0


class C:
    def g(self):
        return self


def h():
    return os.sep
'''


def changed(old: str, new: str, text: str = TEXT) -> ChangedFile:
    assert old in text
    path = RepoPath("m.py")
    return ChangedFile(path=path, source=path, before=text.encode(), after=text.replace(old, new, 1).encode())


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("x > LIMIT", "x >= LIMIT", {9}),
        ("if x > LIMIT:", "if (\n        x >= LIMIT\n    ):", {10}),  # nothing runs at `if (`
        ("        return 1\n    return 0", "        return 2\n    return 3", {10, 11}),
        ("LIMIT = 3", "LIMIT = 4", {4}),
        ('"""Say it."""', '"""Say that."""', set()),
        ("import os", "import os  # why", {2}),
        ("def h():\n", "def h():\n    # why\n", set()),
        ("    if x > LIMIT:\n        return 1\n", "", {9}),
    ],
)
def test_executable_statements(old: str, new: str, lines: set[int]) -> None:
    found = changed(old, new).executable()
    assert found == lines if lines else not found


@pytest.mark.parametrize(
    ("old", "new", "names", "around", "fresh"),
    [
        ("return 0", "return 2", ["f"], False, []),
        ("return self", "return None", ["g"], False, []),
        ("LIMIT = 3", "LIMIT = 4", [], True, []),
        ("def h():", "def k():", [], True, ["k"]),
        ("def h():", "def k():\n    return 1\n\n\ndef h():", [], False, ["k"]),
        ("class C:", "class C:\n    x = 1\n", [], True, []),
    ],
)
def test_touched_functions(old: str, new: str, names: list[str], around: bool, fresh: list[str]) -> None:
    file = changed(old, new)
    assert [b.name for _, b in file.touched()] == names
    assert file.around() is around
    assert [f.name for f in file.fresh()] == fresh


def test_a_stub_changes_nothing_that_runs() -> None:
    stub, source = RepoPath("m.pyi"), RepoPath("m.py")
    assert ChangedFile(path=stub, source=stub, before=b"def f(): ...\n", after=b"def g(): ...\n").alike()
    assert not ChangedFile(path=source, source=stub, before=b"def f(): ...\n", after=b"def g(): ...\n").alike()


def test_comments_are_alike_and_code_is_not() -> None:
    assert changed("return 0", "return 0  # none").alike()
    assert not changed("return 0", "return 1").alike()
    assert not changed('"""Say it."""', '"""Say that."""').alike()
    assert changed('"""Say it."""', '"""Say that."""').described()
    assert not changed('"""Say it."""', '"""Say that."""').reached_by(frozenset({2}))
    assert not changed("return 0", "return 1").described()


def test_a_test_reaches_functions_and_what_stands_around() -> None:
    inside = changed("return 0", "return 2")
    assert inside.reached_by(frozenset({11}))
    assert not inside.reached_by(frozenset({20}))
    assert changed("LIMIT = 3", "LIMIT = 4").reached_by(frozenset({20}))
    assert not changed("LIMIT = 3", "LIMIT = 4").reached_by(frozenset())


def test_what_cannot_be_told_counts_as_everything() -> None:
    file = changed("def f(x):", "def f(x:")
    assert file.around()
    assert file.executable() == frozenset()
    assert file.reached_by(frozenset({1}))


def test_one_line_of_a_very_long_file_is_one_line() -> None:
    rest = "".join(f"def f{n}(x):\n    return x\n" for n in range(20_000))
    file = changed("A = 1", "A = 2", f"{rest}A = 1\n{rest}")
    assert file.lines() == (frozenset({40_001}), frozenset({40_001}))
    assert file.executable() == frozenset({40_001})


def test_what_came_between_two_that_are_alike_is_the_later_one() -> None:
    file = changed("x = 1\n", "x = 1\nx = 1\n", "x = 1\nx = 1\n")
    assert file.lines() == (frozenset(), frozenset({3}))


texts = st.lists(st.sampled_from(["x = 1\n", "def f():\n    return 1\n", "\n", "# c\n", "def g(:\n"]), max_size=6)


@pytest.mark.long
@given(texts.map("".join), texts.map("".join))
def test_it_never_raises_and_lines_lie_in_their_texts(old: str, new: str) -> None:
    path = RepoPath("m.py")
    file = ChangedFile(path=path, source=path, before=old.encode(), after=new.encode())
    gone, come = file.lines()
    assert gone <= set(range(1, old.count("\n") + 2))
    assert come <= set(range(new.count("\n") + 3))
    assert (old == new) == (not gone and not come)
    assert file.alike() in (True, False)
    assert file.executable() <= set(range(1, new.count("\n") + 2))


def test_of_a_table_the_stretch_that_changed_is_told_and_not_each_row() -> None:
    """Comparing rows that are alike takes time by the pairs of them, which a table has millions of."""

    def table(first: str, rows: int) -> ChangedFile:
        text = "T = [\n" + "    0,\n" * rows + "]\n"
        path = RepoPath("m.py")
        after = text.replace("T", first, 1).replace("]", "]  # end").encode()
        return ChangedFile(path=path, source=path, before=text.encode(), after=after)

    assert table("U", 50).lines() == (frozenset({1, 52}), frozenset({1, 52}))
    assert table("U", 3_000).lines() == (frozenset(range(1, 3_003)), frozenset(range(1, 3_003)))


@pytest.mark.parametrize(
    ("before", "lines"),
    [
        ("def f(x)\n", {2, 3, 4}),
        ("def f(y):\n", set()),  # that ran before
        ("def f(x):\n    if x\n", {2}),
    ],
)
def test_a_head_mended_where_nothing_parsed_begins_the_whole_definition(before: str, lines: set[int]) -> None:
    text = "def f(x):\n    if x:\n        return 1\n    return 2\n\n\ndef g():\n    return 3\n"
    stands = "".join(text.splitlines(keepends=True)[: before.count("\n")])
    assert changed(before, stands, text=text.replace(stands, before, 1)).executable() == lines


def test_of_a_statement_of_many_lines_those_that_changed_are_told() -> None:
    table = TEXT.replace("LIMIT = 3", "LIMIT = max(\n    1,\n    2,\n    3,\n)")
    file = changed("    2,\n", "    4,\n", table)
    assert file.executable() == {4}
    assert file.changed_in(file.executable()) == {6}
    assert file.changed_in(frozenset({11})) == {11}, "a statement of which nothing changed is told by its first line"


def test_what_every_test_of_a_suite_asks_of_a_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str | bytes] = []

    def parsed(text: str | bytes) -> ast.Module | None:
        read.append(text)
        return parse_or_none(text)

    monkeypatch.setattr("localagent.verify.evidence.changed_lines.parse_or_none", parsed)
    file = changed("return 1", "return 41")
    assert [file.reached_by(frozenset({line})) for line in (10, 17, 10, 9)] == [True, False, True, True]
    assert len(read) == 2
