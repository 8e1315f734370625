"""Frames: what is packed comes back; what is too long, cut off or no object does not."""

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.runner.json_frames import Reader, WireClosed, WireFault, WireTimeout, pack, send

VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x, max_size=4))


def _reader(data: bytes) -> Reader:
    read, write = os.pipe()
    os.write(write, data)
    os.close(write)
    return Reader(read)


@pytest.mark.long
@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5))
def test_frames_come_back(message: dict[str, object]) -> None:
    reader = _reader(pack(message) * 2)
    assert reader.receive() == reader.receive() == message
    os.close(reader.fd)


@pytest.mark.parametrize("data", [b"\xff" * 8, b"\0\0\0\2[]", b"\0\0\0\2{", b"\0\0\0\4\xc3\xa9{}", b"\0\0\0\1x"])
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    reader = _reader(data)
    with pytest.raises(WireFault):
        reader.receive()
    os.close(reader.fd)


def test_closed_late_and_too_much() -> None:
    reader = _reader(b"")
    with pytest.raises(WireClosed):
        reader.receive()
    os.close(reader.fd)
    read, write = os.pipe()
    with pytest.raises(WireTimeout):
        Reader(read).receive(time.monotonic())
    send(write, {"a": "x" * 100})
    with pytest.raises(WireFault):
        Reader(read).receive(limit_bytes=50)
    os.close(read)
    os.close(write)
