"""sandbox/*.toml -> Profile. Strict: an unknown key, a wrong type or a bad range refuses, all faults together."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from localagent.domain.jailspec import JailLimits
from localagent.errors import UsageFault
from localagent.jail.backends.level import LEVELS

MINIMUM_ADDRESS_SPACE_BYTES = 1 << 30
_FLOATS = ("wall_seconds", "cpu_seconds")


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """Limits of a jail, and the lowest level that is good enough."""

    limits: JailLimits
    minimum_level: str


def load(path: Path) -> Profile:
    """Parse a profile; UsageFault lists every fault."""
    try:
        text = path.read_bytes()
        table = tomllib.loads(text.decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise UsageFault(f"{path.name}: {fault}") from fault
    faults: list[str] = [
        f"{path.name}: unknown table or key {key!r}" for key in table if key not in ("limits", "layers")
    ]
    limits = _limits(path.name, table.get("limits"), faults)
    level = _level(path.name, table.get("layers"), faults)
    if faults:
        raise UsageFault(faults)
    return Profile(limits=JailLimits(**limits), minimum_level=level)


def _limits(name: str, table: object, faults: list[str]) -> dict[str, Any]:
    if not isinstance(table, dict):
        faults.append(f"{name}: [limits] is missing")
        return {}
    known = {field.name for field in fields(JailLimits)}
    faults += [f"{name}: limits: unknown key {key!r}" for key in table if key not in known]
    faults += [f"{name}: limits: {key!r} is missing" for key in sorted(known - set(table))]
    for key in sorted(known & set(table)):
        value = table[key]
        wanted = (int, float) if key in _FLOATS else (int,)
        if isinstance(value, bool) or not isinstance(value, wanted) or not 0 < value < 1 << 50:
            faults.append(f"{name}: limits: {key} must be a positive {'number' if key in _FLOATS else 'integer'}")
        elif key == "address_space_bytes" and value < MINIMUM_ADDRESS_SPACE_BYTES:
            faults.append(f"{name}: limits: {key} below {MINIMUM_ADDRESS_SPACE_BYTES}: no interpreter starts there")
    return (
        {key: float(table[key]) if key in _FLOATS else table[key] for key in known & set(table)} if not faults else {}
    )


def _level(name: str, table: object, faults: list[str]) -> str:
    if not isinstance(table, dict):
        faults.append(f"{name}: [layers] is missing")
        return ""
    faults += [f"{name}: layers: unknown key {key!r}" for key in table if key != "minimum_level"]
    names = [level for level, _, _ in LEVELS if level != "L0"]
    value = table.get("minimum_level")
    if value not in names:
        faults.append(f"{name}: layers: minimum_level must be one of {', '.join(names)}")
        return ""
    return str(value)
