"""The dossier of one failing test as a value, as text and as JSON."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, groupby
from typing import Any, TypeVar

from localagent.debug.departure import Departure
from localagent.debug.exception_meanings import meaning_of
from localagent.debug.explanation import Explanation, change_text
from localagent.debug.explanation_text import explanation_json, explanation_text
from localagent.debug.value_outcomes import ValueExperiment, ValueOutcome
from localagent.domain.bisection import HunkSummary
from localagent.domain.failure_run import FailureRun, FrameValues, WrittenValue
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.repo.line_history import LineChange
from localagent.report.html import render
from localagent.text.visible_text import shortened

MOST_SUSPECTS = 10
MOST_FRAMES = 8
MOST_LOCALS = 8
MOST_WRITES = 12
MOST_HUNK_LINES = 8


class HypothesisOutcome(StrEnum):
    """What an experiment showed."""

    CONFIRMED = "confirmed"  # the tests pass, no edit tried elsewhere does it, and the trace suspects it first, too
    POSSIBLE = "possible"  # a hint: an edit elsewhere does it, or the trace suspects others, or others were not run
    REFUTED = "refuted"  # some tests still fail, or others broke: of this edit, not of the statement


_F = TypeVar("_F")
_TEST_CASE = "(_testMethodName="  # what every test of a unittest class has for `self`
_POSSIBLE = HypothesisOutcome.POSSIBLE


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """A statement that may be the cause, an edit of the search that was tried there, and what became of the tests."""

    path: RepoPath
    line: int
    experiment: str
    outcome: HypothesisOutcome
    shown: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspect:
    """A ranked statement with its text and last change."""

    suspicion: Suspicion
    text: str
    change: LineChange | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Dossier:
    """Everything known of one failure. `failing` counts all failing tests of the run.

    `sources`: the text of each line that is named, by `path:line`. `tried`: how many changes were run, None where there
    was no time. `uncommitted`: the least of the changes since the last commit without which the test passes.
    `quoted`: tracebacks that the failure's message holds, of a child process
    for one.
    """

    test: str
    failure: Failure
    failing: int
    run: FailureRun | None
    sources: dict[str, str]
    writes: tuple[WrittenValue, ...]
    departure: Departure | None
    suspects: tuple[Suspect, ...]
    values: tuple[ValueExperiment, ...]
    hypotheses: tuple[Hypothesis, ...]
    tried: int | None
    seconds: float
    uncommitted: tuple[HunkSummary, ...] = ()
    quoted: tuple[Explanation, ...] = ()


def dossier_text(d: Dossier) -> str:
    """One section after the other; those with nothing to say are left out."""
    lines = [_title(d), *(f"  {line}" for line in _head(d))]
    for title, body in _sections(d):
        lines += ["", title, *(f"  {line}" for line in body)]
    return "\n".join(lines)


def dossier_page(d: Dossier) -> bytes:
    """The same as one HTML page, without script and link."""
    return render("debug.html", title=_title(d), head=list(_head(d)), sections=list(_sections(d)))


def _title(d: Dossier) -> str:
    kind, _, name = d.test.partition(":")
    said = {"collect": f"{name} cannot be collected", "check": f"`{name}` fails"}.get(kind, f"{d.test} fails")
    return (
        f"{said}; {counted(d.failing - 1, 'other test')} fail, too"
        if d.failing > 2
        else said + ("; another test fails, too" if d.failing == 2 else "")
    )


def counted(number: int, noun: str) -> str:
    """`1 test`, `2 tests`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _head(d: Dossier) -> Iterator[str]:
    first = shortened(d.failure.message.split("\n", 1)[0], 300)
    yield f"{d.failure.exception}: {first}" if first else d.failure.exception
    meaning = meaning_of(d.failure.exception, d.failure.message)
    if meaning is not None and not (first and d.failure.exception == "AssertionError"):  # that says it itself
        yield f"it means: {meaning.sentence}"
        yield f"look at: {meaning.look}"


def _sections(d: Dossier) -> Iterator[tuple[str, list[str]]]:
    for title, body in (
        ("Where to look first", look_first(d)),
        ("Changed since the last commit, and without that the test passes", _uncommitted(d)),
        ("Frames, outermost first", _frames(d)),
        ("Threads of the test that an exception ended", _threads(d)),
        ("A traceback in the message", chain.from_iterable(explanation_text(q).split("\n") for q in d.quoted)),
        ("Where the names in the failing statement got their values", _writes(d)),
        ("Where it first goes another way than the most similar test that passes", _departure(d)),
        ("Suspicious statements", _suspects(d)),
        ("Values that were forced, one at a time", (one.sentence for one in d.values)),
        ("Changes that were tried, and what became of the tests", _hypotheses(d)),
        ("What to do next", next_steps(d)),
    ):
        told = list(body)
        if told:
            yield title, told


def look_first(d: Dossier) -> Iterator[str]:
    """The statements that most speaks for, and what: experiments before ranks. What was not shown is said."""
    confirmed = _by_line(h for h in d.hypotheses if h.outcome is HypothesisOutcome.CONFIRMED)
    if d.uncommitted and not confirmed:
        yield "what you changed since the last commit; without that the test passes:"
        yield from _uncommitted(d)
        return
    for same in confirmed:
        yield _line(d, same[0].path, same[0].line)
        yield f"    {_changed(same[0])}"
        if len(same) > 1:
            others = "; ".join(h.experiment for h in same[1:])
            does = "does" if len(same) == 2 else "do"
            yield f"    so {does} {counted(len(same) - 1, 'other change')} there: {others}"
    if confirmed:
        return
    hints = [(h.path, h.line, _changed(h)) for h in d.hypotheses if h.outcome is _POSSIBLE]
    hints += [
        (v.forced.path, v.forced.line, f"this condition decides: {v.sentence}")
        for v in d.values
        if v.outcome is ValueOutcome.PASSES and v.forced.is_condition
    ]
    hints += [(s.suspicion.path, s.suspicion.line, s.suspicion.why) for s in d.suspects]
    if not hints:
        yield from _in_tests(d)
        return
    yield f"{_tried(d)}; the best hints:"
    first = {(path, line): why for path, line, why in reversed(hints)}
    for path, line in list(dict.fromkeys((path, line) for path, line, _ in hints))[:3]:
        yield _line(d, path, line)
        if first[path, line]:
            yield f"    {first[path, line]}"


def next_steps(d: Dossier) -> Iterator[str]:
    """Commands that go on from here. Of a command or of files that are not collected only the repair."""
    kind, _, name = d.test.partition(":")
    if kind in ("check", "collect"):
        yield f"localagent fix --{'check' if kind == 'check' else 'test'} {shlex.quote(name)}"
        return
    test = shlex.quote(d.test)
    yield f"localagent fix --test {test}        # look for a repair"
    if not d.uncommitted:
        yield f"localagent bisect --test {test}     # find the commit that broke it, if it passed before"
    yield f"localagent reproduce {test}         # the smallest program that still fails so"


def _tried(d: Dossier) -> str:
    """Why nothing is confirmed."""
    if d.tried is None:
        return "the time was over before a change was tried (--max-seconds)"
    if not d.tried:
        return "no change was tried"
    if any(h.outcome is _POSSIBLE for h in d.hypotheses):
        return "no experiment confirmed a cause"
    return (
        f"none of the {d.tried:,} changes that were tried mends it" if d.tried > 1 else "one change was tried in vain"
    )


def _by_line(hypotheses: Iterable[Hypothesis]) -> list[list[Hypothesis]]:
    """Those of each statement together, in the order of the first ones."""
    found: dict[tuple[RepoPath, int], list[Hypothesis]] = {}
    for one in hypotheses:
        found.setdefault((one.path, one.line), []).append(one)
    return list(found.values())


def _in_tests(d: Dossier) -> Iterator[str]:
    """Where it fails, if nothing outside the tests can be blamed."""
    last = next((f for f in reversed(d.failure.frames) if f.path is not None), None)
    if last is None or last.path is None:
        yield "nothing points at a statement"
        return
    yield "no statement outside the tests can be blamed; it fails here:"
    yield _line(d, last.path, last.line)


def _line(d: Dossier, path: RepoPath, line: int) -> str:
    """A place with what stands there."""
    return f"{path}:{line}  {d.sources.get(f'{path}:{line}', '')}".rstrip()


def _changed(one: Hypothesis) -> str:
    return f"changed ({one.experiment}), {one.shown}"


def _uncommitted(d: Dossier) -> Iterator[str]:
    for hunk in d.uncommitted:
        yield f"{hunk.path}:{hunk.line}"
        for mark, text in (("-", hunk.before), ("+", hunk.after)):
            lines = text.splitlines()
            yield from (f"  {mark} {shortened(line, 160)}" for line in lines[:MOST_HUNK_LINES])
            if len(lines) > MOST_HUNK_LINES:
                yield f"  {mark} ... {len(lines) - MOST_HUNK_LINES:,} more lines"


def _frames(d: Dossier) -> Iterator[str]:
    if d.run is not None and d.run.frames:
        yield from _with_values(d, d.run.frames)
    else:
        for known, times in _repeated(d.failure.frames, lambda f: (f.path, f.line, f.function)):
            if known.path is not None:
                yield from _frame(d, known.path, known.line, known.function, times)


def _threads(d: Dossier) -> Iterator[str]:
    for one in d.run.threads if d.run is not None else ():
        first = shortened(one.message.split("\n", 1)[0], 300)
        yield f"{one.name}: {one.exception}" + (f": {first}" if first else "")
        yield from (f"  {line}" for line in _with_values(d, one.frames))


def _with_values(d: Dossier, frames: Sequence[FrameValues]) -> Iterator[str]:
    for frame, times in _repeated(frames, lambda f: (f.path, f.line, f.function)):
        yield from _frame(d, frame.path, frame.line, frame.function, times)
        for name, value in [v for v in frame.values if _TEST_CASE not in v[1]][:MOST_LOCALS]:
            yield f"      {name} = {value}"


def _repeated(frames: Sequence[_F], place: Callable[[_F], object]) -> list[tuple[_F, int]]:
    """The innermost frames; of those that follow each other at one place the last, with how many they are."""
    groups = [list(same) for _, same in groupby(frames, key=place)]
    return [(same[-1], len(same)) for same in groups[-MOST_FRAMES:]]


def _frame(d: Dossier, path: RepoPath, line: int, function: str, times: int) -> Iterator[str]:
    name = f", in {function}" if function else ""
    yield f"{path}:{line}{name}" + (f", {times:,} times in a row; the last one:" if times > 1 else "")
    if text := d.sources.get(f"{path}:{line}"):
        yield f"    {text}"


def _writes(d: Dossier) -> Iterator[str]:
    for one in [w for w in d.writes if _TEST_CASE not in w.value][-MOST_WRITES:]:
        yield f"{one.path}:{one.line}  {one.name} = {one.value}"


def _departure(d: Dossier) -> Iterator[str]:
    if d.departure is not None:
        one = d.departure
        yield f"both run   {_line(d, *one.after)}"
        yield f"this test  {_line(d, *one.line)}"
        yield f"that test  {_line(d, *one.passing_line)}  ({one.test})"


def _suspects(d: Dossier) -> Iterator[str]:
    for number, one in enumerate(d.suspects, 1):
        s = one.suspicion
        yield f"{number:>2}. {s.path}:{s.line}  {one.text}"
        changed = f"last changed {change_text(one.change)}" if one.change is not None else ""
        if said := "; ".join(filter(None, (s.why, changed))):
            yield f"      {said}"


def _hypotheses(d: Dossier) -> Iterator[str]:
    for same in _by_line(d.hypotheses):
        yield _line(d, same[0].path, same[0].line)
        for one in same:
            yield f"    {one.outcome.value}: {_changed(one)}"


def dossier_json(d: Dossier) -> dict[str, Any]:
    """The same as JSON types."""
    return {
        "test": d.test,
        "exception": d.failure.exception,
        "message": d.failure.message,
        "failing": d.failing,
        "frames": _frames_json(d.run.frames if d.run is not None else ()),
        "threads": [
            {"name": t.name, "exception": t.exception, "message": t.message, "frames": _frames_json(t.frames)}
            for t in (d.run.threads if d.run is not None else ())
        ],
        "look_first": list(look_first(d)),
        "tried": d.tried,
        "next_steps": list(next_steps(d)),
        "quoted": [explanation_json(q) for q in d.quoted],
        "writes": [{"path": w.path, "line": w.line, "name": w.name, "value": w.value} for w in d.writes],
        "departure": None
        if d.departure is None
        else {
            "test": d.departure.test, "path": d.departure.line[0], "line": d.departure.line[1],
            "after": ":".join(map(str, d.departure.after)),
            "passing": ":".join(map(str, d.departure.passing_line)),
        },
        "uncommitted": [{"path": h.path, "line": h.line, "before": h.before, "after": h.after} for h in d.uncommitted],
        "values": [
            {"path": v.forced.path, "line": v.forced.line, "forced": v.forced.what, "origin": v.forced.origin,
             "outcome": v.outcome.value, "shown": v.sentence}
            for v in d.values
        ],
        "suspects": [
            {"path": s.suspicion.path, "line": s.suspicion.line, "end_line": s.suspicion.end_line, "text": s.text,
             "score": round(s.suspicion.score, 4), "why": s.suspicion.why,
             "commit": s.change.commit if s.change is not None else ""}
            for s in d.suspects
        ],
        "hypotheses": [
            {"path": h.path, "line": h.line, "experiment": h.experiment, "outcome": h.outcome.value, "shown": h.shown}
            for h in d.hypotheses
        ],
        "seconds": round(d.seconds, 2),
    }  # fmt: skip


def _frames_json(frames: Iterable[FrameValues]) -> list[dict[str, Any]]:
    return [{"path": f.path, "line": f.line, "function": f.function, "locals": dict(f.values)} for f in frames]
