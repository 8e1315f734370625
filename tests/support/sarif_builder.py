"""SARIF logs for tests, as linters write them."""

import json
from typing import Any


def result(rule: str, uri: str = "a.py", line: int = 1, **more: Any) -> dict[str, Any]:
    """One result at a line of a file; `column` places it in the line."""
    region = {"startLine": line} | ({"startColumn": more.pop("column")} if "column" in more else {})
    place = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
    return {"ruleId": rule, "message": {"text": f"{rule} is here"}, "locations": [place], **more}


def run(*results: dict[str, Any], tool: str = "ruff", **more: Any) -> dict[str, Any]:
    """One run of a tool."""
    return {"tool": {"driver": {"name": tool}}, "results": list(results), **more}


def log(*runs: dict[str, Any], **more: Any) -> bytes:
    """A whole log."""
    return json.dumps({"version": "2.1.0", "runs": list(runs), **more}).encode()
