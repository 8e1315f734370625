"""Profiles: the shipped ones load; whatever is wrong is told, all of it."""

from dataclasses import asdict
from pathlib import Path

import pytest

from localagent.app import data_root
from localagent.domain.jailspec import JailLimits
from localagent.errors import UsageFault
from localagent.jail.api import load_profile
from localagent.jail.limits import profile

SHIPPED = sorted((data_root() / "sandbox").glob("*.toml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_profile_loads_and_each_line_is_described(path: Path) -> None:
    limits = load_profile(path)
    assert limits.address_space_bytes >= 4 << 30
    for line in path.read_text().splitlines():
        assert "=" not in line or "#" in line


def test_the_profiles_are_there() -> None:
    assert [path.stem for path in SHIPPED] == ["baseline", "full", "quick", "run"]


def text(**changes: object) -> str:
    table = {**asdict(JailLimits()), **changes}
    rows = [f"{key} = {value!r}" for key, value in table.items() if value is not None]
    return "\n".join(["[limits]", *rows, "[layers]", 'minimum_level = "L2"'])


def test_round(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text(wall_seconds=7))
    loaded = profile.load(path)
    assert loaded.limits == JailLimits(wall_seconds=7.0)
    assert loaded.minimum_level == "L2"


def test_all_faults_are_told(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    body = text(
        wall_seconds=-1, open_files=None, processes="'many'", address_space_bytes=4096, cpu_seconds="inf", extra=1
    )
    path.write_text("other = 1\n" + body.replace("L2", "L9"))
    with pytest.raises(UsageFault) as caught:
        profile.load(path)
    told = "\n".join(caught.value.faults)
    for part in (
        "'other'",
        "wall_seconds",
        "'open_files' is missing",
        "processes",
        "address_space",
        "cpu",
        "'extra'",
        "L1",
    ):
        assert part in told
    assert len(caught.value.faults) == 8


@pytest.mark.parametrize("body", ["", "[limits", "\0", "limits = 3\nlayers = 4"])
def test_malformed_is_refused(tmp_path: Path, body: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(body)
    with pytest.raises(UsageFault):
        profile.load(path)


def test_a_missing_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageFault):
        profile.load(tmp_path / "none.toml")
