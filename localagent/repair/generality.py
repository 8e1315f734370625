"""What a patch copies from the tests: a literal of theirs that its file lacked fits them and perhaps nothing else.

Limitations: those of `localagent.index.literal_uses`; that the literal is the right one is as likely as not.
"""

from localagent.domain.edit import Candidate
from localagent.index.literal_uses import copied_literals
from localagent.index.test_literals import Literals


def copied(candidate: Candidate, tested: Literals) -> int:
    """How many literals of the tests a candidate brings into files that did not have them; common numbers are none."""
    return copied_literals(candidate.patch, tested)
