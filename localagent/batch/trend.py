"""Earlier nights and this one as a small inline SVG: bars stacked by what came of the repositories. Numbers only."""

import html
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


def chart(trend: list[dict[str, Any]]) -> str:
    """The drawing, with a text for those who do not see it; "" for no night."""
    if not trend:
        return ""
    nights = [_grouped(point) for point in trend]
    most = max(1, *(sum(night.values()) for night in nights))
    space = (WIDTH - _LEFT) / max(8, len(nights))
    room = HEIGHT - _TOP - _BOTTOM
    parts = [
        f'<svg role="img" viewBox="0 0 {WIDTH} {HEIGHT}" width="100%"',
        f' aria-label="{html.escape(_said(trend, nights))}">',
        f'<line x1="{_LEFT}" y1="{HEIGHT - _BOTTOM}" x2="{WIDTH}" y2="{HEIGHT - _BOTTOM}" stroke="#888"/>',
        _text(_LEFT - 6, _TOP + 8, str(most), "end"),
        _text(_LEFT - 6, HEIGHT - _BOTTOM, "0", "end"),
    ]
    for n, (point, night) in enumerate(zip(trend, nights, strict=True)):
        x, y = _LEFT + 4 + n * space, float(HEIGHT - _BOTTOM)
        for group, count in night.items():
            tall = room * count / most
            y -= tall
            title = html.escape(f"{point['began'][:10]}: {count} {group}")
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{space * 0.75:.1f}" height="{tall:.1f}" '
                f'fill="{COLOURS[group]}"><title>{title}</title></rect>'
            )
        if n in (0, len(nights) - 1):
            anchor = "start" if n == 0 else "middle"
            parts.append(_text(x, HEIGHT - 6, html.escape(point["began"][:10]), anchor))
    return "\n".join([*parts, "</svg>"])


def _grouped(point: dict[str, Any]) -> dict[str, int]:
    return {group: sum(point["states"].get(s.value, 0) for s in states) for group, states in GROUPS.items()}


def _said(trend: list[dict[str, Any]], nights: list[dict[str, int]]) -> str:
    last = ", ".join(f"{count} {group}" for group, count in nights[-1].items())
    return f"{len(trend)} nights up to {trend[-1]['began'][:10]}; the last: {last}"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="11" fill="#555" text-anchor="{anchor}">{text}</text>'
