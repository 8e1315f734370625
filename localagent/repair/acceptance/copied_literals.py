"""What a patch copies from the tests: a literal of theirs that its file lacked fits them and perhaps nothing else.

Limitations: those of `localagent.code.literal_uses`; that the literal is the right one is as likely as not.
"""

from localagent.code.literal_uses import copied_literals
from localagent.code.test_literals import Literals
from localagent.domain.edit import Candidate


def copied(candidate: Candidate, tested: Literals) -> int:
    """How many literals of the tests a candidate brings into files that did not have them; common numbers are none."""
    return copied_literals(candidate.patch, tested)
