"""A program that is its own check is not put right by what it no longer looks at."""

from collections.abc import Sequence

import pytest

from localagent.domain.edit import Candidate, Edit, FileChange, Patch, Splice
from localagent.domain.paths import RepoPath
from localagent.repair.choice import Standing
from localagent.repair.main_block import behind_the_check

PROG = RepoPath("prog.py")
CHECK = ("check:python prog.py",)
SOURCE = b"""import sys


def main(n):
    return n - 3


if __name__ == "__main__":
    sys.exit(0 if main(4) == 7 else 1)
"""


def made(number: int, *puts: tuple[bytes, bytes], source: bytes = SOURCE) -> Candidate:
    after, edits = source, list[Edit]()
    for old, new in puts:
        at = after.index(old)
        line = after[:at].count(b"\n") + 1
        splice = Splice(start=at, end=at + len(old), text=new)
        edits.append(Edit(path=PROG, splices=(splice,), operator="x", line=line, end_line=line, prior=0.0, scope=None))
        after = after.replace(old, new, 1)
    return Candidate(
        number=number,
        patch=Patch(changes=(FileChange(path=PROG, before=source, after=after),)),
        edits=tuple(edits),
        cost=0.0,
    )


REPAIR = made(1, (b"n - 3", b"n + 3"))
GUARD = made(2, (b'__name__ == "__main__"', b'__name__ != "__main__"'))
EXIT = made(3, (b"else 1", b"else 0"))
BOTH = made(4, (b"n - 3", b"n * 3"), (b"== 7", b"== 12"))


def left(candidates: Sequence[Candidate], failing: Sequence[str] = CHECK) -> list[int]:
    """Their numbers in order, where each cost a little more than the one before."""
    order = [Standing(candidate=c, cost=0.1 * n, row=()) for n, c in enumerate(candidates)]
    return [s.candidate.number for s in behind_the_check(order, failing)]


def test_what_changes_the_check_alone_comes_behind_what_changes_the_program() -> None:
    assert left([GUARD, REPAIR, EXIT, BOTH]) == [1, 4, 2, 3]


def test_where_nothing_else_is_left_a_person_sees_it() -> None:
    assert left([GUARD, EXIT]) == [2, 3]


def test_a_failing_test_of_a_test_file_says_nothing_of_the_block() -> None:
    assert left([EXIT, REPAIR], ("tests/test_prog.py::test_main",)) == [3, 1]
    assert left([EXIT, REPAIR], (*CHECK, "tests/test_prog.py::test_main")) == [3, 1]


@pytest.mark.parametrize("guard", [b'"__main__" == __name__', b"__name__ == '__main__'"])
def test_the_block_is_known_however_it_is_written(guard: bytes) -> None:
    source = SOURCE.replace(b'__name__ == "__main__"', guard)
    assert left([made(5, (b"else 1", b"else 0"), source=source), made(6, (b"- 3", b"+ 3"), source=source)]) == [6, 5]


def test_without_such_a_block_all_count() -> None:
    source = b"import sys\n\nn = 4 - 3\nsys.exit(0 if n == 7 else 1)\n"
    assert left([made(7, (b"else 1", b"else 0"), source=source), made(8, (b"- 3", b"+ 3"), source=source)]) == [7, 8]
