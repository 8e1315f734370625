"""An instruction in words, as everybody who takes one from outside holds it: bounded, and saying what it shows."""

import unicodedata

MOST_CHARACTERS = 20_000
_KEEP = frozenset("\n\t\r\xad\u200b\u200c\u200d")
_HIDDEN = frozenset(("Cc", "Cf", "Cs"))  # controls, what reorders or tags text unseen, lone surrogates


def instruction_fault(text: str) -> str:
    """What is wrong with an instruction, "" where nothing is."""
    if not text.strip() or len(text) > MOST_CHARACTERS:
        return f"say what is to be changed, in at most {MOST_CHARACTERS} characters"
    odd = next((c for c in text if c not in _KEEP and unicodedata.category(c) in _HIDDEN), "")
    return f"holds {odd!a}, a character that is not shown" if odd else ""
