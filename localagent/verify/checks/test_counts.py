"""How many tests a `--check` says that it ran, by the summary lines of unittest, Django, nose, pytest and doctest.

The text comes from the program under test, which may print whatever it likes: numbers may lower trust, never raise it.
Limitations: a runner that prints no summary, or one of its own, has no numbers here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

MOST_SUMMARIES = 50
_MOST_DIGITS = 9
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_UNITTEST = re.compile(rf"^Ran (\d{{1,{_MOST_DIGITS}}}) tests? in ")
_ENDED = re.compile(r"^(?:OK|FAILED|NO TESTS RAN)\b")
_SKIPPED = re.compile(rf"\bskipped=(\d{{1,{_MOST_DIGITS}}})\b")
_PYTEST = re.compile(r"^=* ?((?:\d+ [a-z]+(?: [a-z]+)?(?:, )?)+|no tests ran) in \d+[.\d]*s\b")
_PYTEST_RAN = re.compile(rf"(?<!\d)(\d{{1,{_MOST_DIGITS}}}) (?:passed|failed|xfailed|xpassed)\b")
_DOCTEST = re.compile(rf"^(\d{{1,{_MOST_DIGITS}}}) tests? in \d+ items?\.$")
_AFTER_RAN = 6  # lines between "Ran 3 tests" and "OK (skipped=1)"


@dataclass(frozen=True, kw_only=True, slots=True)
class CountsCompared:
    """What the numbers before and after speak against; both texts are empty where they speak against nothing.

    `lost`: tests that the check ran before it runs no more. `odd`: they do not fit together, and why cannot be told.
    """

    lost: str = ""
    odd: str = ""


def summarized_tests(output: str) -> tuple[int, ...]:
    """The number of tests in each summary of an output, in order, without skipped ones; () without a summary."""
    found: list[int] = []
    lines = [_COLOUR.sub("", line).rstrip() for line in output.splitlines()]
    for at, line in enumerate(lines):
        if ran := _UNITTEST.match(line):
            found.append(max(0, int(ran[1]) - _skipped(lines[at + 1 : at + 1 + _AFTER_RAN])))
        elif summary := _PYTEST.match(line):
            found.append(sum(int(number) for number in _PYTEST_RAN.findall(summary[1])))
        elif ran := _DOCTEST.match(line):
            found.append(int(ran[1]))
    return tuple(found[-MOST_SUMMARIES:])


def compared(before: Sequence[int], after: Sequence[int]) -> CountsCompared:
    """Whether a check runs fewer tests than it did. Without a number before, there is nothing to compare."""
    if not before:
        return CountsCompared()
    was, now = sum(before), sum(after)
    if not after:
        return CountsCompared(lost=f"reports no tests where it ran {_tests(was)} before")
    if now < was or (len(after) <= len(before) and any(n < b for n, b in zip(after, before, strict=False))):
        return CountsCompared(lost=f"runs {_tests(now)} where it ran {was} before")
    if any(n == 0 for n in after) and all(before):
        return CountsCompared(lost=f"reports a run of 0 tests where it ran {_tests(was)} before")
    smallest = sorted(after)[: len(before)]
    if any(n < b for n, b in zip(smallest, sorted(before), strict=False)):
        told = ", ".join(map(str, after[:5]))
        return CountsCompared(odd=f"reports several numbers of tests ({told}) where it ran {_tests(was)} before")
    return CountsCompared()


def _skipped(lines: Sequence[str]) -> int:
    """Of the verdict below a line of unittest's."""
    for line in lines:
        if _UNITTEST.match(line):
            return 0
        if _ENDED.match(line):
            skipped = _SKIPPED.search(line)
            return int(skipped[1]) if skipped else 0
    return 0


def _tests(number: int) -> str:
    return f"{number:,} test{'' if number == 1 else 's'}"
