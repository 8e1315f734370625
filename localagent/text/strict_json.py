"""JSON as we write and read it: ASCII only (surrogates survive), finite numbers, no doubled keys.

Does not promise that other parsers accept lone surrogates; they stand for bytes of a path that are not UTF-8.
"""

import json
import math
from collections.abc import Mapping, Set
from typing import Any, NoReturn

_DEPTH = 60
_SHORT = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def plain(value: object, depth: int = 0) -> Any:
    """`value` as JSON types: mappings, sequences and sets opened, numbers made finite, anything else as text."""
    if value is None or type(value) is str or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() < 4096 else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _DEPTH:
        return "..."
    if isinstance(value, Mapping):
        return {str(k): plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v, depth + 1) for v in value]
    if isinstance(value, Set):
        return sorted((plain(v, depth + 1) for v in value), key=repr)
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "surrogateescape")
    return repr(value)


def dump(value: object, *, indent: int | None = None) -> bytes:
    """One JSON value as ASCII bytes ending in a newline."""
    if indent is None:
        text = _SHORT.encode(plain(value))
    else:
        text = json.dumps(plain(value), ensure_ascii=True, allow_nan=False, indent=indent, separators=(",", ": "))
    return text.encode("ascii") + b"\n"


def canonical(value: object) -> bytes:
    """One JSON value as ASCII bytes in the one way that digests rest on: keys sorted, no spaces, a newline last."""
    text = json.dumps(plain(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return text.encode("ascii") + b"\n"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _refuse_doubled(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def load(data: bytes) -> Any:
    """Parse strictly. Raises ValueError for everything that is not one whole JSON value."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_refuse_doubled)
    except RecursionError:
        raise ValueError("nested too deeply") from None
