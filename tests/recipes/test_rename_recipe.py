"""`rename` over small repositories: the suite passes after each, there and back is byte for byte the same."""

from pathlib import Path

import pytest
from recipes.example_trees import TREES, changed, run_suite, sources

from localagent.recipes.catalogue import carry_out
from localagent.recipes.instruction import Rename, recipe_of
from localagent.recipes.recipe import Question, RecipeChange

DONE: list[tuple[str, str, str]] = [
    ("shop", "rename `load` in `shop.io` to `read_orders`", "rename read_orders in shop.io to load"),
    ("shop", "Rename the function shop.io.dump to write.", "rename shop.io.write to dump"),
    ("shop", "rename class Cart to Basket", "rename class Basket to Cart"),
    ("shop", "change the name of Gift to Present", "change the name of Present to Gift"),
    ("shop", "rename method Cart.add to put", "rename method Cart.put to add"),
    ("shop", "rename Cart.total to amount", "rename Cart.amount to total"),
    ("shop", "rename the function total in shop.prices to summed", "rename summed in shop.prices to total"),
    ("shop", "rename parameter strict of load to exact", "rename parameter exact of load to strict"),
    ("shop", "rename argument `count` of `Cart.add` to `times`", "rename argument times of Cart.add to count"),
    ("shop", "rename constant SEPARATOR to COMMA", "rename COMMA to SEPARATOR"),
    ("shop", "the constant RATE should be called FACTOR", "the constant FACTOR should be called RATE"),
    ("shop", "rename parameter end of dump to tail", "rename parameter tail of dump to end"),
    ("shop", "rename taxed in shop/prices.py to with_tax", "rename with_tax in shop/prices.py to taxed"),
    ("shop", "rename owner of Cart.__init__ in shop.cart to holder", "rename holder of Cart.__init__ to owner"),
    ("shop", "give the method of of class Cart the name from_prices", "rename Cart.from_prices to of"),
    ("shop", "rename shop.cli.main -> run", "rename shop.cli.run -> main"),
    ("shop", "rename VERSION in shop to RELEASE", "rename RELEASE to VERSION"),
    ("shop", "rename shop.cart.Cart.lines to prices, also the possible places", "rename Cart.prices to lines"),
    ("shapes", "rename method Shape.area to surface", "rename method Shape.surface to area"),
    ("shapes", "rename Square.area to surface", "rename Circle.surface to area"),
    ("shapes", "rename property Shape.name to label", "rename Shape.label to name"),
    ("shapes", "rename class Shape to Form everywhere", "rename class Form to Shape"),
    ("shapes", "rename the attribute Circle.radius to r", "rename the attribute Circle.r to radius"),
    ("shapes", "rename function areas to total_area and update all callers", "rename total_area to areas"),
    ("shapes", "rename parameter scale of areas to factor", "rename parameter factor of areas to scale"),
    ("shapes", "rename parameter scale of Shape.area to factor", "rename parameter factor of Square.area to scale"),
    ("notes", "rename `Note` to `Entry`", "rename `Entry` to `Note`"),
    ("notes", "rename NoteError as ParseError", "rename ParseError as NoteError"),
    ("notes", "please rename parse to read_note", "please rename read_note to parse"),
    (
        "notes",
        "rename the attribute Note.stars to points, also the possible places",
        "rename Note.points to stars, including the possible ones",
    ),
    ("notes", "rename Note.short to brief", "rename Note.brief to short"),
    ("notes", "rename later to soon", "rename soon to later"),
    ("notes", "rename variable LIMIT to SIZE", "rename SIZE to LIMIT"),
    ("notes", "rename argument depth of walk to level", "rename argument level of walk to depth"),
]
ASKED: list[tuple[str, str, str]] = [
    ("shop", "rename load to class", "keyword"),
    ("shop", "rename load to dump", "taken"),
    ("shop", "rename load to open", "builtin"),
    ("shop", "rename load to other.place.load2", "does not move"),
    ("shop", "rename total to amount", "which 'total'"),
    ("shop", "rename Cart.__init__ to start", "from outside"),
    ("shop", "rename function total in shop.prices to Cart", "meets another"),
    ("shop", "rename parameter path of load to parts", "taken"),
    ("shapes", "rename parameter by of twice to factor", "partial"),
    ("shapes", "rename attribute Square.side to edge", "may mean it"),
    ("notes", "rename NoteError.explain to args2\u200b", "cannot be a name"),
    ("notes", "rename nothing_such to other", "no function"),
    ("notes", "rename parse to json", "taken"),
]


def _asked(tree: dict[str, str], instruction: str) -> RecipeChange | Question:
    recipe = recipe_of(instruction)
    assert isinstance(recipe, Rename), instruction
    return carry_out(sources(tree), recipe)


@pytest.mark.parametrize(("tree", "there", "back"), DONE)
def test_the_suite_passes_and_back_is_the_same(tree: str, there: str, back: str, tmp_path: Path) -> None:
    files = TREES[tree]
    found = _asked(files, there)
    assert isinstance(found, RecipeChange), found
    after = changed(files, found)
    assert after != files
    assert run_suite(tmp_path, after) == run_suite(tmp_path / "before", files)
    again = _asked(after, back)
    assert isinstance(again, RecipeChange), again
    assert changed(after, again) == files


@pytest.mark.parametrize(("tree", "instruction", "why"), ASKED)
def test_what_a_person_has_to_decide_is_asked(tree: str, instruction: str, why: str) -> None:
    found = _asked(TREES[tree], instruction)
    assert isinstance(found, Question)
    assert why in found.text
    assert found.remedy


def test_a_capture_is_seen() -> None:
    files = {"m.py": "def load(): return 1\n\n\ndef use(fetch):\n    return load() + fetch\n"}
    found = _asked(files, "rename load to fetch")
    assert isinstance(found, Question)
    assert "meets another" in found.text


def test_texts_that_name_it_by_a_module_change_with_it() -> None:
    files = {"m.py": "def load(): ...\n", "n.py": "from m import load\n", "t.py": "X = 'n.load'\nY = 'load'\n"}
    found = _asked(files, "rename m.load to fetch")
    assert isinstance(found, RecipeChange)
    assert changed(files, found)["t.py"] == "X = 'n.fetch'\nY = 'load'\n"
    assert [str(p) for p in found.left] == ["t.py:2"]
    assert found.understood == "rename function m.load to fetch, 3 places in 3 files, 1 possible place left"


@pytest.mark.parametrize(
    "source",
    [
        "def l\u00e4nge(a): return a\n\n\nl\u00e4nge('\u20ac'); l\u00e4nge(1)\n",
        "\ufeffdef l\u00e4nge(a):\r\n    return a\r\nl\u00e4nge(1)\r\n",
    ],
)
def test_other_letters_marks_and_line_ends_stay(source: str) -> None:
    found = _asked({"m.py": source}, "rename l\u00e4nge to size_of")
    assert isinstance(found, RecipeChange)
    assert changed({}, found) == {"m.py": source.replace("l\u00e4nge", "size_of")}


def test_a_base_class_from_elsewhere_is_asked_about() -> None:
    files = {"m.py": "from other import Base\n\n\nclass A(Base):\n    def run(self): ...\n"}
    found = _asked(files, "rename A.run to go")
    assert isinstance(found, Question)
    assert "outside of this tree" in found.text


@pytest.mark.parametrize(
    "text",
    [
        "rename load to read and log every call", "rename", "rename to x", "make load faster", "", "rename load" + " to x" * 400,  # noqa: E501
        "rename load to x; rm -rf /", "rename load\nto x\nignore all rules", "renaming is fun",
    ],
)  # fmt: skip
def test_what_is_not_understood_whole_is_no_recipe(text: str) -> None:
    assert recipe_of(text) is None
