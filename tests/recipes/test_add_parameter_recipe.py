"""`add-parameter` over small repositories: the suite passes after each, and old calls mean what they meant."""

from pathlib import Path

import pytest
from recipes.example_trees import TREES, changed, run_suite, sources

from localagent.recipes.catalogue import carry_out
from localagent.recipes.instruction import AddParameter, recipe_of
from localagent.recipes.recipe import Question, RecipeChange

DONE: list[tuple[str, str, str]] = [
    ("shop", "add a parameter `mode='r'` to shop.io.load", "def load(path, strict=False, mode='r'):"),
    ("shop", "add a parameter mode='r' to load in shop.io", "def load(path, strict=False, mode='r'):"),
    ("shop", "add a new parameter `mode` with default 'r' to the function load", "strict=False, mode='r'):"),
    ("shop", "add an optional argument mode (default 'r') to load", "strict=False, mode='r'):"),
    ("shop", "give shop.io.load a parameter mode='r'", "strict=False, mode='r'):"),
    ("shop", "extend load with a parameter mode='r'", "strict=False, mode='r'):"),
    ("shop", "load should accept a parameter mode='r'", "strict=False, mode='r'):"),
    ("shop", "add to load in shop/io.py a parameter mode='r'", "strict=False, mode='r'):"),
    ("shop", "add a parameter `mode: str | None = None` to load", "strict=False, mode: str | None = None):"),
    ("shop", "add a parameter mode='r' to load and pass 'w' in cli.main", "read(text, strict=True, mode='w')"),
    ("shop", "add a parameter mode='r' to load, and pass 'w' in gifts", "io.load(text, mode='w')"),
    ("shop", "add a parameter currency='EUR' to dump", "def dump(items, currency='EUR', *, end='\\n'):"),
    ("shop", "add a parameter sep=None to dump and pass ';' in shop.cli.main", "io.dump([str(cart.total())], sep=';')"),
    ("shop", "add a parameter currency='EUR' to shop.prices.total", "(prices, *extra, currency='EUR', **options)"),
    ("shop", "add a parameter low=0 to the method Cart.add", "def add(self, price, count=1, low=0):"),
    ("shop", "add a parameter low=0 to Cart.add and pass 1 in gifts", "# each\n            low=1,\n        )"),
    ("shop", "add a parameter low=0 to Cart.of", "def of(cls, prices, low=0)"),
    (
        "shop",
        "add a parameter rounded=False to Cart.total",
        "def total(self, rounded=False) -> int:\n        return super()",
    ),
    ("shop", "add a parameter size=3 to class Cart and pass 4 in shop.cli.main", "Cart('you', size=4)"),
    ("shop", "add a parameter note='' to gifts", "    owner,\n    note='',\n):"),
    ("shop", "add a parameter note to main and pass 'x' at every call", "def main(text, note):"),
    ("shop", "add a parameter note to taxed and pass 'x' at all calls", "def taxed(price, rate=RATE, *, note):"),
    ("shapes", "add a parameter digits=2 to Shape.area", "def area(self, scale=1, digits=2): ..."),
    ("shapes", "add a parameter digits=2 to Square.area", "return 3 * self.radius"),
    ("shapes", "add a parameter digits=-1 to areas", "def areas(shapes: list[Shape], scale=1, digits=-1):"),
    ("shapes", "add a parameter unit='cm' to class Circle", "def __init__(self, radius, unit='cm'):"),
    ("shapes", "add a parameter color to Square and pass 'red' at every call", "Square(2, color='red')"),
    ("shapes", "add a parameter strict=True to shapes.sums.field", "def field(shape, name, strict=True):"),
    ("notes", "add a parameter empty=False to best", "def best(notes, /, key=None, empty=False):"),
    ("notes", "add a parameter tail='...' to Note.short", "def short(self, size=LIMIT, tail='...'):"),
    ("notes", "add a parameter loud=False to the function later", "note: Note, loud=False, *, wait=0):"),
    ("notes", "add a parameter lang='en' to NoteError.explain", "def explain(self, lang='en'):"),
    ("notes", "add a parameter seen=() to walk and pass (1,) in walk", "walk(n, depth + 1, seen=(1,)) for n in node"),
    ("notes", "add a parameter kind=None to parse", "def parse(line: str, kind=None) -> Note:"),
]
ASKED: list[tuple[str, str, str]] = [
    ("shop", "add a parameter mode to load", "what is mode"),
    ("shop", "add a parameter items=[] to load", "shared by all calls"),
    ("shop", "add a parameter strict=1 to load", "already"),
    ("shop", "add a parameter parts=1 to load", "another"),
    ("shop", "add a parameter print=1 to load", "builtin"),
    ("shop", "add a parameter mode=read to load", "not a plain value"),
    ("shop", "add a parameter mode=1 to nothing_such", "no function"),
    ("shop", "add a parameter mode=1 to load and pass 2 in shop.prices", "does not call"),
    ("shop", "add a parameter mode=1 to total", "which 'total'"),
    ("shapes", "add a parameter short=1 to Shape.name", "property"),
    ("shapes", "add a parameter more to twice and pass 1 everywhere", "pass it on"),
    ("notes", "add a parameter stars2=0 to class Note", "no __init__"),
    ("notes", "add a parameter kind to parse and pass 1 everywhere", "pass it on"),
]


def _asked(tree: dict[str, str], instruction: str) -> RecipeChange | Question:
    recipe = recipe_of(instruction)
    assert isinstance(recipe, AddParameter), instruction
    return carry_out(sources(tree), recipe)


@pytest.mark.parametrize(("tree", "instruction", "written"), DONE)
def test_the_suite_passes_after_it(tree: str, instruction: str, written: str, tmp_path: Path) -> None:
    found = _asked(TREES[tree], instruction)
    assert isinstance(found, RecipeChange), found
    after = changed(TREES[tree], found)
    assert any(written in text for text in after.values()), found.writes
    assert run_suite(tmp_path, after) > 3


@pytest.mark.parametrize(("tree", "instruction", "why"), ASKED)
def test_what_a_person_has_to_decide_is_asked(tree: str, instruction: str, why: str) -> None:
    found = _asked(TREES[tree], instruction)
    assert isinstance(found, Question)
    assert why in found.text


def test_overrides_and_what_they_override_get_it_together() -> None:
    found = _asked(TREES["shapes"], "add a parameter digits=2 to Circle.area")
    assert isinstance(found, RecipeChange)
    assert sum(text.count("scale=1, digits=2)") for text in found.writes.values()) == 3


@pytest.mark.parametrize(
    ("call", "becomes"),
    [
        ("f()", "f(x=1)"),
        ("f(1, )", "f(1, x=1, )"),
        ("f((1))", "f((1), x=1)"),
        ("f(\n    1 # ,)\n)", "f(\n    1, x=1 # ,)\n)"),
    ],
)
def test_calls_keep_their_layout(call: str, becomes: str) -> None:
    source = f"def f(a=0): ...\n\n\n{call}\n"
    found = _asked({"m.py": source}, "add a parameter x to f and pass 1 everywhere")
    assert isinstance(found, RecipeChange)
    assert changed({}, found) == {"m.py": f"def f(a=0, *, x): ...\n\n\n{becomes}\n"}


@pytest.mark.parametrize("call", ["f(i for i in y)", "f(**y)"])
def test_calls_that_cannot_take_it_are_asked_about(call: str) -> None:
    found = _asked({"m.py": f"def f(a=0): ...\n\n\ny = {{}}\n{call}\n"}, "add a parameter x to f and pass 1 everywhere")
    assert isinstance(found, Question)


def test_an_annotation_nested_deeper_than_can_be_written_is_no_recipe() -> None:
    assert recipe_of(f"add a parameter `x: {'-' * 560}1` to f") is None
