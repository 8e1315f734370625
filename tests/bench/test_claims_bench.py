"""The bench of claims: what it counts, and that its bars hold only where both do."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.claims import summary


def row(right: str, *wrong: str, verdict: str = "verified") -> dict[str, Any]:
    told = [{"verdict": verdict, "grade": grade, "kind": "edit"} for grade in wrong]
    return {"right": {"verdict": "verified", "grade": right}, "wrong": told, "noticed": 2, "untold": 1}


def test_both_bars_count() -> None:
    assert summary([row("A", "C")] * 4 + [row("C")])[1]
    assert not summary([row("A", "C")] * 3 + [row("C")])[1]
    assert not summary([row("A", "B")] + [row("A", "D", "E")] * 9)[1]
    assert summary([row("A", "B", verdict="refused")] * 3)[1]
    assert not summary([])[1]


def test_the_counts_are_told_by_kind() -> None:
    text, _ = summary([row("A", "B"), row("B", "C"), row("E")])
    assert text.splitlines() == [
        "right: 2 of 3 graded A or B",
        "wrong (edit): 1 of 2 graded A or B",
        "wrong (option): 0 of 0 graded A or B",
        "wrong (branch): 0 of 0 graded A or B",
        "wrong (all): 1 of 2 graded A or B",
        "other variants: 6 noticed by the fix's tests, 3 not shown to differ",
    ]
