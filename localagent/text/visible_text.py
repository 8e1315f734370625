"""Text from outside made fit to be shown: control characters and lone surrogates as escapes, lengths bounded."""

_KEEP = {"\n", "\t"}


def visible(text: str) -> str:
    """Text with control characters and lone surrogates escaped, so that hostile names cannot drive a terminal."""
    return "".join(
        c if c in _KEEP or (c.isprintable() and not "\ud800" <= c <= "\udfff") else repr(c)[1:-1] for c in text
    )


def one_line(text: str, most: int = 400) -> str:
    """Visible text on one line, cut with a mark where it is longer than `most` characters."""
    shown = visible(text[: most + 1]).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(text) <= most and len(shown) <= 4 * most else shown[:most] + "…"


def ends(text: str, most: int) -> str:
    """Visible text on one line, its middle left out where it is longer: of a call, whose and with what is told."""
    shown = one_line(text, max(most, 20_000))
    if len(shown) <= most:
        return shown
    head = most // 3
    return f"{shown[:head]}…{shown[len(shown) - (most - head - 1) :]}"
