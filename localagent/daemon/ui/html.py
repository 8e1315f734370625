"""The frame of the web page, and the one way in which a text gets into it.

Every name, message, source line or figure goes through `said` or `code`: what drives or reorders text becomes visible,
then HTML's own characters are escaped. There is no script, no inline style and nothing from elsewhere, and the policy
that is sent along forbids all three, so that a fault here would still run nothing.
"""

import html
from collections.abc import Iterable, Mapping

from localagent.text.visible_text import one_line, visible

POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS: Mapping[str, str] = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}
ROOT = "/ui/"


def said(text: object, most: int = 400) -> str:
    """Any text on one line, cut where it is longer than `most` characters, for between tags and within quotes."""
    return html.escape(one_line(str(text), most), quote=True)


def code(line: bytes, most: int = 400) -> str:
    """A line of source without its end; tabs as blanks, so that both sides of a diff stay in line."""
    text = line.decode("utf-8", "surrogateescape").removesuffix("\n")
    cut = "…" if len(text) > most else ""
    return html.escape(visible(text[:most].expandtabs(4)), quote=True) + cut


def shell(title: str, body: Iterable[str], *, who: str, renew: str = "") -> bytes:
    """A whole page. `renew` is how the page is renewed, or why it is not, and is ours; `who` and `title` are said."""
    return "\n".join(
        (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f'<title>{said(title)}</title>\n<link rel="stylesheet" href="{ROOT}style.css">\n</head>\n<body>',
            f'<header><a class="mark" href="{ROOT}">localagent</a><span class="who">{said(who)}</span>{renew}</header>',
            "<main>",
            *body,
            "</main>\n<footer>Read-only. To submit, cancel or approve: <code>localagent fix --daemon</code>, "
            "<code>localagent tasks</code>.</footer>\n</body>\n</html>\n",
        )
    ).encode("utf-8")


def tiles(pairs: Iterable[tuple[object, str]]) -> str:
    """Figures in a row, each with what it counts."""
    cells = "".join(f"<div><dt>{said(label)}</dt><dd>{said(value)}</dd></div>" for value, label in pairs)
    return f'<dl class="tiles">{cells}</dl>'


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and values; what has no value is left out."""
    rows = "".join(f"<dt>{said(name)}</dt><dd>{said(value)}</dd>" for name, value in pairs if value not in (None, ""))
    return f'<dl class="facts">{rows}</dl>'


def badge(word: str, mood: str) -> str:
    """A state as a word with a colour; `mood` is good, bad, busy or calm."""
    return f'<span class="badge {mood}">{said(word)}</span>'


def span(seconds: float) -> str:
    """Seconds for people."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
