"""The edit space enumerates in one order in every process: nothing of it hangs on how texts are hashed."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
from pathlib import Path
from localagent.app.prior import load_prior
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
path = RepoPath("m.py")
space = open_edit_space(load_prior(Path("models/prior.json")))
for e in space.edits(path, {path: SOURCE}, lines=None, failures=()):
    print(e.operator, e.line, e.note, e.splices, e.prior)
"""


def test_the_order_does_not_hang_on_hashing() -> None:
    def listed(seed: str) -> str:
        environ = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environ, capture_output=True, text=True, check=True
        ).stdout

    first = listed("1")
    assert len(first.splitlines()) > 300
    assert {listed(seed) for seed in ("2", "3")} == {first}
