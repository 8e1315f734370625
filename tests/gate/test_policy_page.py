from pathlib import Path

from test_rules import DEFAULT, RULES

from localagent.gate.repair_gates import COULD_NOT_ANSWER

PAGE = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()


def test_the_page_names_every_rule() -> None:
    ids = [r.id for r in RULES] + [r.id for r in DEFAULT.dangers] + [COULD_NOT_ANSWER]
    assert [i for i in ids if f"`{i}`" not in PAGE] == []


def test_the_page_names_every_key_of_the_policy() -> None:
    text = (Path(__file__).parents[2] / "policies" / "default.toml").read_text()
    keys = {line.split(" =")[0] for line in text.splitlines() if " = " in line and line[0].isalpha()}
    assert [k for k in keys if f"{k}`" not in PAGE] == []
