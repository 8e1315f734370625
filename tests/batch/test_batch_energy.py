"""Energy of a night: the kernel's counters where they can be read, else an estimate that says so."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.batch.energy import EnergyReading, begin, energy_of, joules_between, keep, read_counters


def package(root: Path, name: str, used: object, most: int = 10**9) -> None:
    (root / name).mkdir(exist_ok=True)
    (root / name / "energy_uj").write_text(f"{used}\n")
    (root / name / "max_energy_range_uj").write_text(f"{most}\n")


def test_packages_are_added_and_their_parts_are_not(tmp_path: Path) -> None:
    package(tmp_path, "intel-rapl:0", 5)
    package(tmp_path, "intel-rapl:1", 7)
    package(tmp_path, "intel-rapl:0:0", 3)
    assert read_counters(tmp_path) == EnergyReading(counters={"intel-rapl:0": (5, 10**9), "intel-rapl:1": (7, 10**9)})


@pytest.mark.parametrize("used", ["", "x", "0x5"])
def test_what_cannot_be_read_is_not_half_read(used: str, tmp_path: Path) -> None:
    assert read_counters(tmp_path) is None
    package(tmp_path, "intel-rapl:0", 5)
    package(tmp_path, "intel-rapl:1", used)
    assert read_counters(tmp_path) is None


@given(st.integers(0, 10**9), st.integers(0, 10**9 - 1))
def test_a_counter_may_begin_again(start: int, used: int) -> None:
    most = 10**9
    before = EnergyReading(counters={"a": (start % most, most)})
    after = EnergyReading(counters={"a": ((start % most + used) % most, most)})
    assert joules_between(before, after) == pytest.approx(used / 1e6)


def test_a_resumed_run_adds_up_and_one_part_unmeasured_is_an_estimate(tmp_path: Path) -> None:
    assert energy_of(tmp_path, 3.0) == {"joules": 30.0, "how": "estimated"}
    for joules in (5.0, 7.5):
        begin(tmp_path)
        assert energy_of(tmp_path, 3.0)["how"] == "estimated"
        keep(tmp_path, joules)
    assert energy_of(tmp_path, 3.0) == {"joules": 12.5, "how": "measured"}
    begin(tmp_path)
    keep(tmp_path, None)
    begin(tmp_path)
    keep(tmp_path, 1.0)
    assert energy_of(tmp_path, 3.0)["how"] == "estimated"


def test_a_part_that_was_killed_makes_the_rest_an_estimate(tmp_path: Path) -> None:
    begin(tmp_path)
    begin(tmp_path)
    keep(tmp_path, 1.0)
    assert energy_of(tmp_path, 3.0)["how"] == "estimated"


@pytest.mark.parametrize("data", [b"", b"[]", b'{"joules": true, "open": false}', b'{"joules": 1}'])
def test_a_damaged_note_is_no_measure(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "energy.json").write_bytes(data)
    assert energy_of(tmp_path, 1.0)["how"] == "estimated"
