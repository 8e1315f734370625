"""JSON Schema in tests. Its library is loaded when something is checked: that costs more than most tests do."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def checker(schema: Mapping[str, Any]) -> "Draft202012Validator":
    """What checks documents against a schema of draft 2020-12."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema)


def check_schema(schema: Mapping[str, Any]) -> None:
    """Fails if it is no schema."""
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema)
