"""Our pytest is lent to an environment that has none and whose Python it fits."""

from pathlib import Path

import pytest

from localagent.verify.worker.lent_pytest import LENT_INSIDE, lent_pytest


def _python(prefix: Path, version: str, *held: str) -> str:
    site = prefix / "lib" / f"python{version}" / "site-packages"
    for name in held:
        (site / f"{name}.dist-info").mkdir(parents=True)
    site.mkdir(parents=True, exist_ok=True)
    (prefix / "bin").mkdir()
    return str(prefix / "bin" / "python")


def test_everything_that_pytest_needs_is_shown(tmp_path: Path) -> None:
    shown = {bind.target.removeprefix(f"{LENT_INSIDE}/") for bind in lent_pytest(_python(tmp_path, "3.12"))}
    assert {"pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"} <= shown
    assert any(name.startswith("pluggy-") for name in shown)  # it asks for its own version


@pytest.mark.parametrize(("version", "held"), [("3.12", ("pytest-8.0.0",)), ("3.6", ())])
def test_nothing_is_lent_to_who_has_one_or_cannot_run_it(tmp_path: Path, version: str, held: tuple[str, ...]) -> None:
    assert lent_pytest(_python(tmp_path, version, *held)) == ()
