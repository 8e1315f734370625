"""ruff and mypy on the changed files, before and after: only new findings count. Both run in a jail, read-only.

Whether they run is the policy's switch; `auto` asks the project's own configuration. A tool that crashes or runs out of
time could not answer: the policy says whether that refuses. One that turns the unpatched tree down (its configuration,
its syntax) has no say under `auto`, which is told. A file of ours with a known error goes with those that are judged: a
tool that does not name it has judged nothing. Not promised: findings in files that were not changed, or that it judged
those which the repository's configuration excludes.
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
from localagent.domain.outcome import JailOutcome
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Permission, Policy, Switch
from localagent.jail.files.workspace import Workspace
from localagent.verify.checks.mypy_config import ConfigUnreadable, bounded_bytes, config_of
from localagent.verify.checks.static_tools import PROBES, TOOL_SECONDS, probe_name, tool_spec
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_spec import WorkerUse

TURNED_DOWN = 2  # how both tools end when configuration or source keeps them from judging
_MYPY_LINE = re.compile(r"^([^:]+):\d+(?::\d+)?: error: (.*)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolAnswer:
    """What one tool says of a patch. `refusal` is empty when it has nothing against it.

    `remark` is for a person, loudly: the tool was asked for and had no say.
    """

    tool: str
    said: str
    refusal: str = ""
    remark: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unanswered:
    """Why there are no findings. `broke`: the tool crashed, ran out of time or babbled, rather than turning it down."""

    why: str
    broke: bool


Findings = Counter[tuple[str, str]]

_USUAL_RULES = ("E4", "E7", "E9", "F")
_CHOOSING = frozenset({"select", "extend-select", "extend"})


class Delta:
    """Remembers findings of the unpatched tree."""

    def __init__(self, jails: JailPool, policy: Policy | None) -> None:
        self._jails = jails
        self._switch = {
            "ruff": policy.ruff if policy else Switch.AUTO,
            "mypy": policy.mypy if policy else Switch.AUTO,
        }
        self._lenient = policy is not None and policy.unanswered is Permission.ALLOW
        self._probe = probe_name()
        self._before: dict[tuple[str, tuple[RepoPath, ...]], Findings | Unanswered] = {}

    def review(self, patch: Patch) -> tuple[ToolAnswer, ...]:
        """One answer per tool."""
        paths = tuple(c.path for c in patch.changes if c.path.is_python)
        if not paths:
            return ()
        return tuple(self._one(tool, paths, patch) for tool in ("ruff", "mypy"))

    def _one(self, tool: str, paths: tuple[RepoPath, ...], patch: Patch) -> ToolAnswer:
        switch = self._switch[tool]
        if switch is Switch.NEVER or (switch is Switch.AUTO and not is_configured(tool, self._jails.place.store)):
            return ToolAnswer(tool=tool, said="not asked for")
        stood = tuple(c.path for c in patch.changes if c.path in paths and c.before)
        key = (tool, stood)
        if key not in self._before:
            self._before[key] = self._findings(
                tool, stood, {c.path: c.before for c in patch.changes if c.path in stood}
            )
        before = self._before[key]
        if isinstance(before, Unanswered):
            return self._no_say(tool, f"could not judge the unpatched tree: {before.why}", before, switch)
        stands = tuple(c.path for c in patch.changes if c.path in paths and c.after)
        after = self._findings(tool, stands, {c.path: c.after for c in patch.changes})
        if isinstance(after, Unanswered):
            said = f"could not judge the patch: {after.why}"
            if after.broke:
                return self._no_say(tool, said, after, switch)
            return ToolAnswer(tool=tool, said=said, refusal=f"{tool} {said}")
        new = after - before
        if not new:
            return ToolAnswer(tool=tool, said="nothing new")
        text = "; ".join(f"{path}: {message}" for path, message in list(new)[:3])
        return ToolAnswer(tool=tool, said=text, refusal=f"{tool} has new findings: {text}")

    def _no_say(self, tool: str, said: str, why: Unanswered, switch: Switch) -> ToolAnswer:
        """Refused where the policy wants an answer; else told to whoever reads the verdict."""
        if switch is Switch.ALWAYS or (why.broke and not self._lenient):
            return ToolAnswer(tool=tool, said=said, refusal=f"{tool} {said}")
        return ToolAnswer(tool=tool, said=said, remark=f"{tool} had no say: it {said}")

    def _findings(
        self, tool: str, paths: Sequence[RepoPath], changes: Mapping[RepoPath, bytes]
    ) -> Findings | Unanswered:
        """What the tool finds, or why it could not say. Without files (all added, all deleted) there is nothing."""
        self._jails.check()
        if not paths:
            return Counter()
        probe = RepoPath(f"{self._probe}.py")
        more = {**changes, probe: PROBES[tool]}
        options: tuple[str, ...] = ruff_rules(self._jails.place.store, paths) if tool == "ruff" else ()
        if tool == "mypy":
            try:
                name, more[name] = config_of(self._jails.place.store, probe=self._probe)
            except ConfigUnreadable as fault:
                return Unanswered(why=str(fault), broke=False)
            options = (f"--config-file={name}",)
        with self._jails.place.workspace(more, WorkerUse.QUICK) as workspace:
            result = self._jails.place.jail.run(self._spec(tool, (*paths, probe), workspace, options))
        if result.ending is not JailOutcome.EXITED:
            return Unanswered(why=f"ended by {result.ending.value}", broke=True)
        if result.returncode not in (0, 1):
            text = (result.stderr or result.stdout).decode("utf-8", "replace")
            why = (text.strip().splitlines() or ["no message"])[-1][:300]
            return Unanswered(why=why, broke=result.returncode != TURNED_DOWN or "INTERNAL ERROR" in text)
        parse = ruff_findings if tool == "ruff" else mypy_findings
        found = parse(result.stdout, self._jails.place.repo)
        if found is None or (result.returncode == 1 and not found):
            return Unanswered(why="its output could not be read", broke=True)
        judged = {key: count for key, count in found.items() if key[0] == probe}
        if not judged:
            return Unanswered(why="it judged nothing: a known error of localagent's own went unnamed", broke=True)
        return found - Counter(judged)

    def _spec(self, tool: str, paths: Sequence[RepoPath], workspace: Workspace, more: Sequence[str]) -> JailSpec:
        options = {
            "ruff": (
                "check",
                "--no-cache",
                "--no-fix",
                "--no-fix-only",
                "--output-format=json",
                "--force-exclude",
                "--",
            ),
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
        head, *rest = options
        argv = (tool, head, *more, *rest) if tool == "ruff" else (tool, *more, *options)
        argv = (*argv, *(f"./{path}" for path in paths))
        return tool_spec(self._jails, argv, workspace, seconds=TOOL_SECONDS, project=False)


def ruff_findings(output: bytes, repo: str) -> Findings | None:
    """(path, code and message), without lines: these move. None where it is not what ruff writes."""
    try:
        records = json.loads(output)
        return Counter(
            (str(r["filename"]).removeprefix(repo.rstrip("/") + "/"), f"{r.get('code')} {r['message']}"[:500])
            for r in records
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def mypy_findings(output: bytes, _repo: str) -> Findings:
    """(path, message), without lines; an error whose place cannot be read stands for itself."""
    found: Findings = Counter()
    for line in output.decode("utf-8", "replace").splitlines():
        match = _MYPY_LINE.match(line)
        if match:
            found[(match[1].removeprefix("./"), match[2][:500])] += 1
        elif "error: " in line and ": note: " not in line:
            found[("", line[:500])] += 1
    return found


def is_configured(tool: str, store: Path) -> bool:
    """True when the repository configures the tool at its root."""
    own = {"ruff": ("ruff.toml", ".ruff.toml"), "mypy": ("mypy.ini", ".mypy.ini")}[tool]
    if any((store / name).is_file() and not (store / name).is_symlink() for name in own):
        return True
    table = _toml(store / "pyproject.toml").get("tool")
    if isinstance(table, dict) and tool in table:
        return True
    return tool == "mypy" and re.search(rb"^\[mypy\]", bounded_bytes(store / "setup.cfg"), re.MULTILINE) is not None


def ruff_rules(store: Path, paths: Sequence[RepoPath]) -> tuple[str, ...]:
    """Options for a project that configures ruff and chooses no rules: those that every release of ruff has by default.

    Newer ones have hundreds by default, and which ruff the project means is not known. A configuration above any of the
    files may choose.
    """
    folders = {path.parts[:end] for path in paths for end in range(len(path.parts))}
    for folder in (store.joinpath(*parts) for parts in folders):
        tool = _toml(folder / "pyproject.toml").get("tool")
        tables = [
            _toml(folder / "ruff.toml"),
            _toml(folder / ".ruff.toml"),
            tool.get("ruff") if isinstance(tool, dict) else None,
        ]
        for table in tables:
            for part in (table, table.get("lint")) if isinstance(table, dict) else ():
                if isinstance(part, dict) and not part.keys().isdisjoint(_CHOOSING):
                    return ()
    return ("--select", ",".join(_USUAL_RULES))


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(bounded_bytes(path).decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        return {}
