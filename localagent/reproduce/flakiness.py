"""Why a test fails sometimes: one thing is varied at a time, and the class of the cause is said with its evidence.

Varied are the seed of string hashes, randomness, the wall clock, how fast time seems to pass, how often threads take
turns, files that an earlier run left, and the tests that run before; delta debugging over those finds the one that it
depends on. Not promised: a cause where two of these are needed at once, or where it takes rarer luck than the runs.
"""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from localagent.code.delta_debugging import minimise
from localagent.domain.reproduction import FailureRate, FlakyCause, FlakyReport, Trial
from localagent.reproduce.varied_runs import RunCondition, VariedRuns

HASH_SEEDS = range(6)
MORE_HASH_SEEDS = range(6, 14)
RANDOM_SEEDS = range(1, 7)
MORE_RANDOM_SEEDS = range(7, 32)
_MOMENTS = (  # hours of the day, days of the week, ends of months and years, odd and even seconds
    (2026, 3, 2, 9, 30, 0), (2026, 3, 2, 23, 59, 59), (2026, 3, 3, 0, 0, 1), (2026, 3, 7, 14, 0, 3),
    (2026, 3, 8, 4, 5, 8), (2026, 3, 31, 12, 0, 0), (2026, 12, 31, 23, 30, 7), (2027, 1, 1, 0, 30, 2),
    (2028, 2, 29, 12, 0, 5), (2026, 10, 25, 1, 30, 30), (2039, 6, 15, 18, 45, 11), (2026, 7, 13, 13, 13, 13),
)  # fmt: skip
_FRACTIONS = (0.0, 0.123457, 0.5, 0.912345)
Tell = Callable[[str], None]


class FlakinessSearch:
    """Of one test. `runs` is how often the plain test is run; `until` a moment of the monotonic clock."""

    def __init__(self, varied: VariedRuns, test: str, runs: int, until: float, tell: Tell) -> None:
        self._varied, self._test, self._runs, self._until, self._tell = varied, test, runs, until, tell
        self._trials: list[Trial] = []
        self._rate = FailureRate(failed=0, runs=0)

    def report(self) -> FlakyReport:
        """The cause, NONE where the outcome never changed, UNKNOWN where it changed and nothing tells why."""
        found = self._hash_seeds()
        if found is None:
            found = self._inside() if self._rate.varies else self._outside()
        if found is not None:
            return found
        if self._rate.varies:
            return self._answer(FlakyCause.UNKNOWN, "nothing that was varied tells the failing runs from the others")
        return self._answer(FlakyCause.NONE, "the outcome never changed, whatever was varied")

    def _answer(
        self, cause: FlakyCause, sentence: str, *, polluters: Sequence[str] = (), show: str = ""
    ) -> FlakyReport:
        return FlakyReport(
            cause=cause,
            sentence=sentence,
            rate=self._rate,
            trials=tuple(self._trials),
            polluters=tuple(polluters),
            show=show,
        )

    def _try(self, name: str, condition: RunCondition, runs: int) -> FailureRate:
        rate = self._varied.rate(condition, runs, self._until)
        self._trials.append(Trial(condition=name, rate=rate))
        self._tell(f"{name}: fails {rate}")
        return rate

    # -- alone

    def _hash_seeds(self) -> FlakyReport | None:
        """The plain test, under some seeds of string hashes."""
        each = max(2, -(-self._runs // len(HASH_SEEDS)))
        rates = {seed: self._try(f"PYTHONHASHSEED={seed}", RunCondition(hash_seed=seed), each) for seed in HASH_SEEDS}
        self._rate = sum(rates.values(), FailureRate(failed=0, runs=0))
        return self._by_hash_seed(rates)

    def _by_hash_seed(self, rates: dict[int, FailureRate]) -> FlakyReport | None:
        bad, good = self._split(rates)
        if not bad or not good or any(rate.varies for rate in rates.values()):
            return None
        pair = {
            seed: self._try(f"PYTHONHASHSEED={seed}, again", RunCondition(hash_seed=seed), 4)
            for seed in (bad[0], good[0])
        }
        if not (pair[bad[0]].always and pair[good[0]].never):
            return None
        sentence = (
            f"fails {pair[bad[0]] + rates[bad[0]]} with PYTHONHASHSEED={bad[0]}, "
            f"{pair[good[0]] + rates[good[0]]} with PYTHONHASHSEED={good[0]}: it depends on the order of a set or dict "
            "of strings, or on hash()"
        )
        show = f"PYTHONHASHSEED={bad[0]} python -m pytest {self._test}"
        return self._answer(FlakyCause.HASH_SEED, sentence, show=show)

    @staticmethod
    def _split(rates: dict[int, FailureRate]) -> tuple[list[int], list[int]]:
        return [s for s, r in rates.items() if r.always], [s for s, r in rates.items() if r.never and r.runs]

    def _inside(self) -> FlakyReport | None:
        """It varies although nothing was varied: what has to be held still for the outcome to stand?"""
        return self._random(repeats=3) or self._clock(repeats=2) or self._speed() or self._threads()

    def _outside(self) -> FlakyReport | None:
        """Alone it always does the same: what has to change for the outcome to change?"""
        return (
            self._leftovers()
            or self._order()
            or self._clock(repeats=2)
            or self._random(repeats=1)
            or self._speed()
            or self._threads()
            or self._by_hash_seed(
                {s: self._try(f"PYTHONHASHSEED={s}", RunCondition(hash_seed=s), 1) for s in MORE_HASH_SEEDS}
                | {0: self._rate}
            )
        )

    def _random(self, *, repeats: int) -> FlakyReport | None:
        rates: dict[int, FailureRate] = {}
        for seed in [*RANDOM_SEEDS, *MORE_RANDOM_SEEDS]:
            rates[seed] = self._try(f"random seed {seed}", RunCondition(vary={"random": seed}), repeats)
            bad, good = self._split(rates)
            if rates[seed].varies:
                return None
            if bad and good and seed >= RANDOM_SEEDS[-1]:
                break
        bad, good = self._split(rates)
        if not bad or not good:
            return None
        pair = {s: self._try(f"random seed {s}, again", RunCondition(vary={"random": s}), 4) for s in (bad[0], good[0])}
        if not (pair[bad[0]].always and pair[good[0]].never):
            return None
        sentence = (
            f"fails {pair[bad[0]] + rates[bad[0]]} with random seed {bad[0]}, "
            f"{pair[good[0]] + rates[good[0]]} with random seed {good[0]}: it depends on random values"
        )
        return self._answer(FlakyCause.RANDOM, sentence, show=f"call random.seed({bad[0]}) at the begin of the test")

    def _clock(self, *, repeats: int) -> FlakyReport | None:
        rates: dict[int, FailureRate] = {}
        moments = [
            datetime(*moment, tzinfo=UTC).timestamp() + _FRACTIONS[number % len(_FRACTIONS)]
            for number, moment in enumerate(_MOMENTS)
        ]
        for number, at in enumerate(moments):
            rates[number] = self._try(f"clock at {_shown(at)}", RunCondition(vary={"clock": at}), repeats)
            if rates[number].varies:
                return None
        bad, good = self._split(rates)
        if not bad or not good:
            return None
        pair = [
            self._try(f"clock at {_shown(moments[n])}, again", RunCondition(vary={"clock": moments[n]}), 3)
            for n in (bad[0], good[0])
        ]
        if not (pair[0].always and pair[1].never):
            return None
        sentence = (
            f"fails {pair[0] + rates[bad[0]]} with the clock at {_shown(moments[bad[0]])}, "
            f"{pair[1] + rates[good[0]]} with the clock at {_shown(moments[good[0]])}: it depends on the current time"
        )
        return self._answer(FlakyCause.TIME, sentence, show=f"set the clock to {_shown(moments[bad[0]])}")

    def _speed(self) -> FlakyReport | None:
        """Time that is measured passes not at all, or many times as fast."""
        still = self._try("time that does not pass", RunCondition(vary={"speed": 0.0}), 4)
        fast = self._try("time that passes 200 times as fast", RunCondition(vary={"speed": 200.0}), 4)
        if not (still.always and fast.never) and not (still.never and fast.always):
            return None
        sentence = (
            f"fails {still} when no time passes between two looks at the clock, {fast} when 200 times as much does: it "
            "depends on how long something takes"
        )
        return self._answer(FlakyCause.TIME, sentence)

    def _threads(self) -> FlakyReport | None:
        """How often threads take turns: at every chance, or seldom."""
        often = self._try("threads switch every microsecond", RunCondition(vary={"switch": 1e-6}), 10)
        seldom = self._try("threads switch every two seconds", RunCondition(vary={"switch": 2.0}), 10)
        (low, high), (other_low, other_high) = often.interval, seldom.interval
        if high >= other_low and other_high >= low:
            return None
        sentence = (
            f"fails {often} when threads take turns every microsecond, {seldom} when they seldom do: threads share "
            "something without a lock"
        )
        return self._answer(FlakyCause.THREADS, sentence, show="call sys.setswitchinterval(1e-6) before the test")

    # -- what was there before

    def _leftovers(self) -> FlakyReport | None:
        rate = self._try("after a run of itself in another process", RunCondition(vary={"twice": 1}), 3)
        if not rate.runs or (rate.never if self._rate.never else rate.always) or rate.varies:
            return None
        sentence = (
            f"fails {rate} after a run of itself, {self._rate} alone: a file that a run leaves changes the next one"
        )
        return self._answer(FlakyCause.SHARED_FILE, sentence, show=f"python -m pytest {self._test}, twice")

    def _order(self) -> FlakyReport | None:
        """Other tests before: those that are collected before it, then all others."""
        items = [item.id for item in self._varied.collected()]
        if self._test not in items:
            return None
        at = items.index(self._test)
        others = [*items[at + 1 :], *items[:at]]
        for name, before in (("the tests collected before it", items[:at]), ("all other tests", others)):
            if not before:
                continue
            rate = self._try(f"after {name} ({len(before)})", RunCondition(before=tuple(before)), 2)
            if rate.runs and (rate.always if self._rate.never else rate.never):
                return self._polluted(before)
        return None

    def _polluted(self, before: Sequence[str]) -> FlakyReport | None:
        """Which of the tests before it takes."""
        wanted = self._rate.never  # it passes alone: the outcome to look for is a failure

        def changes(part: tuple[str, ...]) -> bool:
            return bool(part) and self._varied.fails(RunCondition(before=part)) is wanted

        found = minimise(before, changes, lambda: time.monotonic() < self._until)
        rate = self._try(f"after {', '.join(found[:3])}", RunCondition(before=found), 5)
        if rate.varies or not rate.runs or rate.always is not wanted:
            return None
        names = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
        what = "leaves something behind that breaks it" if wanted else "sets up something that it needs"
        sentence = f"fails {rate} after {names}, {self._rate} alone: that {what}"
        show = f"python -m pytest {' '.join(found)} {self._test}"
        return self._answer(FlakyCause.ORDER, sentence, polluters=found, show=show)


def _shown(at: float) -> str:
    return datetime.fromtimestamp(at, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
