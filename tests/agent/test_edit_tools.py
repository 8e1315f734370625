"""Edits of the copy: exact, told where they are ambiguous, and never one that breaks a file that parsed."""

from typing import Any

import pytest
from support.agent_builder import calls, session

from localagent.agent.events import ResultKind

CLASS = '''class A:
    """A."""

    @property
    def size(self):
        return 1

    def twice(self):
        text = """
a
"""
        return text * 2


def twice(x):
    return x * 2
'''
FILES = {"a.py": CLASS, "b.txt": "one\r\ntwo\r\nthree\r\n", "empty.txt": "", "bad.py": "def f(:\n"}


def _one(tool: str, **arguments: Any) -> Any:
    plan = calls(("plan", {"steps": [f"{'delete' if tool == 'delete' else 'change'} {arguments['path']}"]}))
    s = session([plan, calls((tool, arguments)), calls(("read", {"path": "a.py"}))], files=FILES)
    s.run()
    return s.results[1], s.writes


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"path": "a.py", "old": "twice", "new": "thrice"}, "occurs 2 times in a.py, at lines 8, 15"),
        ({"path": "a.py", "old": "return  x*2", "new": "y"}, "16\t    return x * 2"),
        ({"path": "a.py", "old": "", "new": "x"}, "old is empty"),
        ({"path": "a.py", "old": "return 1", "new": "return 1"}, "the same"),
        ({"path": "a.py", "old": "return 1", "new": "return ("}, "would not parse: line"),
        ({"path": "a.py", "old": "nowhere to be found at all", "new": "y"}, "does not occur"),
        ({"path": "c.py", "old": "a", "new": "b"}, "there is no file c.py"),
    ],
)
def test_what_cannot_be_edited_is_told(arguments: dict[str, str], says: str) -> None:
    result, writes = _one("edit", **arguments)
    assert (result.kind, writes) == (ResultKind.ERROR, {})
    assert says in result.text


def test_an_edit_answers_with_its_surroundings() -> None:
    result, writes = _one("edit", path="a.py", old="return 1", new="return 11")
    assert result.text == (
        "edited a.py:\n4\t    @property\n5\t    def size(self):\n6\t        return 11\n7\t\n8\t    def twice(self):"
    )
    assert writes["a.py"] == CLASS.replace("return 1\n", "return 11\n")


def test_line_ends_stay() -> None:
    _, writes = _one("edit", path="b.txt", old="one\ntwo", new="one\n2")
    assert writes["b.txt"] == "one\r\n2\r\nthree\r\n"


def test_files_that_did_not_parse_may_be_mended_or_not() -> None:
    _, writes = _one("edit", path="bad.py", old="(:", new="((:")
    assert writes["bad.py"] == "def f((:\n"


def test_empty_files_can_be_filled() -> None:
    _, writes = _one("edit", path="empty.txt", old="", new="x\n")
    assert writes["empty.txt"] == "x\n"


@pytest.mark.parametrize(
    "source",
    [
        "def twice(self):\n    return 3\n",
        "    def twice(self):\n        return 3\n",
        "\ndef twice(self):\n    return 3",
    ],
)
def test_a_method_is_replaced_however_it_is_indented(source: str) -> None:
    _, writes = _one("replace_function", path="a.py", name="A.twice", source=source)
    assert "    def twice(self):\n        return 3\n\n\ndef twice(x):\n" in writes["a.py"]


def test_decorators_stay_or_are_replaced() -> None:
    _, writes = _one("replace_function", path="a.py", name="size", source="def size(self):\n    return 2\n")
    assert "    @property\n    def size(self):\n        return 2\n" in writes["a.py"]
    _, writes = _one("replace_function", path="a.py", name="size", source="@cache\ndef size(self):\n    return 2\n")
    assert "@property" not in writes["a.py"]


@pytest.mark.parametrize(
    ("name", "source", "says"),
    [
        ("twice", "def twice(x):\n    return 3\n", ""),
        ("thrice", "def thrice(x):\n    return 3\n", "defines no 'thrice'; it defines: A, twice, A.size"),
        ("A.twice", "x = 1\n", "the whole definition of twice"),
        ("A.twice", "def other(self):\n    pass\n", "the whole definition of twice"),
        ("A.twice", "def twice(self)\n    pass\n", "the whole definition of twice"),
    ],
)
def test_replacements_are_whole_definitions(name: str, source: str, says: str) -> None:
    result, writes = _one("replace_function", path="a.py", name=name, source=source)
    assert says in result.text
    assert bool(writes) == (not says)


def test_create_and_delete() -> None:
    result, writes = _one("create", path="pkg/new.py", content="X = 1\n")
    assert (result.text, writes) == ("created pkg/new.py, 1 lines", {"pkg/new.py": "X = 1\n"})
    result, _ = _one("create", path="a.py", content="X = 1\n")
    assert "a.py exists" in result.text
    result, _ = _one("create", path="a.py/b.py", content="")
    assert "a.py is a file, not a folder" in result.text
    _, writes = _one("delete", path="a.py")
    assert writes == {"a.py": None}
