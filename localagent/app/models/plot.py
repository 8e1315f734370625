"""A plot of measurements as SVG: how much of the built-in set is repaired within so many candidates, by each model."""

import math
from collections.abc import Sequence
from html import escape

from localagent.app.models.measurements import ModelMeasurement, share

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 720, 420, 60, 30, 200, 50
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_MARKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


def plot(found: Sequence[ModelMeasurement]) -> str:
    """One curve for each model, one dashed for the order without any. Self-contained: no script, no reference."""
    most = max((max((*b.ranks, *b.plain)) for b in found), default=1)
    ends = [mark for mark in _MARKS if mark < most] + [max(2, most)]

    def x(rank: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log(rank) / math.log(ends[-1])

    def y(part: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * part

    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" '
        'font-size="12"><rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="18">share of reference bugs whose repair is among the first N edits</text>',
    ]
    for mark in ends[:-1]:
        rows.append(f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{y(0):.1f}" y2="{y(1):.1f}" stroke="#ddd"/>')
        rows.append(f'<text x="{x(mark):.1f}" y="{y(0) + 18:.1f}" text-anchor="middle">{mark}</text>')
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        rows.append(
            f'<line x1="{x(1):.1f}" x2="{x(ends[-1]):.1f}" y1="{y(part):.1f}" y2="{y(part):.1f}" stroke="#ddd"/>'
        )
        rows.append(f'<text x="{_LEFT - 8}" y="{y(part) + 4:.1f}" text-anchor="end">{part:.0%}</text>')
    curves = [(b.name, b.ranks, _COLOURS[k % len(_COLOURS)], "") for k, b in enumerate(found)]
    curves += [("without a model", b.plain, "#777777", ' stroke-dasharray="5 4"') for b in found[:1]]
    for k, (name, ranks, colour, dashes) in enumerate(curves):
        steps = sorted({1, ends[-1], *ranks, *(rank - 1 for rank in ranks if rank > 1)})
        line = " ".join(f"{x(rank):.1f},{y(share(ranks, rank)):.1f}" for rank in steps)
        rows.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dashes} points="{line}"/>')
        rows.append(f'<text x="{_WIDTH - _RIGHT + 10}" y="{_TOP + 34 * k + 10}" fill="{colour}">{escape(name)}</text>')
        if k < len(found) and (repairs := found[k].repairs) is not None:
            told = f"{repairs.correct} of {repairs.bugs} repaired, {repairs.answered - repairs.correct} wrong"
            rows.append(f'<text x="{_WIDTH - _RIGHT + 10}" y="{_TOP + 34 * k + 25}" fill="#444">{told}</text>')
    return "\n".join([*rows, "</svg>"]) + "\n"
