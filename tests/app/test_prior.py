"""The prior's file: parsed strictly, all faults of its numbers at once."""

from pathlib import Path

import pytest

from localagent.app.fix.prior import load_prior
from localagent.errors import UsageFault


def test_weights_by_operator(tmp_path: Path) -> None:
    path = tmp_path / "prior.json"
    assert load_prior(path) == {}
    path.write_text('{"schema": 1, "operators": {"wrap": -1, "guard": 0.5}}')
    assert load_prior(path) == {"wrap": -1.0, "guard": 0.5}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[]", "expected schema 1"),
        ('{"schema": 2, "operators": {}}', "expected schema 1"),
        ('{"schema": 1, "operators": {"wrap": "high", "guard": true}}', "wrap: not a number.*guard: not a number"),
        ('{"schema": 1, "operators": {"wrap": 1, "guard": 2, "wrap": 3}}', "written twice: wrap"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "prior.json"
    path.write_text(text)
    with pytest.raises(UsageFault, match=f"(?s){told}"):
        load_prior(path)
