"""What changes a repository, on the record: the intent before, what came of it after.

Not promised: an end for every beginning. What is killed in between leaves the intent alone, and what lies in the
repository then is told by `undo` and by the next run, not here.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from localagent.errors import AnswerIsNo
from localagent.record.audit.entry import AuditKind
from localagent.record.audit.log import AuditLog


@contextmanager
def recorded(log: AuditLog, before: AuditKind, after: AuditKind, data: Mapping[str, Any]) -> Iterator[None]:
    """Entries around a block. CannotRecord or RecordDamaged before it where none can be written: it does not run.

    An AnswerIsNo out of the block is an entry of its own and goes on.
    """
    told = {**data, "by": os.getuid()}
    log.append(before, told)
    try:
        yield
    except AnswerIsNo as no:
        log.append(AuditKind.REFUSED, {**told, "what": before.value, "why": type(no).__name__})
        raise
    log.append(after, told)
