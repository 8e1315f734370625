"""Blocks at another indentation: the same syntax tree, so the same strings, whatever lines they have."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.llm.writing.reindent import dedented, indented

INDENTS = st.sampled_from(["", " ", "    ", "        ", "\t", "\t\t"])
INSIDES = st.text(st.sampled_from("ab \t\n#:\\{}'"), max_size=24)


@st.composite
def strings(draw: st.DrawFn) -> str:
    """A string of several lines, a formatted one, or one that goes on behind a backslash."""
    inside, form = draw(INSIDES), draw(st.sampled_from(["", "r", "b", "f"]))
    if form == "f":
        inside = inside.replace("{", "{{").replace("}", "}}").replace("\\", "") + "{x\n}"
        return f'f"""{inside}"""'
    if draw(st.booleans()):
        return "'ab\\\n   cd'"
    return f'{form}"""{inside}\n"""'


@st.composite
def blocks(draw: st.DrawFn, depth: int = 2) -> str:
    """Statements at the left margin that parse."""
    rows: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["plain", "string", "blank", "comment", "brackets", *(["if"] if depth else [])]))
        if kind == "plain":
            rows.append("x = 1")
        elif kind == "string":
            rows.append(f"x = {draw(strings())}")
        elif kind == "blank":
            rows += ["", "y = 2"]
        elif kind == "comment":
            rows.append("# 'no string\nx = 0")
        elif kind == "brackets":
            rows.append("x = (1,\n     2)")
        else:
            inner = indented(draw(blocks(depth=depth - 1)), "    ")
            rows.append(f"if x:\n{inner}")
    return "\n".join(rows)


def tree(code: str) -> str | None:
    try:
        return ast.dump(ast.parse(code))
    except (SyntaxError, ValueError):
        return None


@given(blocks(), INDENTS)
def test_a_moved_block_has_the_same_tree(code: str, indent: str) -> None:
    wanted = tree(code)
    if wanted is None:  # a string that Python does not take
        return
    moved = indented(code, indent)
    assert tree(dedented(moved)) == wanted
    if indent:
        (holder,) = ast.parse("if 1:\n" + moved).body
        assert isinstance(holder, ast.If)
        assert ast.dump(ast.Module(body=holder.body, type_ignores=[])) == wanted


@given(st.text(max_size=80), INDENTS)
def test_any_text_is_moved_and_no_line_is_lost(text: str, indent: str) -> None:
    for moved in (dedented(text), indented(text, indent)):
        assert moved.count("\n") == text.count("\n")
        assert [row.strip(" \t") for row in moved.split("\n") if row.strip()] == [
            row.strip(" \t") for row in text.split("\n") if row.strip()
        ]


@pytest.mark.parametrize(
    ("code", "flush"),
    [
        ('    x = """a\n  b\n"""\n    y = 1', 'x = """a\n  b\n"""\ny = 1'),
        ("    x = 1\n\n      \n    y = 2", "x = 1\n\n\ny = 2"),
        ("\tif x:\n\t\ty = 1", "if x:\n\ty = 1"),
        ("    x = '''\n    \n'''", "x = '''\n    \n'''"),
        ("    x = (\n  1)", "  x = (\n1)"),  # no tree: it is refused by who parses it
    ],
)
def test_what_all_lines_of_code_have_goes(code: str, flush: str) -> None:
    assert dedented(code) == flush
