"""Policies, sandbox profiles and model manifests of the checkout load with the strict loaders that read them."""

from pathlib import Path

import pytest

from localagent.jail.limits import profile
from localagent.llm.model.manifest import load_manifest
from localagent.policy.load import load_policy

ROOT = Path(__file__).resolve().parents[2]
POLICIES = sorted((ROOT / "policies").glob("*.toml"))
PROFILES = sorted((ROOT / "sandbox").glob("*.toml"))
MANIFESTS = sorted((ROOT / "models").glob("*.toml"))


@pytest.mark.parametrize("path", POLICIES, ids=lambda p: p.name)
def test_policy(path: Path) -> None:
    assert load_policy(path)


@pytest.mark.parametrize("path", PROFILES, ids=lambda p: p.name)
def test_profile(path: Path) -> None:
    assert profile.load(path)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda p: p.name)
def test_manifest(path: Path) -> None:
    assert load_manifest(path)


def test_there_is_one_of_each() -> None:
    assert "default.toml" in {p.name for p in POLICIES}
    assert PROFILES
    assert sum(load_manifest(p).default for p in MANIFESTS) == 1
