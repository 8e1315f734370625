"""`localagent remediate`: repair what other tools found, from their SARIF, as one patch."""

import argparse
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from localagent import __version__
from localagent.app import Settings
from localagent.app.stop import Stop
from localagent.cli.backend import add_backend, backend_of
from localagent.cli.render import Render
from localagent.domain.edit import Patch
from localagent.domain.task import Task, TaskResult, Verdict
from localagent.errors import UsageFault
from localagent.hook.remediate import Remediation, State, Work, reading
from localagent.hook.work import Gates
from localagent.record.files import write_through
from localagent.record.sarif_log import MAX_BYTES, answered, read_log
from localagent.record.store import TaskStore
from localagent.tree.diff import unified_diff

if TYPE_CHECKING:
    from localagent.app.proving import Prover


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    p = parser
    p.add_argument("--sarif", required=True, metavar="FILE", help="SARIF 2.1.0; - reads standard input")
    p.add_argument("--repo", type=Path, default=Path(), metavar="DIR", help="the repository (default: .)")
    p.add_argument("--was-at", type=Path, metavar="DIR", help="where it stood when the log was made, if elsewhere")
    p.add_argument("--out", type=Path, metavar="FILE", help="write the patch here; default: standard output")
    p.add_argument("--sarif-out", type=Path, metavar="FILE", help="write the log with answers and fixes")
    p.add_argument("--apply", action="store_true", help="write the patch into the repository")
    p.add_argument("--test", action="append", default=[], metavar="SPEC", help="pytest argument; may be repeated")
    p.add_argument("--check", action="append", default=[], metavar="CMD", help="a command that must stay at exit 0")
    p.add_argument("--suggestions", action="store_true", help="also repairs that no test vouches for")
    p.add_argument("--python", default="", metavar="PY", help="the project's interpreter or virtual environment")
    p.add_argument("--max-seconds", type=float, default=300.0, metavar="S", help="time for tests at most (300)")
    p.add_argument("--policy", type=Path, metavar="FILE", help="a policy file instead of the default one")
    add_backend(p)
    p.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 everything fixed or nothing to do; 1 findings remain. UsageFault lists every fault of the arguments or log."""
    from localagent.app.policies import open_policy  # noqa: PLC0415 - a wrong log is told sooner

    data = _checked(args)
    root = Path(os.path.realpath(args.repo))
    was = (args.was_at,) if args.was_at is not None else ()
    roots = tuple(dict.fromkeys((root, Path(os.path.abspath(args.repo)), *was)))  # noqa: PTH100 - links stay
    log = read_log(data, roots)
    with reading(root) as read:
        work = Work(
            read,
            Gates(lambda: open_policy(settings, args.policy, root).policy, whole=True),
            lambda: _prover(args, root, settings, render),
            suggestions=args.suggestions,
        )
        done = work.remediate(log.results)
    diff = unified_diff(done.patch)
    if args.out is not None:
        write_through(args.out, diff)
    if args.sarif_out is not None:
        answers = {(f.reported.run, f.reported.number): f.answer for f in done.findings}
        told = {"tool": "localagent remediate", "version": __version__, "patch": done.patch.digest}
        write_through(args.sarif_out, answered(log, answers, told))
    task = _kept(args, root, settings, done, diff) if done.patch.changes else ""
    _shown(args, render, done, diff, task)
    return 1 if done.remain else 0


def _checked(args: argparse.Namespace) -> bytes:
    """The log's bytes, one more than is read at most. UsageFault for every wrong argument at once."""
    faults = []
    if not args.repo.is_dir():
        faults.append(f"--repo: {args.repo} is not a directory")
    if args.was_at is not None and not args.was_at.is_absolute():
        faults.append(f"--was-at: {args.was_at} is not absolute")
    if not 0 < args.max_seconds < float("inf"):
        faults.append("--max-seconds: must be positive and finite")
    for name, path in (("--out", args.out), ("--sarif-out", args.sarif_out)):
        if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
            faults.append(f"{name}: {path} is no place for a file")
    if args.out is not None and args.out == args.sarif_out:
        faults.append("--out and --sarif-out name one file")
    data = b""
    try:
        if args.sarif == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(args.sarif).open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        faults.append(f"--sarif: {args.sarif!r} cannot be read: {error}")
    if faults:
        raise UsageFault(faults, remedy="`localagent remediate --help` names the arguments")
    return data


@contextlib.contextmanager
def _prover(args: argparse.Namespace, root: Path, settings: Settings, render: Render) -> "Iterator[Prover | None]":
    """The tests' judgement, where any were named. Being ended ends the jails first."""
    if not args.test and not args.check:
        yield None
        return
    from localagent.app.policies import open_policy  # noqa: PLC0415 - without tests nothing of this is needed
    from localagent.app.proving import ProofRequest, open_prover  # noqa: PLC0415
    from localagent.cli.progress import PlainSink  # noqa: PLC0415

    stop = Stop()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: _interrupt(stop))
    request = ProofRequest(
        repo=root,
        tests=tuple(args.test),
        checks=tuple(args.check),
        python=args.python,
        max_seconds=args.max_seconds,
        backend=backend_of(args),
    )
    policy = open_policy(settings, args.policy, root).policy
    with open_prover(request, settings, policy, PlainSink(render, quiet=True), stop) as prover:
        yield prover


def _kept(args: argparse.Namespace, root: Path, settings: Settings, done: Remediation, diff: bytes) -> str:
    """The patch as a past task, so that `apply` and `undo` know it; landed when asked. The task's id."""
    task = Task(id="", repo=str(root), tests=tuple(args.test), checks=tuple(args.check), python=args.python)
    record = TaskStore(settings.state_dir).create(task)
    record.save_patch(done.patch)
    result = TaskResult(
        verdict=Verdict.ACCEPTED,
        reason=f"remediated: {_counted(done)}",
        exit=1 if done.remain else 0,
        patch=done.patch,
    )
    record.save_result(result, diff=diff)
    if args.apply:
        from localagent.app.evidence import land_recorded  # noqa: PLC0415 - most runs write nothing

        land_recorded(settings, record, done.patch, root)
    return record.id


def _counted(done: Remediation) -> str:
    counts = Counter(f.state for f in done.findings)
    return ", ".join(f"{counts[state]} {state}" for state in State if counts[state]) or "no findings"


def _shown(args: argparse.Namespace, render: Render, done: Remediation, diff: bytes, task: str) -> None:
    if args.json:
        render.json(_as_json(args, done, diff, task))
        return
    for f in done.findings:
        place = f"{f.reported.path or '-'}:{f.reported.line}"
        proof = f" (proven by {f.proof})" if f.proof else ""
        render.note(f"{place}: {f.reported.tool} {f.reported.rule}: {f.state}: {f.why}{proof}")
    render.note(_counted(done))
    if diff and args.out is None and not args.apply:
        render.raw(diff, b"")
    if task:
        said = "to take it back: localagent undo" if args.apply else "to write it: localagent apply"
        render.note(f"{said} {task}")


def _as_json(args: argparse.Namespace, done: Remediation, diff: bytes, task: str) -> dict[str, object]:
    return {
        "task": task,
        "applied": bool(args.apply and task),
        "remain": done.remain,
        "files": _names(done.patch),
        "patch": diff.decode("utf-8", "surrogateescape"),
        "findings": [
            {
                "run": f.reported.run,
                "result": f.reported.number,
                "tool": f.reported.tool,
                "rule": f.reported.rule,
                "path": f.reported.path,
                "line": f.reported.line,
                "state": f.state.value,
                "why": f.why,
                "proof": f.proof,
                "settled": f.settled,
            }
            for f in done.findings
        ],
    }


def _names(patch: Patch) -> list[str]:
    return [str(change.path) for change in patch.changes]


class _Stopped(KeyboardInterrupt):
    """Of a type of its own: Python ends itself by SIGINT when a plain one has passed through `exec` of a text."""


def _interrupt(stop: object) -> None:
    assert isinstance(stop, Stop)
    for number in (signal.SIGINT, signal.SIGTERM):  # once is enough
        signal.signal(number, signal.SIG_IGN)
    stop.now()
    raise _Stopped
