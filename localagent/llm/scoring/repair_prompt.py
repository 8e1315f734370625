"""How code is laid out for a model that mends: the same stretch twice, as wrong and again as right (docs/adr/0046).

It must stay as it was learned (`models/smollm2-135m-instruct.md`).
"""

WRONG, RIGHT = b"# wrong:\n", b"# right:\n"
BODY_BYTES = 1_500  # of a stretch; longer functions are read in several
LEAD_BYTES = 300  # of the file in front of it
TESTS_TOKENS = 150  # of the tests in front of that
TESTS_BYTES = 500  # the same where tokens are not known yet


def lead_of(source: bytes, begin: int) -> bytes:
    """The whole lines in front of a stretch, as far as there is room for them."""
    first = 0 if begin <= LEAD_BYTES else source.find(b"\n", begin - LEAD_BYTES) + 1
    return source[first:begin] if first <= begin else b""


def shown_as_wrong(text: bytes) -> bytes:
    """A stretch below WRONG, and RIGHT behind it: what comes next is its second copy."""
    return WRONG + text + (b"" if text.endswith(b"\n") else b"\n") + RIGHT
