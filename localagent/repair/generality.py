"""What a patch copies from the tests: a literal of theirs that its file lacked fits them and perhaps nothing else.

Literals are compared as they are written. Not seen: the same value in another spelling, or a value that is computed.
"""

import re
from collections.abc import Iterable

from localagent.domain.edit import Candidate

_LITERALS = re.compile(rb"""(?<![\w.])\d[\w.]*|"[^"\\\n]{2,}"|'[^'\\\n]{2,}'""")
_USUAL = frozenset(str(n).encode() for n in (*range(11), *(2**k for k in range(4, 17)), *(10**k for k in range(2, 10))))


def literals(source: bytes) -> frozenset[bytes]:
    """Numbers and quoted texts, without those that programs are full of: up to ten, powers of two and of ten."""
    found = {m.group().strip(b"\"'") for m in _LITERALS.finditer(source)}
    return frozenset(found) - _USUAL


def copied(candidate: Candidate, tested: Iterable[bytes]) -> int:
    """How many literals of the tests a candidate brings into files that did not have them."""
    wanted = frozenset(tested)
    return sum(len((literals(c.after) - literals(c.before)) & wanted) for c in candidate.patch.changes)
