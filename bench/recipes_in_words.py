# ruff: noqa: E501
"""Renames and new parameters in a person's words, without a model: what `do` makes of 30 each, judged by behaviour.

    python bench/recipes_in_words.py                        # each by the whole `do`: gates, jail, proof
    python bench/recipes_in_words.py --quick                # the recipe alone, then the same judgement
    python bench/recipes_in_words.py --only 3 --show        # one of them, with its patch

The repositories are made in a temporary folder: a small one of this file, with a suite, and copies of packages that
are installed here, with a test or two. An accepted patch is judged in a copy, by the repository's tests (as the patch
leaves them) and by a check of its own that nothing else sees. `done` passes both, `BROKEN` was accepted and does not;
`asked` changed nothing and told what to say instead, where asking is right; `asked for nothing` is a question about
something that could have been done, `refused` was done and did not pass the proof, `not understood` needs a model. Ends with 1 where one is broken, or where
less than 80 % of either kind is done or rightly asked about.
"""

import argparse
import contextlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.judge import git, write
from localagent.cli.main import main as localagent
from localagent.domain.paths import RepoPath
from localagent.recipes.catalogue import carry_out
from localagent.recipes.instruction import recipe_of
from localagent.recipes.recipe import Question, RecipeSources

BAR = 0.8
ORDERS = {
    "pyproject.toml": (
        '[project]\nname = "orders"\nversion = "1"\n\n[project.scripts]\norders = "orders.cli:main"\n\n'
        '[tool.pytest.ini_options]\npythonpath = ["src"]\n'
    ),
    "docs/usage.md": "# Usage\n\nDays are read by `orders.dates.parse_date`; `parse_date(text)` takes ISO days.\n",
    "src/orders/__init__.py": (
        '"""Orders."""\n\nfrom .dates import Clock, format_date, parse_date\nfrom .models import Line, Order, OrderError\n'
        "from .store import CachedStore, Store\n\n"
        '__all__ = ["CachedStore", "Clock", "Line", "Order", "OrderError", "Store", "format_date", "parse_date"]\n'
    ),
    "src/orders/dates.py": '''\
"""Days as text."""

import datetime

FORMAT = "%Y-%m-%d"


def parse_date(text, *, zone="UTC"):
    """The day that a text says.

    >>> parse_date("2026-01-02").day
    2
    """
    return datetime.datetime.strptime(text.strip(), FORMAT).date()


def format_date(day):
    return day.strftime(FORMAT)


class Clock:
    def __init__(self, offset=0):
        self.offset = offset

    def now(self):
        return parse_date("2026-01-02") + datetime.timedelta(days=self.offset)
''',
    "src/orders/models.py": '''\
"""What is ordered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .dates import Clock


class OrderError(ValueError):
    """An order that cannot be."""


class Line:
    def __init__(self, name: str, price: int, count: int = 1) -> None:
        if count < 0:
            raise OrderError(f"{count} of {name}")
        self.name = name
        self.price = price
        self.count = count

    def total(self) -> int:
        return self.price * self.count


@dataclass
class Order:
    lines: list[Line] = field(default_factory=list)
    note: str = ""
    day: object = None

    def age(self, now):
        return (now - self.day).days

    def dated(self, clock: Clock) -> Order:
        return replace(self, day=clock.now())


def total_of(lines: "list[Line]", discount=0):
    return sum(line.total() for line in lines) - discount


def search(lines, name):
    return [line for line in lines if name in line.name]
''',
    "src/orders/store.py": '''\
"""Where orders are kept."""

import functools

from .models import Line, Order, OrderError


class Store:
    kinds = ("memory",)

    def __init__(self, path=None):
        self.path = path
        self.rows = {}

    def get(self, key):
        if key not in self.rows:
            raise OrderError(key)
        return self.rows[key]

    def put(self, order, *names):
        for name in names:
            self.rows[self.key(name)] = order
        return self

    @property
    def size(self):
        return len(self.rows)

    @classmethod
    def open(cls, path):
        return cls(path)

    @staticmethod
    def key(name):
        return name.lower()


class CachedStore(Store):
    def __init__(self, path=None):
        super().__init__(path)
        self.hits = 0

    def get(self, key):
        self.hits += 1
        return super().get(key)

    @functools.cached_property
    def label(self):
        return f"cached {self.path}"


def load_all(store, keys):
    found = []
    for key in keys:
        found.append(store.get(key))
    return found


def first(store: Store, key) -> Order:
    return store.get(key)


def only_line(store: Store, key) -> Line:
    (line,) = store.get(key).lines
    return line
''',
    "src/orders/client.py": '''\
"""Orders from elsewhere."""

import functools


def connect(url, timeout=1):
    return f"{url}?{timeout}"


def fetch(url, retries=3):
    for _ in range(retries):
        answer = connect(url)
        if answer:
            return answer
    return None


def fetch_all(urls, *, retries=3):
    return [fetch(url, retries=retries) for url in urls]


fetch_once = functools.partial(fetch, retries=1)


def send(text):
    return audit(f"sent {text}")


def audit(text):
    return text


def log_call(name):
    def wrap(function):
        @functools.wraps(function)
        def called(*args, **kwargs):
            return [name, function(*args, **kwargs)]

        return called

    return wrap


@log_call("ping")
def ping(url):
    return audit(url)
''',
    "src/orders/mail.py": '''\
"""Letters."""

from orders.client import audit


class Mailer:
    def send(self, text):
        return audit(text.upper())


def send(text, to="all"):
    return Mailer().send(f"{to}: {text}")
''',
    "src/orders/plugins.py": '''\
"""Writers by name."""

import sys

ENDING = "\\n"


def export_csv(rows):
    return ENDING.join(",".join(row) for row in rows)


def export_text(rows):
    return ENDING.join(" ".join(row) for row in rows)


def exporter(name):
    return getattr(sys.modules[__name__], "export_" + name)
''',
    "src/orders/cli.py": '''\
"""The command line."""

import argparse

from orders import plugins
from orders.client import fetch_all
from orders.dates import format_date, parse_date
from orders.plugins import export_csv as as_csv


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("day")
    parser.add_argument("--output", default="csv")
    args = parser.parse_args(argv)
    day = format_date(parse_date(args.day))
    if args.output == "csv":
        return as_csv([[day]])
    return plugins.export_text([[day], fetch_all(["x"])])
''',
    "tests/conftest.py": (
        "import pytest\n\nfrom orders import Line, Order, Store\n\n\n@pytest.fixture\ndef store():\n"
        "    return Store().put(Order(lines=[Line('tea', 2, count=3)]), 'A')\n"
    ),
    "tests/test_dates.py": (
        "import datetime\n\nimport orders\nfrom orders import dates\nfrom orders.dates import Clock, format_date\n\n\n"
        "def test_days():\n    assert orders.parse_date(' 2026-01-02 ') == datetime.date(2026, 1, 2)\n"
        "    assert format_date(Clock(offset=1).now()) == '2026-01-03'\n\n\n"
        "def test_format(monkeypatch):\n    monkeypatch.setattr('orders.dates.FORMAT', '%d.%m.%Y')\n"
        "    assert dates.parse_date('02.01.2026', zone='CET').month == 1\n"
    ),
    "tests/test_store.py": (
        "from unittest import mock\n\nimport pytest\n\nfrom orders import CachedStore, Order, OrderError, Store\n"
        "from orders.store import first, load_all, only_line\n\n\n"
        "def test_store(store):\n    assert store.size == 1\n    assert only_line(store, 'a').total() == 6\n"
        "    with pytest.raises(OrderError, match='b'):\n        first(store, 'b')\n\n\n"
        "def test_cached():\n    store = CachedStore.open('x').put(Order(), 'a')\n    assert load_all(store, ['a', 'a'])\n"
        "    assert store.hits == 2 and store.path == 'x' and store.label == 'cached x'\n\n\n"
        "def test_patched():\n    with mock.patch.object(Store, 'get', return_value=1):\n"
        "        assert first(Store(), 'a') == 1\n"
    ),
    "tests/test_client.py": (
        "from orders import client, mail\nfrom orders.client import fetch, fetch_once, ping\n\n\n"
        "def test_fetch(monkeypatch):\n    assert fetch('u', retries=1) == fetch_once('u') == 'u?1'\n"
        "    monkeypatch.setattr('orders.client.connect', lambda url, **rest: '')\n    assert fetch('u') is None\n"
        "    assert client.fetch_all(['u']) == [None]\n\n\n"
        "def test_words():\n    assert client.send('a') == 'sent a'\n    assert mail.send('a') == 'ALL: A'\n"
        "    assert ping('x') == ['ping', 'x']\n"
    ),
    "tests/test_cli.py": (
        "from orders.cli import main\n\n\ndef test_main():\n    assert main(['2026-01-02']) == '2026-01-02'\n"
        "    assert main(['2026-01-02', '--output=text']) == '2026-01-02\\nx?1'\n"
    ),
    "tests/test_models.py": (
        "import datetime\n\nfrom orders.dates import Clock\nfrom orders.models import Line, Order, search, total_of\n\n\n"
        "def test_age():\n    order = Order(note='n').dated(Clock())\n    assert order.age(datetime.date(2026, 1, 4)) == 2\n\n\n"
        "def test_total():\n    lines = [Line('tea', 2, 3), Line('cup', 5)]\n    assert total_of(lines, discount=1) == 10\n"
        "    assert search(lines, 'te') == lines[:1]\n"
    ),
}  # fmt: skip
TESTS = {
    "click": (
        "import click\nfrom click.formatting import HelpFormatter\nfrom click.testing import CliRunner\n"
        "from click.utils import make_str\n\n\n"
        "def test_help():\n    @click.command()\n    @click.version_option('1')\n    @click.argument('name')\n"
        "    def hello(name):\n        click.echo(make_str(name) + click.get_current_context().find_root().info_name)\n\n"
        "    result = CliRunner().invoke(hello, ['x'])\n    assert result.output == 'xhello\\n'\n"
        "    assert '--version' in CliRunner().invoke(hello, ['--help']).output\n\n\n"
        "def test_table():\n    formatter = HelpFormatter()\n    formatter.write_dl([('a', 'b'), ('c', 'd')])\n"
        "    assert formatter.getvalue().split() == ['a', 'b', 'c', 'd']\n"
    ),
    "jinja2": (
        "from jinja2 import Environment\nfrom jinja2.utils import Cycler, Joiner, url_quote\n\n\n"
        "def test_render():\n    made = Environment().from_string('{{ x|urlencode }}{% set j = joiner() %}{{ j() }}{{ j() }}')\n"
        "    assert made.render(x='a b') == 'a%20b, '\n    assert Environment().from_string('{{ x|urlencode }}')"
        ".render(x={'a': 'b c'}) == 'a=b+c'\n\n\n"
        "def test_utils():\n    assert url_quote('a b') == 'a%20b'\n    assert Joiner('-')() == ''\n"
        "    assert Cycler(1, 2).next() == 1\n"
    ),
    "arrow": (
        "import arrow\nfrom arrow.util import iso_to_gregorian, validate_bounds\n\n\n"
        "def test_iso():\n    assert iso_to_gregorian(2026, 1, 1).isoformat() == '2025-12-29'\n"
        "    assert arrow.get((2026, 1, 1)).year == 2025\n\n\n"
        "def test_between():\n    day = arrow.get(2026, 1, 2)\n"
        "    assert day.is_between(arrow.get(2026, 1, 1), arrow.get(2026, 1, 3), '()')\n    validate_bounds('()')\n"
    ),
    "h11": (
        "import h11\nfrom h11._util import bytesify\n\n\n"
        "def test_request():\n    client = h11.Connection(our_role=h11.CLIENT)\n"
        "    data = client.send(h11.Request(method='GET', target='/', headers=[('Host', 'x')]))\n"
        "    server = h11.Connection(our_role=h11.SERVER)\n    server.receive_data(data)\n"
        "    assert server.next_event().target == b'/'\n    assert bytesify('a') == b'a'\n\n\n"
        "def test_body():\n    server = h11.Connection(our_role=h11.SERVER)\n"
        "    server.receive_data(b'POST / HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 2\\r\\n\\r\\nab')\n"
        "    server.next_event()\n    assert server.next_event().data == b'ab'\n"
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """`check` is Python, run in the tree that the patch leaves; "" where a question is the right answer."""

    repo: str
    said: str
    check: str


def _case(repo: str, said: str, check: str = "") -> Case:
    return Case(repo=repo, said=said, check=check)


GONE = "assert not hasattr({0}, {1!r}), 'the old name is there'\n"
RENAMES = (
    _case("orders", "rename `parse_date` to `parse_day`", "import orders, orders.cli, orders.dates as d\nassert orders.parse_day is d.parse_day and 'parse_day' in orders.__all__\nassert orders.cli.main(['2026-01-02']) == '2026-01-02'\nimport doctest; assert not doctest.testmod(d).failed\n" + GONE.format("d", "parse_date")),
    _case("orders", "call format_date show_date instead", "import orders, orders.cli as c\nassert orders.show_date is c.show_date\n" + GONE.format("c", "format_date")),
    _case("orders", "Store.get is a poor name: call it find", ""),
    _case("orders", "rename the method get of Store to find, also the possible places", "from orders.store import *\nfrom orders.models import *\ns = CachedStore().put(Order(), 'a')\nassert s.find('a') and s.hits == 1 and first(s, 'a') and load_all(s, ['a'])\n" + GONE.format("Store", "get") + "assert {'a': 1}.get('a') == 1\n"),
    _case("orders", "we want `connect` in orders.client to be called `open_connection`", "from orders import client\nassert client.fetch('u') == 'u?1' and client.open_connection('u') == 'u?1'\n" + GONE.format("client", "connect")),
    _case("orders", "rename the module orders.plugins to orders.exporters", "import orders.exporters as e, orders.cli, importlib.util\nassert orders.cli.main(['2026-01-02', '--output=text']) and e.exporter('csv')([['a']]) == 'a'\nassert importlib.util.find_spec('orders.plugins') is None\n"),
    _case("orders", "rename the `size` property of Store to `length`", "from orders import Store\nassert Store().length == 0\n" + GONE.format("Store", "size")),
    _case("orders", "let's rename the class CachedStore to CachingStore everywhere, tests included", "import orders\nassert orders.CachingStore.__name__ == 'CachingStore' and 'CachingStore' in orders.__all__\n" + GONE.format("orders", "CachedStore")),
    _case("orders", "the parameter `retries` of fetch should be called `attempts`", ""),
    _case("orders", "rename main in orders/cli.py to run", ""),
    _case("orders", "rename export_csv to write_csv", ""),
    _case("orders", "rename constant FORMAT to DAY_FORMAT in orders.dates", "from orders import dates\nassert dates.DAY_FORMAT == '%Y-%m-%d' and dates.Clock().now()\n" + GONE.format("dates", "FORMAT")),
    _case("orders", "Rename the attribute `hits` of `CachedStore` to `lookups`.", "from orders import CachedStore\nassert CachedStore().lookups == 0\n" + GONE.format("CachedStore()", "hits")),
    _case("orders", "rename the fixture store to order_store", "text = open('tests/test_store.py').read()\nassert 'def test_store(order_store)' in text and 'orders.store' in text\nassert 'def order_store' in open('tests/conftest.py').read()\n"),
    _case("orders", "In orders/dates.py, rename Clock.now to Clock.today", "from orders import Clock, Order\nassert Clock().today().year == 2026 and Order().dated(Clock()).age(Clock().today()) == 0\n" + GONE.format("Clock", "now")),
    _case("orders", "please rename the local variable `found` in `load_all` to `orders`", "from orders import store\nassert 'orders' in store.load_all.__code__.co_varnames and 'found' not in store.load_all.__code__.co_varnames\n"),
    _case("orders", "`fetch_all` -> `fetch_many`", "from orders import client, cli\nassert client.fetch_many(['u']) == ['u?1'] and cli.fetch_many is client.fetch_many\n" + GONE.format("client", "fetch_all")),
    _case("orders", "rename send to deliver", ""),
    _case("orders", "Could you rename the exception OrderError to OrderFailure?", "import orders.store as s, orders\nassert orders.OrderFailure.__name__ == 'OrderFailure' and s.OrderFailure is orders.OrderFailure\n" + GONE.format("orders", "OrderError")),
    _case("orders", "Change the name of the field `Order.note` to `remark`", "from orders import Order\nassert Order(remark='x').remark == 'x'\n" + GONE.format("Order()", "note")),
    _case("orders", "rename `Line` to `Item` in orders.models and fix all imports", "import orders, typing, orders.store as s, orders.models as m\nassert orders.Item is m.Item and typing.get_type_hints(s.only_line)['return'] is m.Item\nassert typing.get_type_hints(m.total_of)['lines'] == list[m.Item]\n" + GONE.format("orders", "Line")),
    _case("click", "rename `make_str` in click.utils to `to_text`", "from click import utils, core\nassert utils.to_text(b'a') == 'a' and core.to_text is utils.to_text\n" + GONE.format("core", "make_str")),
    _case("click", "the function iter_rows in click/formatting.py should be named pad_rows", "from click import formatting\nassert list(formatting.pad_rows([('a',)], 2)) == [('a', '')]\n" + GONE.format("formatting", "iter_rows")),
    _case("click", "rename the method `find_root` of `Context` to `root_context`, also the possible places", "import click\nc = click.Context(click.Command('x'))\nassert c.root_context() is c\n" + GONE.format("c", "find_root")),
    _case("jinja2", "url_quote in jinja2.utils should be called quote_url from now on", "from jinja2 import utils, filters, Environment\nassert filters.quote_url is utils.quote_url\nassert Environment().from_string('{{ x|urlencode }}').render(x='a b') == 'a%20b'\n" + GONE.format("utils", "url_quote")),
    _case("jinja2", "rename Joiner to Separator", "from jinja2 import utils, defaults\nassert defaults.DEFAULT_NAMESPACE['joiner'] is utils.Separator\n" + GONE.format("utils", "Joiner")),
    _case("arrow", "I'd like to rename iso_to_gregorian to from_iso_calendar across the whole project", "import arrow.factory, arrow.util as u\nassert 'from_iso_calendar' in u.__all__ and arrow.get((2026, 1, 1))\n" + GONE.format("arrow.factory", "iso_to_gregorian")),
    _case("arrow", "use the name check_bounds instead of validate_bounds", "import arrow, arrow.util as u\nu.check_bounds('[]')\nassert arrow.get(2026, 1, 1).is_between(arrow.get(2025, 1, 1), arrow.get(2027, 1, 1))\n" + GONE.format("u", "validate_bounds")),
    _case("h11", "rename bytesify to to_bytes and update its callers", "from h11 import _util, _events, _headers\nassert _events.to_bytes is _util.to_bytes is _headers.to_bytes and _util.__all__.count('to_bytes') == 1\n" + GONE.format("_util", "bytesify")),
    _case("h11", "rename the method maybe_extract_at_most of ReceiveBuffer to take_up_to, possible places too", "from h11._receivebuffer import ReceiveBuffer\nb = ReceiveBuffer(); b += b'abc'\nassert bytes(b.take_up_to(2)) == b'ab'\n" + GONE.format("b", "maybe_extract_at_most")),
)  # fmt: skip
SIGNATURE = "import inspect\ndef has(f, name, default, kind=None):\n    p = inspect.signature(f).parameters[name]\n    assert p.default == default, p\n    assert kind is None or p.kind.name == kind, p.kind\n"
ADDITIONS = (
    _case("orders", "`fetch` should take a `timeout` argument, default 1, and pass it to `connect`", "from orders import client\nhas(client.fetch, 'timeout', 1)\nassert client.fetch('u') == 'u?1' and client.fetch('u', timeout=2) == 'u?2' and client.fetch_once('u') == 'u?1'\n"),
    _case("orders", "add a `verbose` argument to main, default False", "from orders.cli import main\nhas(main, 'verbose', False)\nassert main(['2026-01-02']) == '2026-01-02'\n"),
    _case("orders", "parse_date needs a parameter strict defaulting to False", "from orders import parse_date, dates\nhas(parse_date, 'strict', False)\nassert parse_date('2026-01-02', zone='x', strict=True)\n"),
    _case("orders", "add a keyword-only argument `ending='.'` to export_csv", "from orders import plugins\nhas(plugins.export_csv, 'ending', '.', 'KEYWORD_ONLY')\nassert plugins.export_csv([['a']]) == 'a'\n"),
    _case("orders", "add an optional parameter default=None to Store.get", "from orders import Store, CachedStore, Order\nhas(Store.get, 'default', None); has(CachedStore.get, 'default', None)\nassert CachedStore().put(Order(), 'a').get('a', default=1)\n"),
    _case("orders", "make format_date accept an argument `upper` (False by default)", "from orders import format_date\nhas(format_date, 'upper', False)\n"),
    _case("orders", "the constructor of Line should accept `unit`, default 'kg'", "from orders import Line\nhas(Line, 'unit', 'kg')\nassert Line('a', 1, 2).total() == 2\n"),
    _case("orders", "Store's __init__ should take a new parameter limit=100", "from orders import Store, CachedStore\nhas(Store.__init__, 'limit', 100)\nassert CachedStore('x').path == 'x'\n"),
    _case("orders", "let fetch_all take a keyword argument limit=None", "from orders import client\nhas(client.fetch_all, 'limit', None)\nassert client.fetch_all(['u'], limit=1) == ['u?1']\n"),
    _case("orders", "add `currency: str = 'EUR'` to total_of", "from orders.models import total_of\nhas(total_of, 'currency', 'EUR')\nassert total_of.__annotations__['currency'] == 'str' and total_of([], 0, 'x') == 0\n"),
    _case("orders", "add a required parameter `user` to audit and pass 'system' everywhere", "from orders import client, mail\nhas(client.audit, 'user', inspect.Parameter.empty)\nassert client.send('a') == 'sent a' and mail.send('a') == 'ALL: A' and client.ping('x') == ['ping', 'x']\n"),
    _case("orders", "extend the class method Store.open with a keyword argument mode='r'", "from orders import Store\nhas(Store.open, 'mode', 'r')\nassert Store.open('x', mode='w').path == 'x'\n"),
    _case("orders", "add a parameter secure=False to connect and pass True in fetch", "from orders import client\nhas(client.connect, 'secure', False)\nseen = []\nclient.connect = lambda url, **k: seen.append(k) or 1\nclient.fetch('u')\nassert seen == [{'secure': True}]\n"),
    _case("orders", "add a parameter sep='-' to the static method Store.key", "from orders import Store\nhas(Store.key, 'sep', '-')\nassert Store.key('A', sep='x') == Store().key('A') == 'a'\n"),
    _case("orders", "send should take priority=0", ""),
    _case("orders", "add a parameter retries=1 to fetch", ""),
    _case("orders", "add a parameter tags=() to Order", ""),
    _case("orders", "add a parameter `tags: list[str] | None = None` to `Line.__init__`", "from orders import Line\nhas(Line, 'tags', None)\n"),
    _case("orders", "add an argument 'limit' of type int with default 10 to search", "from orders.models import search\nhas(search, 'limit', 10)\nassert 'int' in str(search.__annotations__['limit']) and search([], 'a', limit=1) == []\n"),
    _case("orders", "log_call should get a new keyword argument `level` whose default is 'info'", "from orders import client\nhas(client.log_call, 'level', 'info')\nassert client.log_call('x', level='y')(len)('ab') == ['x', 2]\n"),
    _case("click", "add a parameter `fill=''` to iter_rows in click.formatting", "from click.formatting import iter_rows\nhas(iter_rows, 'fill', '')\n"),
    _case("click", "Context.find_root should take a parameter depth=None", "import click\nhas(click.Context.find_root, 'depth', None)\n"),
    _case("click", "add a keyword-only parameter strict=False to make_str in click/utils.py", "from click.utils import make_str\nhas(make_str, 'strict', False, 'KEYWORD_ONLY')\n"),
    _case("jinja2", "url_quote in jinja2.utils should take a new argument `safe`, default b'/', please"),
    _case("jinja2", "add a `reset` argument with default False to Cycler.next", "from jinja2.utils import Cycler\nhas(Cycler.next, 'reset', False)\nassert next(Cycler(1)) == 1\n"),
    _case("arrow", "add an argument 'lenient' (default False) to validate_bounds and pass True in Arrow.is_between", "import arrow, arrow.util as u\nhas(u.validate_bounds, 'lenient', False)\nseen = []\nu.validate_bounds = lambda b, **k: seen.append(k)\narrow.get(2026, 1, 1).is_between(arrow.get(2025, 1, 1), arrow.get(2027, 1, 1))\nassert seen == [{'lenient': True}]\n"),
    _case("arrow", "introduce a parameter `offset: int = 0` in iso_to_gregorian", "import arrow, arrow.util as u\nhas(u.iso_to_gregorian, 'offset', 0)\nassert arrow.get((2026, 1, 1))\n"),
    _case("h11", "bytesify should also accept an `encoding` argument, defaulting to 'ascii'", "from h11._util import bytesify\nhas(bytesify, 'encoding', 'ascii')\nassert bytesify(b'a') == b'a'\n"),
    _case("h11", "add a parameter more=False to ReceiveBuffer.maybe_extract_at_most", "from h11._receivebuffer import ReceiveBuffer\nhas(ReceiveBuffer.maybe_extract_at_most, 'more', False)\n"),
    _case("h11", "validate in h11._util must get a required keyword-only parameter `where`; pass 'h11' at every call", "from h11 import _util, Connection, CLIENT, Request\nhas(_util.validate, 'where', inspect.Parameter.empty, 'KEYWORD_ONLY')\nassert Connection(our_role=CLIENT).send(Request(method='GET', target='/', headers=[('Host', 'x')]))\n"),
)  # fmt: skip
GOOD = ("done", "asked")


def main() -> int:
    """0 when nothing is broken and enough is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the recipe alone, without gates, jail and proof")
    parser.add_argument("--kind", choices=("rename", "add-parameter"))
    parser.add_argument("--only", type=int, action="append", help="this one of each kind; may be repeated")
    parser.add_argument("--show", action="store_true", help="print the patches")
    args = parser.parse_args()
    ended = True
    for kind, cases in (("rename", RENAMES), ("add-parameter", ADDITIONS)):
        if args.kind not in (None, kind):
            continue
        counts: Counter[str] = Counter()
        for number, case in enumerate(cases):
            if args.only is None or number in args.only:
                began = time.monotonic()
                prelude = SIGNATURE if cases is ADDITIONS else ""
                outcome, told = _judged(case, prelude, quick=args.quick, show=args.show)
                counts[outcome] += 1
                seconds = time.monotonic() - began
                print(f"{kind} {number:2} {seconds:3.0f} s {case.repo}: {case.said}\n    {outcome}: {told}", flush=True)
        share = sum(counts[name] for name in GOOD) / max(1, counts.total())
        print(f"{kind}: {share:.0%} done or rightly asked: {dict(counts)} (bar: 0 BROKEN, at least {BAR:.0%})")
        ended &= share >= BAR and not counts["BROKEN"]
    return 0 if ended else 1


def _judged(case: Case, prelude: str, *, quick: bool, show: bool) -> tuple[str, str]:
    with tempfile.TemporaryDirectory(prefix="la-words-") as made:
        folder = Path(made)
        repo, patch = _repository(case.repo, folder / "repo"), folder / "made.patch"
        why = (_recipe if quick else _do)(case.said, repo, patch, folder)
        text = patch.read_text() if patch.exists() else ""
        if show:
            print(text)
        if not text:
            how = next((w for w in ("asked", "refused") if why.startswith(f"{w}: ")), "not understood")
            right = how if how != "asked" or not case.check else "asked for nothing"
            return right, why.removeprefix(f"{how}: ")
        git(repo, "apply", str(patch)).check_returncode()
        fault = _fault(repo, ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests"])
        fault = fault or _fault(repo, ["-c", prelude + (case.check or "raise SystemExit('a question was due')")])
        return ("BROKEN", fault) if fault else ("done", why)


def _repository(name: str, folder: Path) -> Path:
    if name == "orders":
        write(folder, ORDERS)
    else:
        spec = importlib.util.find_spec(name)
        assert spec is not None, f"{name} is not installed here"
        assert spec.origin is not None
        shutil.copytree(Path(spec.origin).parent, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        settings = '[tool.pytest.ini_options]\npythonpath = ["."]\n'
        write(folder, {"pyproject.toml": settings, f"tests/test_{name}.py": TESTS[name]})
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "as it was")):
        git(folder, *words).check_returncode()
    return folder


def _recipe(said: str, repo: Path, patch: Path, _folder: Path) -> str:
    recipe = recipe_of(said)
    if recipe is None:
        return "no recipe"
    files = {RepoPath(str(p.relative_to(repo))): p for p in repo.rglob("*") if p.is_file() and ".git" not in p.parts}
    python = {path: at.read_bytes() for path, at in files.items() if path.is_python}
    other = {path: at.read_bytes() for path, at in files.items() if path.endswith((".toml", ".cfg", ".ini"))}
    made = carry_out(RecipeSources(python, other), recipe)
    if isinstance(made, Question):
        return f"asked: {made.text}; {made.remedy}"
    for path, text in made.writes.items():
        (repo / path).unlink() if text is None else (repo / path).write_text(text)
    git(repo, "add", "-A").check_returncode()
    patch.write_text(git(repo, "diff", "--cached").stdout.decode())
    git(repo, "reset", "-q", "--hard").check_returncode()
    return made.understood


def _do(said: str, repo: Path, patch: Path, folder: Path) -> str:
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    report = folder / "report.json"
    words = ["do", said, "--repo", str(repo), "--trust", "auto", "--assume", "--quiet"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = localagent([*words, "--out", str(patch), "--report", str(report)])
    told = json.loads(report.read_text()) if report.exists() else {}
    reason = str(told.get("reason", f"exit {code}, and no report"))
    if code == 1 and told.get("outcome") == "needs-person" and told["remedy"] and not told["agent"]["recipe"]:
        return f"asked: {reason}; {told['remedy']}"
    return f"refused: {reason}" if code == 1 and told.get("agent", {}).get("recipe") else reason


def _fault(repo: Path, words: list[str]) -> str:
    environ: Mapping[str, str] = {**os.environ, "PYTHONPATH": f"{repo / 'src'}:{repo}", "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run([sys.executable, *words], cwd=repo, env=environ, capture_output=True, text=True, check=False)
    return "" if ended.returncode == 0 else (ended.stdout + ended.stderr).strip()[-300:].replace("\n", " | ")


if __name__ == "__main__":
    sys.exit(main())
