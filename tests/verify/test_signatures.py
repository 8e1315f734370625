"""A live function with swapped code and defaults behaves as one that was defined anew."""

import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.runner.code_swap import CannotSwap, SwapIndex
from localagent.verify.worker import function_swaps as signatures

NAMES = ("a", "b", "c", "d")
VALUES = ("1", "-2", "None", "'x'", "()", "(1, 'y')", "True", "...")
SHARED = "MARK"  # an object that lives in the module: only kept, never made again


@st.composite
def _signatures(draw: st.DrawFn) -> str:
    names = draw(st.permutations(NAMES))[: draw(st.integers(0, 4))]
    star = draw(st.integers(0, len(names)))
    parts, started = list[str](), False
    for i, name in enumerate(names):
        if i == star:
            parts.append("*")
        needed = started and i < star
        value = draw(st.sampled_from((*VALUES, SHARED) if needed else (*VALUES, SHARED, "")))
        started = started or (bool(value) and i < star)
        parts.append(f"{name}={value}" if value else name)
    return ", ".join(parts)


def _text(signature: str) -> str:
    return f"def f({signature}):\n    return sorted(locals().items(), key=repr)\n"


def _run(text: str, filename: str, mark: object) -> types.FunctionType:
    space: dict[str, Any] = {SHARED: mark}
    exec(compile(text, filename, "exec"), space)
    made = space["f"]
    assert isinstance(made, types.FunctionType)
    return made


@given(old=_signatures(), new=_signatures())
def test_the_swapped_function_has_the_signature_of_a_new_one(old: str, new: str) -> None:
    root = Path("/nowhere")
    mark = object()
    live = _run(_text(old), str(root / "m.py"), mark)
    wanted = signatures.defaults(_text(old), _text(new))
    if wanted is None:
        given_before = dict(p.split("=") for p in old.split(", ") if "=" in p)
        assert any(
            p.endswith("=" + SHARED) and given_before.get(p.partition("=")[0]) != SHARED for p in new.split(", ")
        )
        return
    index = SwapIndex.__new__(SwapIndex)
    index._functions, index.files = {("m.py", 1, "f"): [live]}, {"m.py"}
    index.apply(
        {"path": "m.py", "name": "f", "class": None, "line": 1, "old_line": 1, "text": _text(new), "defaults": wanted}
    )
    fresh = _run(_text(new), str(root / "m.py"), mark)
    assert inspect.signature(live) == inspect.signature(fresh)
    for call in ((), (1,), (1, 2), (1, 2, 3, 4)):
        assert _answer(live, call) == _answer(fresh, call)


def _answer(function: Callable[..., Any], call: tuple[int, ...]) -> str:
    try:
        return repr(function(*call))
    except TypeError as refusal:
        return str(refusal)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(a): pass", "def f(a=[]): pass"),
        ("def f(a): pass", "def f(a=g()): pass"),
        ("def f(a): pass", "def g(a): pass"),
        ("def f(a): pass", "async def f(a): pass"),
        ("def f(a: int): pass", "def f(a: str): pass"),
        ("def f(a): pass", "def f(a) -> int: pass"),
        ("@d\ndef f(a): pass", "@d\ndef f(a=1): pass"),
        ("def f(a): pass", "@d\ndef f(a): pass"),
        ("def f(a): pass", "def f(a): pass\nx = 1"),
        ("def f(a): pass", "def f(a:"),
    ],
)
def test_what_a_def_could_do_besides_is_run_from_scratch(before: str, after: str) -> None:
    assert signatures.defaults(before, after) is None


def test_a_mutable_default_that_stays_is_the_live_one() -> None:
    wanted = signatures.defaults("def f(a, b=[], c=1): pass", "def f(a, c=2, b=[]): pass")
    assert wanted == {"positional": [{"literal": "2"}, {"keep": 0}], "keyword": {}}


def test_defaults_that_do_not_fit_the_live_function_are_refused() -> None:
    live = _run("def f(a): pass\n", "m.py", None)
    index = SwapIndex.__new__(SwapIndex)
    index._functions, index.files = {("m.py", 1, "f"): [live]}, {"m.py"}
    order = {"path": "m.py", "name": "f", "class": None, "line": 1, "old_line": 1, "text": "def f(a=1): pass\n"}
    with pytest.raises(CannotSwap, match="defaults of f"):
        index.apply({**order, "defaults": {"positional": [{"keep": 3}], "keyword": {}}})
    assert live.__defaults__ is None
    assert live.__code__.co_consts == (None,)
