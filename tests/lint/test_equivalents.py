"""The table of other tools' rules: both sides exist."""

import json
import subprocess
import sys
import warnings

from mypy.errorcodes import error_codes

from localagent.lint.equivalents import EQUIVALENTS, PERSON, rules_for
from localagent.lint.rules import BY_ID


def test_our_side_exists() -> None:
    ours = {name for table in EQUIVALENTS.values() for names in table.values() for name in names}
    assert ours <= set(BY_ID)
    assert set(PERSON) <= set(BY_ID)


def test_their_side_exists() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "ruff", "rule", "--all", "--output-format", "json"], capture_output=True, check=True
    )
    ruff = {rule["code"] for rule in json.loads(told.stdout)}
    assert set(EQUIVALENTS["ruff"]) <= ruff
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own way to load plugins
        from bandit.blacklists.calls import gen_blacklist
        from bandit.core.extension_loader import MANAGER
    bandit = {*MANAGER.plugins_by_id, *(item["id"] for item in gen_blacklist()["Call"])}
    assert set(EQUIVALENTS["bandit"]) - {"B303"} <= bandit  # B303 is B324 of an older bandit
    assert set(EQUIVALENTS["mypy"]) <= set(error_codes)


def test_tools_by_name() -> None:
    assert rules_for("Ruff", "E711") == ("none-comparison",)
    assert rules_for("localagent hook", "not-in") == ("not-in",)
    assert rules_for("Bandit", "E711") == ()
    assert rules_for("CodeQL", "py/x") is None
