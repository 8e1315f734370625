"""What is refused before anything is parsed: too many connections, too fast, too slow, too long.

Counts are per user id, as the kernel names it: nobody can use up what is another's.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from localagent.daemon.processes.configuration import Rates

MOST_HEADERS = 64
MOST_HEADER_BYTES = 16 << 10
MOST_TARGET_BYTES = 2 << 10
HEAD_SECONDS = 10.0  # from the first byte of a request to the end of its header
IDLE_SECONDS = 75.0
BODY_SECONDS = 30.0  # and a second more for each
BODY_BYTES_A_SECOND = 64 << 10


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class ConnectionLimiter:
    """Connections and requests of each user. One event loop's alone."""

    rates: Rates
    clock: Callable[[], float] = time.monotonic
    connections: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    _buckets: dict[int, _Bucket] = field(default_factory=dict)

    def enter(self, uid: int) -> bool:
        """One more connection; False when that is too many. `leave` only after True."""
        if self.connections[uid] >= self.rates.connections or self.connections.total() >= self.rates.all_connections:
            self.refused["connections"] += 1
            return False
        self.connections[uid] += 1
        return True

    def leave(self, uid: int) -> None:
        """One connection less."""
        self.connections[uid] -= 1
        if not self.connections[uid]:
            del self.connections[uid]

    def ask(self, uid: int) -> float:
        """0.0 when one more request is in order now, else the seconds until one is."""
        now = self.clock()
        bucket = self._buckets.setdefault(uid, _Bucket(tokens=float(self.rates.burst), at=now))
        bucket.tokens = min(self.rates.burst, bucket.tokens + (now - bucket.at) * self.rates.requests_a_second)
        bucket.at = now
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0.0
        self.refused["rate"] += 1
        return (1 - bucket.tokens) / self.rates.requests_a_second

    def forget_quiet(self) -> None:
        """Drop users who have not asked for so long that they may ask all at once again."""
        full = self.rates.burst / self.rates.requests_a_second
        now = self.clock()
        for uid in [uid for uid, bucket in self._buckets.items() if now - bucket.at > full]:
            del self._buckets[uid]


def head_fault(target: bytes, headers: list[tuple[bytes, bytes]]) -> tuple[int, str] | None:
    """Status and reason when a request's header is more than anybody needs; None when it is in order."""
    if len(target) > MOST_TARGET_BYTES:
        return 414, f"the target is longer than {MOST_TARGET_BYTES} bytes"
    if len(headers) > MOST_HEADERS:
        return 431, f"more than {MOST_HEADERS} header fields"
    if sum(len(name) + len(value) for name, value in headers) > MOST_HEADER_BYTES:
        return 431, f"more than {MOST_HEADER_BYTES} bytes of header fields"
    return None
