"""What a night took of energy: measured where the machine tells, else estimated from processor time, and said which.

Not promised: that what was measured is ours alone. The kernel's counters are of whole processor packages, whoever uses
them, and without memory, disks and losses of the power supply.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from localagent.fs.atomic_files import RecordDamaged, read_bounded, write_private
from localagent.text.strict_json import dump, load

POWERCAP = Path("/sys/class/powercap")
WATTS_A_CORE = 10.0  # of a busy core of a server, with its share of the package; for the estimate alone
_MOST_BYTES = 4096


class How(StrEnum):
    """Where a figure comes from."""

    MEASURED = "measured"
    ESTIMATED = "estimated"


@dataclass(frozen=True, kw_only=True, slots=True)
class EnergyReading:
    """Counters by package: microjoules, and where each begins again at nought."""

    counters: dict[str, tuple[int, int]]


def read_counters(powercap: Path = POWERCAP) -> EnergyReading | None:
    """The packages' counters now; None where there is none, or none that may be read."""
    found = {}
    for package in sorted(powercap.glob("intel-rapl:*")):
        if package.name.count(":") != 1:
            continue  # a part of a package, whose energy is in the package's
        try:
            used, most = (int((package / name).read_text()) for name in ("energy_uj", "max_energy_range_uj"))
        except (OSError, ValueError):
            return None
        found[package.name] = (used, most)
    return EnergyReading(counters=found) if found else None


def joules_between(before: EnergyReading, after: EnergyReading) -> float | None:
    """What was used; None where the counters are not the same ones. A counter that began again did so once."""
    if before.counters.keys() != after.counters.keys():
        return None
    used = 0
    for name, (start, most) in before.counters.items():
        end = after.counters[name][0]
        used += end - start if end >= start else end + most - start
    return used / 1e6


def begin(folder: Path) -> None:
    """A part of a run begins. One that never ended was killed, and what it used is not known."""
    path = folder / "energy.json"
    write_private(path, dump({"joules": measured(folder) if path.exists() else 0.0, "open": True}))


def keep(folder: Path, joules: float | None) -> None:
    """The part that began has ended: add what it used, None where it was not measured; then the whole run is not."""
    before = _noted(folder, is_open=True)
    total = None if joules is None or before is None else before + joules
    write_private(folder / "energy.json", dump({"joules": total, "open": False}))


def measured(folder: Path) -> float | None:
    """What a run used so far; None where that was not measured throughout, or a part of it goes on."""
    return _noted(folder, is_open=False)


def _noted(folder: Path, *, is_open: bool) -> float | None:
    try:
        found = load(read_bounded(folder / "energy.json", _MOST_BYTES))
        joules = found["joules"] if found["open"] is is_open else None
        return float(joules) if isinstance(joules, int | float) and not isinstance(joules, bool) else None
    except (FileNotFoundError, RecordDamaged, ValueError, TypeError, KeyError):
        return None


def energy_of(folder: Path, cpu_seconds: float) -> dict[str, Any]:
    """For the report."""
    joules = measured(folder)
    if joules is not None:
        return {"joules": round(joules, 1), "how": How.MEASURED.value}
    return {"joules": round(cpu_seconds * WATTS_A_CORE, 1), "how": How.ESTIMATED.value}
