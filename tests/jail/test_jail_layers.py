"""Layers one by one: tried for real, told with what mends them, and a level that is not reached runs nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from localagent.errors import CannotEnforce
from localagent.jail.api import NamespaceJail, open_jail
from localagent.jail.backends.level import LEVELS, Layer, level_of, missing
from localagent.jail.launcher import landlock_ruleset
from localagent.jail.probe import layers, selection


def test_every_layer_is_tried_and_agrees_with_the_probe(jail: NamespaceJail) -> None:
    rows = list(layers.rows(jail._backend))
    assert [row.layer for row in rows] == [
        Layer.NAMESPACES,
        Layer.PROCESS_LIMIT,
        Layer.SECCOMP,
        Layer.LANDLOCK,
        Layer.CGROUP_MEMORY,
    ]
    assert {row.layer for row in rows if row.held} == jail._backend.layers
    for row in rows:
        assert row.tried
        assert row.found
        assert bool(row.remedy) is not row.held


def test_layers_that_are_off_are_found_missing(jail: NamespaceJail) -> None:
    bare = replace(jail._backend, cgroups=None, seccomp=False, landlock=None)
    found = {row.layer: row for row in layers.rows(bare)}
    assert {layer for layer, row in found.items() if row.held} == {Layer.NAMESPACES, Layer.PROCESS_LIMIT}
    assert "CONFIG_SECURITY_LANDLOCK" in found[Layer.LANDLOCK].remedy
    assert "lsm=" in found[Layer.LANDLOCK].remedy
    assert "Delegate=yes" in found[Layer.CGROUP_MEMORY].remedy
    assert "libseccomp" in found[Layer.SECCOMP].remedy


def test_a_wall_that_does_not_stand_is_found_missing(jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch) -> None:
    if jail._backend.landlock is None:
        pytest.skip("no Landlock here")
    monkeypatch.setattr(landlock_ruleset, "rules_of", lambda *_: (("/", "run"), ("/dev", "device")))
    row = layers._landlock(jail._backend)
    assert not row.held
    assert row.remedy


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor"),
        ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces"),
    ],
)
def test_the_switch_of_the_host_that_forbids_namespaces_is_named(
    tmp_path: Path, name: str, value: str, part: str
) -> None:
    assert "container" in layers.namespaces_remedy(tmp_path)
    file = tmp_path / "proc/sys" / name
    file.parent.mkdir(parents=True)
    file.write_text(f"{value}\n")
    assert part in layers.namespaces_remedy(tmp_path)
    file.write_text("7\n")
    assert part not in layers.namespaces_remedy(tmp_path)


@pytest.mark.parametrize("least", ["L2", "L3", "L4"])
def test_a_level_that_is_not_reached_names_what_is_missing_and_mends_it(
    monkeypatch: pytest.MonkeyPatch, jail: NamespaceJail, least: str
) -> None:
    held = frozenset({Layer.NAMESPACES, Layer.LANDLOCK})
    weak = replace(jail._backend, layers=held, level=level_of(held))
    monkeypatch.setattr(selection, "find_backend", lambda *_, **__: weak)
    assert open_jail(least="L1").level == "L1"
    with pytest.raises(CannotEnforce, match=f"reaches level L1, and {least} is asked for") as caught:
        open_jail(least=least)
    for layer in missing(least, held):
        assert layer in str(caught.value)
        assert f"{layer}: " in caught.value.remedy
    assert Layer.LANDLOCK not in str(caught.value)
    assert caught.value.exit_code == 4


def test_what_is_missing_for_a_level_is_what_lies_between() -> None:
    for name, needed, _ in LEVELS:
        assert missing(name, needed) == frozenset()
        assert missing(name, set()) == needed
    assert LEVELS[-1][1] == frozenset(Layer)
