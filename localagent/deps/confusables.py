"""Characters that a reader takes for ASCII letters, as data, and the folding of a text to what it looks like.

Source: the letters of the Latin, Greek, Cyrillic, Armenian and Hebrew scripts that `confusables.txt` of Unicode's
Technical Standard 39 maps to one ASCII letter, digit or hyphen, and small letters shaped like a capital of that list.
Full-width, mathematical and accented forms are folded by Unicode normalisation (NFKD). Not promised: completeness. A
name outside ASCII is refused whether it is found here or not; the table only tells which name it was made to look like.
"""

import re
import unicodedata

# ASCII character, then the code points (hex) that look like it.
_TABLE = """
a 251 3b1 410 391 430 | b 412 392 42c 432 184 | c 441 421 3f2 3f9 1d04 | d 501 | e 435 415 395 4bd 212e
f 3dc 584 | g 261 50c 581 | h 4bb 570 41d 397 43d | i 456 3b9 269 26a 131 4cf 37a 2db | j 458 408 37f 3f3
k 41a 39a 43a 3ba | l 4c0 406 399 5d5 5df 5c0 1c0 142 | m 41c 39c 43c 3fa | n 578 57c 39d 3b7
o 43e 41e 3bf 39f 3c3 585 555 5e1 1d0f f8
p 440 420 3c1 3a1 3f1 | q 51b 563 566 | r 433 | s 455 405 54f 1bd a731 | t 422 3a4 442 3c4
u 3c5 28b 57d 54d 1d1c | v 3bd 475 474 5d8 1d20 | w 51d 51c 461 561 26f 1d21 | x 445 425 3a7
y 443 423 3b3 4af 4ae 3a5 3d2 263 28f
z 396 1d22 | 3 417 21c 4e0 | 6 431 | 8 222 223 | 2 3e8 1a7 | - 2010 2011 2012 2013 2014 2015 2212 2d7 6d4 ad
"""
_MAP = {
    int(point, 16): letter
    for entry in _TABLE.replace("\n", "|").split("|")
    if entry.strip()
    for letter, *points in [entry.split()]
    for point in points
}
_MAP[0xAD] = ""  # the soft hyphen is not shown at all
_PUNYCODE = re.compile(r"xn--?(?=.)", re.IGNORECASE)  # with one hyphen where a name was normalised before


def fold(text: str) -> str:
    """What a text looks like: accents, invisible characters and look-alike letters folded, lower case."""
    shown = unicodedata.normalize("NFKD", _decoded(text)).translate(_MAP)
    shown = "".join(c for c in shown if unicodedata.category(c) not in ("Mn", "Me", "Cf"))
    return unicodedata.normalize("NFKD", shown.casefold()).translate(_MAP)


def _decoded(text: str) -> str:
    """Internationalised labels (`xn--...`, as domain names write them) as the characters they stand for."""
    labels = text.split(".")
    for n, label in enumerate(labels):
        if found := _PUNYCODE.match(label):
            try:
                labels[n] = label[found.end() :].encode("ascii").decode("punycode")
            except (UnicodeError, ValueError, OverflowError):  # not one: shown as it is
                continue
    return ".".join(labels)


def is_disguised(text: str) -> bool:
    """True for a text outside ASCII, or one that stands for such."""
    return not text.isascii() or _PUNYCODE.match(text) is not None


def scripts(text: str) -> tuple[str, ...]:
    """The scripts of a text's letters by the first word of their Unicode names, in order of appearance."""
    names = (unicodedata.name(c, "UNNAMED").split(" ")[0] for c in _decoded(text) if c.isalpha())
    return tuple(dict.fromkeys(names))
