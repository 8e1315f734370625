"""`localagent remediate`: repair what other tools found, from their SARIF, as one patch."""

import argparse
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localagent import __version__
from localagent.app import Settings
from localagent.app.cancellation import Stop
from localagent.cli.backend import add_backend, backend_of
from localagent.cli.render import Render
from localagent.domain.edit import Patch, digest_of
from localagent.domain.policy import Policy
from localagent.domain.task import Budget, Task
from localagent.errors import UsageFault
from localagent.fs.atomic_files import write_through
from localagent.precommit.fix_files import Gates
from localagent.precommit.sarif_fixes import FindingState, Open, Remediated, Remediation, RemediationWork, reading
from localagent.precommit.tool_config import tool_config
from localagent.repo.diff.write_diff import unified_diff
from localagent.report.sarif_input import MAX_BYTES, SarifLog, answered, read_log

if TYPE_CHECKING:
    from localagent.app.review.patch_tests import Prover


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    p = parser
    p.add_argument("--sarif", required=True, metavar="FILE", help="SARIF 2.1.0; - reads standard input")
    p.add_argument("--repo", type=Path, default=Path(), metavar="DIR", help="the repository (default: .)")
    p.add_argument(
        "--was-at", type=Path, metavar="DIR", help="where the repository was when the log was written, if elsewhere"
    )
    p.add_argument("--out", type=Path, metavar="FILE", help="write the patch to FILE (default: standard output)")
    p.add_argument(
        "--sarif-out", type=Path, metavar="FILE", help="write the log with the result and fix of each finding"
    )
    p.add_argument("--apply", action="store_true", help="write the patch into the repository")
    p.add_argument(
        "--test",
        action="append",
        default=[],
        metavar="SPEC",
        help="tests that must keep passing, as pytest takes them; may be repeated",
    )
    p.add_argument("--check", action="append", default=[], metavar="CMD", help="a command that must keep exiting 0")
    p.add_argument("--suggestions", action="store_true", help="also make repairs that no test covers")
    p.add_argument("--python", default="", metavar="PY", help="the project's interpreter or virtual environment")
    p.add_argument(
        "--max-seconds", type=float, default=300.0, metavar="S", help="time limit for tests in seconds (300)"
    )
    p.add_argument("--policy", type=Path, metavar="NAME|FILE", help="the policy to use (default: default)")
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
    if all(one.settled for one in log.results):  # nothing to do is no task: no file is read, no gate asked
        gates = Gates(lambda: open_policy(settings, args.policy, root).policy)
        with reading(root) as read:
            done, task = (
                RemediationWork(read, gates, contextlib.nullcontext, suggestions=False).remediate(log.results),
                "",
            )
        _written(args, log, done)
    else:
        done, task = _on_record(args, settings, render, root, log, digest_of(data))
    _shown(args, render, done, unified_diff(done.patch), task)
    return 1 if done.remain else 0


def _on_record(
    args: argparse.Namespace, settings: Settings, render: Render, root: Path, log: SarifLog, digest: str
) -> tuple[Remediation, str]:
    """The work, as a task that `apply`, `undo` and `attest` know; what was asked for is written. The task's id."""
    from localagent.app.evidence.recorded_patch import Remedy, Remedying, remedied  # noqa: PLC0415
    from localagent.app.evidence.task_evidence import land_recorded  # noqa: PLC0415
    from localagent.app.policies import open_policy  # noqa: PLC0415
    from localagent.app.review.approvals import refuse_unapproved  # noqa: PLC0415 - a wrong log is told sooner

    opened = open_policy(settings, args.policy, root)
    asked = Remedying(
        task=Task(
            id="",
            repo=str(root),
            tests=tuple(args.test),
            checks=tuple(args.check),
            python=args.python,
            budget=Budget(max_seconds=args.max_seconds),
        ),
        policy=opened,
        findings=(digest,),
        backend=backend.value if (backend := backend_of(args)) is not None else "",
        apply=args.apply,
    )
    with remedied(asked, settings) as task:
        provers: list[Prover] = []
        with reading(root) as read:
            gates = Gates(lambda: opened.policy, whole=True)
            tests: Open = lambda: _prover(args, root, settings, opened.policy, render, provers)  # noqa: E731
            longest = tool_config(root).longest_line
            work = RemediationWork(read, gates, tests, suggestions=args.suggestions, longest_line=longest)
            done = work.remediate(log.results)
        for one in done.findings:
            task.answered(_finding_json(one))
        borne = provers[0].borne(done.patch) if provers else None
        task.end(Remedy(patch=done.patch, reason=_reason(done), remain=bool(done.remain), borne=borne))
        _written(args, log, done)
        if args.apply and done.patch.changes:
            refuse_unapproved(done.patch, root, args.policy, settings, task=task.record.id)
            land_recorded(settings, task.record, done.patch, root)
    return done, task.record.id if done.patch.changes else ""


def _written(args: argparse.Namespace, log: SarifLog, done: Remediation) -> None:
    """The files that were asked for."""
    if args.out is not None:
        write_through(args.out, unified_diff(done.patch))
    if args.sarif_out is not None:
        answers = {(f.reported.run, f.reported.number): f.answer for f in done.findings}
        told = {"tool": "localagent remediate", "version": __version__, "patch": done.patch.digest}
        write_through(args.sarif_out, answered(log, answers, told))


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
            faults.append(f"{name}: {path} cannot be written: not a file in an existing directory")
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
        faults.append(f"--sarif: {args.sarif!r} cannot be read: {getattr(error, 'strerror', None) or error}")
    if faults:
        raise UsageFault(faults, remedy="`localagent remediate --help` lists the options")
    return data


@contextlib.contextmanager
def _prover(
    args: argparse.Namespace,
    root: Path,
    settings: Settings,
    policy: Policy,
    render: Render,
    provers: "list[Prover]",
) -> "Iterator[Prover | None]":
    """The tests' judgement, where any were named; it is added to `provers`. Being ended ends the jails first."""
    if not args.test and not args.check:
        yield None
        return
    from localagent.app.review.patch_tests import ProofRequest, open_prover  # noqa: PLC0415 - heavy, without tests not needed
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
    with open_prover(request, settings, policy, PlainSink(render, quiet=True), stop) as prover:
        provers.append(prover)
        yield prover


def _reason(done: Remediation) -> str:
    return f"remediated: {_counted(done)}"


def _counted(done: Remediation) -> str:
    counts = Counter(f.state for f in done.findings)
    return ", ".join(f"{counts[state]} {state}" for state in FindingState if counts[state]) or "no findings"


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
        render.patch(diff)
    if task:
        said = "to revert it: localagent undo" if args.apply else "to write it: localagent apply"
        render.note(f"{said} {task}")


def _as_json(args: argparse.Namespace, done: Remediation, diff: bytes, task: str) -> dict[str, object]:
    return {
        "task": task,
        "applied": bool(args.apply and task),
        "remain": done.remain,
        "files": _names(done.patch),
        "patch": diff.decode("utf-8", "surrogateescape"),
        "findings": [_finding_json(f) for f in done.findings],
    }


def _finding_json(one: Remediated) -> dict[str, Any]:
    return {
        "run": one.reported.run,
        "result": one.reported.number,
        "tool": one.reported.tool,
        "rule": one.reported.rule,
        "path": one.reported.path,
        "line": one.reported.line,
        "state": one.state.value,
        "why": one.why,
        "proof": one.proof,
        "settled": one.settled,
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
