"""`scripts/demo.sh`, which `make demo` runs: every stage of a real repair, as a newcomer sees it first."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_an_example_is_repaired_and_every_stage_is_shown() -> None:
    done = subprocess.run(
        ["sh", str(ROOT / "scripts" / "demo.sh"), "ledger"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout + done.stderr
    assert "first <= entry.day <= last" in shown
    assert "accepted" in shown
    assert "why it is believed" in shown
    assert "nothing to fix" in shown
