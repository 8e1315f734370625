"""How a name reads to a person: letters that are drawn as Latin ones, as those.

Greek, Cyrillic, Armenian letters and some Latin ones that pass for plain ones. Not a table of everything that two fonts
might draw alike, and no judgement on whether a name is meant so.
"""

import re
import unicodedata

LOOK_ALIKE = frozenset(  # Greek, Cyrillic, Armenian letters that are drawn as Latin ones
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b9"
    "\u03ba\u03bd\u03bf\u03c1\u03c5\u03c7\u03c9\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d"
    "\u041e\u0420\u0421\u0422\u0425\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04ae"
    "\u04bb\u0501\u051b\u051d\u0561\u0566\u0570\u0572\u0578\u057d\u0581\u0585"
)
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "HEBREW", "ARABIC", "COPTIC", "LISU", "GEORGIAN")
_TAKEN_FOR_LATIN = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})
_LATIN = str.maketrans(
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u03c9"
    "\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u04ae"
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u0501\u051b\u051d\u0442\u043a\u043c"
    "\u0561\u0570\u0578\u057d\u0581\u0585\u0131\u0237\u0251\u0261\u1d0f\u0280\u0274\u026a\u03f2",
    "abezhikmnoptyx" "aikvoptuxw" "sijabekmhopctxy" "aeopcyxsijhdqwtkm" "whnugoijagornic",
)  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+")


def as_read(name: str) -> str:
    """The name without regard to case, Unicode form, and which script a letter is of that looks Latin."""
    plain = unicodedata.normalize("NFKC", name).translate(_LATIN).casefold()
    return unicodedata.normalize("NFKC", plain).translate(_LATIN)


def mixes(word: str) -> bool:
    """Whether Latin letters stand beside those of a script that is taken for Latin."""
    scripts = scripts_of(word)
    return "LATIN" in scripts and bool(scripts & _TAKEN_FOR_LATIN)


def misleads(name: str) -> bool:
    """Whether a name is of several scripts, or of letters alone that all look Latin and are not."""
    letters = [c for c in name if c.isalpha()]
    scripts = scripts_of(name)
    if len(scripts) > 1:
        return True
    return bool(scripts) and scripts != {"LATIN"} and len(letters) > 1 and all(c in LOOK_ALIKE for c in letters)


def scripts_of(word: str) -> set[str]:
    """The scripts of a word's letters, of those that are told apart."""
    return {unicodedata.name(c, "OTHER").split(" ", 1)[0] for c in word if c.isalpha()} & set(_SCRIPTS)


def has_mixed_script(name: str) -> bool:
    """Whether some word of a name mixes scripts, or is of letters that only look Latin."""
    return not name.isascii() and any(mixes(word) or misleads(word) for word in _WORD.findall(name))
