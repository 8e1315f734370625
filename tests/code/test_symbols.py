from localagent.code.symbols import FactIndex, collect

SOURCE = (
    b'''"""Doc."""
from __future__ import annotations
import os.path as p
from re import compile as rx, *
'''.replace(b", *", b"")
    + b"""from heapq import *


class A(Base):
    kind = "a"

    def __init__(self, x, *, y=None):
        self.x = x

    @property
    def z(self):
        if self.x > 3:
            raise ValueError("small")
        return rx(self.kind, flags=2)


def main(argv=()):
    return A(1, y=2).z


if main():
    pass
"""
)


def test_units_are_outermost_functions_and_statements_outside() -> None:
    facts = collect(SOURCE)
    assert facts is not None
    functions = [(u.function, u.class_path, u.first_line, u.last_line) for u in facts.units if u.is_function]
    assert functions == [("__init__", ("A",), 11, 12), ("z", ("A",), 14, 18), ("main", (), 21, 22)]
    lines = [n for u in facts.units for n in range(u.first_line, u.last_line + 1)]
    assert len(lines) == len(set(lines))


def test_what_a_file_offers() -> None:
    facts = collect(SOURCE)
    assert facts is not None
    assert facts.imports == {"annotations": "__future__:annotations", "p": "os.path", "rx": "re:compile"}
    assert facts.star_imports == ["heapq"]
    assert facts.classes["A"].methods == ("__init__", "z")
    assert facts.classes["A"].attributes == ("x", "kind")
    assert facts.exceptions == {"ValueError": 1}
    assert facts.keywords_of == {"rx": {"flags": 1}, "A": {"y": 1}}
    assert facts.keyword_values == {("rx", "flags"): {"2": 1}, ("A", "y"): {"2": 1}}
    assert set(facts.conditions) == {"self.x > 3", "main()"}
    assert facts.functions["__init__"][0].keyword_only == ("y",)


def test_values_of_keywords_are_literals_as_they_are_written() -> None:
    values = ("-True", "-1", "'a'", "not 1", "...", "x", "-'a'", "'" + 40 * "x" + "'", "b''")
    facts = collect("".join(f"g(k={value})\n" for value in values).encode())
    assert facts is not None
    assert facts.keyword_values == {("g", "k"): {"-1": 1, "'a'": 1, "": 6, "b''": 1}}


def test_facts_are_kept_per_content_and_bounded() -> None:
    index = FactIndex()
    first = index.of(b"x = 1\n")
    assert index.of(b"x = 1\n") is first
    for n in range(400):
        index.of(b"y = %d\n" % n)
    assert index.of(b"x = 1\n") is not first


def test_what_cannot_be_parsed_has_no_facts() -> None:
    deep = b"(" * 5000 + b")" * 5000
    assert [collect(s) for s in (b"def f(:", b"\x00", b"# coding: no\n", deep)] == [None] * 4


def test_a_function_owns_the_comments_indented_behind_it() -> None:
    source = b"def f(a):\n    b = a\n\n    # return b\n# module\n    # stray\nx = 1\n\n\ndef g():\n    pass\n# end\n"
    facts = collect(source)
    assert facts is not None
    assert [(u.first_line, u.last_line) for u in facts.units] == [(1, 4), (7, 7), (10, 11)]


def test_bases_are_named_and_those_without_a_name_are_marked() -> None:
    facts = collect(b"class C(A, m.B, G[int], make(), metaclass=M): pass\nclass D: pass\n")
    assert facts is not None
    assert [facts.classes[name].bases for name in "CD"] == [("A", "B", "G", "?"), ()]


def test_functions_that_stand_in_for_an_import_are_units() -> None:
    source = b"try:\n    import x\nexcept ImportError:\n    def f(a):\n        return a\nelse:\n    def g(): pass\n"
    facts = collect(source)
    assert facts is not None
    assert [(u.first_line, u.last_line, u.function) for u in facts.units] == [(2, 2, ""), (4, 5, "f"), (7, 7, "g")]
