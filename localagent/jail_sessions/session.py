"""One kept session: a jail whose worker keeps an interpreter alive, a workspace, and the order of its steps.

The worker's answers are data from a hostile place: bounded, parsed once, and believed about their own step only. One
step at a time; a second that comes meanwhile is refused. When the worker does not answer in time, is killed from
within, or says what it must not, the jail is ended and the session with it, and the answer says so.
"""

import base64
import binascii
import secrets
import select
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from localagent.app.execute.languages import WORKER, WORKER_INSIDE, interpreter_for
from localagent.app.execute.run import BOUNDS, PreparedWorkspace, prepared
from localagent.app.execute.run import spec_of as workspace_spec_of
from localagent.domain.execution import Language, SessionState
from localagent.domain.jailspec import Bind, JailLimits, JailResult, JailSpec, LeftOut, Produced
from localagent.domain.outcome import JailOutcome
from localagent.errors import AnswerIsNo, CannotEnforce, UsageFault
from localagent.jail.api import interpreter_binds
from localagent.jail.backends.level import at_least
from localagent.jail.files.transfer import marks_of, put_in, ready_out, take_out
from localagent.jail_sessions.supervisor_messages import StepAnswer, StepOrder
from localagent.ports import Jail
from localagent.runner.json_frames import Reader, WireClosed, WireFault, WireTimeout, send

START_SECONDS = 30.0
SLACK_SECONDS = 15.0  # beyond a step's own wall clock and grace, until the worker counts as hung
HISTORY_LIMIT_CHARACTERS = 4 << 20
TTL_LIMIT_SECONDS = 24 * 3600.0
OUTPUT_LIMIT_BYTES = 8 << 20  # of one step: it travels in one frame
PER_STEP = frozenset({"wall_seconds", "output_bytes"})
_START = "import sys; sys.path.insert(0, {!r}); from _la_worker.repl_server import main; main(sys.argv[1:])"
_ENDINGS = {
    "done": JailOutcome.EXITED,
    "died": JailOutcome.EXITED,
    "wall": JailOutcome.WALL,
    "output": JailOutcome.OUTPUT,
    "interrupted": JailOutcome.CANCELLED,
}


class PersistentSession:
    """Made by its first step. `end` may be called from any thread, any number of times."""

    def __init__(self, order: StepOrder, jail: Jail, scratch: Path) -> None:
        self.name = order.session
        self.language = order.language
        self.gated = order.gated
        self._refuse_order(order, jail)
        self._request = order.request
        self._limits = order.request.limits
        self._third_party = order.third_party
        self._jail = jail
        self._lock = threading.Lock()
        self._history: list[str] = []
        self._too_long = False
        self._steps = 0
        self._ended = ""
        self._until = time.monotonic() + order.ttl_seconds
        self._nonce = secrets.token_hex(16)
        with ExitStack() as stack:
            self._place = stack.enter_context(prepared(order.request, scratch))
            spec = self._spec(order, self._place)
            self._process = jail.start(spec)
            stack.callback(self._process.channel.close)
            stack.callback(self._process.kill)
            self._reader = Reader(self._process.channel.fileno())
            self._open(order, spec.cwd)
            self._first_left_out = self._place.left_out
            self._resources = stack.pop_all()

    @staticmethod
    def _refuse_order(order: StepOrder, jail: Jail) -> None:
        faults = []
        if order.language is Language.NODE:
            faults.append("node cannot be kept between steps: python and bash can")
        if not 0 < order.ttl_seconds <= TTL_LIMIT_SECONDS:
            faults.append(f"--ttl: above 0 and at most {TTL_LIMIT_SECONDS / 3600:.0f}h")
        if order.request.limits.output_bytes > OUTPUT_LIMIT_BYTES:
            faults.append(f"--limit output: at most {OUTPUT_LIMIT_BYTES >> 20}M for a step of a session")
        if faults:
            raise UsageFault(faults)
        if not at_least(jail.level, order.minimum_level):
            raise CannotEnforce(
                f"this machine's jail reaches level {jail.level}, and the profile asks for {order.minimum_level}",
                remedy="`localagent doctor` says which layer is missing and what mends it",
            )

    def _spec(self, order: StepOrder, place: PreparedWorkspace) -> JailSpec:
        """The worker on our interpreter, which needs nothing of the user's; the user's is started by the worker."""
        interpreter = interpreter_for(order.language, order.request.python)
        ours, binds = interpreter_binds(sys.executable)
        spec = workspace_spec_of(order.request, None, place)
        taken = {bind.target for bind in spec.binds}
        for bind in (*interpreter.binds, *binds, Bind(source=str(WORKER), target=WORKER_INSIDE)):
            if bind.target not in taken:
                taken.add(bind.target)
                spec = replace(spec, binds=(*spec.binds, bind))
        limits = order.request.limits
        whole = replace(
            limits,
            wall_seconds=order.ttl_seconds,
            cpu_seconds=limits.cpu_seconds * max(1.0, order.ttl_seconds / limits.wall_seconds),
        )
        argv = (ours, "-I", "-S", "-B", "-c", _START.format(str(Path(WORKER_INSIDE).parent)), "{channel}")
        return replace(spec, argv=argv, env=interpreter.env, limits=whole)

    def _open(self, order: StepOrder, cwd: str) -> None:
        interpreter = interpreter_for(order.language, order.request.python)
        opening = {
            "nonce": self._nonce,
            "language": str(order.language),
            "argv": list(interpreter.argv),
            "cwd": cwd,
        }
        try:
            send(self._process.channel.fileno(), opening)
            answer = self._reader.receive(time.monotonic() + START_SECONDS)
        except (OSError, WireClosed, WireFault, WireTimeout) as fault:
            result = self._process.kill()
            told = result.stderr.decode(errors="replace").strip()[-300:]
            raise CannotEnforce(f"the session's worker did not start: {told or fault} ({result.ending})") from fault
        if answer.get("nonce") != self._nonce or answer.get("how") != "open":
            self._process.kill()
            raise CannotEnforce("the session's worker did not start as agreed")

    @property
    def alive(self) -> bool:
        """False once nothing of it runs."""
        return self._process.alive

    @property
    def busy(self) -> bool:
        """True while a step runs: its answer has yet to be given."""
        return self._lock.locked()

    def state(self) -> SessionState:
        """What `list` shows."""
        return SessionState(
            name=self.name,
            language=self.language,
            alive=self._process.alive and not self._ended,
            steps=self._steps,
            expires_in_seconds=max(0.0, self._until - time.monotonic()),
            gated=self.gated,
            ended=self._ended,
        )

    def history(self) -> tuple[str, ...]:
        """The code of every step so far; AnswerIsNo when it is too much to be gated."""
        if self._too_long:
            raise AnswerIsNo("the session's steps are too long to be gated", remedy="start a new session")
        return tuple(self._history)

    def _remember(self, code: str) -> None:
        self._too_long = self._too_long or len(code) + sum(map(len, self._history)) > HISTORY_LIMIT_CHARACTERS
        self._history = [] if self._too_long else [*self._history, code]

    def step(self, order: StepOrder, client: int, heard: Callable[[], bool]) -> StepAnswer:
        """Run one step; it is interrupted when `client` becomes readable meanwhile and `heard()` says so."""
        if not self._lock.acquire(blocking=False):
            raise AnswerIsNo(f"session {self.name} is busy with another step", remedy="wait for it, or end the session")
        try:
            return self._step(order, client, heard)
        finally:
            self._lock.release()

    def _step(self, order: StepOrder, client: int, heard: Callable[[], bool]) -> StepAnswer:
        self._refuse_other(order)
        left_out = list(self._first_left_out)
        if self._steps:
            left_out = [
                one for path in order.request.files for one in put_in(self._place.workspace, Path(path), BOUNDS)
            ]
        ready_out(Path(order.out) if order.out else None)
        before = marks_of(self._place.workspace.tree, BOUNDS)
        self._steps += 1
        self._remember(order.code)
        self.gated = self.gated and order.gated
        result = self._run(order, client, heard)
        files, more = take_out(
            self._place.workspace.tree, before, Path(order.out) if order.out else None, BOUNDS, force=order.force
        )
        return StepAnswer(result=result, session=self.state(), files=files, left_out=(*left_out, *more))

    def _refuse_other(self, order: StepOrder) -> None:
        """UsageFault for what only a session's first step can say, and for a session that moved on meanwhile."""
        faults = []
        if order.after is not None and order.after != self._steps:
            raise AnswerIsNo(f"session {self.name} went on while the gates read: nothing ran", remedy="try again")
        if self._steps:
            made_by = self._jail.backend.split(" ")[0]
            if order.backend and order.backend != made_by:
                faults.append(f"session {self.name} lives in a jail of {made_by}: its first step decides")
            if self._third_party and not order.third_party:
                faults.append(f"session {self.name} was started where the policy allows a Python package's jail")
            if "language" in order.named and order.language is not self.language:
                faults.append(f"session {self.name} is {self.language}, not {order.language}")
            for key in ("python", "cwd", "read_only", "read_write"):
                if key in order.named and getattr(order.request, key) != getattr(self._request, key):
                    faults.append(f"session {self.name} was started with another {key}: its first step decides")
            asked = order.request.limits
            for key in sorted(set(order.named) & set(JailLimits.__dataclass_fields__) - PER_STEP):
                if getattr(asked, key) != getattr(self._limits, key):
                    faults.append(f"session {self.name} was started with another limit {key}: its first step decides")
            if asked.output_bytes > OUTPUT_LIMIT_BYTES:
                faults.append(f"--limit output: at most {OUTPUT_LIMIT_BYTES >> 20}M for a step of a session")
        if faults:
            raise UsageFault(faults, remedy="leave it away, or start another session")

    def _run(self, order: StepOrder, client: int, heard: Callable[[], bool]) -> JailResult:
        began = time.monotonic()
        limits = order.request.limits
        message = {
            "op": "step",
            "n": self._steps,
            "code": order.code,
            "wall_seconds": limits.wall_seconds,
            "output_bytes": limits.output_bytes,
        }
        try:
            send(self._process.channel.fileno(), message)
            answer = self._answer(began + limits.wall_seconds + SLACK_SECONDS, client, heard)
            return self._result(answer, limits.output_bytes, time.monotonic() - began)
        except (OSError, WireClosed, WireFault, WireTimeout, ValueError, KeyError, TypeError, binascii.Error) as fault:
            return self._lost(fault, time.monotonic() - began)

    def _answer(self, deadline: float, client: int, heard: Callable[[], bool]) -> dict[str, Any]:
        """The worker's answer to the step that runs; an interruption is passed on while waiting."""
        channel = self._process.channel.fileno()
        watched = [channel, client]
        while True:
            ready = select.select(watched, [], [], max(0.0, deadline - time.monotonic()))[0]
            if client in ready:
                watched = [channel]  # once is enough; whoever is gone needs no answer either
                if heard():
                    send(channel, {"op": "interrupt", "n": self._steps})
            if channel in ready or not ready:
                try:
                    return self._reader.receive(time.monotonic())
                except WireTimeout:
                    if not ready:
                        raise

    def _result(self, answer: dict[str, Any], output_bytes: int, wall: float) -> JailResult:
        if (
            answer.get("nonce") != self._nonce
            or answer.get("n") != self._steps
            or not isinstance(answer["status"], int)
        ):
            raise ValueError("the worker's answer is not this step's")
        how, status = str(answer["how"]), answer["status"]
        stdout, stderr = (base64.b64decode(answer[key], validate=True) for key in ("stdout", "stderr"))
        if len(stdout) + len(stderr) > output_bytes:
            raise ValueError("the worker's answer is larger than allowed")
        ending = _ENDINGS[how]
        if answer["alive"] is not True:
            ended = self._process.kill()  # the worker leaves by itself; a limit that ended the jail is the better word
            limit = ended.ending not in (JailOutcome.EXITED, JailOutcome.CANCELLED, JailOutcome.SIGNALLED)
            ending = ended.ending if limit else JailOutcome.SIGNALLED if how == "died" and status > 128 else ending
            self._ended = (
                f"its interpreter ended ({how}, status {status})" if how == "died" else f"it did not end: {how}"
            )
        return self._jail_result(ending, status if ending is JailOutcome.EXITED else -1, stdout, stderr, wall)

    def _lost(self, fault: Exception, wall: float) -> JailResult:
        """The worker is gone or cannot be believed."""
        gone = isinstance(fault, OSError | WireClosed)
        ended = self._process.wait() if gone else self._process.kill()
        inside = ended.ending in (JailOutcome.EXITED, JailOutcome.SIGNALLED, JailOutcome.CANCELLED)
        ending = JailOutcome.SIGNALLED if inside else ended.ending
        why = "its worker was ended from within" if inside and gone else f"{ended.ending}: {fault}"
        if ending is JailOutcome.WALL:
            why = "its time to live is over"
        self._ended = self._ended or why  # it may have been ended on purpose
        return self._jail_result(ending, -1, b"", b"", wall)

    def _jail_result(
        self, ending: JailOutcome, returncode: int, stdout: bytes, stderr: bytes, wall: float
    ) -> JailResult:
        return JailResult(
            ending=ending,
            returncode=returncode,
            stdout=stdout,
            stderr=stderr,
            wall_seconds=wall,
            backend=self._jail.backend,
            level=self._jail.level,
        )

    def files(self, out: Path, *, force: bool) -> tuple[tuple[Produced, ...], tuple[LeftOut, ...]]:
        """Every file of the workspace that is not an unaltered input, copied out."""
        return take_out(self._place.workspace.tree, self._place.before, out, BOUNDS, force=force)

    def stop(self) -> None:
        """End the jail; the workspace stays until `end`."""
        self._ended = self._ended or "it was ended"
        self._process.kill()

    def end(self) -> None:
        """End the jail and remove the workspace, after the step that may still be running has its answer."""
        self.stop()
        with self._lock:
            self._resources.close()
