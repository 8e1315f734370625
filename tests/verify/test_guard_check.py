"""The guard check in real jails: what a patch breaks outside the goal is found, and nothing else is blamed on it."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from support.house_builder import House, house

from localagent.domain.edit import Candidate
from localagent.domain.guard import Guard, GuardResult, guard_of
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.verify.worker.jail_pool import JailWorker
from localagent.verify.worker.worker_spec import WorkerUse

PACKAGE = {
    "shop/__init__.py": "",
    "shop/price.py": "def total(prices, discount=0):\n    return sum(prices) + discount\n",
    "shop/order.py": "from shop.price import total\n\n\ndef bill(prices):\n    return f'{total(prices):.2f}'\n",
    "tests/test_price.py": (
        "from shop.price import total\n\n\ndef test_discount():\n    assert total([5], 2) == 3\n\n\n"
        "def test_plain():\n    assert total([5]) == 5\n"
    ),
    "tests/test_a_far.py": "def test_far():\n    assert 1 + 1 == 2\n",
    "tests/test_order.py": (
        "from shop.order import bill\n\n\ndef test_bill():\n    assert bill([2, 3]) == '5.00'\n\n\n"
        "def test_nothing():\n    assert bill([]) == '0.00'\n"
    ),
}
GOAL = ("tests/test_price.py",)
RIGHT = ("sum(prices) + discount", "sum(prices) - discount")
WRONG = ("sum(prices) + discount", "prices[0] - discount")
BROKEN = ("tests/test_order.py::test_bill", "tests/test_order.py::test_nothing")


class Heard:
    def __init__(self) -> None:
        self.counts: list[tuple[int, int]] = []

    def __call__(self, ran: int, found: int) -> None:
        self.counts.append((ran, found))


def guarded(built: House, candidate: Candidate, baseline: Baseline, *, seconds: float = 60.0) -> GuardResult:
    return built.verifier.guard(candidate, baseline, seconds=seconds, tell=Heard())


@cache
def baseline_of_goal() -> Baseline:
    """What the goal's tests say, whatever other files stand beside them; run once."""
    with house(PACKAGE, tests=GOAL) as built:
        return built.verifier.baseline()


class Guarded:
    """One verifier's guard, asked about changes of `shop/price.py`."""

    def __init__(self, built: House) -> None:
        self._built, self._asked = built, 0

    def on(self, change: tuple[str, str], *, seconds: float = 60.0) -> GuardResult:
        self._asked += 1
        candidate = self._built.variant(self._asked, "shop/price.py", *change)
        return guarded(self._built, candidate, baseline_of_goal(), seconds=seconds)


@contextmanager
def suite(files: dict[str, str], guard: Guard | None = None) -> Iterator[Guarded]:
    with house({**PACKAGE, **files}, tests=GOAL, guard=guard or Guard()) as built:
        yield Guarded(built)


def on(
    files: dict[str, str], change: tuple[str, str], *, guard: Guard | None = None, seconds: float = 60
) -> GuardResult:
    """The guard's answer to one change of `shop/price.py`."""
    with suite(files, guard) as asked:
        return asked.on(change, seconds=seconds)


@pytest.mark.long
def test_a_patch_that_breaks_a_test_elsewhere_is_found_and_the_right_one_is_not_blamed() -> None:
    with house(PACKAGE, tests=GOAL) as built:
        baseline = built.verifier.baseline()
        wrong, right = (built.candidate("shop/price.py", *change) for change in (WRONG, RIGHT))
        for candidate in (wrong, right):
            assert built.verifier.full(candidate, baseline, seed=1).accepted, "the goal's tests do not tell them apart"
        said = guarded(built, wrong, baseline)
        assert said.broken == BROKEN
        assert said.refusal == f"breaks tests outside --test: {', '.join(BROKEN)}"
        heard = Heard()
        said = built.verifier.guard(right, baseline, seconds=60.0, tell=heard)
        assert (said.found, said.ran, said.passed, said.not_run) == (3, 3, 3, 0)
        assert (said.broken, said.flaky, said.undecided, said.why, said.refusal) == ((), (), (), "", "")
        assert (heard.counts[0], heard.counts[-1]) == ((0, 3), (3, 3))


@pytest.mark.long
def test_what_failed_before_is_not_blamed_and_does_not_hide_what_is_broken() -> None:
    red = {f"tests/test_b_red_{n}.py": "from shop.order import bill\n\n\ndef test_red():\n    assert bill([1]) == ''\n"
           for n in range(3)}  # fmt: skip
    with suite(red) as asked:
        said = asked.on(RIGHT)
        assert (said.ran, said.passed, said.broken, said.undecided) == (6, 3, (), ())
        assert asked.on(WRONG).broken == BROKEN


@pytest.mark.long
def test_a_flaky_test_outside_is_named_and_not_blamed() -> None:
    # bad in the suite, where the file's first test has set a name; good by itself
    flaky = (
        "from shop.order import bill\nSEEN = []\n\n\ndef test_first():\n    SEEN.append(bill([1]))\n\n\n"
        "def test_alone():\n    assert not SEEN\n"
    )
    said = on({"tests/test_flaky.py": flaky}, RIGHT)
    assert said.flaky == ("tests/test_flaky.py::test_alone",)
    assert (said.ran, said.passed, said.broken) == (5, 5, ())


@pytest.mark.long
def test_a_test_that_needs_its_neighbours_is_compared_after_them() -> None:
    needy = (
        "from shop.order import bill\nMADE = {}\n\n\ndef test_make():\n    MADE['bill'] = 1\n\n\n"
        "def test_use():\n    assert MADE['bill'] and bill([]) == '0.00'\n"
    )
    said = on({"tests/test_a_needy.py": needy, "tests/test_order.py": ""}, WRONG)
    assert said.broken == ("tests/test_a_needy.py::test_use",)
    said = on({"tests/test_a_needy.py": needy}, RIGHT)
    assert (said.ran, said.passed, said.broken) == (5, 5, ())


@pytest.mark.long
def test_a_file_that_no_longer_collects_is_broken() -> None:
    files = {
        "tests/test_import.py": "from shop.price import total\n\nFREE = total([])\n\n\ndef test_free():\n    pass\n"
    }
    with suite(files) as asked:
        assert asked.on(WRONG).broken == ("collect:tests/test_import.py",)
        assert asked.on(RIGHT).broken == ()


@pytest.mark.long
def test_a_test_that_is_no_longer_collected_is_broken() -> None:
    text = (
        "import pytest\nfrom shop.price import total\n\n\n"
        "@pytest.mark.parametrize('n', range(total([2], 1)))\ndef test_each(n):\n    assert n < 9\n"
    )
    said = on({"tests/test_each.py": text}, RIGHT)
    assert said.broken == ("tests/test_each.py::test_each[1]", "tests/test_each.py::test_each[2]")


@pytest.mark.long
@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"tests/a/conftest.py": "import os\nos._exit(3)\n", "tests/a/test_x.py": ""}, "the interpreter ended"),
        ({"pytest.ini": "[pytest]\naddopts = --no-such-option\n"}, "does not collect"),
    ],
)
def test_a_suite_that_does_not_collect_without_the_patch_is_told_and_refuses_nothing(
    files: dict[str, str], why: str
) -> None:
    with house(PACKAGE, tests=GOAL) as built:
        for name, text in files.items():  # they come late: the goal is collected without them
            (built.root / "store" / name).parent.mkdir(exist_ok=True)
            (built.root / "store" / name).write_text(text)
        said = guarded(built, built.candidate("shop/price.py", *WRONG), baseline_of_goal())
    assert (said.found, said.ran, said.broken) == (0, 0, ())
    assert why in said.why


@pytest.mark.long
def test_files_that_never_collected_are_left_out_and_counted() -> None:
    said = on({"tests/test_missing.py": "import no_such_package\n\n\ndef test_m():\n    pass\n"}, WRONG)
    assert said.broken == BROKEN
    assert "1 file does not collect without the patch either" in said.why


@pytest.mark.long
def test_a_named_guard_is_all_that_runs() -> None:
    assert on({}, WRONG, guard=guard_of(["tests/test_a_far.py"], 60.0)).broken == ()
    said = on({}, WRONG, guard=guard_of(["tests/test_order.py", "-k", "nothing"], 60.0))
    assert (said.found, said.broken) == (1, BROKEN[1:])
    said = on({}, WRONG, guard=guard_of(["tests/no_such.py"], 60.0))
    assert said.ran == 0
    assert "does not collect" in said.why


@pytest.mark.long
def test_a_slow_suite_is_cut_after_the_reachable_tests_and_what_did_not_run_is_counted() -> None:
    sleeps = "@pytest.mark.parametrize('n', range(40))\ndef test_s(n):\n    time.sleep(1)\n"
    slow = f"import time\n\nimport pytest\n\n\n{sleeps}"
    began = time.monotonic()
    with suite({"tests/test_a_slow.py": slow}) as asked:
        said = asked.on(RIGHT, seconds=14.0)
        assert time.monotonic() - began < 60
        assert asked.on(WRONG, seconds=10.0).broken == BROKEN  # the edit reaches these first
    assert 3 <= said.ran < 43
    assert (said.found, said.not_run, said.passed) == (43, 43 - said.ran, said.ran)
    assert "--guard-seconds" in said.why
    assert said.seconds < 20


@pytest.mark.long
def test_a_test_that_hangs_costs_its_time_and_is_not_blamed_where_it_hung_before() -> None:
    hangs = "import time\n\n\ndef test_h():\n    time.sleep(3600)\n"
    began = time.monotonic()
    said = on({"tests/test_a_hangs.py": hangs}, RIGHT, seconds=12.0)
    assert time.monotonic() - began < 60
    assert said.seconds < 20
    assert (said.broken, said.refusal) == ((), "")
    assert said.ran >= 3
    assert said.why


@pytest.mark.long
def test_a_test_that_ends_the_interpreter_with_the_patch_is_broken_and_the_others_run() -> None:
    text = (
        "import os\n\nfrom shop.order import bill\n\n\n"
        "def test_end():\n    if bill([4, 1]) != '5.00':\n        os._exit(0)\n"
    )
    said = on({"tests/test_end.py": text, "tests/test_order.py": ""}, WRONG)
    assert said.broken == ("tests/test_end.py::test_end",)


@pytest.mark.long
def test_outcomes_of_the_unpatched_tree_are_kept_for_the_next_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    red = {"tests/test_red.py": "from shop.order import bill\n\n\ndef test_red():\n    assert bill([1]) == ''\n"}
    with house({**PACKAGE, **red}, tests=GOAL) as built:
        baseline = baseline_of_goal()
        starts: list[bool] = []
        begin = built.verifier.worker_pool.start

        def start(changes: Mapping[RepoPath, bytes], use: WorkerUse) -> JailWorker:
            starts.append(bool(changes))
            return begin(changes, use)

        monkeypatch.setattr(built.verifier.worker_pool, "start", start)
        for number in (1, 2):
            said = guarded(built, built.variant(number, "shop/price.py", *RIGHT), baseline)
            assert (said.ran, said.passed, said.broken) == (4, 3, ())
        assert starts == [False, True, False, True]  # collected before, with the patch, before; then with the patch


def test_without_pytest_there_is_nothing_to_guard() -> None:
    with house(PACKAGE, tests=GOAL) as built:
        said = guarded(built, built.candidate("shop/price.py", *RIGHT), Baseline(tests=()))
    assert said.why == f"no tests found: {Path(sys.executable)} has no pytest"


@pytest.mark.long
def test_nothing_outside_the_goal_is_told() -> None:
    with house(PACKAGE, tests=("tests",)) as built:  # a baseline of its own: another goal
        said = guarded(built, built.candidate("shop/price.py", *RIGHT), built.verifier.baseline())
    assert (said.found, said.ran, said.why) == (0, 0, "no tests found outside --test")


@pytest.mark.long
def test_where_only_the_goal_does_not_collect_nothing_is_unknown() -> None:
    files = {
        "half.py": "def half(n)\n    return n // 2\n",
        "tests/test_half.py": "from half import half\n\n\ndef test_half():\n    assert half(4) == 2\n",
    }
    with house(files, tests=("tests",)) as built:
        mended = built.variant(1, "half.py", "half(n)\n", "half(n):\n")
        said = guarded(built, mended, built.verifier.baseline())
    assert (said.found, said.unknown, said.why) == (0, False, "every test file that is found belongs to the goal")


@pytest.mark.long
def test_the_goal_is_left_out_wherever_pytest_was_started() -> None:
    """A `pytest.ini` beside the goal makes its ids begin in another folder."""
    with house({**PACKAGE, "tests/pytest.ini": "[pytest]\n"}, tests=GOAL) as built:
        said = guarded(built, built.candidate("shop/price.py", *RIGHT), built.verifier.baseline())
    assert (said.found, said.ran) == (3, 3)
