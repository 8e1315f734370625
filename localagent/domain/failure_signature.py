"""What makes two failures the same: exception type, pattern of the message, innermost place in the project.

Not promised: that one cause has one signature, or that one signature has one cause.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from localagent.domain.outcome import Failure, steady

TEST_CODE = "<test>"  # stands for every file of the test's own: its file, its conftest files, what was made of them
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:_\d+)*(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w)")
_TEMPORARY = re.compile(r"/tmp/[^\s'\",:;)\]]*")  # noqa: S108 - how such paths look in messages
_RUN = re.compile(r"#(?:, #)+")
_PATTERN_LIMIT = 600
ASSERTIONS = frozenset({"AssertionError", "Failed"})  # pytest.fail and an unmet pytest.raises raise the second
UNPLACED = frozenset({"TimeLimit"})  # where a test that hangs is interrupted differs from run to run


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureSignature:
    """`path` is a file of the project, TEST_CODE, or "" where no frame of the project is known."""

    exception: str
    pattern: str
    path: str
    function: str

    @property
    def in_test(self) -> bool:
        """Whether the test itself found fault: what it expects was written for just the data that it has."""
        parts = self.path.split("/")
        mine = self.path == TEST_CODE or any(part.startswith(("test", "conftest")) for part in parts)
        return mine and self.exception not in UNPLACED

    def __str__(self) -> str:
        """On one line, for people."""
        place = f" in {self.function} ({'the test' if self.path == TEST_CODE else self.path})" if self.path else ""
        first = self.pattern.split("\n", 1)[0]
        return f"{self.exception}{': ' + first if first else ''}{place}"


def message_pattern(message: str) -> str:
    """A message with addresses, numbers and temporary paths replaced; its pattern is its own pattern."""
    text = _NUMBER.sub("#", _TEMPORARY.sub("<tmp>", steady(message[:_PATTERN_LIMIT])))
    return _RUN.sub("#", text).strip()


def signature_of(failure: Failure, test_code: Collection[str] = ()) -> FailureSignature:
    """The signature; files of `test_code` count as one.

    Where an assertion of the test itself fails, the values that it saw stay as they are: a test that fails with other
    values may well fail for another reason.
    """
    inside = [frame for frame in failure.frames if frame.path is not None]
    path, function = "", ""
    if inside and failure.exception not in UNPLACED:
        path, function = str(inside[-1].path), inside[-1].function
        path = TEST_CODE if path in test_code else path
    if path == TEST_CODE and failure.exception in ASSERTIONS:
        pattern = "\n".join([_first_line(failure.message), *map(_shown, (failure.left, failure.right))]).strip()
    else:
        pattern = message_pattern(failure.message)
    return FailureSignature(exception=failure.exception, pattern=pattern, path=path, function=function)


def _first_line(text: str) -> str:
    return _shown(text.split("\n", 1)[0])[:_PATTERN_LIMIT]


def _shown(text: str) -> str:
    return _TEMPORARY.sub("<tmp>", steady(text))
