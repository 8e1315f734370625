"""Progress of a task: a live line on a terminal, plain lines elsewhere, JSON events for programs."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.status import Status
from rich.text import Text

from localagent.cli.render import Render, indented
from localagent.cli.safe_console import SafeConsole
from localagent.domain.task import Event
from localagent.text.visible_text import one_line

_STAGES = {
    "index": "bringing the index up to date",
    "snapshot": "reading the tree",
    "baseline": "running the tests without a patch, in the jail",
    "localize": "ranking suspicious statements",
    "search": "searching the edit space",
    "choose": "comparing what the plausible candidates do",
    "full-check": "full check in a new jail",
    "guard": "running the tests outside --test with the patch",
    "gates": "checking the patch with the gates; nothing runs yet",
    "coverage": "running the tests with the patch, tracing lines",
    "differential": "comparing old and new on equal inputs",
    "crosshair": "searching with CrossHair for differing inputs and broken contracts",
    "mutants": "trying mutants of the changed lines",
    "needed parts": "checking which parts of the patch the tests need",
    "strength": "measuring the strength of the evidence",
    "record": "writing the record",
    "skeleton": "writing down what the tests import",
    "recipe": "looking whether the instruction needs a model",
    "planner": "the model plans",
    "tester": "the model writes acceptance tests",
    "agent": "the model works on the instruction",
    "original": "running what fails, in the jail",
    "rate": "running it again, to see whether it always fails",
    "reduce": "leaving out parts while it fails in the same way",
    "confirm": "running the result from nothing in a new jail",
    "flaky": "varying one thing at a time",
}


def describe(event: Event) -> str:
    """One line for a person, or "" for events that are only kept in the journal."""
    data = event.data
    match event.kind:
        case "stage":
            return _STAGES.get(str(data.get("stage")), str(data.get("stage")))
        case "baseline":
            failing = list(data.get("failing", []))
            more = f" and {len(failing) - 3} more" if len(failing) > 3 else ""
            flaky = f", {len(data['flaky'])} flaky (ignored)" if data.get("flaky") else ""
            if explained := len(data.get("explained", [])):
                flaky += f", {explained} fail for what no edit mends"
            if not failing:
                return f"  {data.get('passing')} pass{'' if explained else ', none fails'}{flaky}"
            return f"  {data.get('passing')} pass, {len(failing)} fail{flaky}: {', '.join(failing[:3])}{more}"
        case "localized":
            return f"  most suspicious: {', '.join(data.get('top', [])[:4])}"
        case "ordered" if data.get("scored"):
            return f"  the model ranked {data.get('edits')} edits"
        case "reading-on":
            return f"  the model reads {data.get('edits')} of the likeliest edits further"
        case "kept":
            return f"  candidate {data.get('number')} got further; searching on top of it"
        case "checked" if data.get("plausible"):
            return f"  plausible: candidate {data.get('number')}: {'; '.join(data.get('edit', []))}"
        case "guard":
            return f"  guard: {data.get('ran')} of {data.get('found')} tests ran, {len(data.get('broken', []))} broken"
        case "full-check":
            reasons = "; ".join(data.get("reasons", []))
            return f"  candidate {data.get('number')}: " + (
                "passes the full check" if data.get("accepted") else f"refused: {reasons}"
            )
        case "strength" if data.get("grade"):
            return f"  strength {data.get('grade')} of A to E"
        case "tool":
            return f"  {data.get('tool')}: {data.get('text')}"
        case "judged":
            return _judged(data)
        case "reducing":
            return f"  {data.get('runs')} runs, {data.get('size'):,} of {data.get('before'):,} bytes left"
        case "trial":
            return f"  {data.get('text')}"
        case "warning":
            return f"  warning: {data.get('text')}"
    return ""


def _warning(event: Event) -> set[str]:
    """What an event warns of: need not be said again at the end."""
    return {str(event.data.get("text"))} if event.kind == "warning" else set()


def _judged(data: Mapping[str, Any]) -> str:
    """A bisection's verdict on one commit, and how much is left."""
    left = ""
    if data.get("suspects"):
        steps = f"{data['steps']} step{'s' * (data['steps'] != 1)}"
        many = f"{data['suspects']:,} of {data['commits']:,} commits are likely, about {steps}"
        left = f"; {many if data['suspects'] > 1 else 'one commit is likely'}"
    reason = one_line(str(data.get("reason")), 100)
    failed, runs = data.get("failed", 0), data.get("failed", 0) + data.get("passed", 0)
    times = f" (fails in {failed} of {runs} runs)" if runs > 1 else ""
    return f"  {data.get('number')}. {str(data.get('commit'))[:12]} {data.get('verdict')}: {reason}{times}{left}"


class JsonSink:
    """One event per line on standard output."""

    def __init__(self, render: Render) -> None:
        self._render = render

    def emit(self, event: Event) -> None:
        """Writes the event as it is."""
        self._render.json({"event": event.kind, "at_seconds": event.at_seconds, **event.data})


class PlainSink:
    """Plain lines on standard error; candidates per second at most every five seconds."""

    def __init__(self, render: Render, *, quiet: bool = False) -> None:
        self._render, self._quiet = render, quiet
        self._rate = _Rate(every_seconds=5.0)
        self.warned: set[str] = set()

    def emit(self, event: Event) -> None:
        """Writes what a person would want to know."""
        if self._quiet:
            return
        self.warned |= _warning(event)
        text = describe(event) or self._rate.line(event)
        if text:
            self._render.note(f"[{event.at_seconds:6.1f}s] {text}")


class TerminalSink:
    """A live status line below the lines that stay."""

    def __init__(self) -> None:
        self.warned: set[str] = set()
        self._console = SafeConsole(stderr=True, highlight=False)
        self._status: Status | None = Status("starting", console=self._console)
        self._status.start()
        self._rate = _Rate(every_seconds=0.4)

    def emit(self, event: Event) -> None:
        """Keeps a line, or renews the live one."""
        if self._status is None:
            return
        self.warned |= _warning(event)
        if event.kind == "stage":
            self._status.update(Text(describe(event)))
        text = describe(event)
        if text:
            self._console.print(f"[{event.at_seconds:6.1f}s] {indented(text)}", markup=False)
        rate = self._rate.line(event)
        if rate:
            self._status.update(Text(rate.strip()))

    def close(self) -> None:
        """Ends the live line."""
        if self._status is not None:
            self._status.stop()
            self._status = None


@contextmanager
def progress_sink(render: Render, *, quiet: bool = False) -> Iterator[PlainSink | TerminalSink]:
    """A live line where standard error is a terminal, plain lines elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield PlainSink(render, quiet=quiet)
        return
    live = TerminalSink()
    try:
        yield live
    finally:
        live.close()


class _Rate:
    def __init__(self, *, every_seconds: float) -> None:
        self._every = every_seconds
        self._shown = time.monotonic()
        self._first: tuple[float, int] | None = None

    def line(self, event: Event) -> str:
        if event.kind != "progress":
            return ""
        done = int(event.data.get("verified", 0))
        if self._first is None:
            self._first = (event.at_seconds, done)
        now = time.monotonic()
        if now - self._shown < self._every:
            return ""
        self._shown = now
        if "indexed" in event.data:
            return f"  {event.data['indexed']:,} of {event.data.get('files'):,} files read"
        if "guard_ran" in event.data:
            return f"  guard: {event.data['guard_ran']} of {event.data.get('guard_found')} tests ran"
        seconds = event.at_seconds - self._first[0]
        rate = (done - self._first[1]) / seconds if seconds > 0.2 else 0.0
        best = f", {event.data['plausible']} plausible" if event.data.get("plausible") else ""
        return f"  {done} candidates checked, {rate:.0f}/s, {event.data.get('open')} open{best}"
