"""The morning report as one HTML page: no script, nothing from elsewhere, readable without colours.

Every text from a repository is escaped twice: characters that drive or reorder become visible, then HTML's own.
"""

import html
from collections.abc import Iterator, Sequence
from typing import Any

from localagent.batch.batch_report import headline, patches_of
from localagent.batch.task_result import SETTLED, RepositoryState
from localagent.report.confidence_text import confidence_figure
from localagent.report.text import confidence_lines
from localagent.text.visible_text import one_line, visible

_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_PATCH_CHARACTERS = 200_000
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1c1c1c}"
    "h1{font-size:1.4rem}h2{font-size:1.15rem;margin-top:2.2rem}h3{font-size:1rem;margin:0}"
    "table{border-collapse:collapse;width:100%}td,th{border-top:1px solid #ccc;padding:.35rem .5rem;text-align:left;"
    "vertical-align:top;overflow-wrap:anywhere}td.n,th.n{text-align:right;white-space:nowrap}"
    "pre{background:#f6f6f6;padding:.6rem;overflow-x:auto;font-size:.85rem}.why{color:#555}"
    "details{border-top:1px solid #ccc;padding:.5rem 0}summary{cursor:pointer}"
    ".tiles{display:flex;flex-wrap:wrap;gap:.8rem;padding:0}.tiles li{list-style:none;border:1px solid #ccc;"
    "border-radius:.3rem;padding:.3rem .9rem;min-width:6rem}.tiles b{display:block;font-size:1.5rem}"
    ".state{font-weight:600;white-space:nowrap}.good{color:#1f6f43}.bad{color:#a3341f}"
    ".add{color:#1f6f43}.cut{color:#a3341f}"
)


def page(report: dict[str, Any]) -> bytes:
    """The page."""
    out = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_CSP}">',
        '<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width">',
        f"<title>{_line(headline(report))}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f"<h1>{_line(report['fleet'])}: the night of {_line(report['began'][:10])}</h1>",
        f'<p class="why">run {_line(report["run"])}, localagent {_line(report["tool"])}</p>',
    ]
    if not report["complete"]:
        out.append(f'<p class="bad"><b>Not complete:</b> {_line(report["why_incomplete"])}</p>')
    out += [*_tiles(report), *_asked(report), *_table(report), "<h2>Repository by repository</h2>"]
    for n, row in enumerate(report["repositories"]):
        out += _details(n, row)
    out.append(f'<p class="why">answers: {_line(report["digest"])}</p>\n</body>\n</html>\n')
    return "\n".join(out).encode("utf-8", "backslashreplace")


def _line(text: str) -> str:
    return html.escape(one_line(text), quote=True)


def _tiles(report: dict[str, Any]) -> Iterator[str]:
    s = report["summary"]
    tiles = (
        (s["repositories"], "repositories"),
        (s["patches"], "patches to read"),
        (s["turned"], f"of {s['failing']} failing tests turned"),
        (s["repairs"], "mistakes and findings repaired"),
        (len(report["needs_person"]), "need a person"),
        (s["kept_from_before"], "unchanged, answer kept"),
        (_span(s["seconds"]), "of work"),
    )
    yield '<ul class="tiles">'
    for value, text in tiles:
        yield f"<li><b>{html.escape(str(value))}</b>{html.escape(text)}</li>"
    yield "</ul>"


def _span(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _asked(report: dict[str, Any]) -> Iterator[str]:
    rows = report["needs_person"]
    yield "<h2>What needs a person</h2>"
    if not rows:
        yield "<p>Nothing but the patches, which want reading.</p>"
        return
    yield "<table><tr><th>repository</th><th>state</th><th>confidence</th><th>why</th><th>what to do</th></tr>"
    for row in rows:
        cells = (row["name"], row["state"], confidence_figure(row["confidence"]), row["why"], row["what_to_do"])
        yield "<tr>" + "".join(f"<td>{_line(cell)}</td>" for cell in cells) + "</tr>"
    yield "</table>"


def _table(report: dict[str, Any]) -> Iterator[str]:
    yield "<h2>All repositories, by state and confidence</h2>"
    yield (
        '<table><tr><th>repository</th><th>state</th><th class="n">confidence</th><th class="n">tests turned</th>'
        '<th class="n">repairs</th><th class="n">seconds</th><th>in a sentence</th></tr>'
    )
    for n, row in enumerate(report["repositories"]):
        turned = sum(len(step["turned"]) for step in row["steps"])
        failing = sum(len(step["failing"]) for step in row["steps"])
        repaired = sum(int(step["evidence"].get("repairs", 0)) for step in row["steps"])
        yield (
            f'<tr><td><a href="#r{n}">{_line(row["name"])}</a></td><td>{_state(row["state"])}</td>'
            f'<td class="n">{confidence_figure(row["confidence"])}</td>'
            f'<td class="n">{f"{turned} of {failing}" if failing else ""}</td>'
            f'<td class="n">{repaired or ""}</td><td class="n">{row["seconds"]:.1f}</td>'
            f"<td>{_line(row['reason'])}</td></tr>"
        )
    yield "</table>"


def _state(state: str) -> str:
    kind = "good" if RepositoryState(state) in SETTLED else "bad"
    return f'<span class="state {kind}">{_line(state)}</span>'


def _details(n: int, row: dict[str, Any]) -> Iterator[str]:
    yield f'<details id="r{n}"><summary><h3 style="display:inline">{_line(row["name"])}</h3> {_state(row["state"])}'
    yield f"{_line(row['reason'])}</summary>"
    at = f" at {row['revision']} ({row['commit'][:12] or 'no commit'})" if row["revision"] else ""
    kept = f"; the answer of {row['same_as']}, the tree is the same" if row["same_as"] else ""
    used = f"{row['seconds']:.1f} s, {row['cpu_seconds']:.1f} s of processor"
    place = f"{row['source']}{at}; tree {row['tree'] or 'not read'}; {used}{kept}"
    yield f'<p class="why">{_line(place)}</p>'
    if row["what_to_do"]:
        yield f"<p>What to do: {_line(row['what_to_do'])}</p>"
    for step in row["steps"]:
        yield from _step(step)
    if row["warnings"]:
        yield "<ul>" + "".join(f"<li>{_line(text)}</li>" for text in row["warnings"]) + "</ul>"
    for step, diff in patches_of(row):
        yield f"<p>The patch ({_line(step['work'])}), {_line(step['patch_digest'])}:</p>"
        yield from (*_reasons(step["confidences"][:1]), _shown(diff))
    for step in row["steps"]:
        for number, text in enumerate(step["proposals"], 1):
            yield f"<p>Proposal {number}:</p>"
            yield from _reasons(step["confidences"][number - 1 : number])
            yield _shown(text.encode("utf-8", "surrogateescape"))
    yield "</details>"


def _reasons(told: Sequence[dict[str, Any] | None]) -> Iterator[str]:
    """How likely a patch is right, and what speaks for and against it."""
    for one in told:
        if lines := list(confidence_lines(one)):
            yield f'<p class="why">{"<br>".join(map(_line, lines))}</p>'


def _step(step: dict[str, Any]) -> Iterator[str]:
    yield f"<p><b>{_line(step['work'])}</b>: {_line(step['outcome'])}: {_line(step['reason'])}</p>"
    if step["failing"]:
        yield "<table><tr><th>failing</th><th>with</th></tr>"
        for one in step["failing"]:
            said = f"{one['exception']}: {one['message']}"
            turned = " (turned)" if one["id"] in step["turned"] else ""
            yield f"<tr><td>{_line(one['id'])}{turned}</td><td>{_line(said)}</td></tr>"
        yield "</table>"
    if step["repaired"]:
        yield "<table><tr><th>repaired</th><th>rule</th><th>what it was</th></tr>"
        for one in step["repaired"]:
            place = f"{one['path']}:{one['line']}"
            yield f"<tr><td>{_line(place)}</td><td>{_line(one['rule'])}</td><td>{_line(one['message'])}</td></tr>"
        yield "</table>"
    if step["findings"]:
        yield "<table><tr><th>finding</th><th>of</th><th>what it says</th><th>what became of it</th></tr>"
        for one in step["findings"]:
            cells = (f"{one['path']}:{one['line']}", f"{one['tool']} {one['rule']}", one["message"])
            became = f"{one['state']}: {one['why']}" + (f" (proven by {one['proof']})" if one["proof"] else "")
            yield "<tr>" + "".join(f"<td>{_line(cell)}</td>" for cell in (*cells, became)) + "</tr>"
        yield "</table>"
    if step["left"]:
        left = ", ".join(f"{rule} {count}" for rule, count in step["left"].items())
        yield f'<p class="why">left as they are: {_line(left)}</p>'
    told = [f"{name.replace('_', ' ')}: {_brief(value)}" for name, value in step["evidence"].items() if value]
    told += [f"{step['kept_passing']} tests passed before and after"] if step["kept_passing"] else []
    told += [f"localagent show {step['task']}"] if step["task"] else []
    if told:
        yield f'<p class="why">evidence: {_line("; ".join(told))}</p>'


def _brief(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_brief(v)}" for k, v in value.items() if v)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _shown(diff: bytes) -> str:
    """A diff with its lines marked; a long one is cut, and says so."""
    text = diff.decode("utf-8", "surrogateescape")
    cut = len(text) > _PATCH_CHARACTERS
    out = []
    for line in text[:_PATCH_CHARACTERS].split("\n"):
        kind = "add" if line.startswith("+") else "cut" if line.startswith("-") else ""
        shown = html.escape(visible(line))
        out.append(f'<span class="{kind}">{shown}</span>' if kind else shown)
    tail = "<p>Cut here: `localagent batch report --patches DIR` writes the whole.</p>" if cut else ""
    return f"<pre>{chr(10).join(out)}</pre>{tail}"
