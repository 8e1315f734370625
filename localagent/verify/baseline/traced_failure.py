"""Single tests once more, in a jail of their own, under the tracer that keeps events, values and locals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from localagent.domain.failure_run import EndedThread, FailureRun, FrameValues, TraceEvent, TraceKind, WrittenValue
from localagent.domain.paths import RepoPath
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_client import OpenRequest, WorkerLost
from localagent.verify.worker.worker_messages import (
    Collected,
    Malformed,
    clean,
    exactly,
    integer,
    mapping,
    path_of,
    sequence,
)
from localagent.verify.worker.worker_spec import WorkerUse

_EVENT_NUMBERS = 4 * 60_000
_SESSION = "hot"


def traced_runs(
    jails: JailPool,
    request: OpenRequest,
    tests: Sequence[str],
    writes: Mapping[RepoPath, Mapping[int, Sequence[str]]],
    *,
    cpu_seconds: float,
) -> dict[str, FailureRun]:
    """What one run of each test did, in one jail; without those that are not collected or came after its loss."""
    found: dict[str, FailureRun] = {}
    try:
        with jails.start({}, WorkerUse.FULL) as worker:
            answer = worker.client.open(replace(request, session=_SESSION, trace=False, swap=False))
            items = {i.id: i for i in answer.items} if isinstance(answer, Collected) else {}
            for test in tests:
                if test in items:
                    told = worker.client.trace_failure(items[test], writes, cpu_seconds=cpu_seconds, session=_SESSION)
                    found[test] = run_of(told)
    except (WorkerLost, Malformed):
        jails.check()
    return found


def run_of(answer: Mapping[str, Any]) -> FailureRun:
    """The worker's record, checked. Malformed."""
    told = mapping(answer)
    paths = [path_of(p) for p in sequence(told.get("paths", []), 10_000)]
    numbers = sequence(told.get("events", []), _EVENT_NUMBERS)
    events = []
    for at in range(0, len(numbers) - 3, 4):
        file, line, frame, kind = (integer(n) for n in numbers[at : at + 4])
        path = paths[file] if 0 <= file < len(paths) else None
        if path is not None and kind in (0, 1, 2):
            events.append(TraceEvent(path, line, frame, TraceKind(kind)))
    values = []
    for record in sequence(told.get("values", []), 10_000):
        file, line, name, value = exactly(record, 4)
        path = paths[integer(file)] if 0 <= integer(file) < len(paths) else None
        if path is not None:
            values.append(WrittenValue(path=path, line=integer(line), name=clean(name, 100), value=clean(value, 200)))
    return FailureRun(
        events=events,
        values=tuple(values),
        frames=_frames(told.get("frames", [])),
        threads=tuple(map(_ended, sequence(told.get("threads", []), 10))),
        cut=told.get("cut") is True,
    )


def _ended(record: object) -> EndedThread:
    name, exception, message, frames = exactly(record, 4)
    return EndedThread(
        name=clean(name, 100), exception=clean(exception, 200), message=clean(message, 2000), frames=_frames(frames)
    )


def _frames(records: object) -> tuple[FrameValues, ...]:
    return tuple(f for f in map(_frame, sequence(records, 100)) if f is not None)


def _frame(record: object) -> FrameValues | None:
    place, line, function, values = exactly(record, 4)
    path = path_of(place)
    if path is None:
        return None
    pairs = (exactly(pair, 2) for pair in sequence(values, 100))
    shown = tuple((clean(name, 100), clean(value, 200)) for name, value in pairs)
    return FrameValues(path=path, line=integer(line), function=clean(function, 200), values=shown)
