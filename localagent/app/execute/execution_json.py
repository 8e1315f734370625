"""What `jail run --json` prints: the schema of docs/jail.md. Keys are only ever added."""

import base64
from typing import Any

from localagent.domain.execution import Executed, SessionState
from localagent.domain.outcome import JailOutcome

SCHEMA = "localagent/execution/1"
LIMITS = frozenset(
    {JailOutcome.WALL, JailOutcome.CPU, JailOutcome.MEMORY, JailOutcome.PROCESSES, JailOutcome.OUTPUT, JailOutcome.DISK}
)


def as_json(executed: Executed, *, raw: bool = False) -> dict[str, Any]:
    """One object. With `raw`, the program's bytes as base64 beside the text that may be read."""
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "ending": str(executed.ending),
        "limit": str(executed.ending) if executed.ending in LIMITS else None,
        "returncode": executed.returncode,
        "stdout": executed.stdout,
        "stderr": executed.stderr,
        "wall_seconds": round(executed.wall_seconds, 3),
        "backend": executed.backend,
        "level": executed.level,
        "language": None if executed.language is None else str(executed.language),
        "files": [
            {"name": file.name, "bytes": file.bytes, "digest": file.digest, "copied": file.copied}
            for file in executed.files
        ],
        "left_out": [{"name": one.name, "why": one.why} for one in executed.left_out],
        "redacted": {str(kind): count for kind, count in executed.redacted.items()},
        "escaped": executed.escaped,
        "denied": [
            {"rule": f.rule, "severity": str(f.severity), "file": f.path, "line": f.line, "message": f.message}
            for f in executed.denied
        ],
        "session": None if executed.session is None else session_json(executed.session),
    }
    if raw:
        value["stdout_base64"] = base64.b64encode(executed.raw_stdout).decode()
        value["stderr_base64"] = base64.b64encode(executed.raw_stderr).decode()
    return value


def session_json(session: SessionState) -> dict[str, Any]:
    """One kept session."""
    return {
        "name": session.name,
        "language": str(session.language),
        "alive": session.alive,
        "steps": session.steps,
        "expires_in_seconds": round(session.expires_in_seconds, 1),
        "gated": session.gated,
        "ended": session.ended,
    }
