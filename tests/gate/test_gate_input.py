"""Regions: what is shown to the gates is exactly what the patch changes, however the edit describes itself."""

import ast
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_rules import candidate

from localagent.code.regions import DoesNotParse, SourceFile
from localagent.domain.edit import Candidate, Edit, FileChange, Patch, Splice
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.gate.core.gate_input import ChangedRegion, Files, GateInput
from localagent.text.byte_diff import changed_span

SOURCE = Path(textwrap.__file__).read_bytes()
PATH = RepoPath("pkg/mod.py")
FILES = Files()
KEPT = SourceFile(SOURCE)


def regions(made: Candidate) -> tuple[ChangedRegion, ...]:
    return GateInput(made, Baseline(tests=()), {}, FILES).regions


@given(before=st.binary(max_size=60), after=st.binary(max_size=60))
def test_a_span_is_the_whole_difference(before: bytes, after: bytes) -> None:
    start, end, new_end = changed_span(before, after)
    assert before[:start] + after[start:new_end] + before[end:] == after
    assert 0 <= start <= end <= len(before)


RETURNS = [
    n
    for n, line in enumerate(SOURCE.splitlines())
    if line.strip().startswith(b"return ") and not line.rstrip().endswith((b"(", b",", b"\\"))
]


@pytest.mark.parametrize("line", RETURNS)
def test_what_is_near_parses_and_lies_in_the_whole(line: int) -> None:
    """Change one line of a real file: the near statement holds the change, and stands in its unit as it did."""
    lines = SOURCE.splitlines(keepends=True)
    lines[line] = lines[line].replace(b"return ", b"return not ")
    (region,) = regions(candidate(PATH, SOURCE, b"".join(lines)))
    assert "return not " in region.near.after.text
    assert region.near.after.text in region.whole.after.text
    assert region.near.before is not None
    assert len(region.near.after.text) < 2000
    at = region.near.after.line - 1
    assert "".join(x.decode() for x in SOURCE.splitlines(keepends=True)[at:]).startswith(region.near.before.text)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, len(SOURCE) - 1), st.sampled_from([b"", b" ", b"0", b"\n", b"(", b"'", b"pass\n", b"#"]))
def test_any_change_is_in_a_region_or_does_not_parse(at: int, text: bytes) -> None:
    after = SOURCE[:at] + text + SOURCE[at + 1 :]
    if after == SOURCE:
        return
    try:
        found = regions(candidate(PATH, SOURCE, after))
    except DoesNotParse:
        with pytest.raises(SyntaxError):
            ast.parse(after)
        return
    assert any(r.near.before is None or r.near.before.text != r.near.after.text for r in found)
    assert all(r.whole.after.text in KEPT.decode(after) for r in found)


def test_an_edit_that_lies_about_itself_is_judged_by_the_patch() -> None:
    before, after = b"def f(x):\n    return x\n", b"def f(x):\n    return eval(x)\n"
    made = candidate(PATH, before, after)
    harmless = replace(made.edits[0], splices=(Splice(start=0, end=0, text=b"# nothing\n"),), line=9)
    (region,) = regions(replace(made, edits=(harmless,)))
    assert "eval" in region.near.after.text


def test_far_apart_splices_are_regions_of_their_own() -> None:
    before = b"def f(x):\n    return x\n\n\ndef g(x):\n    return x\n"
    splices = (Splice(start=21, end=22, text=b"y"), Splice(start=46, end=47, text=b"z"))
    edit = Edit(path=PATH, splices=splices, operator="t", line=1, end_line=6, prior=0.0)
    patch = Patch(changes=(FileChange(path=PATH, before=before, after=edit.apply(before)),))
    found = regions(Candidate(number=1, patch=patch, edits=(edit,), cost=0.0))
    assert [r.near.after.text.strip() for r in found] == ["return y", "return z"]


@pytest.mark.parametrize(
    ("before", "after", "near"),
    [
        ("if a:\n    x = 1\nelif b:\n    x = 2\n", "if a:\n    x = 1\nelif b:\n    x = 3\n", "    x = 3\n"),
        ("if a: x = 1\ny = 2\n", "if a: x = 3\ny = 2\n", "if a: x = 3\n"),
        ("x = 1; y = 2\n", "x = 1; y = 3\n", "x = 1; y = 3\n"),
        ("@d(1)\ndef f():\n    return 1\n", "@d(2)\ndef f():\n    return 1\n", "@d(2)\ndef f():\n    return 1\n"),
        ("def f(\n    a=1\n): return a\n", "def f(\n    a=2\n): return a\n", "def f(\n    a=2\n): return a\n"),
        ("x = 1\r\ny = 2\r\n", "x = 1\r\ny = 3\r\n", "y = 3\r\n"),
        ("\ufeffx = 1\n", "\ufeffx = 2\n", "x = 2\n"),
        (
            "try:\n    f()\nexcept A:\n    g()\nfinally:\n    h()\n",
            "try:\n    f()\nexcept A:\n    k()\nfinally:\n    h()\n",
            "    k()\n",
        ),
        (
            "class A:\n    def f(self):\n        return 1\n",
            "class A:\n    def f(self):\n        return 2\n",
            "        return 2\n",
        ),
        ("x = '''\na\n'''\n", "x = '''\nb\n'''\n", "x = '''\nb\n'''\n"),
    ],
)
def test_the_near_statement_is_the_smallest_that_stands_by_itself(before: str, after: str, near: str) -> None:
    (region,) = regions(candidate(PATH, before.encode(), after.encode()))
    assert region.near.after.text == near


def test_a_statement_that_leaves_its_block_is_not_taken_for_one_that_stays() -> None:
    before, after = b"def f(x):\n    y = x\n    return y\n", b"def f(x):\n    y = x\nreturn y\n"
    (region,) = regions(candidate(PATH, before, after))
    assert region.near.after.text == after.decode()


def test_a_latin_1_file_is_read_by_its_cookie() -> None:
    before = "# -*- coding: latin-1 -*-\nx = 'é'\ny = 1\n".encode("latin-1")
    (region,) = regions(candidate(PATH, before, before.replace(b"y = 1", b"y = 2")))
    assert region.near.after.text == "y = 2\n"
