"""Faults whose own repair lies outside the edit space, and a wrong edit that passes the tests: never accepted.

Each stands for a wrong repair that was once accepted in a real project of its kind.
"""

import pytest
from support.fix_builder import home

LIMIT = {
    "chunks.py": '''\
def split(src, sep=None, maxsplit=None):
    """Yield lists of the items of src between separators.

    sep is a value, or a function that says whether an item separates; maxsplit bounds how often src is split.
    """
    if maxsplit is not None:
        maxsplit = int(maxsplit)
        if maxsplit == 0:
            yield src
            return
    if callable(sep):
        separates = sep
    else:
        separates = lambda item: item == sep
    group, count = [], 0
    for item in src:
        if maxsplit is not None and count >= maxsplit:
            separates = lambda item: False
        if separates(item):
            if sep is None and not group:
                continue
            count += 1
            yield group
            group = []
        else:
            group.append(item)
    yield group
''',
    "test_chunks.py": """\
from chunks import split


def test_by_value():
    assert list(split([1, 0, 2, 0, 3], 0)) == [[1], [2], [3]]


def test_by_none():
    assert list(split(["a", None, None, "b"])) == [["a"], ["b"]]


def test_by_function():
    assert list(split(range(6), lambda n: n % 3 == 2)) == [[0, 1], [3, 4], []]


def test_no_split_at_all():
    assert list(split(iter([1, 0, 2]), 0, maxsplit=0)) == [[1, 0, 2]]
""",
}
DESCRIPTOR = {
    "memo.py": '''\
class kept:
    """An attribute that is computed once, and kept by the object under its name."""

    def __init__(self, make):
        self.make, self.name = make, make.__name__

    def __get__(self, obj, owner=None):
        if not hasattr(obj, "store"):
            raise TypeError(f"no store on {type(obj).__name__} to keep {self.name}")
        return obj.store.setdefault(self.name, self.make(obj))
''',
    "test_memo.py": """\
from memo import kept


class Circle:
    def __init__(self, radius):
        self.radius, self.store = radius, {}

    @kept
    def area(self):
        return 3 * self.radius**2


def test_kept():
    circle = Circle(2)
    assert (circle.area, circle.area, circle.store) == (12, 12, {"area": 12})


def test_on_the_class():
    assert isinstance(getattr(Circle, "area", Circle), (kept, type))
""",
}
TEST_CLIENT = {
    "test_web.py": """\
from web.app import App
from web.testing.client import Client


def client():
    app = App()
    app.route("/things", "GET", lambda: "all")
    app.route("/things", "PUT", lambda: "stored")
    app.route("/probe", "OPTIONS", lambda: "own")
    return Client(app)


def test_get():
    assert client().get("/things") == (200, {}, "all")


def test_put():
    assert client().put("/things") == (200, {}, "stored")


def test_options():
    assert client().options("/things") == (200, {"Allow": "GET, PUT"}, "")


def test_no_empty_header():
    status, headers, body = client().options("/probe")
    assert "Allow" not in headers or headers["Allow"]
""",
    "web/__init__.py": "",
    "web/app.py": '''\
class App:
    """Routes by path and method; answers (status, headers, body)."""

    def __init__(self):
        self.routes = {}

    def route(self, path, method, handler):
        self.routes.setdefault(path, {})[method] = handler

    def handle(self, method, path):
        found = self.routes.get(path)
        if found is None:
            return 404, {}, ""
        if method == "OPTIONS":
            methods = sorted(m for m in found if m != "OPTIONS")
            return 200, {"Allow": ", ".join(methods)}, ""
        if method not in found:
            return 405, {"Allow": ", ".join(sorted(found))}, ""
        return 200, {}, found[method]()
''',
    "web/testing/__init__.py": "",
    "web/testing/client.py": '''\
class Client:
    """Sends requests to an application without a network."""

    def __init__(self, app):
        self.app = app

    def get(self, path):
        return self.app.handle("GET", path)

    def put(self, path):
        return self.app.handle("PUT", path)

    def options(self, path):
        return self.app.handle("OPTIONS", path)
''',
}
HELPER = {
    "reader.py": """\
from util import first_word


def command(line):
    return first_word(line.strip()).lower()
""",
    "test_util.py": """\
from util import first_word, raises


def test_first():
    assert first_word("one two") == "one"


def test_alone():
    assert first_word("one") == "one"


def test_none():
    assert raises(ValueError, lambda: first_word(""))
""",
    "util.py": '''\
def first_word(text):
    """The first word of a text; ValueError where there is none."""
    return text.split(" ")[0]


def raises(error, function):
    """Whether a call of the function raises the error."""
    try:
        function()
    except error:
        return True
    return False
''',
}
TABLE = {
    "table.py": '''\
def widths(rows, headers=(), min_padding=2, pad_headers=False):
    """The width of each column: of its longest cell, and of its header with padding."""
    if not rows and not pad_headers:
        return []
    columns = max((len(row) for row in rows), default=len(headers))
    found = [0] * columns
    for row in rows:
        for at, cell in enumerate(row):
            found[at] = max(found[at], len(str(cell)))
    if headers and pad_headers:
        for at, header in enumerate(headers[:columns]):
            found[at] = max(found[at], len(header) + min_padding)
    elif headers:
        for at, header in enumerate(headers[:columns]):
            found[at] = max(found[at], len(header))
    return found
''',
    "test_table.py": """\
from table import widths


def test_cells():
    assert widths([["a", "bcd"], ["ef", "g"]]) == [2, 3]


def test_headers():
    assert widths([["a", "b"]], ["name", "x"]) == [4, 1]


def test_padded():
    assert widths([["a", "b"]], ["name", "x"], pad_headers=True) == [6, 3]


def test_nothing():
    assert widths([]) == []


def test_headers_alone():
    assert widths([], ["name", "size"]) == [4, 4]
""",
}


@pytest.mark.long
@pytest.mark.parametrize(
    "files",
    [
        pytest.param(LIMIT, id="an option that is switched off"),
        pytest.param(DESCRIPTOR, id="another exception flies"),
        pytest.param(TEST_CLIENT, id="the client that the tests use"),
        pytest.param(HELPER, id="a helper of the tests that always agrees"),
        pytest.param(TABLE, id="a condition on another option"),
    ],
)
def test_a_wrong_repair_that_passes_the_tests_is_not_accepted(files: dict[str, str]) -> None:
    with home(files) as h:
        ran = h.fix("--max-candidates", "150")
        assert (ran.code, ran.report["patch"]) == (1, None), ran
        assert ran.report["outcome"] in ("gave-up", "low-confidence", "ambiguous"), ran
        proposed = [edit for proposal in ran.report["proposals"] for edit in proposal["edits"]]
        assert not any(edit.startswith("web/testing/") or "raises" in edit for edit in map(str, proposed)), proposed
