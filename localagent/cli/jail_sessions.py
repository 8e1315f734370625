"""`jail run --keep`, `jail list`, `jail end`: sessions that the user's supervisor keeps between commands."""

import argparse
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from localagent.app import Settings
from localagent.app.execute.execution_json import session_json
from localagent.app.execute.known_secrets import open_sanitizer
from localagent.app.jail_level import allows_third_party
from localagent.cli.backend import backend_of
from localagent.cli.render import Render
from localagent.domain.execution import Executed, Execution, SessionState
from localagent.domain.outcome import JailOutcome
from localagent.domain.policy import Policy
from localagent.errors import UsageFault
from localagent.jail.limits.options import field_of, seconds_of
from localagent.jail_sessions import client
from localagent.jail_sessions.supervisor_messages import StepOrder
from localagent.jail_sessions.supervisor_socket import SupervisorConnection
from localagent.text.visible_text import counted


def order_for(
    args: argparse.Namespace, request: Execution, policy: Policy, least: str, *, after: int | None = None
) -> StepOrder:
    """A step as the arguments ask for it; UsageFault for a program that cannot be one."""
    code = request.code
    if code is None:
        raise UsageFault("a session runs programs (-c, FILE, -), not commands", remedy="give --lang bash -c 'CMD'")
    if code.arguments:
        raise UsageFault("programs in a session take no arguments")
    given = {"language": args.lang, "python": args.python, "cwd": args.cwd, "read_only": args.ro, "read_write": args.rw}
    named = [name for name, value in given.items() if value]
    named += [field_of(word.partition("=")[0]) for word in args.limit]
    named += ["resident_bytes"] if args.memory is not None else []
    return StepOrder(
        session=args.keep,
        backend=backend_of(args) or "",
        language=code.language,
        code=code.text.decode("utf-8", "surrogateescape"),
        request=Execution(
            limits=request.limits,
            python=request.python,
            files=request.files,
            read_only=request.read_only,
            read_write=request.read_write,
            cwd=request.cwd,
        ),
        named=tuple(named),
        ttl_seconds=seconds_of(args.ttl),
        minimum_level=least,
        third_party=allows_third_party(policy),
        gated=args.gate,
        after=after,
        out="" if args.out is None else str(args.out),
        force=args.force,
    )


def take_step(order: StepOrder, settings: Settings) -> Executed:
    """The step's answer; the first Ctrl-C interrupts the step, the second this command."""
    lines: list[SupervisorConnection] = []
    with _interrupting(lines):
        return client.step(order, settings, open_sanitizer(), on_start=lines.append)


@contextmanager
def _interrupting(lines: list[SupervisorConnection]) -> Iterator[None]:
    def heed(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        if not lines:
            raise KeyboardInterrupt
        lines[-1].interrupt()

    before = signal.signal(signal.SIGINT, heed)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def remark(executed: Executed, render: Render) -> None:
    """What became of the session, where that is not what one expects."""
    session = executed.session
    if session is None:
        return
    if not session.alive:
        render.error(f"session {session.name} is closed: {session.ended}; its state is lost")
    elif session.steps == 1:
        render.note(f"session {session.name}: started, ends in {session.expires_in_seconds / 60:.0f} minutes")


def interrupted(executed: Executed) -> bool:
    """Whether the user's Ctrl-C ended the step."""
    return executed.ending is JailOutcome.CANCELLED


def list_sessions(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0, also when there is none."""
    found = client.sessions(settings)
    if args.json:
        render.json([session_json(one) for one in found])
        return 0
    for line in _table(found):
        render.line(line)
    return 0


def _table(found: Sequence[SessionState]) -> Iterator[str]:
    if not found:
        yield "no sessions"
    for one in sorted(found, key=lambda session: session.name):
        gated = ", gated" if one.gated else ""
        yield f"{one.name}: {one.language}, {counted(one.steps, 'step')}, ends in {one.expires_in_seconds:.0f} s{gated}"


def end_session(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when it was there and is ended."""
    session, files, left_out = client.end(args.session, settings, out=args.out, force=args.force)
    if args.json:
        render.json(
            {
                **session_json(session),
                "files": [{"name": f.name, "bytes": f.bytes, "digest": f.digest, "copied": f.copied} for f in files],
                "left_out": [{"name": one.name, "why": one.why} for one in left_out],
            }
        )
        return 0
    for file in files:
        render.note(f"file: {file.name}, {file.bytes:,} bytes, {file.digest}")
    for one in left_out:
        render.note(f"not copied: {one.name}: {one.why}")
    render.line(f"session {session.name} ended after {counted(session.steps, 'step')}")
    return 0
