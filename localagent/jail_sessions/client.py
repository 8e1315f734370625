"""Kept sessions for a caller: give a step, list, end. Starts the supervisor when the first session needs it.

    from localagent.jail_sessions.client import end, step, sessions

Output comes back sanitized with the caller's canaries, which stay in the caller's process.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from localagent.app.execute.run import executed_of
from localagent.app.settings import PACKAGE, Settings
from localagent.domain.execution import Executed, SessionState
from localagent.domain.jailspec import LeftOut, Produced
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault
from localagent.jail_sessions.supervisor_messages import (
    StepOrder,
    answer_of,
    checked_name,
    pack_order,
    raise_fault,
    session_of,
)
from localagent.jail_sessions.supervisor_socket import NobodyThere, SupervisorConnection, connect, open_folder
from localagent.text.secret_redaction import Sanitizer

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from localagent.jail_sessions.session_supervisor import main; sys.exit(main(sys.argv[2]))"
)
_TRIES = 50
_PAUSE_SECONDS = 0.1  # while another command starts the supervisor, or an old one leaves
_TOLD_BYTES = 1 << 16


def step(
    order: StepOrder,
    settings: Settings,
    sanitizer: Sanitizer,
    *,
    on_start: Callable[[SupervisorConnection], None] | None = None,
) -> Executed:
    """One step. `on_start` is handed the line, on which `interrupt` may be called from a signal handler.

    AnswerIsNo when the session is busy; UsageFault for what only a first step can say; CannotEnforce without a jail.
    """
    checked_name(order.session)
    order = _absolute(order)
    for _ in range(_TRIES):
        try:
            with _line(settings, start=True) as line:
                if on_start is not None:
                    on_start(line)
                answer = answer_of(line.ask(pack_order(order)))
                break
        except NobodyThere as gone:
            if str(gone):  # it had the order: what became of it is not known, so it is not given again
                raise AnswerIsNo(
                    f"the supervisor ended during the step, and session {order.session} with it: {gone}"
                ) from gone
            time.sleep(_PAUSE_SECONDS)
    else:
        raise InternalFault("the supervisor of sessions starts and is gone at once")
    executed = executed_of(answer.result, sanitizer, answer.left_out, answer.files)
    return replace(executed, language=answer.session.language, session=answer.session)


def sessions(settings: Settings) -> tuple[SessionState, ...]:
    """Every session there is."""
    answer = _ask(settings, {"op": "list"})
    return () if answer is None else tuple(session_of(one) for one in answer["sessions"])


def history(name: str, settings: Settings) -> tuple[SessionState, tuple[str, ...]] | None:
    """A session and the code of its steps; None when there is none of that name."""
    if checked_name(name) not in {session.name for session in sessions(settings)}:
        return None
    answer = _ask(settings, {"op": "history", "session": name})
    return None if answer is None else (session_of(answer["session"]), tuple(str(code) for code in answer["code"]))


def end(
    name: str, settings: Settings, *, out: Path | None = None, force: bool = False
) -> tuple[SessionState, tuple[Produced, ...], tuple[LeftOut, ...]]:
    """End a session now; its files come out below `out` where it is given. AnswerIsNo when there is none."""
    place = "" if out is None else str(out.absolute())
    answer = _ask(settings, {"op": "end", "session": checked_name(name), "out": place, "force": force})
    if answer is None:
        raise AnswerIsNo(f"there is no session {name}")
    return (
        session_of(answer["session"]),
        tuple(Produced(**file) for file in answer["files"]),
        tuple(LeftOut(**one) for one in answer["left_out"]),
    )


def _ask(settings: Settings, question: dict[str, Any]) -> dict[str, Any] | None:
    """The answer; None when no supervisor runs."""
    try:
        with _line(settings, start=False) as line:
            answer = line.ask(question)
    except NobodyThere:
        return None
    raise_fault(answer)
    return answer


def _absolute(order: StepOrder) -> StepOrder:
    """The supervisor has a working folder of its own."""
    request = order.request
    return replace(
        order,
        out=os.path.abspath(order.out) if order.out else "",  # noqa: PTH100 - links stay as they are
        request=replace(
            request,
            python=os.path.abspath(request.python) if request.python else "",  # noqa: PTH100
            files=tuple(map(os.path.abspath, request.files)),
            read_only=tuple(map(os.path.abspath, request.read_only)),
            read_write=tuple(map(os.path.abspath, request.read_write)),
        ),
    )


@contextmanager
def _line(settings: Settings, *, start: bool) -> Iterator[SupervisorConnection]:
    """A connection, to a supervisor that is started when none is there and `start` says so."""
    try:
        connection = _connected(settings)
    except NobodyThere:
        if not start:
            raise
        _start(settings)
        connection = _connected(settings)
    with SupervisorConnection(connection) as line:
        yield line


def _connected(settings: Settings) -> Any:
    folder = open_folder(settings.runtime_dir, make=False)
    try:
        return connect(folder)
    finally:
        os.close(folder)


def _start(settings: Settings) -> None:
    """Start the supervisor, detached; returns once it listens or another one does."""
    told, tell = os.pipe2(os.O_CLOEXEC)
    order = {"runtime_dir": str(settings.runtime_dir), "scratch_dir": str(settings.scratch_dir), "ready": tell}
    with open(told, "rb") as answers:  # noqa: PTH123 - a descriptor
        try:
            subprocess.Popen(
                [sys.executable, "-P", "-B", "-c", _PROGRAM, str(PACKAGE.parent), json.dumps(order)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[tell],
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError as fault:
            raise CannotEnforce(f"the supervisor of sessions does not start: {fault}") from fault
        finally:
            os.close(tell)
        line = answers.readline(_TOLD_BYTES)
    if line in (b"ready\n", b"taken\n"):
        return
    if not line:
        raise CannotEnforce("the supervisor of sessions ended before it listened")
    raise_fault(json.loads(line))
