"""ruff and mypy on the changed files, before and after: only new findings count. Both run in a jail, read-only.

Whether they run is the policy's switch; `auto` asks the project's own configuration. Not promised: findings in files
that were not changed.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.domain.edit import Patch
from localagent.domain.jailspec import JailSpec
from localagent.domain.outcome import Ending
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy, Switch
from localagent.jail.workspace import Workspace
from localagent.verify.place import Use
from localagent.verify.rooms import Rooms
from localagent.verify.tool_run import TOOL_SECONDS, tool_spec

CONFIG_LIMIT_BYTES = 1 << 20
_MYPY_LINE = re.compile(r"^([^:]+):\d+(?::\d+)?: error: (.*)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolAnswer:
    """What one tool says of a patch. `refusal` is empty when it has nothing against it."""

    tool: str
    said: str
    refusal: str = ""


Findings = Counter[tuple[str, str]]


class Delta:
    """Remembers findings of the unpatched tree."""

    def __init__(self, rooms: Rooms, policy: Policy | None) -> None:
        self._rooms = rooms
        self._switch = {
            "ruff": policy.ruff if policy else Switch.AUTO,
            "mypy": policy.mypy if policy else Switch.AUTO,
        }
        self._before: dict[tuple[str, tuple[RepoPath, ...]], Findings | str] = {}

    def review(self, patch: Patch) -> tuple[ToolAnswer, ...]:
        """One answer per tool."""
        paths = tuple(c.path for c in patch.changes if c.path.is_python)
        if not paths:
            return ()
        return tuple(self._one(tool, paths, patch) for tool in ("ruff", "mypy"))

    def _one(self, tool: str, paths: tuple[RepoPath, ...], patch: Patch) -> ToolAnswer:
        switch = self._switch[tool]
        if switch is Switch.NEVER or (switch is Switch.AUTO and not asked(tool, self._rooms.place.store)):
            return ToolAnswer(tool=tool, said="not asked for")
        stood = tuple(c.path for c in patch.changes if c.path in paths and c.before)
        key = (tool, stood)
        if key not in self._before:
            self._before[key] = self._findings(
                tool, stood, {c.path: c.before for c in patch.changes if c.path in stood}
            )
        before = self._before[key]
        if isinstance(before, str):
            said = f"does not run on the unpatched tree: {before}"
            return ToolAnswer(tool=tool, said=said, refusal=f"{tool} {said}" if switch is Switch.ALWAYS else "")
        stands = tuple(c.path for c in patch.changes if c.path in paths and c.after)
        after = self._findings(tool, stands, {c.path: c.after for c in patch.changes})
        if isinstance(after, str):
            return ToolAnswer(tool=tool, said=after, refusal=f"{tool} could not judge the patch: {after}")
        new = after - before
        if not new:
            return ToolAnswer(tool=tool, said="nothing new")
        text = "; ".join(f"{path}: {message}" for path, message in list(new)[:3])
        return ToolAnswer(tool=tool, said=text, refusal=f"{tool} finds something new: {text}")

    def _findings(self, tool: str, paths: Sequence[RepoPath], changes: Mapping[RepoPath, bytes]) -> Findings | str:
        """What the tool finds, or why it could not say. Without files (all added, all deleted) there is nothing."""
        self._rooms.check()
        if not paths:
            return Counter()
        with self._rooms.place.workspace(changes, Use.QUICK) as workspace:
            result = self._rooms.place.jail.run(self._spec(tool, paths, workspace))
        if result.ending is not Ending.EXITED:
            return f"ended by {result.ending.value}"
        if result.returncode not in (0, 1):
            lines = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
            return (lines or ["no message"])[-1][:300]
        parse = ruff_findings if tool == "ruff" else mypy_findings
        return parse(result.stdout, self._rooms.place.repo)

    def _spec(self, tool: str, paths: Sequence[RepoPath], workspace: Workspace) -> JailSpec:
        options = {
            "ruff": ("check", "--no-cache", "--output-format=json", "--force-exclude", "--"),
            "mypy": (
                "--no-incremental",
                "--cache-dir=/tmp/mypy",
                "--no-error-summary",
                "--hide-error-context",
                "--no-pretty",
                "--no-color-output",
                "--follow-imports=silent",
                "--",
            ),
        }[tool]
        argv = (tool, *options, *(f"./{path}" for path in paths))
        return tool_spec(self._rooms, argv, workspace, seconds=TOOL_SECONDS, project=False)


def ruff_findings(output: bytes, repo: str) -> Findings | str:
    """(path, code and message), without lines: these move."""
    try:
        records = json.loads(output or b"[]")
        return Counter(
            (str(r["filename"]).removeprefix(repo.rstrip("/") + "/"), f"{r.get('code')} {r['message']}"[:500])
            for r in records
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return "its output could not be read"


def mypy_findings(output: bytes, _repo: str) -> Findings:
    """(path, message), without lines."""
    found: Findings = Counter()
    for line in output.decode("utf-8", "replace").splitlines():
        match = _MYPY_LINE.match(line)
        if match:
            found[(match[1].removeprefix("./"), match[2][:500])] += 1
    return found


def asked(tool: str, store: Path) -> bool:
    """True when the repository configures the tool at its root."""
    own = {"ruff": ("ruff.toml", ".ruff.toml"), "mypy": ("mypy.ini", ".mypy.ini")}[tool]
    if any((store / name).is_file() and not (store / name).is_symlink() for name in own):
        return True
    table = _toml(store / "pyproject.toml").get("tool")
    if isinstance(table, dict) and tool in table:
        return True
    return tool == "mypy" and re.search(rb"^\[mypy\]", _bytes(store / "setup.cfg"), re.MULTILINE) is not None


def _bytes(path: Path) -> bytes:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > CONFIG_LIMIT_BYTES:
        return b""
    return path.read_bytes()


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(_bytes(path).decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        return {}
