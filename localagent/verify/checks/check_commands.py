"""`--check` commands: split without a shell, run in the jail, judged by exit status; frames read from their tracebacks.

The frames and lines come from the command's own output: they steer the search and decide nothing.
"""

import re
import shlex
from collections.abc import Sequence

from localagent.domain.outcome import CheckResult, Failure, Frame, Outcome
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.text.visible_text import shortened
from localagent.verify.checks.test_counts import summarized_tests
from localagent.verify.worker.worker_client import WorkerClient

_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)(?:, in (.+))?$')
_EXCEPTION = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt|Iteration|Failed))(?:: (.*))?$")


def split(command: str) -> tuple[str, ...]:
    """The command's words; UsageFault when the quoting is wrong or nothing is left."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as fault:
        raise UsageFault(f"--check {command!r}: {fault}") from None
    if not words:
        raise UsageFault("--check: empty command")
    return words


def run_check(
    client: WorkerClient,
    command: str,
    *,
    repo: str,
    python: str,
    trace: bool,
    cpu_seconds: float,
    wall_seconds: float,
    pythonpath: Sequence[str],
) -> CheckResult:
    """Run one command. `python` and `python3` mean the project's interpreter."""
    words = split(command)
    if words[0] in ("python", "python3"):
        words = (python, *words[1:])
    ran = client.command(words, trace=trace, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds, pythonpath=pythonpath)
    good = ran.outcome is Outcome.PASSED
    return CheckResult(
        command=command,
        outcome=ran.outcome,
        seconds=ran.seconds,
        failure=None if good else failure_from(ran.output, repo, ran.outcome, ran.status),
        lines=ran.lines,
        counts=summarized_tests(ran.output),
    )


def failure_from(output: str, repo: str, outcome: Outcome, status: int) -> Failure:
    """The last traceback of an output, else its last line."""
    frames: list[Frame] = []
    exception, message = "", ""
    inside = False
    for line in output.splitlines():
        if line.startswith("Traceback (most recent call last)"):
            frames, inside = [], True
            continue
        frame = _FRAME.match(line)
        if frame:
            path = _inside(frame[1], repo)
            if path is not None:
                frames.append(Frame(path=path, line=int(frame[2][:9]), function=(frame[3] or "<module>")[:200]))
            continue
        raised = _EXCEPTION.match(line)
        if raised and (inside or frames):
            exception, message, inside = raised[1].rsplit(".", 1)[-1], raised[2] or "", False
    if outcome is Outcome.TIMED_OUT:
        exception, message = "TimeLimit", "did not finish in its time"
    if not exception:
        last = next((line for line in reversed(output.splitlines()) if line.strip()), "")
        exception, message = "ExitStatus", f"status {status}: {shortened(last, 500)}"
    return Failure(exception=exception[:200], message=message[:2000], frames=tuple(frames[-50:]))


def _inside(name: str, repo: str) -> RepoPath | None:
    prefix = repo.rstrip("/") + "/"
    relative = name[len(prefix) :] if name.startswith(prefix) else name
    try:
        return None if relative.startswith(("/", "<")) else RepoPath(relative.removeprefix("./"))
    except UsageFault:
        return None
