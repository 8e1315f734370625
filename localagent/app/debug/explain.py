"""`explain`: a traceback, a line, a rule's id or a task's id in plain sentences. Nothing of the repository runs."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.app.policies import open_policy
from localagent.app.reproduce.request import test_in_trace
from localagent.app.settings import Settings
from localagent.debug.explanation import Explanation, Fact, History, explain_line, explain_traceback
from localagent.debug.frame_mapping import FrameMapper
from localagent.debug.tracebacks import parse_tracebacks
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo, UsageFault
from localagent.gate.gate_rules_page import explained
from localagent.jail.api import scratch_folder
from localagent.lint.engine import OWN
from localagent.lint.rules import BY_ID
from localagent.record.store import TaskStore
from localagent.repo.discover import GitKind, git_kind
from localagent.repo.git import Git
from localagent.repo.line_history import LineChange, last_changes
from localagent.repo.snapshot import take_snapshot
from localagent.repo.source_map import SourceMap

MOST_SHOWN = 10
_LINE = re.compile(r"(?P<file>.+):(?P<line>\d{1,9})")
_FORMS = "name a file with a traceback, -, FILE:LINE, a rule as findings name it, or a task of `localagent history`"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainRequest:
    """What to explain. `text`: the bytes of a traceback where `what` names a file or standard input, else None."""

    what: str
    repo: Path
    text: bytes | None = None


def explain(request: ExplainRequest, settings: Settings) -> tuple[Explanation, ...]:
    """At least one explanation. UsageFault for a name that is unknown, AnswerIsNo for a text without traces."""
    if request.text is not None:
        return explain_text(request.text, request.what, request.repo, settings)
    if (rule := _rule(request, settings)) is not None:
        return (rule,)
    if found := _LINE.fullmatch(request.what):
        return (_line(request, found["file"], int(found["line"]), settings),)
    return (_task(request.what, settings),)


def explain_text(text: bytes, name: str, repo: Path, settings: Settings) -> tuple[Explanation, ...]:
    """The tracebacks of a text, the last `MOST_SHOWN` of them."""
    found = parse_tracebacks(text)
    if not found:
        raise AnswerIsNo(f"{name}: no traceback is in it", remedy=_FORMS)
    with scratch_folder(settings.scratch_dir) as scratch:
        sources = SourceMap(take_snapshot(repo, scratch / "store"))
        mapper = FrameMapper(sources, str(repo.resolve()))
        history = history_of(repo, sources)
        told = [explain_traceback(one, mapper, sources, history) for one in found[-MOST_SHOWN:]]
        if told[-1].path is not None:
            told[-1] = replace(told[-1], facts=(*told[-1].facts, _next_step(text, name, sources)))
        return tuple(told)


def _next_step(text: bytes, name: str, sources: Mapping[RepoPath, bytes]) -> Fact:
    """What finds out more: the test of the traceback, or a search for one."""
    try:
        test = test_in_trace(text.decode("utf-8", "replace"), sources)
    except AnswerIsNo:
        sentence = f"`localagent debug {shlex.quote(name)} --run` looks for a test that fails in this way"
    else:
        sentence = f"`localagent debug {shlex.quote(test)}` runs that test and looks for the cause"
    return Fact(label="what to do", sentence=sentence)


def history_of(repo: Path, sources: Mapping[RepoPath, bytes]) -> History:
    """Who last changed lines, from the repository's history; nothing where it has none."""
    git = Git(repo.resolve(), {})
    tracked = git_kind(repo) is not GitKind.NONE or git.asks("rev-parse", "--git-dir") is not None

    def changes(path: RepoPath, lines: tuple[int, ...]) -> Mapping[int, LineChange]:
        return last_changes(git, path, lines, sources[path]) if tracked else {}

    return changes


def _rule(request: ExplainRequest, settings: Settings) -> Explanation | None:
    """A rule of the gates, of the policy or of the hook."""
    name = request.what
    if name in BY_ID or name in OWN:
        said = BY_ID[name].why if name in BY_ID else OWN[name]
        facts = [Fact(label="found by", sentence="`localagent hook check`"), Fact(label="why", sentence=said)]
        if name in BY_ID:
            rule = BY_ID[name]
            facts.append(Fact(label="finds", sentence=rule.text))
            facts += [Fact(label="for example", sentence=bad.code.strip()) for bad in rule.bad[:1]]
            facts += [Fact(label="better", sentence=bad.fixed.strip()) for bad in rule.bad[:1] if bad.fixed]
        return Explanation(headline=name, facts=tuple(facts))
    found = explained(name, open_policy(settings, None, request.repo).policy)
    if not found:
        return None
    facts = []
    for one in found:
        facts += [
            Fact(label="found by", sentence=f"`localagent gate`, {one.kind}, {one.severity}"),
            Fact(label="why", sentence=one.why),
            Fact(label="what to do", sentence=one.remedy),
        ]
    facts.append(Fact(label="examples", sentence=f"`localagent policy explain {name}`"))
    return Explanation(headline=name, facts=tuple(facts))


def _line(request: ExplainRequest, file: str, line: int, settings: Settings) -> Explanation:
    """A line of a file of the repository, named from the repository or from the working directory."""
    with scratch_folder(settings.scratch_dir) as scratch:
        sources = SourceMap(take_snapshot(request.repo, scratch / "store"))
        path = _named(file, request.repo, sources)
        lines = len(sources[path].splitlines())
        if not 1 <= line <= lines:
            raise UsageFault(f"{path}: there is no line {line}, it has {lines}")
        return explain_line(path, line, sources, history_of(request.repo, sources))


def _named(file: str, repo: Path, sources: SourceMap) -> RepoPath:
    for name in (file, _relative(file, repo)):
        if name and name in sources:
            return RepoPath(name)
    raise UsageFault(f"{file}: no Python file of that name is in {repo}", remedy="name it as seen from --repo")


def _relative(file: str, repo: Path) -> str:
    full = Path(file).absolute()
    return str(full.relative_to(repo.absolute())) if full.is_relative_to(repo.absolute()) else ""


def _task(name: str, settings: Settings) -> Explanation:
    """A past task: its outcome, what failed and what was suspected; `show` has all of it."""
    try:
        record = TaskStore(settings.state_dir).open(name)
    except UsageFault as fault:
        raise UsageFault(f"{name!r} is no file, rule, line or task", remedy=_FORMS) from fault
    report = record.result_json()
    if report is None:
        raise AnswerIsNo(f"task {record.id} has no report: it is still running, or was killed")
    facts = [Fact(label="outcome", sentence=f"{report['outcome']} (exit {report['exit']})")]
    facts += [Fact(label="why", sentence=str(report["reason"]))] if report["reason"] else []
    facts += [Fact(label="what to do", sentence=str(report["remedy"]))] if report.get("remedy") else []
    facts.append(Fact(label="repository", sentence=str(report["repo"])))
    facts.append(Fact(label="all of it", sentence=f"`localagent show {record.id}`"))
    return Explanation(headline=f"task {record.id}", facts=tuple(facts))
