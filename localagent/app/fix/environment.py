"""What a task runs on: its interpreter, and what the copy of its tree does not have."""

import os
import sys
from pathlib import Path

from localagent.code.newer_syntax import newer_file
from localagent.code.source_text import parse_or_none
from localagent.domain.outcome import Baseline
from localagent.domain.task import Snapshot, Task
from localagent.errors import UsageFault
from localagent.ports import Sources
from localagent.repo.declared_dependencies import declared_project
from localagent.repo.discover import ENVIRONMENTS, dangling_environment, default_python, repository_root
from localagent.repo.outside_environments import outside_environments, outside_python, shim_target

_MOST_TOLD = 5
_BY_THE_PROJECTS = (
    f"is parsed by the project's Python and not by localagent's ({'.'.join(map(str, sys.version_info[:2]))}): "
    "`make setup PYTHON=` with the project's"
)
_NEVER_NEEDED = frozenset({"version control", "a cache, made anew when needed", "a virtual environment"})


def own_python(repo: Path) -> str | None:
    """The project's own interpreter: of the first environment in its tree, else of one that a tool keeps outside."""
    inside = default_python(repo)
    outside = outside_python(repo, Path.home(), os.environ) if inside is None else None
    return inside if outside is None else outside[0]


def interpreter_of(task: Task) -> str:
    """The project's interpreter: the one that was named (a virtual environment's folder will do), its own, or ours."""
    if not task.python:
        return own_python(Path(task.repo)) or sys.executable
    named = Path(task.python).absolute()
    python = (
        named / "bin" / "python" if named.is_dir() else shim_target(named, Path(task.repo), Path.home(), os.environ)
    )
    if not os.access(python, os.X_OK):
        raise UsageFault(
            f"--python: {python} is not an interpreter", remedy="name a Python or a virtual environment's folder"
        )
    return str(python)


def interpreter_remark(task: Task, store: Path) -> tuple[str, ...]:
    """What to know where the project has no environment that can run, and needs one: localagent's own is used."""
    repo = Path(task.repo)
    if task.python:
        return ()
    if default_python(repo):
        return ()
    if outside := outside_python(repo, Path.home(), os.environ):
        return (f"the tests run in the environment of {outside[1]}, {outside[0]}",)
    declared = declared_project(store).files
    dangling = dangling_environment(repo)
    if not declared and dangling is None:
        return ()
    above = [up for up in repo.parents if up.is_relative_to(repository_root(repo)) and (up / ".venv").is_dir()]
    told = (
        f"{dangling} leads to no interpreter"
        if dangling
        else f"no environment of the project ({', '.join(ENVIRONMENTS)})"
    )
    looked = "; ".join(f"{one.tool}: {one.searched}" for one in outside_environments(repo, Path.home(), os.environ))
    also = f", and none outside it ({looked})" if looked else ""
    remedy = f"pass --python {above[0] / '.venv'}" if above else "name the project's with --python"
    return (f"{told}{also}: localagent's own interpreter, {sys.executable}, runs the tests; {remedy}",)


def left_alone(baseline: Baseline | None, sources: Sources) -> tuple[str, ...]:
    """A remark on sources that ran and that our own Python does not parse: no edit of them was tried."""
    if baseline is None:
        return ()
    traced = {path for test in baseline.tests for path in test.lines or ()}
    ran = {*baseline.import_lines, *traced} - baseline.test_files
    told = [
        f"{path} {newer_file(sources[path]) or _BY_THE_PROJECTS}; it was left alone"
        for path in sorted(ran)
        if path.is_python and path in sources and parse_or_none(sources[path]) is None
    ]
    return (*told[:_MOST_TOLD], *([f"and {len(told) - _MOST_TOLD} more files"] if len(told) > _MOST_TOLD else []))


def left_out(snapshot: Snapshot) -> tuple[str, ...]:
    """A remark on entries of the tree that the tests do not find in the jail, unless they never need them."""
    odd = [(p, why) for p, why in snapshot.left_out.items() if why not in _NEVER_NEEDED]
    if not odd:
        return ()
    more = f" and {len(odd) - 5} more" if len(odd) > 5 else ""
    return ("not copied into the jail: " + ", ".join(f"{p} ({why})" for p, why in odd[:5]) + more,)
