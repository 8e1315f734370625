"""JSON Schema in tests. Its library is loaded when something is checked: that costs more than most tests do.

Most of it would go into a grammar of international addresses, for a check of formats that no test asks for: left out.
"""

import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_GRAMMAR = "rfc3987_syntax"


@cache
def _library() -> "type[Draft202012Validator]":
    modules: dict[str, Any] = sys.modules
    kept = modules.setdefault(_GRAMMAR, None)  # None: whoever imports it is told that it is not there
    try:
        from jsonschema import Draft202012Validator
    finally:
        if kept is None:
            del modules[_GRAMMAR]
    return Draft202012Validator


def checker(schema: Mapping[str, Any]) -> "Draft202012Validator":
    """What checks documents against a schema of draft 2020-12."""
    return _library()(schema)


def check_schema(schema: Mapping[str, Any]) -> None:
    """Fails if it is no schema."""
    _library().check_schema(schema)
