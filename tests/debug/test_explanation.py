"""Explanations: each sentence from a fact, with its place; what the text does not settle is not said."""

import pytest

from localagent.debug.exception_meanings import meaning_of
from localagent.debug.explanation import explain_line, explain_traceback
from localagent.debug.explanation_text import explanation_json, explanation_text
from localagent.debug.frame_mapping import FrameMapper
from localagent.debug.tracebacks import parse_tracebacks
from localagent.domain.paths import RepoPath
from localagent.repo.line_history import LineChange

SOURCE = b"""def find(name):
    return None


def greet(user, other):
    profile = find(user)
    return profile.name + other.text


def run():
    return greet("ann", "bob")
"""
PATH = RepoPath("app.py")
SOURCES = {PATH: SOURCE}
TRACE = b"""Traceback (most recent call last):
  File "/usr/lib/python3.11/runpy.py", line 3, in _run
    go()
  File "/srv/app.py", line 11, in run
    return greet("ann", "bob")
  File "/srv/app.py", line 7, in greet
    return profile.name + other.text
AttributeError: 'NoneType' object has no attribute 'name'
"""


def history(path: RepoPath, lines: tuple[int, ...]) -> dict[int, LineChange]:
    return {
        line: LineChange(commit="a" * 40, author="Ann", date="2026-11-01", summary="greet by name") for line in lines
    }


def test_of_a_chain_the_callers_of_what_surfaced_are_told_as_well() -> None:
    chained = TRACE.replace(b"run\n    return greet", b"<x>\n    return greet") + (
        b"\nThe above exception was the direct cause of the following exception:\n\n"
        b"Traceback (most recent call last):\n"
        b'  File "/srv/app.py", line 11, in run\n    return greet("ann", "bob")\n'
        b'  File "/srv/app.py", line 7, in greet\n    return profile.name + other.text\nValueError: no\n'
    )
    (trace,) = parse_tracebacks(chained)
    found = explain_traceback(trace, FrameMapper(SOURCES), SOURCES, history)
    assert ("called from", "in run", 11) in {(f.label, f.sentence, f.line) for f in found.facts}


def test_a_traceback_is_explained_with_places() -> None:
    (trace,) = parse_tracebacks(TRACE)
    found = explain_traceback(trace, FrameMapper(SOURCES), SOURCES, history)
    facts = {(f.label, f.sentence, f.line) for f in found.facts}
    assert found.headline == "AttributeError: 'NoneType' object has no attribute 'name'"
    assert ("raised at", "in greet", 7) in facts
    assert ("called from", "in run", 11) in facts
    assert ("the value", "`profile` was None", 7) in facts
    assert ("last changed", "aaaaaaaaaa 2026-11-01 Ann: greet by name", 7) in facts
    assert ("note", "1 of 3 frames lie outside this repository", 0) in facts
    assert "  > 7      return profile.name + other.text" in explanation_text(found).replace(">  7", "> 7")
    assert explanation_json(found)["line"] == 7


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("AttributeError: 'NoneType' object has no attribute 'gone'", None),
        ("TypeError: 'NoneType' object is not subscriptable", None),
    ],
)
def test_what_the_line_does_not_settle_is_not_said(message: str, wanted: None) -> None:
    text = TRACE.rsplit(b"\n", 2)[0] + b"\n" + message.encode() + b"\n"
    (trace,) = parse_tracebacks(text)
    found = explain_traceback(trace, FrameMapper(SOURCES), SOURCES, history)
    assert [f for f in found.facts if f.label == "the value"] == []


def test_a_line_is_explained_by_what_it_reads_and_who_calls() -> None:
    found = explain_line(PATH, 7, SOURCES, history)
    facts = {(f.label, f.sentence, f.line) for f in found.facts}
    assert ("reads", "`profile`, assigned above", 6) in facts
    assert ("reads", "`other`, a parameter", 5) in facts
    assert ("called at", "a call of `greet`", 11) in facts
    head = explain_line(PATH, 5, SOURCES, history)
    assert [f.label for f in head.facts] == ["function", "called at", "last changed"]  # what its body reads is not said


@pytest.mark.parametrize(
    ("kind", "message", "word"),
    [
        ("KeyError", "'a'", "'a'"),
        ("AttributeError", "'NoneType' object has no attribute 'x'", "None"),
        ("AttributeError", "partially initialized module 'a' has no attribute 'b' (circular import)", "each other"),
        ("ImportError", "cannot import name 'b' from partially initialized module 'a' (circular)", "each other"),
        ("ImportError", "cannot import name 'b' from 'a' (/a.py)", "`a` was found"),
        ("UnboundLocalError", "local variable 'x' referenced before assignment", "`x`"),
        ("UnboundLocalError", "cannot access local variable 'x' where it is not associated with a value", "`x`"),
        ("TypeError", "f() missing 1 required positional argument: 'b'", "'b'"),
        ("TypeError", "f() takes 1 positional argument but 2 were given", "2 positional"),
        ("TypeError", "f() takes from 1 to 2 positional arguments but 3 were given", "3 positional"),
        ("TypeError", "f() got an unexpected keyword argument 'c'", "`c`"),
        ("TypeError", "'NoneType' object is not subscriptable", "None"),
        ("TypeError", "unsupported operand type(s) for +: 'int' and 'str'", "`+`"),
        ("TypeError", "'<' not supported between instances of 'int' and 'str'", "compared"),
        ("TypeError", "unhashable type: 'list'", "key"),
        ("ValueError", "not enough values to unpack (expected 2, got 1)", "2 names"),
        ("ValueError", "not enough values to unpack (expected at least 2, got 1)", "2 names"),
        ("ValueError", "too many values to unpack (expected 2, got 3)", "more values"),
        ("IndexError", "list index out of range", "length"),
        ("RecursionError", "maximum recursion depth exceeded", "stack"),
        ("shop.models.Cart.DoesNotExist", "Cart matching query does not exist.", "none"),
        ("json.decoder.JSONDecodeError", "Expecting value: line 1 column 1 (char 0)", "not JSON"),
        ("KeyError", "{braces} {0} {name!r}", "{braces}"),
    ],
)  # fmt: skip
def test_meanings(kind: str, message: str, word: str) -> None:
    found = meaning_of(kind, message)
    assert found is not None
    assert word in found.sentence


def test_an_unknown_exception_has_no_meaning() -> None:
    assert meaning_of("OutOfStock", "pear") is None
