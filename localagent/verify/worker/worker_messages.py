"""The worker's messages, parsed once into types. Whatever is not exactly as agreed raises Malformed.

Texts are bounded and stripped of control characters here; nothing further in trusts or cleans them again.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from localagent.domain.outcome import Failure, Frame, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault

TEXT_LIMIT = 4000
ITEMS_LIMIT = 200_000
LINES_LIMIT = 2_000_000
_Member = TypeVar("_Member", bound=StrEnum)
_CONTROL = re.compile("[^\\n\\t\\x20-\\x7e\\xa0-\\U0010ffff]")


class Malformed(Exception):  # noqa: N818 - named for what happened
    """A message that the worker's own code does not send."""


class CollectionRefusal(StrEnum):
    """Why a session has no tests to offer."""

    USAGE = "usage"
    CONFTEST = "conftest"
    STOPPED = "stopped"
    HUNG = "hung"
    DIED = "died"


class RunEnd(StrEnum):
    """How a run request ended."""

    DONE = "done"
    CANNOT_SWAP = "cannot-swap"
    SESSION_ENDED = "session-ended"


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """A collected test. `id` is unique in its session."""

    index: int
    id: str
    path: RepoPath | None
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Collected:
    """What a session offers. `errors` are by file (or node id when no file is known).

    `unforkable` says what a child forked from the session would lack, or "".
    """

    items: tuple[Item, ...]
    errors: Mapping[str, Failure]
    import_lines: Mapping[RepoPath, frozenset[int]]
    rootdir: str
    unforkable: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionRefused:
    """Why nothing was collected."""

    why: CollectionRefusal
    text: str
    failure: Failure
    path: RepoPath | None = None
    errors: Mapping[str, Failure] = field(default_factory=dict)
    import_lines: Mapping[RepoPath, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """Results by item index, in the order they came."""

    end: RunEnd
    results: Mapping[int, TestResult]
    why: str = ""
    started: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandRan:
    """A command's answer."""

    outcome: Outcome
    status: int
    seconds: float
    output: str
    lines: Mapping[RepoPath, frozenset[int]] | None


def clean(text: object, limit: int = TEXT_LIMIT) -> str:
    """A bounded str without control characters other than line feed and tab; no lone surrogates."""
    if not isinstance(text, str):
        raise Malformed("text expected")
    text = text[:limit].encode("utf-8", "backslashreplace").decode("utf-8")
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def number(value: object) -> float:
    """A finite float that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise Malformed("number expected")
    return float(value)


def integer(value: object) -> int:
    """An int (not a bool)."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed("integer expected")
    return value


def sequence(value: object, limit: int = ITEMS_LIMIT) -> Sequence[Any]:
    """A JSON array of bounded length."""
    if not isinstance(value, list) or len(value) > limit:
        raise Malformed("array expected")
    return value


def exactly(value: object, count: int) -> Sequence[Any]:
    """A JSON array of exactly so many."""
    if not isinstance(value, list) or len(value) != count:
        raise Malformed(f"array of {count} expected")
    return value


def member(kind: type[_Member], value: object) -> _Member:
    """The member of an enum that a text names."""
    if not isinstance(value, str) or value not in set(kind):
        raise Malformed(f"none of {', '.join(kind)}")
    return kind(value)


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise Malformed("object expected")
    return value


def path_of(value: object) -> RepoPath | None:
    """A path inside the repository, or None."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > TEXT_LIMIT:
        raise Malformed("path expected")
    try:
        return RepoPath(value)
    except UsageFault:
        return None


def failure_of(value: object) -> Failure:
    """A failure record."""
    record = mapping(value)
    frames = []
    for frame in sequence(record.get("frames"), 1000):
        path, line, function = exactly(frame, 3)
        frames.append(Frame(path=path_of(path), line=max(0, integer(line)), function=clean(function, 200)))
    return Failure(
        exception=clean(record.get("type"), 200),
        message=clean(record.get("message")),
        frames=tuple(frames),
        left=clean(record.get("left")),
        right=clean(record.get("right")),
    )


def lines_of(value: object) -> Mapping[RepoPath, frozenset[int]] | None:
    """Lines by file, or None when there was no trace."""
    if value is None:
        return None
    found: dict[RepoPath, frozenset[int]] = {}
    total = 0
    for name, numbers in mapping(value).items():
        path = path_of(name)
        lines = sequence(numbers, LINES_LIMIT)
        total += len(lines)
        if total > LINES_LIMIT or any(type(n) is not int or n < 0 for n in lines):
            raise Malformed("lines expected")
        if path is not None:
            found[path] = frozenset(lines)
    return found


def _errors_of(value: object) -> Mapping[str, Failure]:
    found: dict[str, Failure] = {}
    for record in sequence(value, 1000):
        error = mapping(record)
        path = path_of(error.get("path"))
        key = str(path) if path is not None else clean(error.get("id"))
        found.setdefault(key, failure_of(error.get("failure")))
    return found


def collected_of(answer: Mapping[str, Any]) -> Collected:
    """Answer to `open` with kind `collected`. Ids that come twice get a number, in collection order."""
    items: list[Item] = []
    seen: dict[str, int] = {}
    for index, record in enumerate(sequence(answer.get("items"))):
        name, path, line = exactly(record, 3)
        name = clean(name)
        seen[name] = seen.get(name, 0) + 1
        unique = name if seen[name] == 1 else f"{name}#{seen[name]}"
        items.append(Item(index=index, id=unique, path=path_of(path), line=max(0, integer(line))))
    return Collected(
        items=tuple(items),
        errors=_errors_of(answer.get("errors")),
        import_lines=lines_of(answer.get("import_lines")) or {},
        rootdir=clean(answer.get("rootdir")),
        unforkable=clean(answer.get("unforkable") or ""),
    )


def refused_of(answer: Mapping[str, Any], root: str) -> CollectionRefused:
    """Answer to `open` with kind `refused`."""
    why = member(CollectionRefusal, answer.get("why"))
    place = answer.get("path") or None
    path = None
    if isinstance(place, str) and place.startswith(root.rstrip("/") + "/"):
        path = path_of(place[len(root.rstrip("/")) + 1 :])
    text = clean(answer.get("text"), 8000)
    log = clean(answer.get("log") or "", 8000)
    return CollectionRefused(
        why=why,
        text=text if not log or text in log else f"{text}\n{log}" if text else log,
        failure=failure_of(answer.get("failure")),
        path=path,
        errors=_errors_of(answer.get("errors") or []),
        import_lines=lines_of(answer.get("import_lines")) or {},
    )


def ran_of(answer: Mapping[str, Any], asked: Iterable[Item]) -> Ran:
    """Answer to `run`: each result belongs to an item that was asked for, none comes twice."""
    items = {item.index: item for item in asked}
    kind = answer.get("kind")
    if kind == "cannot-swap":
        return Ran(end=RunEnd.CANNOT_SWAP, results={}, why=clean(answer.get("why")))
    if kind not in ("ran", "session-ended"):
        raise Malformed("not an answer to a run")
    results: dict[int, TestResult] = {}
    for record in sequence(answer.get("results")):
        result = mapping(record)
        index = integer(result.get("i"))
        item = items.get(index)
        if item is None or index in results:
            raise Malformed("a result nobody asked for")
        results[index] = result_of(result, item)
    started = answer.get("started")
    if started is not None and integer(started) not in items:
        raise Malformed("an item nobody asked for")
    end = RunEnd.DONE if kind == "ran" else RunEnd.SESSION_ENDED
    return Ran(end=end, results=results, why=clean(answer.get("why") or ""), started=started)


def collect_ran_of(answer: Mapping[str, Any]) -> tuple[tuple[TestResult, ...], Mapping[str, Failure]]:
    """Answer to `collect-run`: results in order, and failures to collect; nothing where a child was lost."""
    results = []
    for index, record in enumerate(sequence(answer.get("results", []))):
        result = mapping(record)
        line = max(0, integer(result.get("line")))
        item = Item(index=index, id=clean(result.get("id")), path=path_of(result.get("path")), line=line)
        results.append(result_of({**result, "i": index}, item))
    return tuple(results), _errors_of(answer.get("errors", []))


def result_of(result: Mapping[str, Any], item: Item) -> TestResult:
    """One test's result."""
    outcome = member(Outcome, result.get("outcome"))
    failure = result.get("failure")
    if outcome.good != (failure is None):
        raise Malformed("outcome and failure disagree")
    return TestResult(
        id=item.id,
        outcome=outcome,
        seconds=number(result.get("seconds")),
        failure=None if failure is None else failure_of(failure),
        lines=lines_of(result.get("lines")),
        path=item.path,
        line=item.line,
    )


def command_of(answer: Mapping[str, Any]) -> CommandRan:
    """Answer to `command`."""
    if answer.get("kind") != "command":
        raise Malformed("not an answer to a command")
    outcome = member(Outcome, answer.get("outcome"))
    status = integer(answer.get("status"))
    if (outcome is Outcome.PASSED) != (status == 0):
        raise Malformed("outcome and status disagree")
    return CommandRan(
        outcome=outcome,
        status=status,
        seconds=number(answer.get("seconds")),
        output=clean(answer.get("output"), 1 << 16),
        lines=lines_of(answer.get("lines")),
    )
