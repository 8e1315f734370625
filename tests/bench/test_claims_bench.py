"""The bench of claims: what it counts, and that its bars hold only where both do."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.claims import summary


def row(right: str, wrong: str | None, verdict: str = "verified") -> dict[str, Any]:
    told = {"verdict": "verified", "grade": right}
    return {"kind": "edit", "right": told, "wrong": None if wrong is None else {"verdict": verdict, "grade": wrong}}


def test_both_bars_count() -> None:
    assert summary([row("A", "C")] * 4 + [row("C", None)])[1]
    assert not summary([row("A", "C")] * 3 + [row("C", None)])[1]
    assert not summary([row("A", "B")] + [row("A", "D")] * 9)[1]
    assert summary([row("A", "B", verdict="refused")] * 3)[1]
    assert not summary([])[1]


def test_the_counts_are_told_by_kind() -> None:
    text, _ = summary([row("A", "B"), row("B", "C"), row("E", None)])
    assert text.splitlines() == [
        "right: 2 of 3 graded A or B",
        "wrong (edit): 1 of 2 graded A or B",
        "wrong (option): 0 of 0 graded A or B",
        "wrong (branch): 0 of 0 graded A or B",
        "wrong (all): 1 of 2 graded A or B",
        "no variant that passes the tests and differs: 1",
    ]
