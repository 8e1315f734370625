"""Makes text harmless to read: what drives a terminal, reorders text or cannot be seen is shown as an escape.

Pure. A character is kept only when it is printable and takes visible room; newline and tab stay. Escaping twice is
escaping once, because escapes are printable ASCII. Not promised: that two different letters look different.
"""

import re
from collections.abc import Callable

KEPT_CONTROLS = frozenset("\n\t")
# Printable to Python, but shown as nothing: fillers, joiners, variation selectors, the blank of Braille.
_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
_UNSEEN_CHARACTER = re.compile(f"[{_UNSEEN}]")
# What a terminal swallows: CSI and OSC sequences (7-bit and 8-bit), other two-character escapes, lone controls.
SWALLOWED = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]?"
)


def is_plain(character: str) -> bool:
    """True when a character may be shown as it is."""
    if character in KEPT_CONTROLS:
        return True
    return character.isprintable() and _UNSEEN_CHARACTER.match(character) is None


def unplain(text: str) -> set[str]:
    """The characters of a text that are not plain."""
    return {character for character in set(text) if not is_plain(character)}


def escaped(text: str) -> tuple[str, int]:
    r"""(text with every character that is not plain shown as an escape, how many there were).

    Bytes that were no UTF-8 (decoded with surrogateescape) are shown as `\xNN`.
    """
    return _replaced(text, is_plain, _shown)


def escaped_name(name: str) -> str:
    """A file name that is safe on any file system and line: other characters, `%` and a leading `-` become `%XX` bytes.

    Different names stay different.
    """
    shown, _ = _replaced(name, lambda c: is_plain(c) and c not in "%\n\t/\\", _percent)
    return "%2D" + shown[1:] if shown.startswith("-") else shown


def _replaced(text: str, keep: Callable[[str], bool], show: Callable[[str], str]) -> tuple[str, int]:
    bad = {character for character in set(text) if not keep(character)}
    if not bad:
        return text, 0
    return text.translate({ord(c): show(c) for c in bad}), sum(text.count(c) for c in bad)


def _shown(character: str) -> str:
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number - 0xDC00:02x}"
    return ascii(character)[1:-1]


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))
