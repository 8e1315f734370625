"""The source of a test of a chosen answer: everything that it is made of comes from the jail, and may be hostile."""

import json
from typing import Any

import pytest

from localagent.app.fix.proposal_test_source import called, defines, source_of
from localagent.errors import UsageFault

PLACE = {"path": "src/pkg/m.py", "module": "pkg.m", "qualname": "f"}


def told(call: str = "f(1)", *answers: str, exact: Any = None, **place: str) -> dict[str, Any]:
    by_number = {str(n): text for n, text in enumerate(answers or ("2", "3"), 1)}
    function = {**PLACE, **place}
    return {"call": call, "answers": by_number, "function": function, "exact": exact or [int(n) for n in by_number]}


@pytest.mark.parametrize(
    ("call", "answer", "line"),
    [
        ("f(1)", "2", "assert f(1) == 2"),
        ("f()", "[]", "assert f() == []"),
        ("f([1, 2], key={'a': (1,)})", "'x'", "assert f([1, 2], key={'a': (1,)}) == 'x'"),
        ("f('a\\nb', \"it's\")", "'\\'\"\\n'", "assert f('a\\nb', \"it's\") == '\\'\"\\n'"),
        ("f('\\u202e', b'\\x00')", "'\u00fc\u2028'", "assert f('\\u202e', b'\\x00') == '\\xfc\\u2028'"),
        ("f(-0.0, 1e5)", "{1}", "assert f(-0.0, 100000.0) == {1}"),
        ("f(1)", "None", "assert f(1) is None"),
        ("f(1)", "True", "assert f(1) is True"),
    ],
)
def test_what_is_a_literal_is_written_anew_from_its_value(call: str, answer: str, line: str) -> None:
    made = source_of(told(call, answer, "77"), 1)
    assert made == f"def test_f():\n    from pkg.m import f\n\n    {line}\n"
    assert called(told(call)) == ("src/pkg/m.py", ["f"])


def test_a_builtin_exception_is_asked_for_by_its_name() -> None:
    imports = "    import pytest\n\n    from pkg.m import f\n\n"
    made = f"def test_f():\n{imports}    with pytest.raises(KeyError):\n        f(1)\n"
    assert source_of(told("f(1)", "raises KeyError", "2"), 1) == made


def test_a_static_method_is_called_by_its_class() -> None:
    made = source_of(told("f(1)", "2", "3", path="m/__init__.py", module="m", qualname="Box.f"), 2)
    assert made == "def test_f():\n    from m import Box\n\n    assert Box.f(1) == 3\n"


def test_the_name_is_one_that_is_free() -> None:
    assert source_of(told(), 1, "def test_f(): pass\ntest_f_2 = 3\ndef test_f_30(): pass\n").startswith(
        "def test_f_3():"
    )


@pytest.mark.parametrize(
    "call",
    [
        "f(__import__('os').system('x'))",
        "f(1) or print(2)",
        "f(1)\nprint(2)",
        "f(1); print(2)",
        "f(1)  # \u2028print(2)\nprint(3)",
        "f(*[1])",
        "f(**{'a': 1})",
        "f(x)",
        "f(...)",
        "f([1, 2, ...])",
        "f(1e999)",
        "f(f'{1}')",
        "f(a b=1)",
        "f(class=1)",
        "f(a=1, a=2)",
        "f(__debug__=1)",
        "f(x := 1)",
        "f(<m.Box object>)",
        "f('a" + "b" * 2_000 + "')",
        "f(" + "(" * 400 + ")" * 400 + ")",
        "f(" + "-" * 900 + "1)",
        "f({[]: 1})",
        "f('\ud800')",
        "f(1)\0",
        "(f)(1)(2)",
        "g(1)",
        "os.f(1)",
        "lambda: f(1)",
        "f",
    ],
)
def test_a_call_that_is_more_or_less_than_a_call_with_literals_is_refused(call: str) -> None:
    with pytest.raises(UsageFault, match="no test of what proposal 1 answers") as refused:
        source_of(told(call), 1)
    assert refused.value.exit_code == 2
    assert refused.value.remedy.startswith("write the test by hand, for ")
    assert len(refused.value.remedy) < 1_100


@pytest.mark.parametrize(
    "answer",
    [
        "does not end in time",
        "",
        "nan",
        "inf",
        "m.Box(x=1)",
        "raises Broken",
        "raises print",
        "raises __import__('os')",
        "raises KeyError\n",
        "raises ",
        "[1, 2] ... [3]",
        "2, its arguments then: [1]; exec('x')",
        "2\nexec('x')",
        "f'{1}'",
        "'" + "x" * 5_000 + "'",
        "9" * 5_000,
        "[" * 900,
    ],
)
def test_an_answer_that_is_no_literal_and_no_builtin_exception_is_refused(answer: str) -> None:
    with pytest.raises(UsageFault, match="no test of what proposal 1 answers"):
        source_of(told("f(1)", answer, "77"), 1)


@pytest.mark.parametrize(
    "place",
    [
        {"qualname": "g.<locals>.f"},
        {"qualname": "<lambda>"},
        {"qualname": "class"},
        {"qualname": "None.f"},
        {"qualname": "__debug__.f"},
        {"qualname": "f\nimport os"},
        {"qualname": ""},
        {"module": "pkg.m; import os"},
        {"module": "pkg.import"},
        {"module": ""},
        {"module": "other.m"},
        {"module": "m.m"},
        {"module": "...m"},
        {"path": "src/pkg/m.so"},
        {"path": "os.py", "module": "os"},
        {"path": "pytest.py", "module": "pytest"},
        {"path": "\uff4f\uff53.py", "module": "\uff4f\uff53"},
        {"path": "src/\uff50kg/m.py", "module": "\uff50kg.m"},
        {"qualname": "\uff46"},
        {"path": "src/pkg/m-1.py", "module": "pkg.m-1"},
    ],
)
def test_what_does_not_name_a_function_of_a_file_is_refused(place: dict[str, str]) -> None:
    with pytest.raises(UsageFault, match="no test of what proposal 1 answers"):
        source_of(told("f(1)", "2", "3", **place), 1)


VALUE = "    from pkg.m import f\n\n    got = f(1)\n    assert type(got) is {0}\n    assert got == {1}\n"
RAISED = (
    "    import pytest\n\n    from pkg.m import f\n\n"
    "    with pytest.raises({0}) as info:\n        f(1)\n    assert info.type is {0}\n"
)


@pytest.mark.parametrize(
    ("mine", "other", "exact", "body"),
    [
        ("1", "True", (1, 2), VALUE.format("int", "1")),
        ("1", "1.0", (1, 2), VALUE.format("int", "1")),
        ("1", "Decimal('1')", (1,), VALUE.format("int", "1")),
        ("'a'", "'aaaaaaa ... aaa'", (1,), VALUE.format("str", "'a'")),
        ("{'a': 1}", "OrderedDict([('a', 1)])", (1,), VALUE.format("dict", "{'a': 1}")),
        ("[]", "[m.Box()]", (1,), VALUE.format("list", "[]")),
        ("raises LookupError", "raises KeyError", (1, 2), RAISED.format("LookupError")),
        ("raises ValueError", "raises MyError", (1,), RAISED.format("ValueError")),
        ("raises ValueError", "raises ValueError", (1,), RAISED.format("ValueError")),
    ],
)
def test_where_equality_would_pass_with_another_proposal_the_type_is_held_too(
    mine: str, other: str, exact: tuple[int, ...], body: str
) -> None:
    assert source_of(told("f(1)", mine, other, exact=list(exact)), 1) == "def test_f():\n" + body


@pytest.mark.parametrize(
    ("mine", "other", "exact"),
    [
        ("[0]", "[False]", (1, 2)),
        ("0.0", "-0.0", (1, 2)),
        ("[1]", "[Decimal('1')]", (1,)),
        ("{'a': 1}", "dict('a':Decimal('1'))", (1,)),
        ("{1}", "set(Decimal('1'))", (1,)),
        ("(1,)", "(m.Box(),)", (1,)),
        ("1", "1, its arguments then: [1]", (1,)),
        ("None", "None, its arguments then: [1]", (1,)),
    ],
)
def test_a_test_that_may_pass_with_another_proposal_is_refused(mine: str, other: str, exact: tuple[int, ...]) -> None:
    with pytest.raises(UsageFault, match="would not tell it from the answer of proposal 2"):
        source_of(told("f(1)", mine, other, exact=list(exact)), 1)


def test_a_name_that_the_test_needs_is_not_taken_from_it() -> None:
    with pytest.raises(UsageFault, match="stands for something else"):
        source_of(told("pytest(1)", "raises KeyError", "2", qualname="pytest"), 1)
    with pytest.raises(UsageFault, match="stands for something else"):
        source_of(told("f(1)", "raises KeyError", "2", qualname="KeyError.f"), 1)
    with pytest.raises(UsageFault, match="stands for something else"):
        source_of(told("info(1)", "raises LookupError", "raises KeyError", qualname="info"), 1)
    with pytest.raises(UsageFault, match="stands for something else"):
        source_of(told("type(1)", "1", "True", qualname="type"), 1)


@pytest.mark.parametrize(
    ("ambiguity", "why"),
    [
        (None, "no input is known"),
        ({"call": "f(1)", "answers": {"1": "2"}}, "earlier version"),
        ({**told(), "function": None}, "no name leads to the function"),
        ({**told(), "exact": [2]}, "not told whole"),
        ({**told(), "exact": 1}, "not told whole"),
        ({**told(), "answers": {"2": "3"}}, "is not known"),
        ({**told(), "answers": None}, "is not known"),
        ({**told(), "function": {}}, "no name leads|not certain"),
    ],
)
def test_why_there_is_none_is_said(ambiguity: dict[str, Any] | None, why: str) -> None:
    with pytest.raises(UsageFault, match=why):
        source_of(json.loads(json.dumps(ambiguity)), 1)


def test_a_function_is_looked_for_in_its_module() -> None:
    source = b"def f(): pass\nclass A:\n    class B:\n        def g(self): pass\nif 1:\n    def h(): pass\n"
    assert [defines(source, names.split(".")) for names in ("f", "A.B.g", "h", "A.f", "A", "g")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
    assert not defines(b"def f(:\n", ["f"])
