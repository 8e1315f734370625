"""The bundled model, where it is installed; tests marked `model` need it and say so."""

from pathlib import Path

import pytest

from localagent.app import Settings
from localagent.errors import LocalagentError
from localagent.jail.api import NamespaceJail, open_jail
from localagent.llm.model.registry import ModelFile, Registry


@pytest.fixture(scope="session")
def bundled_model() -> ModelFile:
    settings = Settings.from_environ()
    shipped = Path(__file__).resolve().parents[2] / "models"
    try:
        return Registry(shipped, settings.data_dir).verify("")
    except LocalagentError as no:
        pytest.fail(f"this test needs the bundled model: {no}; {no.remedy}")


@pytest.fixture(scope="session")
def jail() -> NamespaceJail:
    return open_jail()
