"""What is asked of `jail run` and what it answers. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from localagent.domain.gate import Finding
from localagent.domain.jailspec import JailLimits, LeftOut, Produced
from localagent.domain.outcome import JailOutcome
from localagent.text.secret_redaction import SecretKind


class Language(StrEnum):
    """Languages whose interpreters are known."""

    PYTHON = "python"
    BASH = "bash"
    NODE = "node"


@dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    """A program's text, the name of the file it becomes inside, and its arguments."""

    language: Language
    text: bytes
    name: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Execution:
    """One program in one jail: `command` (argv), or `code`. Paths are the caller's, absolute or to its working folder.

    `files` are copied into the workspace; `read_only` and `read_write` are shown at their own places. `python` is an
    interpreter or a virtual environment's folder, "" for our own. `cwd` is a path inside, "" for the first writable
    folder shown, else the workspace.
    """

    limits: JailLimits
    command: tuple[str, ...] = ()
    code: Code | None = None
    python: str = ""
    files: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    read_write: tuple[str, ...] = ()
    cwd: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionState:
    """A kept session after a step, or in a list. `alive` is False when it is over; `ended` then says why."""

    name: str
    language: Language
    alive: bool
    steps: int
    expires_in_seconds: float
    gated: bool = False
    ended: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Executed:
    """How it ended. `stdout` and `stderr` may be read by anyone; the raw ones are the program's bytes as they came.

    `ending` other than EXITED names the limit or event that ended it. With `denied`, the gates' findings, nothing ran.
    """

    ending: JailOutcome
    returncode: int
    stdout: str
    stderr: str
    raw_stdout: bytes
    raw_stderr: bytes
    wall_seconds: float
    backend: str
    level: str
    language: Language | None = None
    files: tuple[Produced, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    redacted: Mapping[SecretKind, int] = field(default_factory=dict)
    escaped: int = 0
    denied: tuple[Finding, ...] = ()
    session: SessionState | None = None
