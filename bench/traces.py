"""Tracebacks in the forms in which people paste them: read, and mapped to a repository that has moved on since.

`python bench/traces.py`: every call of a small project that fails in another way (tests/support/trace_builder.py) is
really made; what the interpreter prints is put into every form of logs and services there, into the forms of other
tools (IPython, Rich, Loguru, Sentry), cut off, and pytest and unittest print it as well. The trace comes from another
folder, and in the repository lines stand elsewhere. Counted: frames of the project that are mapped to their line as it
is now, frames outside that are mapped to anything (invented), texts that make the reader fail. Bars: 95 %, 0, 0.
"""

import json
import random
import re
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.trace_builder import CALLS, FORMS, SHOP, native, raised, run_pytest, run_unittest, shop_module

from localagent.debug.frame_mapping import FrameMapper
from localagent.debug.tracebacks import parse_tracebacks
from localagent.domain.paths import RepoPath
from localagent.domain.traceback import FrameMatch

HERE = RepoPath("shop/cart.py")
TODAY = SHOP.replace("import asyncio\n", "import asyncio\n\n# prices are in cents\nVERSION = 3\n", 1)
OTHERS = {
    "shop/__init__.py": "", "shop/basket.py": "def total(items):\n    return sum(items)\n",
    "tests/test_cart.py": "import shop.cart\n\n\ndef test_zero():\n    shop.cart.zero()\n",
}  # fmt: skip


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return [frame for one in _chain(error) for frame in traceback.extract_tb(one.__traceback__)]


def _chain(error: BaseException):
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return [*(_chain(before) if before is not None else ()), error]


def ipython(error: BaseException) -> bytes:
    """The last exception as IPython 8 draws it."""
    lines = ["-" * 75, f"{type(error).__name__:<42}Traceback (most recent call last)"]
    for frame in traceback.extract_tb(error.__traceback__):
        lines += [f"File {frame.filename}:{frame.lineno}, in {frame.name}(*args)", "      1 # before",
                  f"----> {frame.lineno} {frame.line}", ""]  # fmt: skip
    return "\n".join([*lines, *traceback.format_exception_only(error)]).encode()


def loguru(error: BaseException) -> bytes:
    """The last exception as Loguru writes it with `diagnose`."""
    lines = [
        "2026-11-29 06:25:52.123 | ERROR    | shop.web:serve:12 - failed",
        "Traceback (most recent call last):",
        "",
    ]
    for n, frame in enumerate(traceback.extract_tb(error.__traceback__)):
        mark = "> " if n == 0 else "  "
        lines += [f'{mark}File "{frame.filename}", line {frame.lineno}, in {frame.name}', f"    {frame.line}",
                  "    │    └ <function f at 0x7f>", "    └ {'pear': 1}", ""]  # fmt: skip
    return "\n".join([*lines, *traceback.format_exception_only(error)]).encode()


def rich(error: BaseException) -> bytes:
    """The last exception as Rich draws it."""
    lines = ["╭" + "─" * 30 + " Traceback (most recent call last) " + "─" * 30 + "╮"]
    for frame in traceback.extract_tb(error.__traceback__):
        lines += [f"│ {frame.filename}:{frame.lineno} in {frame.name}".ljust(96) + "│", "│".ljust(96) + "│",
                  f"│ ❱ {frame.lineno} {frame.line}".ljust(96) + "│"]  # fmt: skip
    lines.append("╰" + "─" * 95 + "╯")
    return "\n".join([*lines, *traceback.format_exception_only(error)]).encode()


def sentry(error: BaseException) -> bytes:
    """An event of Sentry's, all exceptions of the chain."""
    values = [
        {
            "type": type(one).__name__, "value": str(one),
            "stacktrace": {"frames": [
                {"abs_path": f.filename, "lineno": f.lineno, "function": f.name, "context_line": f.line}
                for f in traceback.extract_tb(one.__traceback__)
            ]},
        }
        for one in _chain(error)
    ]  # fmt: skip
    return json.dumps({"event_id": "1f", "exception": {"values": values}}).encode()


def html(error: BaseException) -> bytes:
    """In a page."""
    escaped = native(error).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("'", "&#x27;")
    return f"<pre>{escaped}</pre>".encode()


TOOLS = {"ipython": ipython, "loguru": loguru, "rich": rich, "sentry": sentry, "html": html}


def cut(text: str, seed: int) -> bytes:
    """Without its begin, or without its end."""
    lines = text.splitlines(keepends=True)
    at = random.Random(seed).randrange(1, max(2, len(lines) - 1))
    return "".join(lines[at:] if seed % 2 else lines[:at]).encode()


def texts(folder: Path):
    """(form, text, whether all frames must be there)."""
    module = shop_module(folder)
    for call in CALLS:
        error = raised(module, call)
        for form, made in FORMS.items():
            yield form, made(native(error)), 1 + (form == "twice"), error
        for form, drawn in TOOLS.items():
            if not isinstance(error, BaseExceptionGroup | SyntaxError | RecursionError) and call not in ("deep",):
                yield form, drawn(error), 1, error
        for seed in (2, 3):
            yield "cut off", cut(native(error), seed), 0, error
    for style in ("long", "short", "native", "line"):
        yield f"pytest {style}", run_pytest(folder, style), 0, None
    yield "unittest", run_unittest(folder), 0, None


def main() -> int:
    sources = {RepoPath(p): t.encode() for p, t in {**OTHERS, str(HERE): TODAY}.items()}
    mapper = FrameMapper(sources, "/work/shop")
    shift = TODAY[: TODAY.index("class Cart")].count("\n") - SHOP[: SHOP.index("class Cart")].count("\n")
    traces, wanted, right, wrong, invented, failed = 0, 0, 0, 0, 0, 0
    missed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for form, text, copies, error in texts(Path(scratch)):
            traces += 1
            try:
                found = parse_tracebacks(text)
            except Exception as fault:  # noqa: BLE001 - what is counted
                failed += 1
                print(f"{form}: {fault!r}")
                continue
            frames = [f for t in found for e in t.exceptions for f in e.frames]
            own = [f for f in frames if f.file.replace("\\", "/").endswith("shop/cart.py")]
            for one in mapper.map(frames):
                if one.frame in own:
                    good = one.path == HERE and one.line == one.frame.line + shift
                    good = good or (one.match is FrameMatch.FUNCTION and one.path == HERE and not one.frame.source)
                    right, wrong = right + good, wrong + (not good)
                    missed[form] += not good
                else:
                    invented += one.match is not FrameMatch.OUTSIDE
            if copies and error is not None:
                known = _known(form, error) * copies
                wanted += known
                lost = max(0, known - len(own))
                missed[f"{form} (not read)"] += lost
                wrong += lost
    print(
        f"{traces} texts; frames of the project {right + wrong}, at their line {right} ({right / (right + wrong):.1%})"
    )
    print(f"invented {invented}; failed {failed}")
    print("missed:", dict(+missed))
    return 0 if right >= 0.95 * (right + wrong) and not invented and not failed else 1


def _known(form: str, error: BaseException) -> int:
    """How many frames of the project a form of an exception shows."""
    if form in TOOLS and form not in ("sentry", "html"):
        return sum(f.filename.endswith("cart.py") for f in traceback.extract_tb(error.__traceback__))
    shown = re.findall(r'File "\S+?/shop/cart\.py"', native(error))
    return len(shown)


if __name__ == "__main__":
    sys.exit(main())
