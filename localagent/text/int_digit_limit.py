"""Numbers that Python reads and refuses to write: hexadecimal, octal or binary, of more than 4,300 decimal digits.

A tree that holds one can be neither dumped nor written back (`sys.set_int_max_str_digits`), so whoever would compare or
edit such a source says no. Spelling alone is looked at: a text that holds such digits counts, too.
"""

import re

WHY = "a number of more digits than Python writes"
_DIGITS = rb"0[xXoObB][0-9a-fA-F_]{3500}"
_IN_BYTES, _IN_TEXT = re.compile(_DIGITS), re.compile(_DIGITS.decode())


def unwritable(source: bytes | str) -> bool:
    """Whether a source holds one."""
    found = _IN_TEXT.search(source) if isinstance(source, str) else _IN_BYTES.search(source)
    return found is not None
