"""The operators' prior (`models/prior.json`): numbers by operator name, parsed strictly."""

import json
from pathlib import Path

from localagent.errors import UsageFault


def load_prior(path: Path) -> dict[str, float]:
    """Log-scale weights by operator name. A missing file means none; a wrong one is a UsageFault."""
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_text(), object_pairs_hook=_once)
    except ValueError as error:
        raise UsageFault(f"{path}: not JSON as it should be: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("operators"), dict) or data.get("schema") != 1:
        raise UsageFault(f"{path}: expected schema 1 with an object `operators`")
    data = data["operators"]
    faults = [f"{path}: {k}: not a number" for k, v in data.items() if type(v) not in (int, float)]
    if faults:
        raise UsageFault(faults)
    return {str(k): float(v) for k, v in data.items()}


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose keys stand once: of two weights of one operator nobody knows which was meant."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [key for key, _ in pairs]
        raise ValueError("written twice: " + ", ".join(sorted({k for k in names if names.count(k) > 1})))
    return made
