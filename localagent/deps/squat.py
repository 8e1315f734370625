"""Which known name a name was made, or mistyped, to look like.

Families: separators moved or left out, look-alike characters (also digits for letters), swapped words, affixes, and
true Damerau-Levenshtein distance; names outside ASCII are folded first. A name that is known is never suspicious. Not
promised: that every squat is seen (a name may deceive by meaning alone), nor that what is reported is one.
"""

import re
from collections.abc import Iterable, Iterator

from packaging.utils import canonicalize_name

from localagent.deps.confusables import fold, is_disguised, scripts
from localagent.deps.distance import distance, letter_mask, letters_apart
from localagent.domain.dependency import Family, Likeness

LEAST_CORE = 4  # an affix on a shorter name says nothing
_PREFIXES = ("python3", "python", "py3", "py", "the", "real", "lib")
_SUFFIXES = ("python3", "python", "py3", "py", "lib", "library", "dev", "pkg", "package", "official", "s", "es")
_NUMBER = re.compile(r"-?[0-9]+$")
_LOOKALIKE = str.maketrans("0135789i24", "olestbglza")
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


def tolerance(length: int) -> int:
    """How many edits are forgiven where the longer of two names has so many characters (separators not counted)."""
    if length < 4:
        return 0
    return 1 if length < 10 else 2


def compact(name: str) -> str:
    """A normalised name without its separators."""
    return name.replace("-", "")


def skeleton(name: str) -> str:
    """What a normalised name looks like at a glance: digits as letters, `rn` as `m`, `i` and `1` as `l`."""
    text = compact(name).translate(_LOOKALIKE)
    for pair, single in _PAIRS:
        text = text.replace(pair, single)
    return text


def name_parts(name: str) -> tuple[str, ...]:
    """The words of a normalised name, sorted."""
    return tuple(sorted(name.split("-")))


def cores(name: str) -> Iterator[str]:
    """A normalised name with one usual affix taken off, in every way; compact. At least LEAST_CORE characters."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            yield from _long_enough(name[len(prefix) :])
    for suffix in _SUFFIXES:
        if name.endswith(suffix):
            yield from _long_enough(name[: -len(suffix)])
    if _NUMBER.search(name):
        yield from _long_enough(_NUMBER.sub("", name))


def _long_enough(core: str) -> Iterator[str]:
    if len(text := compact(core)) >= LEAST_CORE:
        yield text


class KnownNames:
    """The names that squatters imitate, indexed. `names` need not be normalised."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(canonicalize_name(name) for name in names)
        self._compact: dict[str, str] = {}
        self._skeleton: dict[str, str] = {}
        self._words: dict[tuple[str, ...], str] = {}
        self._core: dict[str, str] = {}
        self._lengths: dict[int, list[tuple[str, int, str]]] = {}
        for name in sorted(self.names):
            short = compact(name)
            self._compact.setdefault(short, name)
            self._skeleton.setdefault(skeleton(name), name)
            self._words.setdefault(name_parts(name), name)
            for core in cores(name):
                self._core.setdefault(core, name)
            self._lengths.setdefault(len(short), []).append((short, letter_mask(short), name))

    def look_alike(self, written: str) -> Likeness | None:
        """The known name that a name resembles, None if none. `written` is as it stood, normalised or not."""
        if is_disguised(written):
            return self._disguised(written)
        name = canonicalize_name(written)
        if name in self.names:
            return None
        return self._spelling(name) or self._affix(name) or self._near(name)

    def _disguised(self, written: str) -> Likeness | None:
        name = canonicalize_name(fold(written))
        used = scripts(written)
        detail = (
            f"mixed scripts ({', '.join(used)})"
            if len(used) > 1
            else f"characters that are not ASCII ({used[0]})"
            if used
            else "characters that are not letters"
        )
        if name in self.names:
            return Likeness(known=name, family=Family.HOMOGLYPH, detail=detail)
        near = self._spelling(name) or self._affix(name) or self._near(name) if name.isascii() else None
        return None if near is None else Likeness(known=near.known, family=Family.HOMOGLYPH, detail=detail)

    def _spelling(self, name: str) -> Likeness | None:
        if known := self._compact.get(compact(name)):
            return Likeness(known=known, family=Family.SEPARATOR, detail="the same but for `-`, `_` and `.`")
        if known := self._skeleton.get(skeleton(name)):
            return Likeness(known=known, family=Family.LOOKALIKE, detail="the same at a glance")
        if "-" in name and (known := self._words.get(name_parts(name))):
            return Likeness(known=known, family=Family.WORD_ORDER, detail="the same words in another order")
        return None

    def _affix(self, name: str) -> Likeness | None:
        whole = compact(name)
        for core in cores(name):
            known = self._compact.get(core) or self._core.get(core)
            if known:
                return Likeness(
                    known=known, family=Family.AFFIX, detail=f"{core!r} with something put before or after it"
                )
        if len(whole) >= LEAST_CORE and (known := self._core.get(whole)):
            return Likeness(known=known, family=Family.AFFIX, detail=f"{known!r} with a part left out")
        return None

    def _near(self, name: str) -> Likeness | None:
        text = compact(name)
        mask, most = letter_mask(text), tolerance(len(text) + 1)
        best: tuple[int, str] | None = None
        for length in range(len(text) - most, len(text) + most + 1):
            allowed = tolerance(max(length, len(text)))
            for short, bits, known in self._lengths.get(length, ()):
                if letters_apart(mask, bits) > allowed:
                    continue
                found = (distance(text, short), known)
                if found[0] <= allowed and (best is None or found < best):
                    best = found
        if best is None:
            return None
        edits = "1 edit" if best[0] == 1 else f"{best[0]} edits"
        return Likeness(known=best[1], family=Family.DISTANCE, detail=f"{edits} away")
