"""The edit space enumerates in one order in every process: nothing of it hangs on how texts are hashed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
from pathlib import Path
from localagent.app.fix.prior import load_prior
from localagent.domain.outcome import Failure, Frame
from localagent.domain.paths import RepoPath
from localagent.edit.space import open_edit_space

SOURCE = b'''
class Rates:
    def __init__(self, base, rates):
        self._rates = {base: 1, **{name: float(rate) for name, rate in rates.items()}}

    def all(self, amounts, target):
        return sum(self.one(cents, currency, target) for cents, currency in amounts)

    def sort(self, rows):
        return sorted(rows, key=lambda left, right, other: left)
'''
REPORTS = [
    ("NameError", "name 'texts' is not defined"),
    ("UnboundLocalError", "cannot access local variable 'names' where it is not associated with a value"),
    ("AttributeError", "'Rates' object has no attribute 'rate'"),
    ("AttributeError", "'list' object has no attribute 'ad'"),
    ("AttributeError", "module 'math' has no attribute 'root'"),
    ("TypeError", "Rates.one() missing 1 required positional argument: 'other'"),
    ("TypeError", "Rates.one() takes 2 positional arguments but 4 were given"),
    ("TypeError", "Rates.one() got an unexpected keyword argument 'totals'"),
    ("TypeError", "unsupported operand type(s) for +: 'int' and 'str'"),
    ("TypeError", "'<' not supported between instances of 'list' and 'int'"),
    ("TypeError", "'int' object is not iterable"),
    ("TypeError", "unhashable type: 'list'"),
    ("ImportError", "cannot import name 'Rate' from 'm'"),
    ("ModuleNotFoundError", "No module named 'maths'"),
    ("KeyError", "'base'"),
    ("IndexError", "list index out of range"),
    ("ZeroDivisionError", "division by zero"),
    ("ValueError", "not enough values to unpack (expected 2, got 1)"),
    ("RecursionError", "maximum recursion depth exceeded"),
    ("StopIteration", ""),
]
REPORTED = b'''
import math
from maths import *


class Rates:
    names = []

    def one(self, cents, currency):
        rows = [text for text in self.names if text]
        if texts and self.rate < 3:
            return math.root(cents / len(rows)) + rows[currency]
        rows.ad(texts)
        return self.one(cents, currency, totals=rows)


def shown(left, right):
    names = names + [left, right]
    return {name: (len(name), texts) for name in names}
'''
BROKEN = b"def f(a, b):\\n    total = (a + b\\n    if total > 3:\\n        return a\\n"
path = RepoPath("m.py")
space = open_edit_space(load_prior(Path("models/prior.json")))


def told(source, failures, lines=None):
    for e in space.edits(path, {path: source}, lines=lines, failures=failures):
        print(e.operator, e.line, e.note, e.splices, e.prior)


told(SOURCE, ())
for exception, message in REPORTS:
    frames = (Frame(path=path, line=11, function="one"),)
    told(REPORTED, (Failure(exception=exception, message=message, frames=frames),), frozenset({11}))
told(BROKEN, ())
"""


@pytest.mark.long
def test_the_order_does_not_hang_on_hashing() -> None:
    def listed(seed: str) -> str:
        environ = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environ, capture_output=True, text=True, check=True
        ).stdout

    first = listed("1")
    assert len(first.splitlines()) > 5_000
    assert "undefined-name" in first
    assert "tokens." in first
    assert listed("2") == first
