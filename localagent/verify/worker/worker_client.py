"""Talks to one worker in one jail: frames, nonce, numbering, deadlines. One that misbehaves is lost, with a reason.

Not thread-safe except for `kill`, which may come from any thread at any time.
"""

import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from localagent.domain.outcome import Failure, JailOutcome, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.jail.limits.policy_limits import PolicyLimits
from localagent.ports import JailProcess
from localagent.runner.json_frames import Reader, WireClosed, WireFault, WireTimeout, send
from localagent.verify.worker.worker_messages import (
    Collected,
    CollectionRefused,
    CommandRan,
    Item,
    Malformed,
    Ran,
    clean,
    collect_ran_of,
    collected_of,
    command_of,
    exactly,
    integer,
    ran_of,
    refused_of,
)

HELLO_SECONDS = 30.0
SLACK_SECONDS = 15.0
LEAST_BUDGET_SECONDS = 0.1
BEHAVE_SECONDS = 40.0  # evidence for the choice is not worth more
DIFFER_SECONDS = 60.0
TOTAL_LIMIT_BYTES = 64 << 20  # in one answer's time; a request resets the count


class WorkerLost(Exception):  # noqa: N818 - named for what happened
    """The worker or its jail is gone or cannot be believed; its jail has been ended."""

    def __init__(self, reason: str, ending: JailOutcome) -> None:
        super().__init__(reason)
        self.ending = ending


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenRequest:
    """A collection. `options` are ours, `args` the user's; `swap` makes the index for code swaps.

    `seed` decides what the project's own Hypothesis properties draw.
    """

    session: str = "main"
    args: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    pythonpath: tuple[str, ...] = ()
    trace: bool = False
    swap: bool = False
    seed: int = 0
    cpu_seconds: float = 60.0
    wall_seconds: float = 120.0
    memory_bytes: int = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRequest:
    """A run of some items, in this order. `inline` runs in the session itself, as plain pytest would.

    `hard_budget`: when the budget is used up the session is ended in the middle of a test, and no test is blamed.
    """

    items: Sequence[Item]
    session: str = "main"
    swap: Sequence[dict[str, Any]] = ()
    trace: bool = False
    inline: bool = False
    hard_budget: bool = False
    stop_on_bad: bool = False
    grace_tests: int = 0
    cpu_seconds: float = 2.0
    cpu_after_hang_seconds: float = 0.25
    wall_seconds: float = 20.0
    budget_seconds: float = 600.0
    memory_bytes: int = 1 << 30
    hung: tuple[int, ...] = field(default=())


@dataclass(frozen=True, kw_only=True, slots=True)
class DifferRequest:
    """What to ask some functions (path, first line, name), by their numbers in `functions`.

    `items` are tests whose calls are recorded and varied; `given` are literals (number, args, kwargs); `inverses` are
    functions that undo one of the others. `letters` and `numbers` are offered to variations. `defaulted` are functions
    whose defaults are others in the other tree: their calls count as they are written. Calls of those in `every_way`
    are made on copies, in forks, and looked at in place, whichever of these is enough.
    """

    items: Sequence[Item]
    functions: Sequence[tuple[str, int, str]]
    inverses: Sequence[tuple[int, str, int, str]]
    given: Sequence[tuple[int, str, str]]
    letters: Sequence[str]
    numbers: Sequence[int]
    seed: int
    defaulted: Sequence[int] = ()
    every_way: Sequence[int] = ()
    session: str = "hot"
    cpu_seconds: float = 6.0
    test_seconds: float = 5.0
    wall_seconds: float = DIFFER_SECONDS


class WorkerClient:
    """One worker. `root` is the repository's path inside its jail; no request gets more than `bounds` allow.

    `until`: when every answer is due, on the monotonic clock; it is asked anew for each request.
    """

    def __init__(
        self,
        process: JailProcess,
        root: str,
        bounds: PolicyLimits | None = None,
        *,
        until: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._process = process
        self._root = root
        self._bounds = bounds or PolicyLimits()
        self._until = until
        self._reader = Reader(process.channel.fileno())
        self._nonce = secrets.token_hex(16)
        self._number = 0
        self.usable = True
        self.python: tuple[int, ...] = ()
        self.pytest: str | None = None
        self.lent = False  # the pytest is ours: the project's Python has none
        answer = self._ask({"root": root}, HELLO_SECONDS)
        try:
            self.python = tuple(integer(n) for n in exactly(answer.get("python"), 3))
            version = answer.get("pytest")
            self.pytest = None if version is None else clean(version, 50)
            self.lent = answer.get("lent") is True
        except Malformed as fault:
            raise self._malformed(fault) from None

    def open(self, request: OpenRequest) -> Collected | CollectionRefused:
        """Collect in a new session; the old one ends."""
        wall_seconds = self._bounds.wall(request.wall_seconds)
        message: dict[str, Any] = {
            "op": "open",
            "session": request.session,
            "args": request.args,
            "options": request.options,
            "pythonpath": request.pythonpath,
            "trace": request.trace,
            "swap": request.swap,
            "seed": request.seed,
            "cpu_seconds": self._bounds.cpu(request.cpu_seconds),
            "wall_seconds": wall_seconds,
            "memory_bytes": request.memory_bytes,
        }
        answer = self._ask(message, wall_seconds)
        try:
            if answer.get("kind") == "collected":
                return collected_of(answer)
            if answer.get("kind") == "refused":
                return refused_of(answer, self._root)
        except Malformed as fault:
            raise self._malformed(fault) from None
        raise self._lost(f"answered {answer.get('kind')!r} to a collection")

    def run(self, request: RunRequest) -> Ran:
        """Run items of the open session."""
        items, bounds = list(request.items), self._bounds
        budget_seconds, wall_seconds = bounds.wall(request.budget_seconds), bounds.wall(request.wall_seconds)
        budget_seconds = max(LEAST_BUDGET_SECONDS, min(budget_seconds, self._until() - time.monotonic()))
        message: dict[str, Any] = {
            "op": "run",
            "session": request.session,
            "items": [item.index for item in items],
            "swap": list(request.swap),
            "trace": request.trace,
            "inline": request.inline,
            "hard_budget": request.hard_budget,
            "stop_on_bad": request.stop_on_bad,
            "grace_tests": request.grace_tests,
            "cpu_seconds": bounds.cpu(request.cpu_seconds),
            "cpu_after_hang_seconds": bounds.cpu(request.cpu_after_hang_seconds),
            "wall_seconds": wall_seconds,
            "budget_seconds": budget_seconds,
            "memory_bytes": request.memory_bytes,
            "hung": list(request.hung),
        }
        answer = self._ask(message, budget_seconds + wall_seconds)
        try:
            ran = ran_of(answer, items)
        except Malformed as fault:
            raise self._malformed(fault) from None
        for result in ran.results.values():
            self._hear(result.outcome, request.cpu_seconds, result.failure)
        if ran.why == "hung" and wall_seconds < request.wall_seconds:
            bounds.reached("wall_seconds")
        return ran

    def command(
        self,
        argv: Sequence[str],
        *,
        trace: bool,
        cpu_seconds: float,
        wall_seconds: float,
        pythonpath: Sequence[str] = (),
    ) -> CommandRan:
        """Run a command in the workspace."""
        message: dict[str, Any] = {
            "op": "command",
            "argv": list(argv),
            "pythonpath": list(pythonpath),
            "trace": trace,
            "cpu_seconds": self._bounds.cpu(cpu_seconds),
            "wall_seconds": self._bounds.wall(wall_seconds),
            "memory_bytes": 2 << 30,
        }
        try:
            ran = command_of(self._ask(message, self._bounds.wall(wall_seconds)))
        except Malformed as fault:
            raise self._malformed(fault) from None
        self._hear(ran.outcome, cpu_seconds, None)
        if not ran.outcome.good:
            self._bounds.heard(ran.output)
        return ran

    def behave(
        self,
        *,
        items: Sequence[Item],
        functions: Sequence[tuple[str, int, str]],
        programs: Sequence[Sequence[Mapping[str, Any]]],
        seed: int,
        cpu_seconds: float,
        session: str = "hot",
    ) -> Mapping[str, Any]:
        """The behaviour table (`rows`) of programs, each given as swap orders into an open session."""
        longest = 5.0 + 2 * cpu_seconds * (len(programs) + len(items))
        wall_seconds = self._bounds.wall(min(BEHAVE_SECONDS, longest))
        message: dict[str, Any] = {
            "op": "behave",
            "session": session,
            "items": [item.index for item in items],
            "functions": [list(f) for f in functions],
            "programs": [list(p) for p in programs],
            "seed": seed,
            "cpu_seconds": self._bounds.cpu(cpu_seconds),
            "wall_seconds": wall_seconds,
            "memory_bytes": 768 << 20,
        }
        return self._ask(message, wall_seconds)

    def differ(self, request: DifferRequest) -> Mapping[str, Any]:
        """What functions of the open hot session answer (`calls`), on recorded, varied and given inputs."""
        longest = 10.0 + 8 * request.cpu_seconds + 2 * request.test_seconds * len(request.items)
        wall_seconds = self._bounds.wall(min(request.wall_seconds, longest))
        message: dict[str, Any] = {
            "op": "differ",
            "session": request.session,
            "items": [item.index for item in request.items],
            "functions": [list(f) for f in request.functions],
            "inverses": [list(f) for f in request.inverses],
            "given": [list(g) for g in request.given],
            "defaulted": list(request.defaulted),
            "every_way": list(request.every_way),
            "letters": list(request.letters),
            "numbers": list(request.numbers),
            "seed": request.seed,
            "cpu_seconds": self._bounds.cpu(request.cpu_seconds),
            "test_seconds": self._bounds.cpu(request.test_seconds),
            "wall_seconds": wall_seconds,
            "memory_bytes": 768 << 20,
        }
        return self._ask(message, wall_seconds)

    def trace_failure(
        self, item: Item, writes: Mapping[RepoPath, Mapping[int, Sequence[str]]], *, cpu_seconds: float, session: str
    ) -> Mapping[str, Any]:
        """Events, written values and the locals where a test fails, of one run of it under a tracer."""
        wall_seconds = self._bounds.wall(10.0 + 2 * cpu_seconds)
        message: dict[str, Any] = {
            "op": "trace",
            "session": session,
            "item": item.index,
            "writes": {path: {str(n): list(names) for n, names in lines.items()} for path, lines in writes.items()},
            "cpu_seconds": self._bounds.cpu(cpu_seconds),
            "wall_seconds": wall_seconds,
            "memory_bytes": 768 << 20,
        }
        return self._ask(message, wall_seconds)

    def collect_run(
        self, spec: str, *, session: str, most: int, cpu_seconds: float, wall_seconds: float
    ) -> tuple[tuple[TestResult, ...], Mapping[str, Failure]]:
        """Results of at most `most` tests of a pytest argument, collected in a child of an open session; what fails to.

        Nothing of either where the child did not come to its end.
        """
        wall_seconds = self._bounds.wall(wall_seconds)
        message: dict[str, Any] = {
            "op": "collect-run",
            "session": session,
            "spec": spec,
            "most": most,
            "cpu_seconds": self._bounds.cpu(cpu_seconds),
            "wall_seconds": wall_seconds,
            "memory_bytes": 1 << 30,
        }
        answer = self._ask(message, wall_seconds)
        try:
            return collect_ran_of(answer)
        except Malformed as fault:
            raise self._malformed(fault) from None

    def close_session(self, name: str) -> None:
        """End an open session, if there is one of that name."""
        self._ask({"op": "close", "session": name}, SLACK_SECONDS)

    def kill(self) -> None:
        """End the jail."""
        self._process.kill()

    def close(self) -> None:
        """End the jail and the channel."""
        self._process.kill()
        self._process.channel.close()

    def _hear(self, outcome: Outcome, cpu_seconds: float, failure: Failure | None) -> None:
        """Note what of the policy's limits a result speaks of."""
        if outcome is Outcome.TIMED_OUT and self._bounds.cpu(cpu_seconds) < cpu_seconds:
            self._bounds.reached("cpu_seconds")
        if failure is not None:
            self._bounds.heard(failure.message)

    def _ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        self._number += 1
        self._reader.received_bytes = 0
        now, until = time.monotonic(), self._until()
        if until <= now:
            raise self._lost("was asked nothing more, because the time was used up", JailOutcome.WALL)
        deadline = min(now + seconds + SLACK_SECONDS, until)
        try:
            send(self._reader.fd, {**message, "nonce": self._nonce, "seq": self._number})
            answer = self._reader.receive(deadline, TOTAL_LIMIT_BYTES)
        except WireTimeout:
            late = "before the time was used up" if deadline == until else f"within {seconds + SLACK_SECONDS:.0f} s"
            raise self._lost(f"did not answer {late}", JailOutcome.WALL) from None
        except WireFault as fault:
            raise self._lost(str(fault)) from None
        except (WireClosed, OSError, ValueError):
            raise self._lost("is gone: its jail ended", None) from None
        if answer.get("nonce") != self._nonce or answer.get("seq") != self._number:
            raise self._lost("answered with a wrong nonce or number")
        return answer

    def _malformed(self, fault: Malformed) -> WorkerLost:
        return self._lost(f"sent what its own code does not send ({fault})")

    def _lost(self, reason: str, ending: JailOutcome | None = JailOutcome.CANCELLED) -> WorkerLost:
        self.usable = False
        result = self._process.kill()
        detail = result.stderr.decode("utf-8", "replace").strip()[-500:]
        known = result.ending if ending is None else ending
        return WorkerLost(f"the worker {reason}" + (f": {clean(detail)}" if detail else ""), known)
