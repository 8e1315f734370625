"""The shapes of bodies and faults as OpenAPI tells them. The parsers decide; a test holds both against each other."""

from typing import Any

from localagent.domain.guard import MOST_SECONDS
from localagent.domain.instruction import MOST_CHARACTERS
from localagent.domain.task import Choosing

_TEXTS = {"type": "array", "maxItems": 256, "items": {"type": "string", "maxLength": 4096}}
_DIGEST = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
SCHEMAS: dict[str, Any] = {
    "Digests": {
        "type": "object",
        "additionalProperties": False,
        "required": ["digests"],
        "properties": {"digests": {"type": "array", "maxItems": 10000, "items": _DIGEST}},
    },
    "Order": {
        "type": "object",
        "additionalProperties": False,
        "required": ["snapshot"],
        "properties": {
            "snapshot": _DIGEST,
            "tests": _TEXTS,
            "checks": _TEXTS,
            "text": {"type": "string", "maxLength": 65536},
            "python": {"type": "string", "maxLength": 64},
            "seed": {"type": "integer"},
            "max_candidates": {"type": "integer", "minimum": 1, "maximum": 1000000},
            "max_seconds": {"type": "number", "exclusiveMinimum": 0},
            "jobs": {"type": "integer", "minimum": 0, "maximum": 64},
            "use_model": {"type": "boolean"},
            "model": {"type": "string", "maxLength": 64},
            "priority": {"type": "integer", "minimum": 0, "maximum": 9},
            "choosing": {"enum": [*Choosing]},
            "guard": _TEXTS,
            "guard_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_SECONDS},
            "min_confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "instruction": {"type": "string", "maxLength": MOST_CHARACTERS},
            "max_steps": {"type": "integer", "minimum": 1, "maximum": 10000},
            "max_tokens": {"type": "integer", "minimum": 1, "maximum": 1000000000},
        },
    },
    "Word": {
        "type": "object",
        "additionalProperties": False,
        "required": ["patch", "change", "reason"],
        "properties": {"patch": _DIGEST, "change": _DIGEST, "reason": {"type": "string", "maxLength": 2000}},
    },
    "Fault": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["kind", "faults", "remedy"],
                "properties": {
                    "kind": {"type": "string"},
                    "faults": {"type": "array", "items": {"type": "string"}},
                    "remedy": {"type": "string"},
                },
            }
        },
    },
}
