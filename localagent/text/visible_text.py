"""Text from outside made fit to be shown: what drives a terminal or cannot be seen as escapes, lengths bounded."""

from localagent.text.escaping import escaped


def visible(text: str) -> str:
    """Text with every character that `escaping` does not call plain as an escape: hostile names drive no terminal."""
    return escaped(text)[0]


def shortened(text: str, most: int) -> str:
    """The text, or its first words and "…" where it is longer than `most` characters.

    Cut between words, unless that would lose half of it: one long word, such as a path, is cut where the room ends.
    """
    if len(text) <= most:
        return text
    head = text[: most - 1]
    space = max(head.rfind(" "), head.rfind("\n"), head.rfind("\t"))
    if not text[most - 1].isspace() and space >= most // 2:
        head = head[:space]
    return head.rstrip() + "…"


def counted(number: int, what: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def one_line(text: str, most: int = 400) -> str:
    """Visible text on one line, shortened where it is longer than `most` characters."""
    shown = visible(text[: most + 1]).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(text) <= most and len(shown) <= 4 * most else shortened(shown, most)


def ends(text: str, most: int) -> str:
    """Visible text on one line, its middle left out where it is longer: of a call, whose and with what is told."""
    shown = one_line(text, max(most, 20_000))
    if len(shown) <= most:
        return shown
    head = most // 3
    return f"{shown[:head]}…{shown[len(shown) - (most - head - 1) :]}"
