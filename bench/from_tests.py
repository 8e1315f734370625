# ruff: noqa: E501
"""What tests ask for, written by `do --from-tests`: small specifications, one repository each, with bodies that are right.

    python bench/from_tests.py                   # without a model: how many the search fills
    python bench/from_tests.py --bot             # a scripted model server that knows the right bodies
    python bench/from_tests.py --skeletons       # the skeletons alone, beside what is right: names, kinds, parameters

A line per case: exit code, seconds, and what is still to be written. A case counts where `do` accepts its patch. Ends
with 1 where an answer is none, with `--bot` below 95 %, and with `--skeletons` where one differs. None of them is in the
edit space by name; some are beyond it.
"""

import argparse
import ast
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
from support.false_model_server import completion, false_model_server, status  # noqa: E402

from bench.judge import git, write  # noqa: E402
from localagent.cli.main import main as localagent  # noqa: E402
from localagent.code.skeleton import missing_names, skeletons  # noqa: E402
from localagent.domain.paths import RepoPath  # noqa: E402

BAR = 0.95
RAISES = "import pytest\n\n"
CASES = {
    "upper": (
        "from texts.case import shout\n\n\ndef test_shout():\n    assert shout('a') == 'A'\n    assert shout('b c') == 'B C'\n",
        "def shout(text):\n    return text.upper()\n",
    ),
    "total": (
        "from shop.sums import total\n\n\ndef test_total():\n    assert total([1, 2, 3]) == 6\n\n\ndef test_nothing():\n    assert total([]) == 0\n",
        "def total(items):\n    return sum(items)\n",
    ),
    "two-functions": (
        "from shop.words import first, joined\n\n\ndef test_joined():\n    assert joined('-', ['a', 'b']) == 'a-b'\n\n\n"
        "def test_first():\n    assert first([7, 8]) == 7\n    assert first('xy') == 'x'\n",
        "def first(items):\n    return items[0]\n\n\ndef joined(text, items):\n    return text.join(items)\n",
    ),
    "lookup": (
        "from shop.prices import price\n\n\ndef test_price():\n    assert price({'a': 3}, 'a', 0) == 3\n    assert price({'a': 3}, 'b', 5) == 5\n",
        "def price(mapping, text, number):\n    return mapping.get(text, number)\n",
    ),
    "counter-class": (
        "from shop.counter import Counter\n\n\ndef test_counts():\n    c = Counter(start=2)\n    c.add(3)\n    assert c.start == 5\n\n\n"
        "def test_more():\n    c = Counter(start=0)\n    c.add(1)\n    c.add(1)\n    assert c.start == 2\n",
        "class Counter:\n    def __init__(self, start):\n        self.start = start\n\n    def add(self, number):\n        self.start += number\n",
    ),
    "basket-class": (
        RAISES + "from shop.basket import Basket\n\n\n@pytest.fixture\ndef basket():\n    return Basket(items=[])\n\n\n"
        "def test_put(basket):\n    basket.put('a')\n    assert basket.items == ['a']\n\n\n"
        "def test_length(basket):\n    basket.put('a')\n    basket.put('b')\n    assert len(basket) == 2\n",
        "class Basket:\n    def __init__(self, items):\n        self.items = items\n\n    def __len__(self):\n        return len(self.items)\n\n"
        "    def put(self, text):\n        self.items.append(text)\n",
    ),
    "exception": (
        RAISES + "from shop.checks import TooMany, at_most\n\n\ndef test_fine():\n    assert at_most(2, 3) == 2\n\n\n"
        "def test_too_many():\n    with pytest.raises(TooMany):\n        at_most(4, 3)\n",
        "class TooMany(Exception):\n    pass\n\n\ndef at_most(arg1, arg2):\n    if arg1 > arg2:\n        raise TooMany(arg1)\n    return arg1\n",
    ),
    "roman": (
        "from shop.roman import roman\n\n\ndef test_roman():\n    assert roman(4) == 'IV'\n    assert roman(9) == 'IX'\n    assert roman(14) == 'XIV'\n",
        "def roman(number):\n    found = ''\n    for worth, text in ((10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')):\n"
        "        found += text * (number // worth)\n        number %= worth\n    return found\n",
    ),
    "keywords": (
        "from shop.tags import tag\n\n\ndef test_tag():\n    assert tag(name='b', text='x') == '<b>x</b>'\n    assert tag(text='y', name='i') == '<i>y</i>'\n",
        "def tag(name, text):\n    return f'<{name}>{text}</{name}>'\n",
    ),
    "default": (
        "from shop.greet import greet\n\n\ndef test_greet():\n    assert greet('Ann') == 'Hello Ann'\n    assert greet('Bo', greeting='Hi') == 'Hi Bo'\n",
        "def greet(text, greeting='Hello'):\n    return f'{greeting} {text}'\n",
    ),
    "guard-value-error": (
        RAISES + "from shop.ages import checked\n\n\ndef test_checked():\n    assert checked(3) == 3\n    assert checked(0) == 0\n\n\n"
        "def test_negative():\n    with pytest.raises(ValueError):\n        checked(-1)\n",
        "def checked(number):\n    if number < 0:\n        raise ValueError(number)\n    return number\n",
    ),
    "guard-empty": (
        RAISES + "from shop.best import best\n\n\ndef test_best():\n    assert best([3, 1]) == 3\n\n\n"
        "def test_none():\n    with pytest.raises(ValueError, match='nothing to choose'):\n        best([])\n",
        "def best(items):\n    if not items:\n        raise ValueError('nothing to choose')\n    return max(items)\n",
    ),
    "parametrized": (
        RAISES + "from shop.even import is_even\n\n\n@pytest.mark.parametrize(('number', 'even'), [(2, True), (3, False), (0, True)])\n"
        "def test_even(number, even):\n    assert is_even(number) is even\n",
        "def is_even(number):\n    return number % 2 == 0\n",
    ),
    "property": (
        "from shop.rooms import Room\n\n\ndef test_area():\n    room = Room(width=2, length=3)\n    assert room.area == 6\n\n\n"
        "def test_other():\n    assert Room(width=4, length=5).area == 20\n",
        "class Room:\n    def __init__(self, width, length):\n        self.width = width\n        self.length = length\n\n"
        "    @property\n    def area(self):\n        return self.width * self.length\n",
    ),
    "dataclass": (
        "from shop.points import Point\n\n\ndef test_equal():\n    assert Point(x=1, y=2) == Point(x=1, y=2)\n    assert not Point(x=1, y=2) == Point(x=2, y=2)\n\n\n"
        "def test_fields():\n    point = Point(x=3, y=4)\n    assert (point.x, point.y) == (3, 4)\n",
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Point:\n    x: int\n    y: int\n",
    ),
    "dataclass-of-the-test": (
        "import dataclasses\n\nfrom shop.lines import Line\n\n\ndef test_fields():\n    line = Line(name='tea', price=2)\n    assert dataclasses.asdict(line) == {'name': 'tea', 'price': 2}\n\n\n"
        "def test_replaced():\n    assert dataclasses.replace(Line(name='tea', price=2), price=3).price == 3\n",
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Line:\n    name: str\n    price: int\n",
    ),
    "context-manager": (
        "from shop.locks import Lock\n\n\ndef test_lock():\n    lock = Lock()\n    with lock as held:\n        assert held is lock\n        assert lock.locked\n    assert not lock.locked\n",
        "class Lock:\n    def __init__(self):\n        self.locked = False\n\n    def __enter__(self):\n        self.locked = True\n        return self\n\n"
        "    def __exit__(self, *exc):\n        self.locked = False\n",
    ),
    "iterator": (
        "from shop.steps import Steps\n\n\ndef test_steps():\n    steps = Steps(items=[1, 2])\n    assert [s for s in steps] == [1, 2]\n    assert list(Steps(items=[])) == []\n",
        "class Steps:\n    def __init__(self, items):\n        self.items = items\n\n    def __iter__(self):\n        return iter(self.items)\n",
    ),
    "next": (
        RAISES + "from shop.numbers import Tickets\n\n\ndef test_tickets():\n    tickets = Tickets(start=3)\n    assert next(tickets) == 3\n    assert next(tickets) == 4\n",
        "class Tickets:\n    def __init__(self, start):\n        self.start = start\n\n    def __next__(self):\n        self.start += 1\n        return self.start - 1\n",
    ),
    "generator": (
        "from shop.pairs import pairs\n\n\ndef test_pairs():\n    assert list(pairs([1, 2, 3])) == [(1, 2), (2, 3)]\n    assert list(pairs([1])) == []\n",
        "def pairs(items):\n    yield from zip(items, items[1:])\n",
    ),
    "ordering": (
        "from shop.versions import Version\n\n\ndef test_order():\n    old, new = Version(number=1), Version(number=2)\n    assert old < new\n    assert not new < old\n    assert old <= Version(number=1)\n",
        "class Version:\n    def __init__(self, number):\n        self.number = number\n\n    def __lt__(self, other):\n        return self.number < other.number\n\n"
        "    def __le__(self, other):\n        return self.number <= other.number\n",
    ),
    "addition": (
        "from shop.money import Money\n\n\ndef test_add():\n    both = Money(amount=2) + Money(amount=3)\n    assert both.amount == 5\n    assert (Money(amount=1) + Money(amount=1)).amount == 2\n",
        "class Money:\n    def __init__(self, amount):\n        self.amount = amount\n\n    def __add__(self, other):\n        return Money(self.amount + other.amount)\n",
    ),
    "contains": (
        "from shop.bags import Bag\n\n\ndef test_in():\n    bag = Bag(items={'a'})\n    assert 'a' in bag\n    assert 'b' not in bag\n    assert len(bag) == 1\n",
        "class Bag:\n    def __init__(self, items):\n        self.items = items\n\n    def __contains__(self, item):\n        return item in self.items\n\n    def __len__(self):\n        return len(self.items)\n",
    ),
    "mapping-class": (
        RAISES + "from shop.shelf import Shelf\n\n\n@pytest.fixture\ndef shelf():\n    return Shelf()\n\n\ndef test_put(shelf):\n    shelf['a'] = 1\n    assert shelf['a'] == 1\n\n\n"
        "def test_missing(shelf):\n    with pytest.raises(KeyError):\n        shelf['b']\n",
        "class Shelf:\n    def __init__(self):\n        self.books = {}\n\n    def __getitem__(self, key):\n        return self.books[key]\n\n    def __setitem__(self, key, value):\n        self.books[key] = value\n",
    ),
    "own-error-with-text": (
        RAISES + "from shop.stock import OutOfStock, Stock\n\n\ndef test_taken():\n    stock = Stock(count=2)\n    stock.take(2)\n    assert stock.count == 0\n\n\n"
        "def test_too_many():\n    stock = Stock(count=1)\n    with pytest.raises(OutOfStock, match='1 left'):\n        stock.take(2)\n    assert stock.count == 1\n",
        "class OutOfStock(Exception):\n    pass\n\n\nclass Stock:\n    def __init__(self, count):\n        self.count = count\n\n    def take(self, number):\n"
        "        if number > self.count:\n            raise OutOfStock(f'{self.count} left')\n        self.count -= number\n",
    ),
    "error-kinds": (
        RAISES + "from shop.errors import NotFound, ShopError\n\n\ndef test_kinds():\n    assert issubclass(NotFound, ShopError)\n    with pytest.raises(ShopError):\n        raise NotFound('x')\n",
        "class ShopError(Exception):\n    pass\n\n\nclass NotFound(ShopError):\n    pass\n",
    ),
    "error-attribute": (
        RAISES + "from shop.calls import CallError, call\n\n\ndef test_error():\n    with pytest.raises(CallError) as caught:\n        call(404)\n    assert caught.value.status == 404\n\n\ndef test_fine():\n    assert call(200) == 200\n",
        "class CallError(Exception):\n    def __init__(self, status):\n        super().__init__(status)\n        self.status = status\n\n\ndef call(number):\n"
        "    if number >= 400:\n        raise CallError(number)\n    return number\n",
    ),
    "missing-function": (
        "from shop.present import doubled, kept\n\n\ndef test_kept():\n    assert kept(1) == 1\n\n\ndef test_doubled():\n    assert doubled([1, 2]) == [2, 4]\n    assert doubled([]) == []\n",
        "def kept(x):\n    return x\n\n\ndef doubled(items):\n    return [x * 2 for x in items]\n",
    ),
    "filter": (
        "from shop.filters import long_words\n\n\ndef test_long():\n    assert long_words(['a', 'tea', 'milk'], 3) == ['tea', 'milk']\n    assert long_words([], 1) == []\n",
        "def long_words(items, number):\n    return [x for x in items if len(x) >= number]\n",
    ),
    "accumulate": (
        "from shop.running import running_total\n\n\ndef test_running():\n    assert running_total([1, 2, 3]) == [1, 3, 6]\n    assert running_total([]) == []\n",
        "from itertools import accumulate\n\n\ndef running_total(items):\n    return list(accumulate(items))\n",
    ),
    "count-words": (
        "from shop.counts import counts\n\n\ndef test_counts():\n    assert counts(['a', 'b', 'a']) == {'a': 2, 'b': 1}\n    assert counts([]) == {}\n",
        "def counts(items):\n    return {x: items.count(x) for x in items}\n",
    ),
    "group-by": (
        "from shop.groups import by_length\n\n\ndef test_groups():\n    assert by_length(['a', 'bb', 'c']) == {1: ['a', 'c'], 2: ['bb']}\n",
        "def by_length(items):\n    found = {}\n    for item in items:\n        found.setdefault(len(item), []).append(item)\n    return found\n",
    ),
    "delegate": (
        "from shop.proxy import Proxy\n\n\ndef test_proxy():\n    proxy = Proxy(inner=[3, 1])\n    proxy.append(2)\n    assert proxy.inner == [3, 1, 2]\n    assert proxy.count(3) == 1\n",
        "class Proxy:\n    def __init__(self, inner):\n        self.inner = inner\n\n    def append(self, number):\n        self.inner.append(number)\n\n    def count(self, number):\n        return self.inner.count(number)\n",
    ),
    "decorator": (
        "from shop.twice import twice\n\n\ndef test_twice():\n    seen = []\n\n    @twice\n    def add(x):\n        seen.append(x)\n\n    add(1)\n    assert seen == [1, 1]\n",
        "def twice(function):\n    def called(*args):\n        function(*args)\n        return function(*args)\n\n    return called\n",
    ),
    "async": (
        "import asyncio\n\nfrom shop.later import later\n\n\ndef test_later():\n    async def run():\n        return await later('a')\n\n    assert asyncio.run(run()) == 'a'\n",
        "async def later(text):\n    return text\n",
    ),
    "class-method": (
        "from shop.colours import Colour\n\n\ndef test_parse():\n    colour = Colour.parse('1,2,3')\n    assert colour.red == '1'\n    assert Colour.parse('7,2,3').red == '7'\n",
        "class Colour:\n    def __init__(self, red):\n        self.red = red\n\n    @classmethod\n    def parse(cls, text):\n        return cls(text.split(',')[0])\n",
    ),
    "constant": (
        "from shop.limits import LIMIT, within\n\n\ndef test_within():\n    assert within(LIMIT)\n    assert not within(LIMIT + 1)\n",
        "LIMIT = 10\n\n\ndef within(limit):\n    return limit <= LIMIT\n",
    ),
    "repr": (
        "from shop.names import Name\n\n\ndef test_text():\n    assert str(Name(first='Ann', last='Lee')) == 'Ann Lee'\n    assert str(Name(first='Bo', last='Ek')) == 'Bo Ek'\n",
        "class Name:\n    def __init__(self, first, last):\n        self.first = first\n        self.last = last\n\n    def __str__(self):\n        return f'{self.first} {self.last}'\n",
    ),
}  # fmt: skip
THERE = {"missing-function": {"shop/present.py": "def kept(x):\n    return x\n"}}


def main() -> int:
    """0 when every case ended with an answer, and as many as must be are as they must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(CASES), action="append")
    parser.add_argument("--bot", action="store_true")
    parser.add_argument("--skeletons", action="store_true")
    args = parser.parse_args()
    chosen = {name: CASES[name] for name in CASES if name in (args.only or CASES)}
    if args.skeletons:
        return 1 if sum([_compared(name, *case) for name, case in chosen.items()]) else 0
    codes = {name: _case(name, *case, bot=args.bot) for name, case in chosen.items()}
    filled = sum(code == 0 for code in codes.values())
    print(f"{filled} of {len(codes)} {'with the scripted model' if args.bot else 'filled without a model'}")
    answered = all(code in (0, 1) for code in codes.values())
    return 0 if answered and (not args.bot or filled >= BAR * len(codes)) else 1


def _files(name: str, spec: str) -> dict[str, str]:
    settings = {"pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n'}
    return {**settings, **THERE.get(name, {}), f"tests/test_{name.replace('-', '_')}.py": spec}


def _compared(name: str, spec: str, right: str) -> bool:
    """Whether a skeleton differs from what is right in names, kinds or parameters."""
    python = {RepoPath(path): text.encode() for path, text in _files(name, spec).items() if path.endswith(".py")}
    tests = {path: data for path, data in python.items() if path.startswith("tests/")}
    sources = {path: data for path, data in python.items() if path not in tests}
    made = {
        path: text
        for path, text in skeletons(missing_names(tests, sources, installed=("pytest",)), sources).items()
        if text
    }
    texts = [data.decode() for data in made.values()]
    wanted, found = set(_shape(right)), {shape for text in texts for shape in _shape(text)}
    print(f"{name}: {'as it must be' if wanted == found else ''}")
    for sign, shapes in (("  lacks", wanted - found), ("  has  ", found - wanted)):
        for shape in sorted(shapes):
            print(sign, shape)
    return wanted != found


def _shape(text: str, holder: str = "") -> Iterator[str]:
    for node in ast.parse(text).body if not holder else ast.parse(text).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.ClassDef):
            yield f"class {node.name}({', '.join(map(ast.unparse, node.bases))})"
            yield from _shape(ast.unparse(ast.Module([node], [])), f"{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
            marks = "".join(f"@{ast.unparse(d)} " for d in node.decorator_list)
            a = node.args
            yield f"{marks}{kind} {holder}{node.name} {len(a.args)} {len(a.defaults)} {len(a.kwonlyargs)}"
        elif isinstance(node, ast.Assign) and not holder:
            yield f"{ast.unparse(node.targets[0])} ="


def _case(name: str, spec: str, right: str, *, bot: bool) -> int:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        repo, files = folder / "repo", _files(name, spec)
        tests = list(files)[-1]
        write(repo, files)
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "the specification")):
            git(repo, *words).check_returncode()
        report, begin = folder / "report.json", time.monotonic()
        options = [
            "do",
            "--repo",
            str(repo),
            "--from-tests",
            tests,
            "--trust",
            "auto",
            "--quiet",
            "--report",
            str(report),
        ]
        if bot:
            options += ["--assume"]
            module = spec.partition("from shop.")[2].partition(" ")[0]
            path = f"shop/{module}.py" if module else "texts/case.py"
            with false_model_server(_knows(path, right, there=name in THERE)) as server:
                code = _quiet([*options, "--model", f"unix:{server.socket}"])
        else:
            code = _quiet(options)
        reason = json.loads(report.read_text())["reason"]
        print(f"{name}: exit {code}, {time.monotonic() - begin:.0f} s: {reason}", flush=True)
    return code


def _quiet(words: list[str]) -> int:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return localagent(words)


def _knows(path: str, right: str, *, there: bool) -> Callable[[Callable[[bytes], object]], None]:
    """The answers of a model that writes a file as it must be, or the functions of one that was there, and is done."""
    whole = [("delete", {"path": path}), ("create", {"path": path, "content": right})]
    functions = [
        ("replace_function", {"path": path, "name": node.name, "source": ast.unparse(node) + "\n"})
        for node in ast.parse(right).body
        if isinstance(node, ast.FunctionDef)
    ]
    steps = iter([*(functions if there else whole), ("finish", {"summary": "the bodies are written"})])

    def answer(out: Callable[[bytes], object]) -> None:
        step = next(steps, None)
        if step is None:
            status(200, completion("that is all"))(out)
        else:
            status(200, completion(None, (step[0], json.dumps(step[1])), finish="tool_calls"))(out)

    return answer


if __name__ == "__main__":
    sys.exit(main())
