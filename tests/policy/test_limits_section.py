"""The section `limits`: every key may be missing, none may exceed what is built in, a layer only tightens."""

from dataclasses import fields
from pathlib import Path

import pytest

from localagent.app import data_root
from localagent.domain.policy import LimitRules
from localagent.errors import UsageFault
from localagent.jail.api import load_profile
from localagent.jail.limits.policy_limits import PolicyLimits
from localagent.policy.flat_keys import facts
from localagent.policy.limits import BUILT_IN
from localagent.policy.load import parse_policy
from localagent.policy.policy_layers import LAYER_SCHEMA, PolicySource, combine
from localagent.verify.worker.worker_spec import WorkerUse

DEFAULT = (Path(__file__).parents[2] / "policies" / "default.toml").read_bytes()
BASE = PolicySource(name="default", data=DEFAULT)


def layered(*texts: str) -> LimitRules:
    sources = [
        PolicySource(name=f"{n}.toml", data=f"schema = {LAYER_SCHEMA!r}\n[limits]\n{text}".encode())
        for n, text in enumerate(texts)
    ]
    return combine(BASE, sources, None, DEFAULT).policy.limits


def test_the_built_in_limits_are_the_profiles_greatest() -> None:
    """A policy of all maxima tightens nothing, and one less of each is less than what some profile gives."""
    profiles = [load_profile(data_root() / "sandbox" / f"{use.value}.toml") for use in WorkerUse]
    assert set(BUILT_IN) == {f.name for f in fields(LimitRules)}
    loosest = PolicyLimits(LimitRules(**BUILT_IN))
    assert all(loosest.tightened(limits) == limits for limits in profiles)
    for key, most in BUILT_IN.items():
        less = PolicyLimits(LimitRules(**{key: most - 1}))
        assert any(less.tightened(limits) != limits for limits in profiles), key


def test_a_policy_without_the_section_has_no_limits_of_its_own() -> None:
    text = DEFAULT.decode().replace("[limits]\n", "")
    assert "\n[limits]" not in text
    assert parse_policy(text.encode(), "p.toml").limits == LimitRules()


@pytest.mark.parametrize("key", BUILT_IN)
def test_more_than_is_built_in_is_a_fault_that_says_how_much_that_is(key: str) -> None:
    most = BUILT_IN[key]
    assert getattr(layered(f"{key} = {most}"), key) == most
    with pytest.raises(UsageFault) as raised:
        layered(f"{key} = {most + 1}")
    [fault] = raised.value.faults
    assert fault.startswith(f"0.toml:3: limits.{key}: must be an integer from 1 to {most}, not {most + 1}")
    assert f"the built-in limit is {most}" in fault


@pytest.mark.parametrize("value", ["0", "-1", "true", "1.5", "'64'", "[]"])
def test_what_is_no_limit_is_a_fault(value: str) -> None:
    with pytest.raises(UsageFault, match=r"limits\.memory_mib: must be an integer from 1 to 1536"):
        layered(f"memory_mib = {value}")


def test_an_unknown_key_is_a_fault() -> None:
    with pytest.raises(UsageFault, match=r"limits\.gpu_mib: unknown key"):
        layered("gpu_mib = 1")


def test_a_later_layer_only_tightens() -> None:
    both = layered("memory_mib = 500\nprocesses = 9", "memory_mib = 900\nprocesses = 7\ncpu_seconds = 60")
    assert both == LimitRules(memory_mib=500, processes=7, cpu_seconds=60)


def test_what_holds_is_a_fact_with_its_layer() -> None:
    layer = PolicySource(name="x.toml", data=f"schema = {LAYER_SCHEMA!r}\n[limits]\nfile_mib = 8\n".encode())
    found = combine(BASE, [layer], None, DEFAULT)
    assert facts(found.policy)["limits.file_mib"] == 8
    assert found.decided["limits.file_mib"] == "x.toml"
    assert facts(found.policy)["limits.disk_mib"] is None
    assert found.decided["limits.disk_mib"] == "default"
