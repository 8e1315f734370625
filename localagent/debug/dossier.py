"""The dossier of one failing test as a value, as text and as JSON."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from localagent.debug.departure import Departure
from localagent.debug.exception_meanings import meaning_of
from localagent.debug.explanation import change_text
from localagent.debug.value_outcomes import ValueExperiment, ValueOutcome
from localagent.domain.failure_run import FailureRun, WrittenValue
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.repo.line_history import LineChange
from localagent.report.html import render
from localagent.text.visible_text import shortened

MOST_SUSPECTS = 10
MOST_LOCALS = 8
MOST_WRITES = 12


class HypothesisOutcome(StrEnum):
    """What an experiment showed."""

    CONFIRMED = "confirmed"  # the tests pass, no edit tried elsewhere does it, and the trace suspects it first, too
    POSSIBLE = "possible"  # a hint: an edit elsewhere does it, or the trace suspects others, or others were not run
    REFUTED = "refuted"  # some tests still fail, or others broke: of this edit, not of the statement


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
    """Everything known of one failure. `failing` counts all failing tests of the run."""

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
    seconds: float


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
    return f"{d.test} fails" + (f" (and {d.failing - 1} other tests)" if d.failing > 1 else "")


def _head(d: Dossier) -> Iterator[str]:
    first = shortened(d.failure.message.split("\n", 1)[0], 300)
    yield f"{d.failure.exception}: {first}" if first else d.failure.exception
    meaning = meaning_of(d.failure.exception, d.failure.message)
    if meaning is not None:
        yield f"it means: {meaning.sentence}"
        yield f"look at: {meaning.look}"


def _sections(d: Dossier) -> Iterator[tuple[str, list[str]]]:
    for title, body in (
        ("Where to look first", look_first(d)),
        ("Frames, outermost first", _frames(d)),
        ("Last writes of the names in the failing statement", _writes(d)),
        ("Where it departs from the nearest test that passes", _departure(d)),
        ("Suspicious statements", _suspects(d)),
        ("Values that were forced, one at a time", (one.sentence for one in d.values)),
        ("Edits that were tried, and what became of the tests", _hypotheses(d)),
    ):
        told = list(body)
        if told:
            yield title, told


def look_first(d: Dossier) -> Iterator[str]:
    """The statements that most speaks for, and what: experiments before ranks. What was not shown is said."""
    confirmed = [h for h in d.hypotheses if h.outcome is HypothesisOutcome.CONFIRMED]
    for one in confirmed:
        yield f"{one.path}:{one.line}: with {one.experiment} {one.shown}"
    if confirmed:
        return
    yield "no experiment confirmed a cause; the best hints:" if d.suspects else "nothing points at a statement"
    hints = [(h.path, h.line, f"with {h.experiment} {h.shown}") for h in d.hypotheses if h.outcome is _POSSIBLE]
    hints += [
        (v.forced.path, v.forced.line, f"this condition decides: {v.sentence}")
        for v in d.values
        if v.outcome is ValueOutcome.PASSES and v.forced.is_condition
    ]
    hints += [(s.suspicion.path, s.suspicion.line, s.text or s.suspicion.why) for s in d.suspects]
    for path, line, why in list({(path, line): (path, line, why) for path, line, why in reversed(hints)}.values())[
        ::-1
    ][:3]:
        yield f"{path}:{line}: {why}"


def _frames(d: Dossier) -> Iterator[str]:
    if d.run is not None and d.run.frames:
        for frame in d.run.frames[-8:]:
            yield f"{frame.path}:{frame.line}, in {frame.function}"
            if text := d.sources.get(f"{frame.path}:{frame.line}"):
                yield f"    {text}"
            for name, value in frame.values[:MOST_LOCALS]:
                yield f"      {name} = {value}"
    else:
        for known in d.failure.frames[-8:]:
            if known.path is not None:
                yield f"{known.path}:{known.line}, in {known.function}"


def _writes(d: Dossier) -> Iterator[str]:
    for one in d.writes[-MOST_WRITES:]:
        yield f"{one.path}:{one.line}  {one.name} = {one.value}"


def _departure(d: Dossier) -> Iterator[str]:
    if d.departure is not None:
        one = d.departure
        yield f"after {one.after[0]}:{one.after[1]} it goes on at {one.line[0]}:{one.line[1]}"
        yield f"  {one.test} goes on at {one.passing_line[0]}:{one.passing_line[1]}"


def _suspects(d: Dossier) -> Iterator[str]:
    for number, one in enumerate(d.suspects, 1):
        s = one.suspicion
        yield f"{number:>2}. {s.path}:{s.line}  {one.text}"
        changed = f"; last changed {change_text(one.change)}" if one.change is not None else ""
        yield f"      {s.why}{changed}"


def _hypotheses(d: Dossier) -> Iterator[str]:
    for one in d.hypotheses:
        yield f"{one.outcome.value}: {one.path}:{one.line}, {one.experiment}"
        yield f"      {one.shown}"


def dossier_json(d: Dossier) -> dict[str, Any]:
    """The same as JSON types."""
    frames = d.run.frames if d.run is not None else ()
    return {
        "test": d.test,
        "exception": d.failure.exception,
        "message": d.failure.message,
        "failing": d.failing,
        "frames": [
            {"path": f.path, "line": f.line, "function": f.function, "locals": dict(f.values)} for f in frames
        ],
        "look_first": list(look_first(d)),
        "writes": [{"path": w.path, "line": w.line, "name": w.name, "value": w.value} for w in d.writes],
        "departure": None
        if d.departure is None
        else {
            "test": d.departure.test, "path": d.departure.line[0], "line": d.departure.line[1],
            "after": ":".join(map(str, d.departure.after)),
            "passing": ":".join(map(str, d.departure.passing_line)),
        },
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
