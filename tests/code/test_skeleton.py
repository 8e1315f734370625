# ruff: noqa: E501
"""Skeletons from tests: what a real pytest says of them, and each kind of name by itself."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from localagent.code.skeleton import missing_names, open_functions, skeletons
from localagent.code.source_text import parse_or_none
from localagent.domain.paths import RepoPath

SHOP = """
import pytest
import shop.prices as prices
from shop.cart import Cart, CartError, LIMIT, total
from shop import util


@pytest.fixture
def cart():
    return Cart("eur", owner="me")


def test_cart(cart):
    cart.add("apple", 2)
    cart.add("pear")
    assert len(cart) == 2
    assert cart.owner == "me"
    assert "apple" in cart
    with pytest.raises(CartError):
        cart.add("x", quantity=-1)


def test_total(cart):
    assert total(cart, rate=3) == 6
    assert total(cart) == LIMIT


def test_others():
    assert prices.price_of("apple") == 3
    assert util.other() is None
    assert Cart.empty().owner is None
    with Cart("usd", owner="you") as open_cart:
        assert open_cart[0] == "apple"
"""
FETCH = """
from shop import util


async def test_fetch():
    assert await util.fetch("x", timeout=3)
"""
SOURCES = {"shop/__init__.py": "", "shop/util.py": "def other():\n    pass\n"}


def made(tests: str, sources: dict[str, str] | None = None, installed: tuple[str, ...] = ("pytest",)) -> dict[str, str]:
    """Skeleton files by path."""
    known = {RepoPath(path): text.encode() for path, text in (sources or {}).items()}
    missing = missing_names({RepoPath("tests/test_it.py"): tests.encode()}, known, installed=installed)
    files = {str(path): text.decode() for path, text in skeletons(missing, known).items()}
    assert all(parse_or_none(text) is not None for text in files.values()), files
    return files


@pytest.mark.long
def test_a_real_run_fails_only_where_bodies_are_open(tmp_path: Path) -> None:
    for path, text in {**SOURCES, **made(SHOP, SOURCES), "tests/test_shop.py": SHOP}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    raised = set(re.findall(r"^E?\s*/\S+: (\w+)", run.stdout, re.MULTILINE))
    assert raised == {"NotImplementedError"}, run.stdout
    assert "3 failed" in run.stdout


def test_what_is_there_is_left_alone() -> None:
    files = made(SHOP, SOURCES)
    assert sorted(files) == ["shop/cart.py", "shop/prices.py"]
    (util,) = made(FETCH, SOURCES).values()
    assert util == SOURCES["shop/util.py"] + "\n\nasync def fetch(text, timeout):\n    raise NotImplementedError\n"
    assert made("import shop.util\n\n\ndef test_it():\n    shop.util.other()\n", SOURCES) == {}


def test_kinds_follow_from_the_use() -> None:
    text = "from shop.cart import Cart, CartError, LIMIT, total\n"
    cart = made(SHOP, SOURCES)["shop/cart.py"]
    assert "class CartError(Exception):\n    pass\n" in cart
    assert cart.startswith("LIMIT = None\n")
    assert "def __init__(self, text, owner):\n        self.text = text\n        self.owner = owner\n" in cart
    assert "    @classmethod\n    def empty(cls):\n" in cart
    assert "def add(self, text, quantity=None):" in cart
    assert "def total(cart, rate=None):" in cart
    for special in ("__len__(self)", "__contains__(self, item)", "__enter__(self)", "__getitem__(self, key)"):
        assert special in cart
    assert made(text, {"shop/__init__.py": "", "shop/cart.py": "class Cart:\n    pass\n"})["shop/cart.py"].count(
        "class Cart:"
    ) == (1)


@pytest.mark.parametrize(
    ("call", "signature"),
    [
        ("f(1, 2)\n    f(3)", "f(number, arg2=None)"),
        ("f(a, b)\n    f(a, b)", "f(a, b)"),
        ("f(a, b)\n    f(b, a)", "f(arg1, arg2)"),
        ("f(*a)", "f()"),
        ("f(a, x=1)\n    f(a, y=2)", "f(a, x=None, y=None)"),
        ("f(a, 2)\n    f(a, size=2)", "f(a, size)"),
        ("f([1], {})", "f(items, mapping)"),
    ],
)
def test_signatures(call: str, signature: str) -> None:
    files = made(f"from m import f\n\n\ndef test_f(a, b):\n    {call}\n")
    assert f"def {signature}:" in files["m.py"]


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("assert Bag(x=1) == Bag(x=1)", "@dataclass\nclass Bag:\n    x: object\n"),
        ("import dataclasses\n    assert dataclasses.asdict(Bag(x=1))", "@dataclass\nclass Bag:\n    x: object\n"),
        ("a = Bag(x=1)\n    assert a.x == a.y", "    @property\n    def y(self):\n        raise NotImplementedError\n"),
        ("a = Bag(x=1)\n    a.go()\n    assert a.y", "        self.x = x\n        self.y = None\n"),
        ("old, new = Bag(1), Bag(2)\n    assert old <= new", "def __le__(self, other):"),
        ("assert next(Bag(1)) == 1", "def __next__(self):"),
        ("a = Bag()\n    a['x'] = 1", "        self.items = {}\n"),
        ("assert len(Bag()) == 0", "        self.items = []\n"),
        ("assert Bag.of('x').red == 1", "    def __init__(self, red):\n        self.red = red\n"),
        ("raise Bag('x')", "class Bag(Exception):\n    pass\n"),
        ("try:\n        a()\n    except Bag as e:\n        assert e.code and e.args", "    def __init__(self, code):\n        super().__init__(code)\n        self.code = code\n"),
        ("with pytest.raises(Bag) as e:\n        a()\n    assert e.value.code", "        self.code = code\n"),
    ],
)  # fmt: skip
def test_what_an_object_must_have_follows_from_what_is_done_with_it(body: str, written: str) -> None:
    files = made(f"import pytest\nfrom p.m import Bag\n\n\ndef test_it(a):\n    {body}\n")
    assert written in files["p/m.py"]


def test_kinds_of_exceptions_and_what_a_test_class_keeps() -> None:
    text = (
        "from p.m import Base, Cart, Late\n\n\nclass TestIt:\n    def setup_method(self):\n        self.cart = Cart()\n\n"
        "    def test_it(self):\n        assert issubclass(Base, Late)\n        self.cart.put('x')\n        raise Base\n"
    )
    found = made(text)["p/m.py"]
    assert found.startswith("class Late(Exception):\n    pass\n\n\nclass Base(Late):\n    pass\n")
    assert "    def put(self, text):\n" in found


def test_a_dataclass_is_written_only_where_its_import_can_be() -> None:
    text = "from p.m import Bag\n\n\ndef test_it():\n    assert Bag(x=1) == Bag(x=1)\n"
    assert made(text)["p/m.py"].startswith("from dataclasses import dataclass\n\n\n@dataclass\n")
    assert "@dataclass" not in made(text, {"p/__init__.py": "", "p/m.py": "y = 1\n"})["p/m.py"]


def test_installed_and_standard_modules_are_not_written() -> None:
    assert made("import json\nimport requests\nfrom . import helper\nrequests.get(1)\n", installed=("requests",)) == {}
    assert list(made("import requests\nrequests.get(1)\n", installed=())) == ["requests.py"]


def test_new_packages_lie_where_the_others_do() -> None:
    files = made("from shop.io.csv import read\nread(1)\n", {"src/shop/__init__.py": ""})
    assert sorted(files) == ["src/shop/io/__init__.py", "src/shop/io/csv.py"]


def test_open_functions_are_those_that_only_raise() -> None:
    source = b"""
def a():
    '''What it does.'''
    raise NotImplementedError("later")

class B:
    async def c(self):
        raise NotImplementedError

    def d(self):
        if self:
            raise NotImplementedError
        raise ValueError

def e():
    return 1
    raise NotImplementedError
"""
    assert [f.qualname for f in open_functions(source)] == ["a", "B.c"]
    assert open_functions(b"def (") == []
