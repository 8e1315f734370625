# ruff: noqa: E501
"""Small repositories with a suite that runs in process, for the tables of recipes."""

import importlib
import inspect
import sys
import types
from pathlib import Path

from localagent.domain.paths import RepoPath
from localagent.recipes.recipe import RecipeChange, RecipeSources

SHOP = {
    "shop/__init__.py": "from .io import load\nfrom .cart import Cart\n\n__all__ = ['load', 'Cart', 'VERSION']\nVERSION = '1'\n",
    "shop/io.py": "SEPARATOR = ','\n\n\ndef load(path, strict=False):\n    parts = path.split(SEPARATOR)\n    if strict and not parts[0]:\n        raise ValueError(path)\n    return parts\n\n\ndef dump(items, *, end='\\n'):\n    return SEPARATOR.join(items) + end\n",
    "shop/cart.py": "from __future__ import annotations\n\nfrom shop.prices import total\n\n\nclass Cart:\n    def __init__(self, owner: str = 'me') -> None:\n        self.owner = owner\n        self.lines: list[int] = []\n\n    def add(self, price, count=1):\n        self.lines += [price] * count\n        return self\n\n    def total(self) -> int:\n        return total(self.lines)\n\n    @classmethod\n    def of(cls, prices) -> Cart:\n        made = cls()\n        for price in prices:\n            made.add(price)\n        return made\n\n\nclass Gift(Cart):\n    def total(self) -> int:\n        return super().total() - 1\n",
    "shop/prices.py": "RATE = 2\n\n\ndef total(prices, *extra, **options):\n    return sum(prices) + sum(extra)\n\n\ndef taxed(price, rate=RATE):\n    return price * rate\n",
    "shop/cli.py": "from shop import io\nfrom shop.cart import Cart, Gift\nfrom shop.io import load as read\nfrom shop.prices import taxed\n\n\ndef main(text):\n    cart = Cart('you')\n    for part in read(text, strict=True):\n        cart.add(taxed(int(part), rate=3), count=1)\n    return io.dump([str(cart.total())])\n\n\ndef gifts(\n    text,\n    # where they go\n    owner,\n):\n    gift = Gift(owner)\n    for part in io.load(text):\n        gift.add(\n            int(part),  # each\n        )\n    return gift\n",
    "tests/test_shop.py": "import shop\nfrom shop import Cart, load\nfrom shop.cli import gifts, main\nfrom shop.io import SEPARATOR, dump\nfrom shop.prices import taxed\n\n\ndef test_load():\n    assert load('a,b', strict=True) == shop.load('a,b') == ['a', 'b']\n\n\ndef test_dump():\n    assert dump(['a'], end='') == 'a'\n    assert SEPARATOR == ','\n\n\ndef test_main():\n    assert main('1,2') == '9\\n'\n\n\ndef test_cart():\n    assert Cart.of([1, 2]).total() == 3\n    assert gifts('2,3', 'me').total() == 4\n    assert Cart(owner='x').add(2, count=2).total() == 4\n\n\ndef test_taxed():\n    assert taxed(2) == 4\n",
}  # fmt: skip
# fmt: off
SHAPES = {
    "src/shapes/base.py": "import abc\n\n\nclass Shape(abc.ABC):\n    sides = 0\n\n    @abc.abstractmethod\n    def area(self, scale=1): ...\n\n    @property\n    def name(self):\n        return type(self).__name__ + str(self.sides)\n",
    "src/shapes/__init__.py": "",
    "src/shapes/kinds.py": "from .base import Shape\n\n\nclass Square(Shape):\n    sides = 4\n\n    def __init__(self, side):\n        self.side = side\n\n    def area(self, scale=1):\n        return self.side ** 2 * scale\n\n\nclass Circle(Shape):\n    def __init__(self, radius):\n        self.radius = radius\n\n    def area(self, scale=1):\n        return 3 * self.radius ** 2 * scale\n",
    "src/shapes/sums.py": "from functools import partial\n\nfrom shapes.base import Shape\n\n\ndef areas(shapes: list[Shape], scale=1):\n    return sum(s.area(scale=scale) for s in shapes)\n\n\ndef twice(value, by=2):\n    return value * by\n\n\nthrice = partial(twice, by=3)\n\n\ndef named(shape: Shape):\n    return shape.name\n\n\ndef field(shape, name):\n    return getattr(shape, 'side', name)\n",
    "tests/test_shapes.py": "from shapes import sums\nfrom shapes.kinds import Circle, Square\n\n\ndef test_areas():\n    assert sums.areas([Square(2), Circle(1)], scale=2) == 14\n\n\ndef test_name():\n    assert sums.named(Square(1)) == 'Square4'\n\n\ndef test_twice():\n    assert sums.twice(2) == 4 and sums.thrice(2) == 6\n\n\ndef test_field():\n    assert sums.field(Square(3), 'x') == 3\n",
}
NOTES = {
    "notes.py": "import json\nfrom dataclasses import dataclass\n\nLIMIT = 3\n\n\n@dataclass\nclass Note:\n    text: str\n    stars: int = 0\n\n    def short(self, size=LIMIT):\n        return self.text[:size]\n\n\nclass NoteError(ValueError):\n    def explain(self):\n        return f'note: {self}'\n\n\ndef parse(line: str) -> Note:\n    found = json.loads(line)\n    if not found:\n        raise NoteError('empty')\n    return Note(text=found['text'], stars=found.get('stars', 0))\n\n\ndef best(notes, /, key=None):\n    return max(notes, key=key or (lambda note: note.stars))\n\n\nasync def later(note: Note, *, wait=0):\n    return note.short()\n\n\ndef walk(node, depth=0):\n    return max([walk(n, depth + 1) for n in node], default=depth)\n\n\nHANDLERS = {'parse': parse}\n",
    "tests/test_notes.py": "import asyncio\n\nimport notes\nfrom notes import Note, NoteError, parse\n\n\ndef test_parse():\n    assert parse('{\"text\": \"abcd\"}').short() == 'abc'\n    assert notes.HANDLERS['parse'] is parse\n\n\ndef test_error():\n    try:\n        notes.parse('{}')\n    except NoteError as error:\n        assert error.explain() == 'note: empty'\n\n\ndef test_best():\n    assert notes.best([Note('a', stars=1), Note(text='b', stars=2)]).text == 'b'\n\n\ndef test_later():\n    assert asyncio.run(notes.later(Note('xyz'), wait=1)) == 'xyz'\n\n\ndef test_walk():\n    assert notes.walk([[], [[]]]) == 2\n",
}
# fmt: on
TREES = {"shop": SHOP, "shapes": SHAPES, "notes": NOTES}


def sources(files: dict[str, str]) -> RecipeSources:
    return RecipeSources({RepoPath(path): text.encode() for path, text in files.items()}, {})


def changed(files: dict[str, str], change: RecipeChange) -> dict[str, str]:
    return {**files, **{str(path): text for path, text in change.writes.items()}}


def run_suite(folder: Path, files: dict[str, str]) -> int:
    """Runs every test function of a tree in this process, and says how many. Raises what they raise."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    roots = [str(folder), str(folder / "src")]
    before = set(sys.modules)
    sys.path[:0] = roots
    importlib.invalidate_caches()
    ran = 0
    try:
        for name, text in files.items():
            if name.startswith("tests/"):
                module = types.ModuleType(Path(name).stem)
                exec(compile(text, name, "exec"), module.__dict__)
                for test in [t for n, t in vars(module).items() if n.startswith("test_") and inspect.isfunction(t)]:
                    test()
                    ran += 1
    finally:
        for name in set(sys.modules) - before:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]
        del sys.path[: len(roots)]
    return ran
