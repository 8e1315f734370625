"""The file of known names: normalised names parted by blanks, `#` begins a comment. Every fault is listed at once."""

import re
from pathlib import Path

from localagent.deps.sources import text_of
from localagent.deps.squat import KnownNames
from localagent.errors import UsageFault
from localagent.fs.bounded_read import read_named
from localagent.text.visible_text import shortened

MOST_BYTES = 4 << 20
MOST_NAMES = 50_000
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_REMEDY = "`dependencies.known_names` of the policy names this file; docs/dependencies.md describes it"


def load_known(path: Path) -> KnownNames:
    """The known names of a file. UsageFault lists every name that is not normalised; an empty file is a fault too."""
    names: list[str] = []
    faults: list[str] = []
    for number, line in enumerate(text_of(read_named(path, MOST_BYTES), str(path)).splitlines(), 1):
        for word in line.split("#", maxsplit=1)[0].split():
            if _NAME.fullmatch(word):
                names.append(word)
            else:
                faults.append(f"{path}:{number}: {shortened(word, 80)!r} is not a normalised name (PEP 503)")
    if not names and not faults:
        faults.append(f"{path}: no name stands there, so no imitation could be told")
    if len(names) > MOST_NAMES:
        faults.append(f"{path}: more than {MOST_NAMES:,} names")
    if faults:
        raise UsageFault(faults, remedy=_REMEDY)
    return KnownNames(names)
