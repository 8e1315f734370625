"""Edits of regular expressions: of those alone, and each is one again."""

import ast
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.domain.paths import RepoPath
from localagent.edit.space import LibcstEditSpace

PATH = RepoPath("mod.py")


def offered(line: str) -> list[str]:
    """The texts that take the place of the line's first text."""
    source = f"def f(a):\n    {line}\n".encode()
    edits = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=())
    made = [ast.parse(e.apply(source)) for e in edits if e.operator == "pattern-edit"]
    return [
        next(n.value for n in ast.walk(t) if isinstance(n, ast.Constant) and isinstance(n.value, str)) for t in made
    ]


PATTERNS = (
    r"(a+)*",
    r"[^x]y?",
    r"a{2}b|c",
    r"(?P<n>\d)+(?P=n)",
    r"^\s*#|$",
    r"(?<=a)b\.c",
    r"[]x]",
    r"\(x",
    r"(?:x|y)z",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_offered_is_a_pattern_and_another_one(pattern: str) -> None:
    found = offered(f"return re.search(r'{pattern}', a)")
    assert found
    assert pattern not in found
    assert len(found) == len(set(found))
    for text in found:
        re.compile(text)


@settings(max_examples=40)
@given(st.text(alphabet="ab.$^*+?[](){}|,1:<=!P", max_size=20))
def test_law_any_text_is_taken_and_gives_patterns(text: str) -> None:
    for found in offered(f"return re.search('{text}', a)"):
        re.compile(found)


def test_other_texts_are_left_alone() -> None:
    assert offered("return a.find('x*y')") == []
    assert offered("return f(r'plain', a)") == []
    assert offered("return re.match('[', a)") == []  # it is no pattern, and nothing small makes it one
    assert offered("return f(r'C:\\new(dir', a)") == []
    assert offered("return re.match(b, 'x*')") == []
    assert offered("return re.match(r'" + "x*" * 100 + "', a)") == []
