"""Frames survive any cutting of the stream; what is not a frame is a fault, not a message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.llm.process.protocol import MAX_FRAME_BYTES, FrameBuffer, FrameFault, Message, pack

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=4), max_leaves=10
)
messages = st.builds(lambda kind, body: {"kind": kind, "body": body}, st.text(), values)


@pytest.mark.long
@given(sent=st.lists(messages, max_size=5), cuts=st.lists(st.integers(1, 40), max_size=50))
def test_messages_arrive_whole_however_the_stream_is_cut(sent: list[Message], cuts: list[int]) -> None:
    stream = b"".join(pack(message) for message in sent)
    buffer = FrameBuffer()
    got: list[Message] = []
    for cut in [*cuts, len(stream) or 1]:
        got += buffer.feed(stream[:cut])
        stream = stream[cut:]
    assert got + buffer.feed(stream) == sent


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ((MAX_FRAME_BYTES + 1).to_bytes(4, "big"), "larger than"),
        (b"\xff\xff\xff\xff", "larger than"),
        (frame(b"{"), "not JSON"),
        (frame(b"[" * 100_000), "not JSON"),
        (frame(b"\xff"), "not JSON"),
        (frame(b"[]"), "object with a kind"),
        (frame(b"{}"), "object with a kind"),
        (frame(b'{"kind": 1}'), "object with a kind"),
    ],
)
def test_what_is_no_frame_is_a_fault(data: bytes, reason: str) -> None:
    with pytest.raises(FrameFault, match=reason):
        FrameBuffer().feed(data)


def test_a_frame_too_large_is_not_sent() -> None:
    with pytest.raises(FrameFault, match="larger than"):
        pack({"kind": "x", "body": "y" * MAX_FRAME_BYTES})
