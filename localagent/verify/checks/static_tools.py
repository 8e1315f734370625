"""ruff, mypy and bandit on a tree, in a jail that may not write: what they find, with its place.

The tools are ours, their configuration is the repository's, but for what would load its code into them (plugins of
mypy) or have them mend instead of tell. Files of ours with known errors go with those that are judged: a tool that
finds nothing and names none of them was kept from judging, and is not believed. Not promised: that what a tool says is
true; it is text from inside a jail; nor that it judged what the repository's configuration leaves out.
"""

import json
import re
import secrets
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localagent.domain.jailspec import Access, Bind, JailLimits, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.jail.files.binds import interpreter_binds
from localagent.jail.files.workspace import Workspace
from localagent.text.visible_text import shortened
from localagent.verify.checks.mypy_config import ConfigUnreadable, config_of
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_spec import WorkerUse

TOOL_SECONDS = 90.0
_LEAST_SECONDS = 1.0
MOST_FINDINGS = 20_000
_TEXT = 500
_DOTS = re.compile(r"^(\./)+")  # bandit puts one more before those it is given
_RUFF = ("check", "--no-cache", "--no-fix", "--no-fix-only", "--output-format=json", "--force-exclude", "--exit-zero")
_BANDIT = ("-q", "-f", "json", "--exit-zero")
_MYPY = ("--no-incremental", "--cache-dir=/tmp/mypy", "--output=json", "--follow-imports=silent")
_MOST_PROBES = 50
PROBES = {
    "ruff": b"(\n",
    "bandit": b"eval(input())\n",
    "mypy": b'probe: int = ""\n\n\ndef told() -> int:\n    return ""\n\n\ntold(1).there\n',
}
"""Sources of which each tool has something to say: ruff, however it is configured; mypy, of errors of several kinds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolFinding:
    """One finding. Lines and columns are 1-based, 0 where there is none. `fixable`: the tool repairs it itself."""

    tool: str
    rule: str
    path: RepoPath
    line: int
    end_line: int
    column: int
    message: str
    fixable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Silence:
    """Why a tool could not say anything."""

    why: str


def tool_spec(jails: JailPool, argv: Sequence[str], workspace: Workspace, *, seconds: float, project: bool) -> JailSpec:
    """One of our Python tools on a workspace, read-only. `project`: the project's interpreter is shown as well."""
    place = jails.place
    in_time = min(seconds, max(_LEAST_SECONDS, jails.until - time.monotonic()))
    executable, binds = interpreter_binds(sys.executable)
    seen = {bind.target for bind in binds}
    binds += tuple(bind for bind in place.binds if project and bind.target not in seen)
    return JailSpec(
        argv=(executable, "-I", "-m", *argv),
        cwd=place.repo,
        binds=(
            *(bind for bind in binds if not bind.target.startswith(place.repo.rstrip("/") + "/")),
            Bind(source=str(workspace.tree), target=place.repo, access=Access.READ_ONLY, untrusted=True),
            *(bind for bind in binds if project and bind.target.startswith(place.repo.rstrip("/") + "/")),
        ),
        env=place.environment(),
        limits=JailLimits(wall_seconds=in_time, cpu_seconds=in_time),
    )


def type_errors(
    jails: JailPool, changes: Mapping[RepoPath, bytes], *, seconds: float = TOOL_SECONDS
) -> tuple[ToolFinding, ...] | Silence:
    """What mypy says of the whole tree with some changes: as the project configures it, else of all that is there.

    Plugins are not loaded. Silence where the configuration cannot be read, or keeps mypy from saying anything.
    """
    stem = probe_name()
    try:
        name, config = config_of(jails.place.store, changes=changes, among=stem)
    except ConfigUnreadable as fault:
        return Silence(why=str(fault))
    probe = RepoPath(f"{stem}.py")
    changes = {**changes, name: config, probe: PROBES["mypy"]}
    python = (f"--python-executable={jails.place.executable}", f"--config-file={name}")
    silence = Silence(why="mypy was not run")
    for files in ((), (".",), ("--explicit-package-bases", ".")):
        output = _output(jails, ("mypy", *_MYPY, *python, *files), changes, seconds, project=True)
        if not isinstance(output, Silence):
            return _believed("mypy", _parsed("mypy", output, jails.place.repo), {probe})
        silence = output
    return silence


def lint(
    jails: JailPool, tool: str, paths: Sequence[RepoPath], changes: Mapping[RepoPath, bytes], *, seconds: float
) -> tuple[ToolFinding, ...] | Silence:
    """What ruff or bandit says of some files with some changes. A file of ours goes into each of their folders."""
    argv = {"ruff": ("ruff", *_RUFF, "--"), "bandit": ("bandit", *_BANDIT, "--")}[tool]
    stem = probe_name()
    folders = dict.fromkeys(path.rpartition("/")[0] for path in paths)
    probes = [RepoPath(f"{folder}/{stem}.py" if folder else f"{stem}.py") for folder in folders][:_MOST_PROBES]
    changes = {**changes, **dict.fromkeys(probes, PROBES[tool])}
    output = _output(jails, (*argv, *(f"./{path}" for path in (*paths, *probes))), changes, seconds, project=False)
    if isinstance(output, Silence):
        return output
    return _believed(tool, _parsed(tool, output, jails.place.repo), set(probes))


def probe_name() -> str:
    """A name for a module of ours that nobody can foresee."""
    return f"localagent_probe_{secrets.token_hex(8)}"


def _believed(
    tool: str, found: tuple[ToolFinding, ...] | Silence, probes: Collection[RepoPath]
) -> tuple[ToolFinding, ...] | Silence:
    """The findings without those of our own; Silence where there are none at all."""
    if isinstance(found, Silence):
        return found
    if probes and not found:
        return Silence(
            why=f"{tool} finds nothing and is not believed: a known error of localagent's own went unnamed, so the "
            "repository's configuration keeps it from judging"
        )
    return tuple(one for one in found if one.path not in probes)[:MOST_FINDINGS]


def _output(
    jails: JailPool, argv: Sequence[str], changes: Mapping[RepoPath, bytes], seconds: float, *, project: bool
) -> bytes | Silence:
    jails.check()
    with jails.place.workspace(changes, WorkerUse.QUICK) as workspace:
        result = jails.place.jail.run(tool_spec(jails, argv, workspace, seconds=seconds, project=project))
    if result.ending is not JailOutcome.EXITED:
        return Silence(why=f"{argv[0]} was ended by {result.ending.value}")
    if result.returncode not in (0, 1):
        lines = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
        return Silence(why=f"{argv[0]} does not run on the tree: {shortened((lines or ['no message'])[-1], 300)}")
    return result.stdout


def _parsed(tool: str, output: bytes, repo: str) -> tuple[ToolFinding, ...] | Silence:
    try:
        records = _records(tool, output)
        found = [
            f for record in records[: MOST_FINDINGS + _MOST_PROBES] if (f := _finding(tool, record, repo)) is not None
        ]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Silence(why=f"what {tool} wrote could not be read")
    return tuple(sorted(found, key=lambda f: (f.path, f.line, f.column, f.rule, f.message)))


def _records(tool: str, output: bytes) -> list[Any]:
    if tool == "mypy":
        return [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]
    found = json.loads(output or b"[]")
    return list(found["results"] if tool == "bandit" else found)


def _finding(tool: str, record: Any, repo: str) -> ToolFinding | None:
    """None for what is no finding of ours to tell: a note, a place outside the repository."""
    if tool == "mypy":
        if record["severity"] != "error":
            return None
        name, rule, line = record["file"], record["code"], record["line"]
        end, column, text, fixable = line, record["column"] + 1, record["message"], False
    elif tool == "ruff":
        name, rule, line = record["filename"], record["code"], record["location"]["row"]
        end, column, text = record["end_location"]["row"], record["location"]["column"], record["message"]
        fixable = isinstance(record.get("fix"), dict) and record["fix"].get("applicability") == "safe"
    else:
        name, rule, line = record["filename"], record["test_id"], record["line_number"]
        end, column, text = line, record["col_offset"] + 1, record["issue_text"]
        fixable = False
    name = _DOTS.sub("", str(name).removeprefix(repo.rstrip("/") + "/"))
    try:
        path = RepoPath(name)
    except UsageFault:
        return None
    return ToolFinding(
        tool=tool,
        rule=str(rule or ""),
        path=path,
        line=max(0, int(line)),
        end_line=max(0, int(end)),
        column=max(0, int(column)),
        message=str(text)[:_TEXT],
        fixable=fixable,
    )
