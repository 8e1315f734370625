"""The audit report as one HTML page that needs nothing else: no script, no link, charts as inline SVG, all escaped."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from localagent.record.audit.heads import UNVERIFIABLE
from localagent.text.visible_text import one_line

_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1c1c1c}"
    "h1{font-size:1.3rem}h2{font-size:1rem;margin:2rem 0 .5rem}"
    "table{border-collapse:collapse;width:100%;font-size:.85rem}td,th{border-top:1px solid #ccc;padding:.3rem;"
    "text-align:left;vertical-align:top;overflow-wrap:anywhere}"
    ".chain{border-left:.4rem solid #00601a;padding-left:1rem}"
    ".altered,.unverifiable{border-color:#a00000}.torn{border-color:#7a4b00}.charts{display:flex;flex-wrap:wrap;gap:1.5rem}"
    "svg text{font:12px system-ui,sans-serif;fill:#1c1c1c}svg rect{fill:#3b6ea5}.why{color:#555}"
)
_MOST_BARS = 12
_ROW, _LABEL, _WIDTH = 20, 170, 180
_MOST_ROWS = 2000


def page(report: Mapping[str, Any]) -> bytes:
    """The page's bytes."""
    chain, totals = report["chain"], report["totals"]
    out = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_CSP}">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>localagent audit since {_shown(report['since'])}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f"<h1>What localagent did since {_shown(report['since'])}</h1>",
        *_chain(chain),
        '<div class="charts">',
        chart("tasks by outcome", totals["outcomes"]),
        chart("tasks by day", dict(list(totals["by_day"].items())[-_MOST_BARS:])),
        chart("candidates refused, by rule", totals["refused_candidates"]),
        chart("limits hit", totals["limits_hit"]),
        chart("levels of the jail", totals["levels"]),
        "</div>",
        *_section("Totals", ("what", "how many"), ((k, v) for k, v in totals.items() if isinstance(v, int))),
        *_section("Tasks", _TASK_HEAD, (_task(row) for row in report["tasks"])),
        *_events("Patches written and taken back, notes written", report["landings"]),
        *_events("Approvals of patches, dependencies and held tasks", report["approvals"]),
        *_events("Refused by gate, verify and deps", report["refusals"]),
        *_events("Replays", report["replays"]),
        *_events("Keys and the journal itself", report["notable"]),
        *_section(
            "Keys",
            ("key", "made", "retired", "encrypted"),
            ((k["id"], k["made"], k["retired"] or "active", "yes" if k["encrypted"] else "no") for k in report["keys"]),
        ),
        "</body>\n</html>\n",
    ]
    return "\n".join(out).encode("utf-8")


def chart(title: str, counts: Mapping[str, int]) -> str:
    """Horizontal bars, the label in front and the count behind each; "" for nothing to show."""
    items = list(counts.items())[:_MOST_BARS]
    if not items:
        return ""
    most = max(1, *(count for _, count in items))
    height = _ROW * (len(items) + 1)
    width = _LABEL + _WIDTH + 60
    parts = [
        f'<svg role="img" aria-label="{_shown(title)}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><text x="0" y="14" font-weight="bold">{_shown(title)}</text>'
    ]
    for n, (label, count) in enumerate(items, 1):
        y, length = n * _ROW, max(1, round(_WIDTH * max(0, count) / most))
        parts.append(
            f'<text x="0" y="{y + 14}">{_shown(label, 26)}</text>'
            f'<rect x="{_LABEL}" y="{y + 3}" width="{length}" height="14"/>'
            f'<text x="{_LABEL + length + 6}" y="{y + 14}">{count}</text>'
        )
    return "".join(parts) + "</svg>"


def _shown(value: object, most: int = 400) -> str:
    return html.escape(one_line(str(value), most), quote=True)


def _chain(chain: Mapping[str, Any]) -> list[str]:
    state = chain["standing"] if chain["standing"] in ("whole", "torn", "altered", UNVERIFIABLE) else "altered"
    signed = chain["newest_signed"]
    where = f" at {_shown(chain['place'])}" if chain["place"] else ""
    why = f": {_shown(chain['reason'])}" if chain["reason"] else ""
    told = "no head is signed: whoever could write the journal's folder could have written another journal"
    if signed is not None:
        key = _shown(signed["key"][:16])
        told = f"{chain['signed_heads']} signed heads, the newest over entry {_shown(signed['entry'])} by key {key}"
    back = chain["clock_set_back"]
    clock = f"; the clock was set back {len(back)} times, first before entry {_shown(back[0]['seq'])}" if back else ""
    return [
        f'<div class="chain {state}"><p>The journal is <b>{state}</b>{where}{why}. '
        f"{_shown(chain['entries'])} entries hold, the last is {_shown(chain['head']['digest'])}.</p>",
        f'<p class="why">{told}{clock}.</p></div>',
    ]


def _section(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    body = ["<tr>" + "".join(f"<td>{_shown(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    if not body:
        return []
    more = [f'<p class="why">{len(body) - _MOST_ROWS} more are in the JSON</p>'] if len(body) > _MOST_ROWS else []
    names = "".join(f"<th>{_shown(name)}</th>" for name in head)
    return [f"<h2>{_shown(title)}</h2>\n<table><tr>{names}</tr>", *body[:_MOST_ROWS], "</table>", *more]


_TASK_HEAD = (
    *("task", "by", "repository", "outcome", "jail", "run", "refused", "limits", "patch"),
    *("attested", "applied", "undone"),
)


def _task(row: Mapping[str, Any]) -> Sequence[object]:
    jail = row["jail"]
    return (
        row["task"],
        row["builder"],
        row["repo"],
        row["outcome"],
        f"{jail.get('backend', '')} {jail.get('level', '')}".strip(),
        row["verified"],
        _counts(row["denied"]),
        _counts(row["limits_hit"]),
        str(row["patch"] or "")[:19],
        "yes" if row["attested"] else "",
        row["applied"][:19],
        row["undone"][:19],
    )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _events(title: str, events: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = []
    for event in events:
        rest = {k: v for k, v in event.items() if k not in ("entry", "at", "kind")}
        rows.append((event["entry"], event["at"][:19], event["kind"], ", ".join(f"{k} {v}" for k, v in rest.items())))
    return _section(title, ("entry", "at", "what", "details"), rows)
