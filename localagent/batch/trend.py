"""Earlier nights and this one as a chart: bars stacked by what came of the repositories."""

from typing import Any

from localagent.batch.task_result import SETTLED, RepositoryState

WIDTH, HEIGHT, _LEFT, _TOP, _BOTTOM = 720, 150, 36, 8, 22
GROUPS = {
    "patches": (RepositoryState.FIXED, RepositoryState.IMPROVED),
    "clean": (RepositoryState.CLEAN,),
    "person": tuple(s for s in RepositoryState if s not in SETTLED and s is not RepositoryState.NOT_REACHED),
    "not reached": (RepositoryState.NOT_REACHED,),
}
COLOURS = {"patches": "#1f6f43", "clean": "#b9d8c2", "person": "#b4432f", "not reached": "#c9c9c9"}


def chart(trend: list[dict[str, Any]]) -> dict[str, Any]:
    """Where bars and days stand in the drawing, with a text for those who do not see it; empty for no night."""
    if not trend:
        return {}
    nights = [_grouped(point) for point in trend]
    most = max(1, *(sum(night.values()) for night in nights))
    space = (WIDTH - _LEFT) / max(8, len(nights))
    bars, days = [], []
    for n, (point, night) in enumerate(zip(trend, nights, strict=True)):
        x, y, day = _LEFT + 4 + n * space, float(HEIGHT - _BOTTOM), point["began"][:10]
        for group, count in night.items():
            tall = (HEIGHT - _TOP - _BOTTOM) * count / most
            y -= tall
            bar = {"x": x, "y": y, "width": space * 0.75, "height": tall}
            bars.append({**bar, "group": group, "title": f"{day}: {count} {group}"})
        if n in (0, len(nights) - 1):
            days.append((x, day))
    return {"label": _said(trend, nights), "most": most, "bars": bars, "days": days}


def _grouped(point: dict[str, Any]) -> dict[str, int]:
    return {group: sum(point["states"].get(s.value, 0) for s in states) for group, states in GROUPS.items()}


def _said(trend: list[dict[str, Any]], nights: list[dict[str, int]]) -> str:
    last = ", ".join(f"{count} {group}" for group, count in nights[-1].items())
    return f"{len(trend)} nights up to {trend[-1]['began'][:10]}; the last: {last}"
