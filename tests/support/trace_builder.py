"""A small project that fails in many ways, and its tracebacks in the forms in which people paste them."""

import json
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

SHOP = """\
import asyncio


class Cart:
    def __init__(self, items=None):
        self.items = items or {}

    def price(self, name):
        return self.items[name]

    @property
    def owner(self):
        return None


def key_error():
    return sum(
        Cart().price(name)
        for name in ["pear"]
    )


def none_attribute():
    return Cart().owner.name


def none_item():
    return Cart().owner["name"]


def index_error():
    return [1, 2][len("abc")]


def arity():
    return Cart.price("pear")


def unbound():
    if Cart().items:
        total = 1
    return total


def zero():
    return 1 / len(Cart().items)


def text_number():
    return int("twelve")


def caused():
    try:
        return int("twelve")
    except ValueError as error:
        raise RuntimeError("not a price") from error


def handled():
    try:
        return int("twelve")
    except ValueError:
        return Cart().price("plum")


def own_class():
    class OutOfStock(Exception):
        pass

    raise OutOfStock("pear: 0 left\\nplum: 1 left")


def deep(n=200):
    return deep(n - 1) if n else 1 / 0


def endless():
    return endless()


async def load(name):
    await asyncio.sleep(0)
    return Cart().price(name)


async def both():
    return await asyncio.gather(load("pear"), load("plum"))


def in_task():
    return asyncio.run(both())


def grouped():
    found = []
    for call in (key_error, zero):
        try:
            call()
        except Exception as error:
            found.append(error)
    raise ExceptionGroup("two orders", found)


def syntax():
    return compile("total = (1,\\nprint(total)", "/srv/shop/generated.py", "exec")


def no_message():
    raise NotImplementedError


def asserted():
    assert Cart().owner == "ann", "nobody owns it"


def unpack():
    first, second = [1, 2, 3]
    return first


def lambdas():
    return (lambda names: sorted(names, key=lambda n: n.size))(["a"])
"""
CALLS = re.findall(r"^def (\w+)\((?:n=200)?\):$", SHOP, re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a traceback holds: types in the order of the text, and frames (end of file, line, function) of each."""

    types: tuple[str, ...]
    frames: tuple[tuple[tuple[str, int, str], ...], ...]


def shop_module(folder: Path) -> ModuleType:
    """The project's module, from a real file."""
    path = folder / "shop" / "cart.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SHOP)
    module = ModuleType("shop.cart")
    module.__dict__["__file__"] = str(path)
    exec(compile(SHOP, str(path), "exec"), module.__dict__)
    return module


def raised(module: ModuleType, call: str) -> BaseException:
    """The exception of one of `CALLS`, its traceback from the call on."""
    try:
        getattr(module, call)()
    except BaseException as error:  # noqa: BLE001
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        return error
    raise AssertionError(f"{call} raises nothing")


def expected(error: BaseException) -> Expected:
    """By the `traceback` module's own account."""
    types: list[str] = []
    frames: list[tuple[tuple[str, int, str], ...]] = []
    for one in _chain(traceback.TracebackException.from_exception(error)):
        found = [(frame.filename, frame.lineno or 0, frame.name) for frame in one.stack]
        if one.exc_type is not None and issubclass(one.exc_type, SyntaxError):
            found.append((str(one.filename), int(one.lineno or 0), ""))
        types.append(one.exc_type.__name__ if one.exc_type else "")
        frames.append(tuple(_folded(found)))
    return Expected(types=tuple(types), frames=tuple(frames))


def _folded(frames: list[tuple[str, int, str]]) -> Iterator[tuple[str, int, str]]:
    """Without the repetitions that `traceback` does not print: more than three alike."""
    count = 0
    before = None
    for frame in frames:
        count = count + 1 if frame == before else 1
        before = frame
        if count <= 3:
            yield frame


def _chain(one: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    if one.__cause__ is not None:
        yield from _chain(one.__cause__)
    elif one.__context__ is not None and not one.__suppress_context__:
        yield from _chain(one.__context__)
    yield one
    for member in one.exceptions or ():
        yield from _chain(member)


def native(error: BaseException) -> str:
    """As the interpreter prints it."""
    return "".join(traceback.format_exception(error))


def prefixed(prefix: Callable[[int], str]) -> Callable[[str], bytes]:
    def form(text: str) -> bytes:
        return "".join(f"{prefix(n)}{line}\n" for n, line in enumerate(text.splitlines())).encode()

    return form


def interleaved(text: str) -> bytes:
    lines = []
    for n, line in enumerate(text.splitlines()):
        lines.append(f"Nov 29 06:25:{n % 60:02} web1 shop[123]: {line}")
        if n % 3 == 1:
            lines.append(f"Nov 29 06:25:{n % 60:02} web1 cron[77]: (root) CMD (true)")
    return "\n".join(lines).encode()


def _moved(text: str) -> bytes:
    return re.sub(r'File "/\S+?/shop/cart.py"', 'File "/srv/releases/2026/shop/cart.py"', text).encode()


FORMS: dict[str, Callable[[str], bytes]] = {
    "plain": lambda text: text.encode(),
    "windows-newlines": lambda text: text.replace("\n", "\r\n").encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "ansi": lambda text: re.sub(r"(line \d+|File)", "\x1b[1;31m\\1\x1b[0m", text).encode(),
    "other-folder": _moved,
    "logged": lambda text: (
        f"2026-11-29 06:25:52,123 ERROR shop.web: request failed\n{text}2026-11-29 06:25:53,001 INFO shop.web: next\n"
    ).encode(),
    "journal": prefixed(lambda n: f"Nov 29 06:25:{n % 60:02} web1 shop[123]: "),
    "journal-interleaved": interleaved,
    "compose": prefixed(lambda n: "web-1  | "),
    "ci": prefixed(lambda n: f"2026-11-29T06:25:52.{n:07}Z "),
    "container": prefixed(lambda n: f"2026-11-29T06:25:52.{n:09}Z stderr F "),
    "level": prefixed(lambda n: f"[2026-11-29 06:25:52,{n % 1000:03}] ERROR in app: "),
    "quoted": prefixed(lambda n: "> "),
    "indented": prefixed(lambda n: "    "),
    "json": lambda text: (json.dumps({"level": "error", "exc_info": text, "ts": 1.5}) + "\n").encode(),
    "json-in-json": lambda text: json.dumps({"log": json.dumps({"exception": text})}).encode(),
    "repr": lambda text: ("ERROR " + repr(text).replace("\\'", "'") + "\n").encode(),
    "escaped-tail": lambda text: ('{"msg": "' + json.dumps(text)[1:-1] + '", "level": broken').encode(),
    "twice": lambda text: f"first\n{text}\nsecond\n{text}".encode(),
}


def run_pytest(folder: Path, style: str) -> bytes:
    """The project's calls as tests, in one of pytest's styles."""
    tests = "import shop.cart\n" + "".join(f"\ndef test_{call}():\n    shop.cart.{call}()\n" for call in CALLS)
    (folder / "test_calls.py").write_text(tests)
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", f"--tb={style}", "test_calls.py"]
    return subprocess.run(argv, cwd=folder, capture_output=True, check=False).stdout


def run_unittest(folder: Path) -> bytes:
    """The same as a unittest class."""
    tests = "import unittest, shop.cart\n\nclass Calls(unittest.TestCase):\n" + "".join(
        f"    def test_{call}(self):\n        shop.cart.{call}()\n\n" for call in CALLS
    )
    (folder / "unit_calls.py").write_text(tests)
    argv = [sys.executable, "-m", "unittest", "unit_calls"]
    return subprocess.run(argv, cwd=folder, capture_output=True, check=False).stderr
