"""What is read: windows hold every difference and fit together again; what cannot be read tells nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.repair.acceptance.acceptance import MAX_LINES_ABOVE, MAX_LINES_BELOW, naturalness, window

LINES = st.lists(
    st.sampled_from([b"def f():", b"    x = 1", b"    return x", b"", b"y = 2", b")", b"# c"]), max_size=12
)


@dataclass
class Reader:
    """Likes short texts: a nat a byte. Refuses to read more than it may."""

    most: int = 1 << 20
    asked: list[list[bytes]] = field(default_factory=list)

    def likelihoods(self, texts: Sequence[bytes], *, timeout_seconds: float) -> list[float] | None:
        self.asked.append(list(texts))
        return None if max(map(len, texts)) > self.most else [-float(len(t)) for t in texts]


def candidate(number: int, **files: tuple[bytes, bytes]) -> Candidate:
    changes = tuple(FileChange(path=RepoPath(f"{n}.py"), before=b, after=a) for n, (b, a) in files.items())
    return Candidate(number=number, patch=Patch(changes=changes), edits=(), cost=0.0)


@given(LINES, st.lists(LINES, min_size=1, max_size=3))
def test_a_window_holds_every_difference(source: list[bytes], others: list[list[bytes]]) -> None:
    before = b"\n".join(source)
    texts = [b"\n".join(o) for o in others]
    start, end = window(before, texts)
    assert 0 <= start <= end <= len(before)
    assert start == 0 or before[start - 1 : start] == b"\n"
    for text in texts:
        cut = text[start : len(text) - (len(before) - end)]
        assert before[:start] + cut + before[end:] == text


def test_a_window_is_the_top_level_statements_around() -> None:
    source = b"import a\n\n\ndef f(x):\n    y = 1\n    return y\n\n\ndef g():\n    pass\n"
    start, end = window(source, [source.replace(b"y = 1", b"y = 2")])
    assert source[start:end] == b"def f(x):\n    y = 1\n    return y\n\n\n"
    assert window(source, [source]) is not None


def test_a_window_is_bounded_by_lines() -> None:
    source = b"def f():\n" + b"    x = 1\n" * 999
    at = source.index(b"x", 5000)
    start, end = window(source, [source[:at] + b"y" + source[at + 1 :]])
    assert source.count(b"\n", start, end) <= MAX_LINES_ABOVE + MAX_LINES_BELOW


def test_patches_of_several_files_are_compared_with_what_stood_there() -> None:
    one = candidate(1, a=(b"aa\n", b"aaaa\n"))
    both = candidate(2, a=(b"aa\n", b"a\n"), b=(b"bb\n", b"bbb\n"))
    reader = Reader()
    assert naturalness([one, both], reader, 1.0) == {1: -2.0, 2: 0.0}
    assert [sorted(texts) for texts in reader.asked] == [[b"a\n", b"aa\n", b"aaaa\n"], [b"bb\n", b"bbb\n"]]


def test_what_cannot_be_read_tells_nothing() -> None:
    long = candidate(1, a=(b"aa\n", b"aaaa\n"))
    assert naturalness([long, candidate(2, b=(b"b\n", b"c\n"))], Reader(most=4), 1.0) == {}
    assert naturalness([], Reader(), 1.0) == {}
