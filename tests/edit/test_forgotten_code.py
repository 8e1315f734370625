"""What code forgets and a failure names: decorators, factories, the last part after a loop, an order for None."""

import pytest

from localagent.domain.outcome import Failure, Frame
from localagent.domain.paths import RepoPath
from localagent.edit.space import LibcstEditSpace

PATH = RepoPath("m.py")
FULL = (
    "for r in rows:\n        part.append(r)\n        if len(part) == 2:\n            yield part\n            part = []"
)
BOX = "class Box:\n    def __init__(self, w):\n        self.w = w\n\n    def area({}):\n        return 1\n"


def offered(
    source: str, operator: str, *, exception: str = "TypeError", message: str = "", left: str = "", line: int = 0
) -> list[str]:
    """What an operator makes of a file, best first; `line`: where the failure crashed."""
    frames = (Frame(path=PATH, line=line, function="f"),) if line else ()
    failure = Failure(exception=exception, message=message, left=left, frames=frames)
    edits = LibcstEditSpace({}).edits(PATH, {PATH: source.encode()}, lines=None, failures=[failure])
    return [e.apply(source.encode()).decode() for e in edits if e.operator == operator]


@pytest.mark.parametrize(
    ("params", "message", "left", "decorator"),
    [
        ("self", "assert 1 == 1", "<bound method Box.area of <m.Box object>>", "property"),
        ("cls, f", "Box.area() missing 1 required positional argument: 'f'", "", "classmethod"),
        ("f", "Box.area() takes 1 positional argument but 2 were given", "", "staticmethod"),
    ],
)
def test_a_decorator_that_a_failure_asks_for_comes_first(params: str, message: str, left: str, decorator: str) -> None:
    source = BOX.format(params)
    made = offered(source, "missing-decorator", message=message, left=left)
    assert made[0] == source.replace("    def area", f"    @{decorator}\n    def area")


def test_a_split_into_too_many_parts_stops_early() -> None:
    source = "def f(line):\n    a, b, c = line.split('=')\n    return b\n"
    told = {"exception": "ValueError", "message": "too many values to unpack (expected 3)"}
    made = offered(source, "split-once", line=2, **told)
    assert made == [source.replace("split('=')", f"{name}('=', 2)") for name in ("split", "rsplit")]
    assert offered(source.replace("'='", "'=', 1"), "split-once", line=2, **told) == []
    assert offered(source, "split-once", line=3, **told) == []


def test_a_comparison_of_two_parameters_is_asked_both_ways() -> None:
    source = "def meets(a, b):\n    return a.b < b[1]\n"
    made = offered(source, "both-ways")
    assert made == [source.replace("b[1]", f"b[1] {word} b.b < a[1]") for word in ("and", "or")]
    assert offered(source.replace("a.b", "a.b + b.n"), "both-ways") == []
    assert offered(source.replace("(a, b)", "(a, c)"), "both-ways") == []


def test_other_methods_and_other_classes_get_no_decorator() -> None:
    named = "<bound method Box.other of <m.Box object>>"
    assert offered(BOX.format("self"), "missing-decorator", exception="AssertionError", left=named) == []
    other = "Crate.area() missing 1 required positional argument: 'f'"
    assert offered(BOX.format("cls, f"), "missing-decorator", message=other) == []


def test_mutable_defaults_of_a_dataclass_become_factories_all_at_once() -> None:
    source = "from dataclasses import dataclass\n\n\n@dataclass\nclass A:\n    x: list = []\n    y: dict = {'a': 1}\n"
    message = "mutable default <class 'list'> for field x is not allowed: use default_factory"
    (made,) = offered(source, "factory-default", exception="ValueError", message=message)
    assert "from dataclasses import dataclass, field\n" in made
    assert "x: list = field(default_factory=list)\n    y: dict = field(default_factory=lambda: {'a': 1})\n" in made


@pytest.mark.parametrize(
    ("operator", "message", "before", "after"),
    [
        (
            "none-in-order",
            "'<' not supported between instances of 'NoneType' and 'int'",
            "return sorted(rows, key=lambda r: r.rank)",
            "return sorted(rows, key=lambda r: (r.rank is None, r.rank))",
        ),
        (
            "none-in-order",
            "'<' not supported between instances of 'int' and 'NoneType'",
            "return sorted(rows)",
            "return sorted(rows, key=lambda v: (v is None, v))",
        ),
        (
            "not-serializable",
            "Object of type date is not JSON serializable",
            "return json.dumps(rows, indent=1)",
            "return json.dumps(rows, indent=1, default=str)",
        ),
        (
            "bind-loop-variable",
            "",
            "return [lambda: r for r in rows]",
            "return [lambda r=r: r for r in rows]",
        ),
        (
            "bind-loop-variable",
            "",
            "for r in rows:\n        add(lambda x: x + r.n)",
            "for r in rows:\n        add(lambda x, r=r: x + r.n)",
        ),
        ("strip-affix", "", "return rows.rstrip('.py')", "return rows.removesuffix('.py')"),
        ("set-order", "", "return list(set(rows))", "return list(dict.fromkeys(rows))"),
        ("ceil-division", "", "return (rows + 1) // part", "return -(-(rows + 1) // part)"),
        ("copy-first", "", "out = ROWS\n    out.update(rows)", "out = ROWS.copy()\n    out.update(rows)"),
        (
            "wider-key",
            "",
            "if rows not in m:\n        m[rows] = get(part, rows)\n    return m[rows]",
            "if (rows, part) not in m:\n        m[(rows, part)] = get(part, rows)\n    return m[(rows, part)]",
        ),
        (
            "descending-key",
            "",
            "return sorted(rows, key=lambda r: (r.n, r.at))",
            "return sorted(rows, key=lambda r: (-r.n, r.at))",
        ),
        (
            "wrap-method",
            "",
            "rows.add(part.lower())\n    return rows.get(part)",
            "rows.add(part.lower())\n    return rows.get(part.lower())",
        ),
        (
            "flush-after-loop",
            "",
            FULL,
            f"{FULL}\n    if part:\n        yield part",
        ),
    ],
)
def test_what_is_meant_comes_first(operator: str, message: str, before: str, after: str) -> None:
    head = "def f(rows, part, add):\n    "
    assert offered(f"{head}{before}\n", operator, line=2, message=message)[0] == f"{head}{after}\n"


def test_what_a_loop_changes_is_copied_first() -> None:
    source = "def f(d):\n    for k in d:\n        del d[k]\n"
    made = offered(
        source,
        "changed-while-iterated",
        line=2,
        exception="RuntimeError",
        message="dictionary changed size during iteration",
    )
    assert made == [source.replace("in d:", "in list(d):")]


@pytest.mark.parametrize(
    "source",
    [
        "def f(xs, y):\n    for x in xs:\n        add(lambda y: y)\n",
        "def f(xs):\n    for x in xs:\n        add(lambda x=x: x)\n",
        "def f(xs):\n    for x in xs:\n        add(lambda *x: x)\n",
        "def f(xs):\n    for x in xs:\n        add(lambda o: o.x)\n",
    ],
)
def test_a_function_that_reads_no_variable_of_the_loop_stays(source: str) -> None:
    assert offered(source, "bind-loop-variable") == []
