"""What a task did, as HTML: its stages with their durations, what it said on the way, the candidates it tried."""

from collections.abc import Iterator, Mapping
from typing import Any

from localagent.daemon.ui.html import badge, said, span
from localagent.daemon.ui.queries import MOST_TOLD, Story, TimelineEvent

STAGES = {
    "snapshot": "reading the tree",
    "baseline": "running the tests without a patch, in the jail",
    "localize": "ranking suspicious statements",
    "search": "searching the edit space",
    "choose": "comparing what the plausible candidates do",
    "full-check": "full check in a new jail",
    "guard": "running the tests outside --test with the patch",
    "record": "writing the record",
}


def timeline(story: Story, seconds: Mapping[str, Any]) -> Iterator[str]:
    """The stages that took time, as bars where they are known, then what was said, in order."""
    known = [(name, float(s)) for name, s in seconds.items() if isinstance(s, int | float)]
    if total := sum(s for _, s in known):
        yield '<div class="card"><table><tr><th>stage</th><th></th><th class="n">time</th></tr>'
        for name, spent in known:
            yield (
                f"<tr><td>{said(STAGES.get(name, name))}</td><td>{_bar(spent / total)}</td>"
                f'<td class="n">{span(spent)}</td></tr>'
            )
        yield "</table></div><p></p>"
    if not story.told:
        yield '<p class="soft">Nothing has happened yet.</p>'
        return
    yield '<div class="card"><table><tr><th class="n">after</th><th>what happened</th></tr>'
    for event in story.told:
        if text := told(event):
            yield f'<tr><td class="n">{event.at:.1f} s</td><td>{text}</td></tr>'
    yield "</table></div>"
    if len(story.told) == MOST_TOLD:
        yield f'<p class="soft">Only the first {MOST_TOLD} are shown.</p>'


def _bar(share: float) -> str:
    width = f"{100 * share:.1f}"
    return (
        '<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{width}" height="6"/></svg>'
    )


def told(event: TimelineEvent) -> str:
    """One event as HTML, "" for what says nothing to a person."""
    data = event.data
    match event.kind:
        case "stage":
            name = str(data.get("stage"))
            return f"<b>{said(STAGES.get(name, name))}</b>"
        case "snapshot":
            return f"{said(data.get('files'))} files, {said(data.get('digest'))}"
        case "baseline":
            return f"{said(data.get('passing'))} pass; failing: {_some(data.get('failing'))}"
        case "localized":
            return f"most suspicious: {_some(data.get('top'))}"
        case "ordered" if "mended" in data:
            return f"the model rated {said(data['mended'])} edits as repairs"
        case "ordered":
            return f"the model ranked {said(data.get('edits'))} edits"
        case "read-on":
            return f"the model read {said(data.get('scored'))} of the likeliest edits further, and ranked them again"
        case "written":
            return f"the model wrote {said(data.get('edits'))} edits"
        case "kept":
            return f"candidate {said(data.get('number'))} got further; searching on top of it"
        case "controls":
            return "controls: edits that must not help did not help" if _none_of(data) else "controls tried"
        case "guard":
            return (
                f"guard: {said(data.get('ran'))} of {said(data.get('found'))} tests ran; broken: "
                f"{_some(data.get('broken')) or 'none'}"
            )
        case "full-check":
            mood = badge("accepted", "good") if data.get("accepted") is True else badge("refused", "bad")
            return f"candidate {said(data.get('number'))} {mood} {_some(data.get('reasons'))}"
        case "denied":
            return f"candidate {said(data.get('number'))} denied by {said(data.get('rule'))}: {said(data.get('edit'))}"
        case "attempt":
            return f"restarted: {said(data.get('why'))}"
        case "warning":
            return f"{badge('warning', 'calm')} {said(data.get('text'))}"
    return ""


def _none_of(data: Mapping[str, Any]) -> bool:
    found = data.get("plausible")
    return isinstance(found, list) and not any(found)


def _some(found: object, most: int = 5) -> str:
    if not isinstance(found, list):
        return ""
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return said(", ".join(map(str, found[:most])) + more)


def candidates(story: Story, denied: Mapping[str, Any]) -> Iterator[str]:
    """The plausible candidates and the newest others; what the gates refused, by rule."""
    if denied:
        rules = ", ".join(f"{rule} {count}" for rule, count in denied.items())
        yield f'<p class="soft">Denied before they ran: {said(rules)}</p>'
    if not story.checked:
        yield '<p class="soft">None has run yet.</p>'
        return
    if story.checked_all > len(story.checked):
        yield f'<p class="soft">{story.checked_all} ran; the plausible and the newest {len(story.checked)} of them:</p>'
    yield (
        '<div class="card"><table><tr><th class="n">no.</th><th>edit</th><th>answer</th><th class="n">fixed</th>'
        '<th class="n">broken</th><th class="n">cost</th><th>route</th></tr>'
    )
    for event in story.checked:
        data = event.data
        good = data.get("plausible") is True
        answer = badge("plausible", "good") if good else '<span class="soft">no</span>'
        yield (
            f'<tr{" class=found" if good else ""}><td class="n">{said(data.get("number"))}</td>'
            f"<td>{_some(data.get('edit'))}</td><td>{answer}</td>"
            f'<td class="n">{said(data.get("turned"))}</td><td class="n">{said(data.get("broken"))}</td>'
            f'<td class="n">{said(data.get("cost"))}</td><td class="soft">{said(data.get("route"))}</td></tr>'
        )
    yield "</table></div>"
