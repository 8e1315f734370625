"""The token-level edit space: each slip a person makes has its repair among the first answers."""

import ast
import itertools
import textwrap
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.domain.edit import Edit
from localagent.domain.paths import RepoPath
from localagent.edit.syntax_repair.syntax_space import TokenEditSpace

PATH = RepoPath("mod.py")


def answers(source: str | bytes, limit: int = 60) -> list[bytes]:
    data = source.encode() if isinstance(source, str) else source
    return [e.apply(data) for e in edits(data, limit)]


def edits(data: bytes, limit: int = 60) -> list[Edit]:
    space = TokenEditSpace().edits(PATH, {PATH: data}, lines=None, failures=())
    return list(itertools.islice(space, limit))


def offered(broken: str, good: str, limit: int = 60) -> bool:
    """Whether a program equal to `good` is among the first answers."""
    data, want = broken.encode(), ast.dump(ast.parse(good))
    space = TokenEditSpace().edits(PATH, {PATH: data}, lines=None, failures=())
    return any(ast.dump(ast.parse(e.apply(data))) == want for e in itertools.islice(space, limit))


def parses(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "x", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


GOOD = textwrap.dedent('''\
    import os


    class Shop:
        """Things and prices."""

        def __init__(self, stock, limit=10):
            self.stock = dict(stock)
            self.limit = limit

        def price(self, name, count):
            if name not in self.stock or count == 0:
                return None
            total = 0
            for step in range(count):
                if step % 2 == 0 and step > 3:
                    total += self.stock[name] * (step + 1)
                elif step == 1:
                    total += max(self.stock[name], self.limit)
                else:
                    total -= 1
            print("total: " + str(total))
            return [total, {"name": name}]


    def load(path):
        with open(path) as file:
            return Shop([line.split(":") for line in file])
    ''')

SLIPS = {
    "colon": ("for step in range(count):", "for step in range(count)"),
    "colon of a class": ("class Shop:", "class Shop"),
    "colon of else": ("else:", "else"),
    "semicolon for colon": ("for step in range(count):", "for step in range(count);"),
    "brace for colon": ("for step in range(count):", "for step in range(count) {"),
    "then": ("elif step == 1:", "elif step == 1 then:"),
    "closing bracket at the end": ("str(total))", "str(total)"),
    "closing bracket inside": ("self.stock[name], self", "self.stock[name, self"),
    "closing bracket before the colon": ("range(count):", "range(count:"),
    "two closing brackets": ("str(total))", "str(total"),
    "bracket too many": ("(step + 1)", "(step + 1))"),
    "opening bracket": ("(step + 1)", "step + 1)"),
    "wrong closing bracket": ("self.stock[name] *", "self.stock[name) *"),
    "wrong opening bracket": ("range(count)", "range[count)"),
    "string not closed": ('"total: "', '"total: '),
    "string not opened": ('"total: "', 'total: "'),
    "quotes differ": ('"total: "', "\"total: '"),
    "stray quote": ("return None", "return None'"),
    "assignment in a condition": ("step == 1", "step = 1"),
    "assignment beside and": ("% 2 == 0 and", "% 2 = 0 and"),
    "else if": ("elif step", "else if step"),
    "elseif": ("elif step", "elseif step"),
    "two ampersands": (" and step", " && step"),
    "two bars": (" or count", " || count"),
    "arrow": ("step > 3", "step => 3"),
    "function": ("def load", "function load"),
    "missing def": ("def load", "load"),
    "misspelt keyword": ("return None", "retrun None"),
    "capital keyword": ("return None", "Return None"),
    "misspelt for": ("for step", "fro step"),
    "missing in": ("step in range", "step range"),
    "increment": ("total -= 1", "total--"),
    "comment of C": ("return None", "return None // not there"),
    "block comment of C": ("return None", "return None /* not there */"),
    "declared with var": ("total = 0", "var total = 0"),
    "new": ("return Shop(", "return new Shop("),
    "comma": ("[total, {", "[total {"),
    "comma of arguments": ("stock, limit", "stock limit"),
    "duplicated token": ("total = 0", "total = = 0"),
    "dot doubled": ("self.limit = limit", "self..limit = limit"),
    "digits before a name": ("total -= 1", "2total -= 1"),
    "dollar": ("total = 0", "$total = 0"),
    "indented too deep": ("        self.limit = limit", "            self.limit = limit"),
    "indented too little": ("        return [total", "      return [total"),
    "suite not indented": ('            return None\n', '        return None\n'),
    "clause out of line": ("            elif step", "          elif step"),
    "print without brackets": ('print("total: " + str(total))', 'print "total: " + str(total)'),
    "spaced arrow of comparison": ("step == 1", "step = = 1"),
    "words before a return": ("return None", "stock[]return None"),
    "foreign import": ("import os\n", "import os\nimport java.util.*;\n"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("this reads the stock", "tokens.comment-line"),
        ("Note: stock", "tokens.comment-line"),
        ("stock", "tokens.comment-line"),
        ("first, second", "tokens.comment-line"),
        ("total -= 1", "tokens.comment-statement"),
        ("self.load(stock)", "tokens.comment-statement"),
        ("return total", "tokens.comment-statement"),
    ],
)
def test_a_line_that_does_something_is_told_from_a_remark_before_it_is_made_a_comment(line: str, name: str) -> None:
    source = f"def load(stock):\n    total = 0\n    if stock:\n    {line}\n    return total\n"
    made = {e.operator for e in edits(source.encode(), 600) if f"# {line}" in e.apply(source.encode()).decode()}
    assert f"{name}+insert-pass" in made


@pytest.mark.long
@pytest.mark.parametrize("slip", SLIPS)
def test_repair_of_a_slip_is_among_the_first_answers(slip: str) -> None:
    old, new = SLIPS[slip]
    assert GOOD.count(old) >= 1
    broken = GOOD.replace(old, new, 1)
    assert not parses(broken.encode())
    assert offered(broken, GOOD), [e.note for e in edits(broken.encode(), 10)]


@pytest.mark.parametrize(
    "pair",
    [
        ("colon", "string not closed"),
        ("closing bracket inside", "colon of a class"),
        ("else if", "assignment beside and"),
    ],
)
def test_two_slips_in_one_file_are_repaired_by_one_edit(pair: tuple[str, str]) -> None:
    broken = GOOD
    for slip in pair:
        broken = broken.replace(*SLIPS[slip], 1)
    assert offered(broken, GOOD, 200)


def test_three_slips_in_one_file() -> None:
    broken = GOOD
    for slip in ("colon of a class", "closing bracket before the colon", "assignment in a condition"):
        broken = broken.replace(*SLIPS[slip], 1)
    assert offered(broken, GOOD, 200)


@pytest.mark.long
def test_a_method_left_of_its_class_is_moved_with_all_it_holds() -> None:
    broken = "class A:\ndef f(self):\n    return 1\n\ndef g(self):\n    return 2\n"
    assert b"class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n" in answers(broken)


def test_tabs_and_blanks_mixed() -> None:
    broken = "if a:\n        b = 1\n\tc = 2\n"
    assert not parses(broken.encode())
    assert offered(broken, "if a:\n  b = 1\n  c = 2\n")


def test_every_place_of_a_closing_bracket_is_offered() -> None:
    found = {a.decode() for a in answers("x = f(a, b + c\n")}
    assert {"x = f(a, b + c)\n", "x = f(a, b) + c\n", "x = f(a), b + c\n", "x = f(), a, b + c\n"} - found <= {
        "x = f(), a, b + c\n"
    }


def test_source_that_parses_has_no_token_edits() -> None:
    assert edits(GOOD.encode()) == []


def test_absent_file_has_no_edits() -> None:
    assert list(TokenEditSpace().edits(PATH, {}, lines=None, failures=())) == []


@pytest.mark.long
def test_best_first_and_no_result_twice() -> None:
    data = GOOD.replace("range(count):", "range(count:").encode()
    found = edits(data, 120)
    priors = [e.prior for e in found]
    assert priors == sorted(priors, reverse=True)
    results = [e.apply(data) for e in found]
    assert len(results) == len(set(results)) > 10


@pytest.mark.long
def test_same_source_same_edits() -> None:
    data = GOOD.replace("range(count):", "range count").encode()
    assert edits(data, 25) == edits(data, 25)


def test_prior_of_an_operator_moves_it_back() -> None:
    data = b"x = f(a, b\ny = 1\n"
    first = edits(data, 1)[0]
    space = TokenEditSpace({first.operator: -3.0}).edits(PATH, {PATH: data}, lines=None, failures=())
    assert next(iter(space)).operator != first.operator


@pytest.mark.long
def test_large_file_is_worked_on_where_it_is_broken() -> None:
    body = "\n\n".join(f"def f{n}(a, b):\n    if a == {n}:\n        return b\n    return [a, (b)]" for n in range(2500))
    broken = body.replace("    if a == 1777:", "    if a = 1777", 1).replace("[a, (b)]", "[a, (b]", 1)
    found = edits(broken.encode(), 3)
    assert ast.dump(ast.parse(body)) in [ast.dump(ast.parse(e.apply(broken.encode()))) for e in found]


@pytest.mark.long
@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_stay(end: str) -> None:
    broken = GOOD.replace("range(count):", "range(count)").replace("\n", end).encode()
    assert GOOD.replace("\n", end).encode() in answers(broken)


@pytest.mark.long
def test_byte_order_mark_and_declared_encoding_stay() -> None:
    text = "# -*- coding: latin-1 -*-\nname = 'é'\nif name\n    pass\n"
    good = text.replace("if name", "if name:").encode("latin-1")
    assert good in answers(text.encode("latin-1"))
    marked = b"\xef\xbb\xbf" + "name = 'é'\nprint('ü', name\n".encode()
    assert b"\xef\xbb\xbf" + "name = 'é'\nprint('ü', name)\n".encode() in answers(marked)


def test_undeclared_latin_1_gets_its_declaration() -> None:
    data = "name = 'é'\n".encode("latin-1")
    assert b"# -*- coding: latin-1 -*-\n" + data in answers(data)


def test_nul_bytes_are_dropped() -> None:
    assert answers(b"a = 1\n\0b = 2\n\0")[0] == b"a = 1\nb = 2\n"


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_law_every_answer_parses_and_keeps_all_bytes_outside_its_splices(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(GOOD) - 1))
    size = data.draw(st.integers(0, 6))
    put = data.draw(
        st.sampled_from(["", "(", ")", "]", "'", '"', ":", "\n", "    ", "\t", "=", " if ", "é", "$", "\\", "\r"])
    )
    source = (GOOD[:at] + put + GOOD[at + size :]).encode()
    for edit in edits(source, 12):
        assert parses(edit.apply(source))
        last = 0
        for s in edit.splices:
            assert last <= s.start <= s.end <= len(source)
            last = s.end
        assert 1 <= edit.line <= edit.end_line
        assert edit.operator.startswith("tokens.")


def test_a_stray_quote_hides_a_bracket_above_it() -> None:
    broken = "class A:\n    def f(self, a:\n        b = a + 1\n        c = 'min(a, b)\n        return c\n"
    good = "class A:\n    def f(self, a):\n        b = a + 1\n        c = min(a, b)\n        return c\n"
    assert offered(broken, good, limit=5)


def test_a_suite_that_begins_beside_its_header_is_taken_below_it() -> None:
    broken = "def f(n):\n    if n:\n        return 1\n    else:found = n\n        found += 1\n    return found\n"
    assert offered(broken, broken.replace("else:found", "else:\n        found"), 3)
    doubled = "def f(a, b):\n    while a:while b:\n            a -= b\n        b -= 1\n    return a\n"
    assert offered(doubled, doubled.replace("while a:while b", "while a:\n        while b"), 3)


def test_a_suite_one_level_too_far_left_takes_its_clauses_along() -> None:
    good = """\
def merge(a, b):
    out = []
    while a and b:
        if a[0] < b[0]:
            out.append(a[0])
            a = a[1:]
        else:
            out.append(b[0])
            b = b[1:]
    return out + a + b
"""
    lines = good.splitlines()
    broken = [line[4:] if 4 <= n <= 8 else line for n, line in enumerate(lines)]
    assert not parses("\n".join(broken).encode())
    assert offered("\n".join(broken), good, 1)


def test_a_pass_is_indented_by_the_first_line_of_its_header() -> None:
    head = "def g(a):\n    if f(\n\n            a,\n            1):\n"
    assert offered(f"{head}    return 1\n", f"{head}        pass\n    return 1\n")
