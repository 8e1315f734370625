"""Imports that fail: from where a name lies now, by its name there, in another place where they go in a circle."""

import pytest

from localagent.code.moved_names import MOVED_NAMES
from localagent.domain.outcome import Failure, Frame
from localagent.domain.paths import RepoPath
from localagent.edit.space import LibcstEditSpace

PATH = RepoPath("shop/bill.py")
SUMS = {RepoPath("shop/__init__.py"): b"", RepoPath("shop/sums.py"): b"def total(p):\n    return sum(p)\n"}


def offered(source: str, exception: str, message: str, line: int = 1) -> list[str]:
    """What the operators for imports make of a file, best first."""
    failure = Failure(exception=exception, message=message, frames=(Frame(path=PATH, line=line, function="<module>"),))
    sources = {**SUMS, PATH: source.encode()}
    edits = LibcstEditSpace({}).edits(PATH, sources, lines=None, failures=[failure])
    wanted = ("moved-import", "moved-module", "moved-attribute", "local-import")
    return [e.apply(source.encode()).decode() for e in edits if e.operator in wanted]


NO_NAME = "cannot import name '{}' from '{}' (/x.py)"
NO_MODULE = "No module named '{}'"
NO_ATTRIBUTE = "module '{}' has no attribute '{}'"
CIRCLE = "cannot import name 'a' from partially initialized module 'shop.a' (most likely due to a circular import)"


@pytest.mark.parametrize(
    ("exception", "message", "before", "after"),
    [
        (
            "ImportError",
            NO_NAME.format("Mapping", "collections"),
            "from collections import Mapping, deque\nX = Mapping, deque\n",
            "from collections.abc import Mapping\nfrom collections import deque\nX = Mapping, deque\n",
        ),
        (
            "ImportError",
            NO_NAME.format("gcd", "fractions"),
            "from fractions import gcd\nX = gcd(4, 2)\n",
            "from math import gcd\nX = gcd(4, 2)\n",
        ),
        (
            "ImportError",
            NO_NAME.format("izip", "itertools"),
            "from itertools import (\n    chain,\n    izip,\n)\nX = izip, chain\n",
            "from itertools import (\n    chain,\n)\nX = zip, chain\n",
        ),
        (
            "ImportError",
            NO_NAME.format("total", "shop.means"),
            "from .means import total\nX = total\n",
            "from .sums import total\nX = total\n",
        ),
        (
            "ImportError",
            NO_NAME.format("totl", "shop.sums"),
            "from shop.sums import totl\nX = totl([1])\n",
            "from shop.sums import total\nX = total([1])\n",
        ),
        (
            "ImportError",
            NO_NAME.format("totl", "shop.sums"),
            "from shop.sums import totl as t\nX = t([1])\n",
            "from shop.sums import total as t\nX = t([1])\n",
        ),
        (
            "ModuleNotFoundError",
            NO_MODULE.format("shop.sum"),
            "from shop.sum import total\nX = total\n",
            "from shop.sums import total\nX = total\n",
        ),
        (
            "ModuleNotFoundError",
            NO_MODULE.format("ConfigParser"),
            "import ConfigParser\nX = ConfigParser.RawConfigParser\n",
            "import configparser\nX = configparser.RawConfigParser\n",
        ),
        (
            "ModuleNotFoundError",
            NO_MODULE.format("xml.etree.cElementTree"),
            "import xml.etree.cElementTree as ET\nX = ET.XML\n",
            "import xml.etree.ElementTree as ET\nX = ET.XML\n",
        ),
        (
            "AttributeError",
            NO_ATTRIBUTE.format("inspect", "getargspec"),
            "import inspect\nX = inspect.getargspec(len)\nY = inspect.getargspec\n",
            "import inspect\nX = inspect.getfullargspec(len)\nY = inspect.getfullargspec\n",
        ),
        (
            "AttributeError",
            NO_ATTRIBUTE.format("collections", "Mapping"),
            "import collections\nX = collections.Mapping, collections.deque\n",
            "import collections.abc\nX = collections.abc.Mapping, collections.deque\n",
        ),
        (
            "AttributeError",
            NO_ATTRIBUTE.format("numpy", "float"),
            "import numpy as np\nX = np.float(1)\n",
            "import numpy as np\nX = float(1)\n",
        ),
        (
            "AttributeError",
            NO_ATTRIBUTE.format("cgi", "escape"),
            "import cgi\nX = cgi.escape('<')\n",
            "import html\nimport cgi\nX = html.escape('<')\n",
        ),
        (
            "ImportError",
            CIRCLE,
            'from shop.a import a\n\n\ndef f():\n    """Text."""\n    return a()\n',
            '\n\ndef f():\n    """Text."""\n    from shop.a import a\n    return a()\n',
        ),
    ],
)
def test_the_import_that_is_meant_comes_first(exception: str, message: str, before: str, after: str) -> None:
    assert offered(before, exception, message, 1 if "import" in before.splitlines()[0] else 2)[0] == after


def test_what_a_module_needs_while_it_is_imported_stays() -> None:
    assert offered("from shop.a import a\n\n\n@a\ndef f():\n    return a()\n", "ImportError", CIRCLE) == []


def test_an_import_of_another_file_that_fails_is_not_touched() -> None:
    source = "from fractions import gcd\nX = gcd(4, 2)\n"
    failure = Failure(
        exception="ImportError",
        message=NO_NAME.format("gcd", "fractions"),
        frames=(
            Frame(path=PATH, line=1, function="<module>"),
            Frame(path=RepoPath("shop/sums.py"), line=1, function="<module>"),
        ),
    )
    edits = LibcstEditSpace({}).edits(PATH, {**SUMS, PATH: source.encode()}, lines=None, failures=[failure])
    assert not [e for e in edits if e.operator == "moved-import"]


def test_the_table_names_nothing_that_it_moves_away_from() -> None:
    for old, places in MOVED_NAMES.items():
        assert old not in places
        assert all(all(part.isidentifier() for part in new.split(".")) for new in (old, *places))
        assert not set(places) & set(MOVED_NAMES), old
