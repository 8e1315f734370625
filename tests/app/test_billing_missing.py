"""What runs here must be known by name and version: where it is not, nothing is said about it."""

from importlib.metadata import Distribution, PackageNotFoundError, distribution

import pytest

from localagent.app.inventory import sbom
from localagent.errors import CannotEnforce


@pytest.mark.parametrize("missing", ["localagent", "libcst"])
def test_code_that_no_package_brought_is_not_called_harmless(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = distribution

    def found(name: str) -> Distribution:
        if name == missing:
            raise PackageNotFoundError(name)
        return there(name)

    monkeypatch.setattr(sbom, "distribution", found)
    with pytest.raises(CannotEnforce, match=f"not installed as packages: .*{missing}"):
        list(sbom.installed())


def test_pip_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    there = distribution

    def found(name: str) -> Distribution:
        if name == "pip":
            raise PackageNotFoundError(name)
        return there(name)

    monkeypatch.setattr(sbom, "distribution", found)
    assert "libcst" in {part.name for part in sbom.installed()}
