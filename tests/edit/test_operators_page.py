import json
from pathlib import Path

from localagent.edit.operator_registry import operators
from localagent.edit.operators_page import markdown

ROOT = Path(__file__).resolve().parents[2]


def test_the_documented_catalogue_is_the_registry() -> None:
    assert (ROOT / "docs/edit-space.md").read_text() == markdown()


def test_the_prior_file_names_every_operator_and_nothing_else() -> None:
    stored = json.loads((ROOT / "models/prior.json").read_text())
    assert stored["schema"] == 1
    assert set(stored["operators"]) == set(operators())


def test_priors_stay_in_their_bands() -> None:
    for op in operators().values():
        low, high = (
            (0.5, 3.0)
            if op.family.startswith("reported") or op.family in ("arity", "structure", "moved_imports", "decorators")
            else (-3.75, 0.5)
        )
        assert low <= op.prior <= high, op.name
