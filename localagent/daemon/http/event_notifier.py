"""Wakes those who follow a task when another process has written something about it. One event loop's alone."""

import asyncio
from dataclasses import dataclass, field

from localagent.daemon.store.task_store import ANYBODY, Rows

TICK_SECONDS = 0.1


@dataclass(slots=True)
class _Followed:
    marker: tuple[str, int]
    followers: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class EventNotifier:
    """`run` looks at the database's version, and only then at each followed task once, however many follow it."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._followed: dict[str, _Followed] = {}
        self.ending = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        version = -1
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self._followed and (now := self._rows.version()) != version:
                version = now
                for task, followed in self._followed.items():
                    if (marker := self._marker(task)) != followed.marker:
                        followed.marker = marker
                        followed.changed.set()
                        followed.changed = asyncio.Event()

    def _marker(self, task: str) -> tuple[str, int]:
        row = self._rows.find(task, ANYBODY)
        return ("", 0) if row is None else (row.state.value, self._rows.last_event(task))

    def follow(self, task: str) -> asyncio.Event:
        """One more follower; what comes after this is set once when something has changed. Ask again afterwards."""
        followed = self._followed.setdefault(task, _Followed(marker=self._marker(task)))
        followed.followers += 1
        return followed.changed

    def change(self, task: str) -> asyncio.Event:
        """What is set when something changes next."""
        return self._followed[task].changed

    def leave(self, task: str) -> None:
        """One follower less."""
        followed = self._followed[task]
        followed.followers -= 1
        if not followed.followers:
            del self._followed[task]

    def end(self) -> None:
        """Everybody is woken for good."""
        self.ending.set()
        for followed in self._followed.values():
            followed.changed.set()

    @property
    def followers(self) -> int:
        """How many follow something."""
        return sum(followed.followers for followed in self._followed.values())
