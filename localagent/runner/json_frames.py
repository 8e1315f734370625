"""Frames of ascii JSON with a length in front, on a file descriptor. Shared by the host and the worker.

No pickle, bounded sizes, deadlines. Not promised: anything about who wrote a frame: nonces are the caller's.
"""

from __future__ import annotations

from json import dumps as _dumps
from json import loads as _loads
from os import read as _read
from os import write as _write
from select import POLLIN as _POLLIN
from select import poll as _poll
from time import monotonic as _monotonic
from typing import Any, Dict, Optional

FRAME_LIMIT_BYTES = 32 << 20
HEADER_BYTES = 4


class WireFault(Exception):  # noqa: N818 - named for what happened
    """What arrived is not a frame: too long, not JSON, not an object, cut off."""


class WireTimeout(Exception):  # noqa: N818 - named for what happened
    """Nothing complete arrived before the deadline."""


class WireClosed(Exception):  # noqa: N818 - named for what happened
    """The other end is gone."""


def pack(message: Dict[str, Any]) -> bytes:
    """One frame's bytes. Lone surrogates travel as JSON escapes."""
    data = _dumps(message, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    if len(data) > FRAME_LIMIT_BYTES:
        raise WireFault("frame of %d bytes is over the limit" % len(data))
    return len(data).to_bytes(HEADER_BYTES, "big") + data


def send(fd: int, message: Dict[str, Any]) -> None:
    """Write one frame, all of it. Raises OSError when the other end is gone."""
    data = memoryview(pack(message))
    while data:
        data = data[_write(fd, data) :]


class Reader:
    """Takes frames off a descriptor. `received_bytes` counts everything read, for the caller's total bound."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.received_bytes = 0
        self._buffer = bytearray()
        self._poll = _poll()
        self._poll.register(fd, _POLLIN)

    def receive(self, deadline: Optional[float] = None, limit_bytes: int = 1 << 40) -> Dict[str, Any]:
        """The next frame. `deadline` is on the monotonic clock; None waits for ever."""
        while True:
            frame = self._take()
            if frame is not None:
                return frame
            wait_ms = None if deadline is None else max(0, int((deadline - _monotonic()) * 1000) + 1)
            if not self._poll.poll(wait_ms):
                if deadline is not None and _monotonic() >= deadline:
                    raise WireTimeout("no answer in time")
                continue
            try:
                data = _read(self.fd, 1 << 16)
            except OSError as fault:
                raise WireClosed(str(fault)) from None
            if not data:
                if self._buffer:
                    raise WireFault("cut off in the middle of a frame")
                raise WireClosed("closed")
            self.received_bytes += len(data)
            if self.received_bytes > limit_bytes:
                raise WireFault("sends more than it may")
            self._buffer += data

    def _take(self) -> Optional[Dict[str, Any]]:
        if len(self._buffer) < HEADER_BYTES:
            return None
        size = int.from_bytes(self._buffer[:HEADER_BYTES], "big")
        if size > FRAME_LIMIT_BYTES:
            raise WireFault("frame announces %d bytes, over the limit" % size)
        if len(self._buffer) < HEADER_BYTES + size:
            return None
        data = bytes(self._buffer[HEADER_BYTES : HEADER_BYTES + size])
        del self._buffer[: HEADER_BYTES + size]
        try:
            message = _loads(data.decode("ascii"))
        except (ValueError, RecursionError):
            raise WireFault("not JSON") from None
        if not isinstance(message, dict):
            raise WireFault("not an object")
        return message
