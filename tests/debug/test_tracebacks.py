"""Tracebacks in the forms in which people paste them; most are made by really running a small project."""

import traceback
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trace_builder import (
    CALLS,
    FORMS,
    Expected,
    expected,
    native,
    raised,
    run_pytest,
    run_unittest,
    shop_module,
)

from localagent.debug.tracebacks import MAX_FRAMES, parse_tracebacks
from localagent.domain.traceback import ChainLink, Traceback, TracedException


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def module(folder: Path) -> ModuleType:
    return shop_module(folder)


def frames(one: TracedException) -> tuple[tuple[str, int, str], ...]:
    return tuple((f.file, f.line, f.function) for f in one.frames)


def assert_same(found: Traceback, wanted: Expected, *, other_folder: bool = False) -> None:
    assert tuple(e.name for e in found.exceptions) == wanted.types
    for one, known in zip(found.exceptions, wanted.frames, strict=True):
        if other_folder:
            assert tuple((line, name) for _, line, name in frames(one)) == tuple((b, c) for _, b, c in known)
            assert any(f.file == "/srv/releases/2026/shop/cart.py" for f in one.frames)
        else:
            assert frames(one) == known


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("call", CALLS)
def test_what_the_interpreter_prints_is_read_back_from_every_form(module: ModuleType, call: str, form: str) -> None:
    error = raised(module, call)
    found = parse_tracebacks(FORMS[form](native(error)))
    assert len(found) == (2 if form == "twice" else 1)
    for one in found:
        assert_same(one, expected(error), other_folder=form == "other-folder")
        assert all(e.complete for e in one.exceptions)


@pytest.mark.parametrize("call", CALLS)
def test_links_and_texts_of_lines(module: ModuleType, call: str) -> None:
    (found,) = parse_tracebacks(native(raised(module, call)).encode())
    links = {"caused": [ChainLink.FIRST, ChainLink.CAUSE], "handled": [ChainLink.FIRST, ChainLink.CONTEXT]}
    links["grouped"] = [ChainLink.FIRST, ChainLink.MEMBER, ChainLink.MEMBER]
    assert [e.link for e in found.exceptions] == links.get(call, [ChainLink.FIRST])
    lines = Path(str(module.__file__)).read_text().splitlines()
    for frame in (f for e in found.exceptions for f in e.frames if f.file == module.__file__):
        assert frame.source == lines[frame.line - 1].strip()


@pytest.mark.parametrize("call", CALLS)
def test_a_cut_off_beginning_loses_frames_only(module: ModuleType, call: str) -> None:
    text = native(raised(module, call))
    whole = parse_tracebacks(text.encode())[0]
    cut = text[text.rfind("\n", 0, text.index('  File "')) + 1 :]
    found = parse_tracebacks(cut.encode())[0]
    assert [e.name for e in found.exceptions] == [e.name for e in whole.exceptions]
    assert frames(found.exceptions[0]) == frames(whole.exceptions[0])
    assert not found.exceptions[0].complete


@pytest.mark.parametrize("call", [c for c in CALLS if c not in ("grouped", "caused", "handled", "syntax")])
def test_a_cut_off_end_is_said(module: ModuleType, call: str) -> None:
    text = native(raised(module, call))
    (found,) = parse_tracebacks(text[: text.rindex("\n", 0, text.rindex(found_type(text)))].encode())
    assert (found.exceptions[0].type, found.exceptions[0].complete) == ("", False)
    assert found.exceptions[0].frames


def found_type(text: str) -> str:
    return str(parse_tracebacks(text.encode())[0].exceptions[-1].type)


@pytest.mark.long
@pytest.mark.parametrize("style", ["long", "short", pytest.param("native", marks=pytest.mark.slow), "auto"])
def test_pytest(module: ModuleType, folder: Path, style: str) -> None:
    found = {t.title: t for t in parse_tracebacks(run_pytest(folder, style))}
    assert set(found) == {f"test_{call}" for call in CALLS}
    for call in CALLS:
        one, wanted = found[f"test_{call}"], expected(raised(module, call))
        assert tuple(e.name for e in one.exceptions) == wanted.types, call
        for exception, known in zip(one.exceptions, wanted.frames, strict=True):
            mine = [(f.line, f.function) for f in exception.frames if f.file.endswith("cart.py")]
            theirs = [(line, name) for file, line, name in known if file.endswith("cart.py")]
            if call in ("deep", "endless"):  # pytest says by words that frames repeat
                assert mine[-1][0] == theirs[-1][0], call
            elif style in ("short", "native") or call == "grouped":
                assert mine == theirs, call
            else:  # the long style names no lambda or generator
                assert [line for line, _ in mine if _ not in (None,)] == [line for line, _ in theirs], call


@pytest.mark.long
def test_pytest_by_the_line_and_unittest(module: ModuleType, folder: Path) -> None:
    found = parse_tracebacks(run_pytest(folder, "line"))
    places = {(e.name, f.line) for t in found for e in t.exceptions for f in e.frames[-1:]}
    unit = parse_tracebacks(run_unittest(folder))
    assert len(unit) == len(CALLS)
    for call in set(CALLS) - {"grouped", "endless", "in_task", "own_class"}:
        wanted = expected(raised(module, call))
        if call != "syntax":
            assert (wanted.types[-1], wanted.frames[-1][-1][1]) in places, call
        mine = [t for t in unit if any(f.function == f"test_{call}" for e in t.exceptions for f in e.frames)]
        assert [e.name for e in mine[0].exceptions] == list(wanted.types)
        assert frames(mine[0].exceptions[-1])[-len(wanted.frames[-1]) :] == wanted.frames[-1]


HAND_MADE = {
    "3.13 markers and folded lines": (
        'Traceback (most recent call last):\n  File "/app/a.py", line 7, in <module>\n    main(\n    ~~~~^\n'
        '        1,\n        ^^\n    ...<3 lines>...\n    )\n    ^\n  File "/app/a.py", line 3, in main\n'
        "    return x.y\n           ^^^\nAttributeError: 'NoneType' object has no attribute 'y'\n",
        [("AttributeError", [("/app/a.py", 7, "<module>"), ("/app/a.py", 3, "main")])],
    ),
    "django page": (
        "Environment:\n\nRequest Method: GET\n\nTraceback (most recent call last):\n"
        '  File "/env/lib/python3.11/site-packages/django/core/handlers/exception.py", line 55, in inner\n'
        "    response = get_response(request)\n               ^^^^^^^^^^^^^^^^^^^^^\n"
        '  File "/app/shop/views.py", line 9, in cart\n    return prices[name]\n\n'
        "Exception Type: KeyError at /cart\nException Value: 'pear'\n",
        [
            (
                "KeyError",
                [
                    ("/env/lib/python3.11/site-packages/django/core/handlers/exception.py", 55, "inner"),
                    ("/app/shop/views.py", 9, "cart"),
                ],
            )
        ],
    ),
    "old django page": (
        'Traceback:\nFile "/app/django/base.py" in get_response\n  111.                     response = callback()\n'
        'File "/app/shop/views.py" in cart\n  9.     return prices[name]\n\n'
        "Exception Type: KeyError at /cart\nException Value: u'pear'\n",
        [("KeyError", [("/app/django/base.py", 111, "get_response"), ("/app/shop/views.py", 9, "cart")])],
    ),
    "faulthandler": (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f31 (most recent call first):\n"
        '  File "/app/b.py", line 3 in inner\n  File "/app/a.py", line 7 in <module>\n',
        [("", [("/app/a.py", 7, "<module>"), ("/app/b.py", 3, "inner")])],
    ),
    "task never retrieved": (
        "Task exception was never retrieved\nfuture: <Task finished name='Task-2' coro=<go() done> "
        "exception=KeyError('a')>\nTraceback (most recent call last):\n"
        '  File "/app/a.py", line 4, in go\n    return {}["a"]\nKeyError: \'a\'\n',
        [("KeyError", [("/app/a.py", 4, "go")])],
    ),
    "windows": (
        'Traceback (most recent call last):\r\n  File "C:\\Users\\ann\\shop\\cart.py", line 4, in total\r\n'
        "    return 1 / 0\r\nZeroDivisionError: division by zero\r\n",
        [("ZeroDivisionError", [("C:\\Users\\ann\\shop\\cart.py", 4, "total")])],
    ),
    "print_stack": (
        'Stack (most recent call last):\n  File "/app/a.py", line 4, in go\n    log.error("x", stack_info=True)\n',
        [("", [("/app/a.py", 4, "go")])],
    ),
    "collection error": (
        "==== ERRORS ====\n_____ ERROR collecting test_bad.py _____\nImportError while importing test module "
        "'/app/test_bad.py'.\nTraceback:\ntest_bad.py:1: in <module>\n    import nope\n"
        "E   ModuleNotFoundError: No module named 'nope'\n=== short test summary info ===\n",
        [("ModuleNotFoundError", [("test_bad.py", 1, "<module>")])],
    ),
    "syntax error in pytest": (
        "_____ ERROR collecting test_bad.py _____\n/usr/lib/python3.11/ast.py:50: in parse\n    return compile()\n"
        'E     File "/app/test_bad.py", line 1\nE       def f(:\nE             ^\nE   SyntaxError: invalid syntax\n',
        [("SyntaxError", [("/usr/lib/python3.11/ast.py", 50, "parse"), ("/app/test_bad.py", 1, "")])],
    ),
    "summary only": (
        "FAILED tests/test_a.py::test_b - KeyError: 'x'\nERROR tests/test_c.py - ImportError: no\n",
        [("KeyError", []), ("ImportError", [])],
    ),
    "ipython": (
        "---------------------------------------------------------------------------\n"
        "KeyError                                  Traceback (most recent call last)\n"
        "Cell In[3], line 1\n----> 1 run()\n\nFile /srv/app/shop/cart.py:10, in Cart.price(self, name)\n"
        "      9 def price(self, name):\n---> 10     return self.items[name]\n\nKeyError: 'pear'\n",
        [("KeyError", [("<cell 3>", 1, "<module>"), ("/srv/app/shop/cart.py", 10, "price")])],
    ),
    "old ipython": (
        "KeyError                            Traceback (most recent call last)\n<ipython-input-3-5a1> in <module>\n"
        "----> 1 run()\n\n~/app/shop/cart.py in price(self, name)\n      8     def price(self, name):\n"
        "----> 9         return self.items[name]\n     10 \n\nKeyError: 'pear'\n",
        [("KeyError", [("<ipython-input-3-5a1>", 1, "<module>"), ("~/app/shop/cart.py", 9, "price")])],
    ),
    "loguru": (
        "2026-11-29 06:25:52.123 | ERROR    | __main__:<module>:12 - failed\nTraceback (most recent call last):\n\n"
        '  File "/app/main.py", line 12, in <module>\n    run()\n    └ <function run at 0x7f>\n\n'
        "> File \"/app/shop/cart.py\", line 9, in price\n    return self.items[name]\n           │    │     └ 'pear'\n"
        "           │    └ {}\n           └ <shop.cart.Cart object at 0x7f>\n\nKeyError: 'pear'\n",
        [("KeyError", [("/app/main.py", 12, "<module>"), ("/app/shop/cart.py", 9, "price")])],
    ),
    "rich": (
        "╭──────────────── Traceback (most recent call last) ────────────────╮\n"
        "│ /app/main.py:12 in <module>                                       │\n"
        "│                                                                   │\n"
        "│ ❱ 12 run()                                                        │\n"
        "│                                                                   │\n"
        "│ /app/shop/cart.py:9 in price                                      │\n"
        "│    8     def price(self, name):                                   │\n"
        "│ ❱  9         return self.items[name]                              │\n"
        "╰───────────────────────────────────────────────────────────────────╯\nKeyError: 'pear'\n",
        [("KeyError", [("/app/main.py", 12, "<module>"), ("/app/shop/cart.py", 9, "price")])],
    ),
    "an event of sentry": (
        '{"exception": {"values": [{"type": "KeyError", "value": "\'pear\'", "stacktrace": {"frames": [\n'
        '{"abs_path": "/app/main.py", "function": "<module>", "lineno": 12}, {"filename": "shop/cart.py",\n'
        '"lineno": 9, "function": "price", "context_line": " return 1"}, {"lineno": "x"}, 7]}},\n'
        '{"stacktrace": {"frames": {}}}]}}\n',
        [("KeyError", [("/app/main.py", 12, "<module>"), ("shop/cart.py", 9, "price")])],
    ),
    "in a page": (
        "<pre>Traceback (most recent call last):\n  File &quot;/app/a.py&quot;, line 9, in price\n    return x[n]\n"
        "KeyError: &#x27;pear&#x27;\n</pre>",
        [("KeyError", [("/app/a.py", 9, "price")])],
    ),
    "titles wider than the terminal, and a function in the test": (
        "_ test_a[a value that is long] _\n\n    def test_a(x):\n        def inner():\n            pass\n"
        ">       assert x == 1\nE       assert 2 == 1\n\ntests/test_a.py:5: AssertionError\n"
        "_ test_a[another value that is long] _\n\n    def test_a(x):\n>       f(x)\n\ntests/test_a.py:6: \n"
        "_ _ _ _ _ _ _ _ _ _ _ _ _\n\n    def f(x):\n>       return x[0]\n"
        "E       KeyError: 0\n\na.py:2: KeyError\n",
        [
            ("AssertionError", [("tests/test_a.py", 5, "test_a")]),
            ("KeyError", [("tests/test_a.py", 6, "test_a"), ("a.py", 2, "f")]),
        ],
    ),
    "omitted middle": (
        'Traceback (most recent call last):\n  File "/app/a.py", line 1, in a\n    b()\n  ... 12 frames hidden ...\n'
        '  File "/app/c.py", line 3, in c\n    d()\nValueError: x\n',
        [("ValueError", [("/app/a.py", 1, "a"), ("/app/c.py", 3, "c")])],
    ),
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_forms_that_cannot_be_made_here(name: str) -> None:
    text, wanted = HAND_MADE[name]
    found = [(e.type, list(frames(e))) for t in parse_tracebacks(text.encode()) for e in t.exceptions]
    assert found == wanted


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\0" * 1000,
        b"x" * (20 << 20),
        b'File "' * 300_000,
        b"Traceback (most recent call last):\n" * 50_000,
        b'Traceback (most recent call last):\n  File "' + b"a" * (12 << 20) + b'", line 3, in f\n',
        b'{"a":' * 200_000 + b'"Traceback (most recent call last):\\n  File \\"x\\", line 3"',
        b"\x1b]" * 500_000,
        b"E   x\n" * 200_000,
        b"  | " * 200_000,
        bytes(range(256)) * 4000,
        b"+-+---------------- 1 ----------------\n" * 50_000,
        b"____ " * 300_000,
        b"a.py:1: in f\n" * 100_000,
        "│ └ x\n".encode() * 100_000,
        b"KeyError   Traceback (most recent call last)\n" + b"----> 1 x\n" * 200_000,
        "╭── Traceback (most recent call last) ──╮\n│ a.py:1 in f │\n".encode() * 50_000,
        b'{"stacktrace": {"frames": [{"lineno": 1, "filename": "a", "function": "f"}' * 3_000,
        b"\\n" * 400_000 + b'Traceback (most recent call last):\\n File "a", line 1',
    ],
    ids=range(19),
)
def test_hostile_text_is_bounded(text: bytes) -> None:
    found = parse_tracebacks(text)
    assert len(found) <= 200
    assert all(len(e.frames) <= MAX_FRAMES for t in found for e in t.exceptions)


@pytest.mark.parametrize(
    "text", ["no trace here", "a.py:12: DeprecationWarning: old", "src/a.c:12: error: x", "ERROR: boom", "x: y: z"]
)
def test_what_is_no_traceback_is_none(text: str) -> None:
    assert parse_tracebacks(text.encode()) == ()


NAME = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
FILE = st.text(
    st.characters(codec="utf-8", exclude_characters='"\n\r\0\x1b', categories=("L", "N", "Zs", "P")), min_size=1
)


@given(
    st.lists(st.tuples(FILE, st.integers(1, 10**6), NAME), min_size=1, max_size=8),
    st.sampled_from([KeyError, ValueError, RuntimeError, OSError]),
    st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), max_size=20),
)
def test_law_what_traceback_writes_is_read_back(
    stack: list[tuple[str, int, str]], kind: type[Exception], message: str
) -> None:
    summary = traceback.StackSummary.from_list([(file, line, name, None) for file, line, name in stack])
    last = traceback.format_exception_only(kind, kind(message))
    text = "".join(["Traceback (most recent call last):\n", *summary.format(), *last])
    (found,) = parse_tracebacks(text.encode())
    read = [f for f in found.exceptions[0].frames for _ in range(f.repeated + 1)]
    assert [(f.file, f.line, f.function) for f in read] == stack
    assert found.exceptions[0].type == kind.__name__
