"""Frames mapped to a repository: whose they are, where the line is now, and when nothing may be said."""

import pytest

from localagent.debug.frame_mapping import FrameMapper
from localagent.domain.paths import RepoPath
from localagent.domain.traceback import FrameMatch, TraceFrame

CART = b"""class Cart:
    def price(self, name):
        found = self.items[name]
        return found


def total(cart):
    return sum(cart.price(n) for n in cart)
"""
SOURCES = {
    RepoPath("src/shop/cart.py"): CART,
    RepoPath("src/shop/__init__.py"): b"from shop.cart import total\n",
    RepoPath("tests/__init__.py"): b"",
    RepoPath("app.py"): b"def main():\n    return 1\n",
    RepoPath("tools/one/util.py"): b"def go():\n    return one()\n",
    RepoPath("tools/two/util.py"): b"def go():\n    return two()\n",
}


def mapped(file: str, line: int, function: str = "", source: str = "") -> tuple[str, str, int]:
    frame = TraceFrame(file=file, line=line, function=function, source=source)
    (found,) = FrameMapper(SOURCES, "/home/ann/work").map([frame])
    return found.match.value, str(found.path or ""), found.line


@pytest.mark.parametrize(
    ("frame", "wanted"),
    [
        (("/home/ann/work/src/shop/cart.py", 3, "price", "found = self.items[name]"), ("exact", 3)),
        (("src/shop/cart.py", 3, "price", "found = self.items[name]"), ("exact", 3)),
        (("/srv/app/shop/cart.py", 3, "price", "found  =  self.items[name]"), ("exact", 3)),
        (("C:\\build\\shop\\cart.py", 3, "price", ""), ("by-name", 3)),
        (("/env/lib/python3.9/site-packages/shop/cart.py", 3, "price", ""), ("by-name", 3)),
        (("/srv/app/shop/cart.py", 40, "price", "found = self.items[name]"), ("moved", 3)),
        (("/srv/app/shop/cart.py", 40, "cost", "found = self.items[name]"), ("moved", 3)),
        (("/srv/app/shop/cart.py", 3, "price", "found = self.stock[name]"), ("function", 2)),
        (("/srv/app/shop/cart.py", 90, "gone", "pass"), ("file", 0)),
        (("cart.py", 3, "price", "found = self.items[name]"), ("exact", 3)),
        (("/elsewhere/cart.py", 3, "price", "found = self.items[name]"), ("exact", 3)),
        (("src/shop/cart.py", 3, "", ""), ("by-name", 3)),
    ],
)
def test_a_frame_of_this_repository(frame: tuple[str, int, str, str], wanted: tuple[str, int]) -> None:
    assert mapped(*frame) == (wanted[0], "src/shop/cart.py", wanted[1])


@pytest.mark.parametrize(
    "frame",
    [
        ("/usr/lib/python3.11/json/decoder.py", 3, "price", "found = self.items[name]"),
        ("/env/lib/python3.9/site-packages/other/cart.py", 3, "price", "found = self.items[name]"),
        ("/env/lib/python3.9/site-packages/other/shop/cart.py", 3, "price", "found = self.items[name]"),
        ("/elsewhere/cart.py", 3, "price", "return other"),
        ("/elsewhere/cart.py", 3, "price", ""),
        ("/elsewhere/cart.py", 3, "other", "found = self.items[name]"),
        ("<string>", 1, "<module>", "x"),
        ("<frozen importlib._bootstrap>", 1, "_find", ""),
        ("/elsewhere/util.py", 1, "go", ""),
        ("/home/ann/work/shop/cart.py", 3, "price", "found = self.items[name]"),
        ("/elsewhere/__init__.py", 1, "<module>", ""),
        ("", 1, "f", ""),
        ("/", 0, "", ""),
    ],
)
def test_a_frame_of_another_one_is_never_claimed(frame: tuple[str, int, str, str]) -> None:
    assert mapped(*frame)[0] == FrameMatch.OUTSIDE.value


def test_of_two_files_of_one_name_the_text_decides() -> None:
    assert mapped("/x/util.py", 2, "go", "return two()") == ("exact", "tools/two/util.py", 2)
    assert mapped("/x/app.py", 2, "main", "return 1") == ("exact", "app.py", 2)
