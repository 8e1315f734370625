"""How naturally patched programs read: what the model makes of the text around their differences, read whole.

The model's first surprise orders the search; of candidates that all pass, the whole text tells more: what follows an
edit has to fit it as well. Measured on development cases with one visible example, where nothing else told the
candidates apart (docs/adr/0022-what-reads-naturally.md).
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from localagent.domain.edit import Candidate
from localagent.ports import TextReader
from localagent.text.byte_diff import common_beginning

MAX_LINES_ABOVE = 80
MAX_LINES_BELOW = 8  # chose as well as 60 on 19 development cases, in half the time
_TOP = re.compile(rb"^(?=[^\s#)\]}])", re.MULTILINE)
_LINE = re.compile(rb"^", re.MULTILINE)


def naturalness(candidates: Sequence[Candidate], reader: TextReader, seconds: float) -> dict[int, float]:
    """For each candidate log P(its text) - log P(the unpatched text), in nats, by its number; empty when not known.

    Read are, for each file that one of them changes, the top-level statements around all their differences.
    """
    changes = {c.number: {change.path: change for change in c.patch.changes} for c in candidates}
    sources = {path: change.before for per_file in changes.values() for path, change in per_file.items()}
    found = dict.fromkeys(changes, 0.0)
    for path in sorted(sources):
        texts = {number: per_file[path].after for number, per_file in changes.items() if path in per_file}
        told = _in_one_file(sources[path], texts, reader, seconds / len(sources))
        if told is None:
            return {}
        for number, nats in told.items():
            found[number] += nats
    return found


def _in_one_file(
    source: bytes, texts: Mapping[int, bytes], reader: TextReader, seconds: float
) -> dict[int, float] | None:
    start, end = window(source, texts.values())
    cut = list(dict.fromkeys([source[start:end], *(t[start : len(t) - (len(source) - end)] for t in texts.values())]))
    told = reader.likelihoods(cut, timeout_seconds=seconds)
    if told is None:
        return None
    nats = dict(zip(cut, told, strict=True))
    unpatched = nats[source[start:end]]
    return {number: nats[t[start : len(t) - (len(source) - end)]] - unpatched for number, t in texts.items()}


def window(source: bytes, texts: Iterable[bytes]) -> tuple[int, int]:
    """Byte span of `source` that holds every difference, out to whole top-level statements within the line limits."""
    first, last = len(source), 0
    for text in texts:
        ahead = common_beginning(source, text)
        behind = common_beginning(source[ahead:][::-1], text[ahead:][::-1])
        first, last = min(first, ahead), max(last, len(source) - behind)
    first, last = min(first, last), max(first, last)
    lines = [m.start() for m in _LINE.finditer(source)]
    above = [at for at in lines if at <= first][-MAX_LINES_ABOVE:] or [0]
    below = [at for at in lines if at >= last][:MAX_LINES_BELOW] or [len(source)]
    tops = {m.start() for m in _TOP.finditer(source)}
    start = next((at for at in reversed(above) if at in tops), above[0])
    end = next((at for at in below if at in tops), len(source) if len(below) < MAX_LINES_BELOW else below[-1])
    return start, max(end, last)
