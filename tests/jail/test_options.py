"""`--limit` words: units, names, and every fault at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.jailspec import JailLimits
from localagent.errors import UsageFault
from localagent.jail.limits.options import FIELDS, NAMES, with_limits


@pytest.mark.parametrize(
    ("word", "field", "value"),
    [
        ("wall=30s", "wall_seconds", 30.0),
        ("wall=1.5m", "wall_seconds", 90.0),
        ("cpu=2h", "cpu_seconds", 7200.0),
        ("memory=512M", "resident_bytes", 512 << 20),
        ("resident_bytes=1GiB", "resident_bytes", 1 << 30),
        ("disk=1.5G", "tmp_bytes", 3 << 29),
        ("output=100k", "output_bytes", 100 << 10),
        ("file=7B", "file_bytes", 7),
        ("address-space=2G", "address_space_bytes", 2 << 30),
        ("open-files=99", "open_files", 99),
        ("processes=64", "processes", 64),
    ],
)
def test_units(word: str, field: str, value: float) -> None:
    assert getattr(with_limits(JailLimits(), [word]), field) == value


def test_every_field_has_a_short_name() -> None:
    assert sorted(NAMES.values()) == sorted(FIELDS)


def test_processor_time_follows_the_wall_clock_unless_it_is_given() -> None:
    assert with_limits(JailLimits(), ["wall=10s"]).cpu_seconds == 40
    assert with_limits(JailLimits(), ["wall=10s", "cpu=3s"]).cpu_seconds == 3


def test_all_faults_together() -> None:
    words = [
        "wall=x",
        "speed=3",
        "memory=5parsecs",
        "processes=1.5",
        "memory",
        "wall=0",
        "cpu=1s",
        "cpu=2s",
        "address-space=1M",
    ]
    with pytest.raises(UsageFault) as caught:
        with_limits(JailLimits(), words)
    assert [fault.split("'")[1] for fault in caught.value.faults] == [w for w in words if w != "cpu=1s"]


@pytest.mark.long
@given(st.text(max_size=20))
def test_any_word_is_a_limit_or_a_fault(word: str) -> None:
    try:
        limits = with_limits(JailLimits(), [word])
    except UsageFault:
        return
    assert all(getattr(limits, field) > 0 for field in FIELDS)
