"""What a task did: its stages with their durations, what it said on the way, the candidates it tried."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from localagent.daemon.ui.page_headers import span
from localagent.daemon.ui.queries import Story, TimelineEvent
from localagent.report.stage_text import STAGES
from localagent.text.visible_text import one_line

Piece = tuple[str, str]  # "", "stage" or the mood of a badge, and a text


def stages(seconds: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The stages that took time where they are known, with their share of it in percent."""
    known = [(name, float(s)) for name, s in seconds.items() if isinstance(s, int | float)]
    if total := sum(s for _, s in known):
        for name, spent in known:
            yield STAGES.get(name, name), f"{100 * spent / total:.1f}", span(spent)


def happened(story: Story) -> Iterator[tuple[str, Sequence[Piece]]]:
    """What was said on the way, in order, with the seconds."""
    for event in story.told:
        if found := pieces(event):
            yield f"{event.at:.1f}", found


def _text(value: object) -> str:
    """A value of an event, cut."""
    return one_line(str(value))


def pieces(event: TimelineEvent) -> Sequence[Piece]:
    """One event; empty for what says nothing to a person."""
    data = event.data
    match event.kind:
        case "stage":
            name = str(data.get("stage"))
            return (("stage", STAGES.get(name, name)),)
        case "snapshot":
            text = f"{_text(data.get('files'))} files, {_text(data.get('digest'))}"
        case "baseline":
            text = f"{_text(data.get('passing'))} pass; failing: {_some(data.get('failing'))}"
        case "localized":
            text = f"most suspicious: {_some(data.get('top'))}"
        case "ordered" if "mended" in data:
            text = f"the model said how likely {_text(data['mended'])} edits mend"
        case "ordered":
            text = f"the model ranked {_text(data.get('edits'))} edits"
        case "read-on":
            text = f"the model read {_text(data.get('scored'))} of the likeliest edits further, and ranked them again"
        case "written":
            text = f"the model wrote {_text(data.get('edits'))} edits"
        case "kept":
            text = f"candidate {_text(data.get('number'))} got further; searching on top of it"
        case "controls":
            text = "controls: edits that must not help did not help" if _none_of(data) else "controls tried"
        case "guard":
            text = (
                f"guard: {_text(data.get('ran'))} of {_text(data.get('found'))} tests ran; broken: "
                f"{_some(data.get('broken')) or 'none'}"
            )
        case "full-check":
            answer = ("good", "accepted") if data.get("accepted") is True else ("bad", "refused")
            return ("", f"candidate {_text(data.get('number'))}"), answer, ("", _some(data.get("reasons")))
        case "denied":
            text = (
                f"candidate {_text(data.get('number'))} denied by {_text(data.get('rule'))}: {_text(data.get('edit'))}"
            )
        case "attempt":
            text = f"restarted: {_text(data.get('why'))}"
        case "tool":
            text = f"{_text(data.get('tool'))}: {_text(data.get('text'))}"
        case "warning":
            return ("calm", "warning"), ("", _text(data.get("text")))
        case _:
            return ()
    return (("", text),)


def _none_of(data: Mapping[str, Any]) -> bool:
    found = data.get("plausible")
    return isinstance(found, list) and not any(found)


def _some(found: object, most: int = 5) -> str:
    if not isinstance(found, list):
        return ""
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return _text(", ".join(map(str, found[:most])) + more)


def candidates(story: Story) -> Iterator[dict[str, Any]]:
    """The plausible candidates and the newest others."""
    for event in story.checked:
        shown = {name: event.data.get(name) for name in ("number", "turned", "broken", "cost", "route")}
        yield {**shown, "edit": _some(event.data.get("edit")), "plausible": event.data.get("plausible") is True}
