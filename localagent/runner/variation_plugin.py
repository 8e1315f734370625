"""A pytest plugin that holds a source of nondeterminism still, or moves it: randomness, clocks, threads, leftovers.

Loaded by `-p` before the project is imported; what to do stands in the option `--la-vary`, as JSON. Not promised:
clocks and random sources that C code reads by itself; `random` objects made before the project is imported keep
their state.
"""

from __future__ import annotations

import datetime as datetime_module
import json
import os
import random
import sys
import time
from typing import Any, Dict, Generator

import pytest

from .rng import seed_now

_EPOCH = datetime_module.datetime(1970, 1, 1, tzinfo=datetime_module.timezone.utc)
_random = random.Random


def pytest_addoption(parser: Any) -> None:
    """`--la-vary`: an object with `random`, `clock`, `speed`, `switch`, `twice`."""
    parser.addoption("--la-vary", default="{}")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> None:
    """Before conftest files, and so before the project, are imported."""
    vary: Dict[str, Any] = json.loads(early_config.known_args_namespace.la_vary)
    if "random" in vary:
        seed_everything(int(vary["random"]))
    if "clock" in vary:
        freeze(float(vary["clock"]))
    if "speed" in vary:
        speed_up(float(vary["speed"]))
    if "switch" in vary:
        sys.setswitchinterval(float(vary["switch"]))
    early_config.pluginmanager.register(_Runs(vary), "la-vary")


class _Runs:
    """What is done around each test."""

    def __init__(self, vary: Dict[str, Any]) -> None:
        self._vary = vary

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, None]:
        """The seeds again, and the test once before, in a process of its own, where that is asked for."""
        if self._vary.get("twice"):
            self._once_before(item)
        if "random" in self._vary:
            seed_now(int(self._vary["random"]))
        yield

    @staticmethod
    def _once_before(item: Any) -> None:
        """Files that the test leaves are found by the run that counts; what it leaves in memory is not."""
        from _pytest.runner import runtestprotocol

        pid = os.fork()
        if pid == 0:
            try:
                null = os.open(os.devnull, os.O_RDWR)
                for fd in range(3, 256):
                    try:
                        if os.readlink("/proc/self/fd/%d" % fd).startswith(("socket:", "pipe:")):
                            os.dup2(null, fd)
                    except OSError:
                        continue
                runtestprotocol(item, log=False, nextitem=None)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)


def seed_everything(seed: int) -> None:
    """Everything that asks the system for randomness gets the same bytes each time."""
    source = _random(seed)

    def urandom(size: int) -> bytes:
        return source.getrandbits(8 * size).to_bytes(size, "little") if size else b""

    os.urandom = urandom
    setattr(random, "_urandom", urandom)  # noqa: B010 - where SystemRandom takes them from
    original = _random.seed

    def seeded(self: Any, a: Any = None, version: int = 2) -> None:
        original(
            self, source.getrandbits(64) if a is None and not isinstance(self, random.SystemRandom) else a, version
        )

    setattr(_random, "seed", seeded)  # noqa: B010
    random.seed(seed)


def freeze(at: float) -> None:
    """The wall clock stands at a moment, in seconds since 1970; what measures time that passes goes on."""
    time.time = lambda: at
    time.time_ns = lambda: int(at * 10**9)
    for name in ("localtime", "gmtime"):
        original = getattr(time, name)
        setattr(time, name, lambda seconds=None, o=original: o(at if seconds is None else seconds))
    shown, ascii_time = time.strftime, time.asctime
    time.strftime = lambda form, *given: shown(form, *(given or (time.localtime(at),)))
    time.asctime = lambda *given: ascii_time(*(given or (time.localtime(at),)))
    time.ctime = lambda seconds=None: ascii_time(time.localtime(at if seconds is None else seconds))
    _freeze_datetime(at)


def _freeze_datetime(at: float) -> None:
    real_datetime: Any = datetime_module.datetime
    real_date: Any = datetime_module.date

    class _Kind(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, real_datetime if cls.__name__ == "datetime" else real_date)

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(kind, real_datetime if cls.__name__ == "datetime" else real_date)

    class date(real_date, metaclass=_Kind):  # type: ignore[misc]  # noqa: N801 - stands for the real one
        @classmethod
        def today(cls) -> Any:
            return real_date.fromtimestamp(at)

    class datetime(real_datetime, metaclass=_Kind):  # type: ignore[misc]  # noqa: N801 - stands for the real one
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return real_datetime.fromtimestamp(at, tz)

        @classmethod
        def today(cls) -> Any:
            return real_datetime.fromtimestamp(at)

        @classmethod
        def utcnow(cls) -> Any:
            return (_EPOCH + datetime_module.timedelta(seconds=at)).replace(tzinfo=None)

    datetime_module.datetime = datetime  # type: ignore[misc]
    datetime_module.date = date  # type: ignore[misc]


def speed_up(factor: float) -> None:
    """Clocks that measure how much time passes run so many times as fast; with 0 they stand."""
    for name in ("perf_counter", "monotonic", "time", "process_time"):
        original = getattr(time, name)
        begin = original()
        setattr(time, name, lambda o=original, b=begin: b + factor * (o() - b))
    for name in ("perf_counter_ns", "monotonic_ns", "time_ns"):
        original = getattr(time, name)
        start = original()
        setattr(time, name, lambda o=original, b=start: int(b + factor * (o() - b)))
