"""`--limit KEY=VALUE` words -> JailLimits. Pure; every fault of all words is told together.

A key is a field's name or the short one of `NAMES`; a time takes `s`, `m`, `h`, a size `K`, `M`, `G` (powers of 1024).
"""

import math
import re
from collections.abc import Sequence
from dataclasses import fields, replace

from localagent.domain.jailspec import JailLimits
from localagent.errors import UsageFault
from localagent.jail.limits.profile import MINIMUM_ADDRESS_SPACE_BYTES

FIELDS = tuple(field.name for field in fields(JailLimits))
NAMES: dict[str, str] = {  # short name -> field
    "wall": "wall_seconds",
    "cpu": "cpu_seconds",
    "address-space": "address_space_bytes",
    "memory": "resident_bytes",
    "file": "file_bytes",
    "disk": "tmp_bytes",
    "files": "open_files",
    "processes": "processes",
    "output": "output_bytes",
}
CPU_PER_WALL = 4.0  # a wall clock that is asked for allows this much processor time, where none is asked for
_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_BYTES = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_VALUE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z]*)")
_TOO_MUCH = 1 << 50


def with_limits(limits: JailLimits, words: Sequence[str]) -> JailLimits:
    """`limits` with each `KEY=VALUE` of `words` put in its place; UsageFault lists every fault."""
    values: dict[str, float | int] = {}
    faults: list[str] = []
    for word in words:
        key, equals, text = word.partition("=")
        field = field_of(key)
        if not equals or field not in FIELDS:
            faults.append(f"--limit {word!r}: not KEY=VALUE with a known key ({', '.join(NAMES)})")
        elif field in values:
            faults.append(f"--limit {word!r}: {key} is given twice")
        else:
            value = _value(field, text)
            if isinstance(value, str):
                faults.append(f"--limit {word!r}: {value}")
            else:
                values[field] = value
    if faults:
        raise UsageFault(faults)
    if "wall_seconds" in values:
        values.setdefault("cpu_seconds", values["wall_seconds"] * CPU_PER_WALL)
    return replace(limits, **values)  # type: ignore[arg-type]


def field_of(key: str) -> str:
    """The field that a key of `--limit` names, known or not."""
    return NAMES.get(key, key.replace("-", "_"))


def seconds_of(text: str) -> float:
    """A time as `30s`, `5m`, `1h`; UsageFault when it is none."""
    value = _value("wall_seconds", text)
    if isinstance(value, str):
        raise UsageFault(f"{text!r}: {value}")
    return float(value)


def _value(field: str, text: str) -> float | int | str:
    """The value in the field's unit, or what is wrong with the text."""
    match = _VALUE.fullmatch(text.strip())
    seconds, size = field.endswith("_seconds"), field.endswith("_bytes")
    units = _SECONDS if seconds else _BYTES if size else {"": 1}
    unit = "" if match is None else match[2]
    if size:
        unit = unit.removesuffix("iB").removesuffix("b").removesuffix("B").upper() if unit not in ("B", "b") else "B"
    if match is None or unit not in units:
        return "wants " + ("a time as 30s, 5m, 1h" if seconds else "a size as 512M, 1G" if size else "a whole number")
    value = float(match[1]) * units[unit]
    if not math.isfinite(value) or not 0 < value < _TOO_MUCH:
        return "must be above 0 and below 2**50"
    if seconds:
        return value
    if value != int(value):
        return "must be a whole number"
    if field == "address_space_bytes" and value < MINIMUM_ADDRESS_SPACE_BYTES:
        return "below 1G no interpreter starts"
    return int(value)
