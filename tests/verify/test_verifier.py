"""Baseline, quick check and full check on small repositories in real jails."""

import sys
import threading
import venv
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.house_builder import TaskOptions, house

from localagent.app.settings import Settings
from localagent.domain.outcome import Outcome, QuickRoute
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Switch
from localagent.errors import AnswerIsNo, Interrupted, UsageFault
from localagent.policy.load import load_policy
from localagent.verify.baseline.baseline import BaselineRunner
from localagent.verify.checks.new_findings import Delta
from localagent.verify.worker.worker_client import OpenRequest, WorkerClient

SHAPES = {
    "shapes.py": (
        "import functools\n"
        "SEEN = []\n"
        "\n"
        "class Base:\n"
        "    def size(self):\n"
        "        return 1\n"
        "\n"
        "class Box(Base):\n"
        "    def __init__(self, w):\n"
        "        self.__w = w\n"
        "\n"
        "    def size(self):\n"
        "        SEEN.append(1)\n"
        "        return super().size() * self.__w - 1\n"
        "\n"
        "@functools.lru_cache(maxsize=None)\n"
        "def double(n):\n"
        "    return n + 2\n"
        "\n"
        "def default(x=3):\n"
        "    return x\n"
        "\n"
        "TABLE = [default()]\n"
    ),
    "tests/test_shapes.py": (
        "import shapes\n"
        "def test_size():\n"
        "    assert shapes.Box(4).size() == 4\n"
        "def test_fresh_state():\n"
        "    shapes.Box(4).size()\n"
        "    assert len(shapes.SEEN) <= 2\n"
        "def test_table():\n"
        "    assert shapes.TABLE == [3]\n"
        "def test_unrelated():\n"
        "    pass\n"
    ),
}


@pytest.mark.long
def test_baseline_names_failing_passing_frames_sides_and_lines() -> None:
    with house(SHAPES) as h:
        baseline = h.verifier.baseline()
    assert baseline.failing == ("tests/test_shapes.py::test_size",)
    assert len(baseline.passing) == 3
    failed = next(t for t in baseline.tests if t.id in baseline.failing)
    assert failed.failure is not None
    assert failed.failure.exception == "AssertionError"
    assert (failed.failure.left, failed.failure.right) == ("3", "4")
    assert failed.failure.frames[-1].path == "tests/test_shapes.py"
    assert failed.lines is not None
    assert failed.lines[RepoPath("shapes.py")] == {6, 10, 13, 14}
    assert {21, 23} <= baseline.import_lines[RepoPath("shapes.py")]
    assert 14 not in baseline.import_lines[RepoPath("shapes.py")]
    assert baseline.test_files == {"tests/test_shapes.py"}
    assert baseline.pytest
    assert baseline.python.startswith("3.")


@pytest.mark.long
def test_quick_check_swaps_methods_and_leaks_no_state() -> None:
    with house(SHAPES) as h:
        baseline = h.verifier.baseline()
        quick = h.verifier.quick(baseline, jobs=1)
        good = h.candidate("shapes.py", "self.__w - 1", "self.__w")
        for _ in range(3):
            result = quick.check(good, cpu_seconds=1.0)
            assert (result.plausible, result.route) == (True, QuickRoute.SWAP)
            assert result.outcomes["tests/test_shapes.py::test_fresh_state"] is Outcome.PASSED
        wrong = quick.check(h.candidate("shapes.py", "- 1", "- 2"), cpu_seconds=1.0)
        assert not wrong.plausible
        assert wrong.failures["tests/test_shapes.py::test_size"].left == "2"
        same = quick.check(h.candidate("shapes.py", "- 1", "- 1"), cpu_seconds=1.0)
        assert not same.plausible
        assert h.verifier.notes == ()


@pytest.mark.long
def test_what_ran_while_importing_is_collected_anew() -> None:
    with house(SHAPES) as h:
        baseline = h.verifier.baseline()
        quick = h.verifier.quick(baseline, jobs=1)
        broken = h.candidate("shapes.py", "    return x\n", "    return x + 1\n")
        result = quick.check(broken, cpu_seconds=1.0, stop_early=False)
        assert result.route is QuickRoute.FRESH
        unscoped = quick.check(h.candidate("shapes.py", "self.__w - 1", "self.__w", scoped=False), cpu_seconds=1.0)
        assert (unscoped.plausible, unscoped.route) == (True, QuickRoute.FRESH)


CONSTANTS = {
    "grades.py": (
        "class Grades:\n"
        "    LEAST = 5\n"
        "    MOST = 10\n"
        "\n"
        "    def passed(self, points):\n"
        "        return points > self.LEAST\n"
    ),
    "tests/test_grades.py": (
        "from grades import Grades\n"
        "def test_just():\n"
        "    assert Grades().passed(5)\n"
        "def test_not():\n"
        "    assert not Grades().passed(3)\n"
    ),
}


@pytest.mark.long
def test_a_constant_is_tried_on_the_passing_tests_that_run_its_readers() -> None:
    with house(CONSTANTS) as h:
        quick = h.verifier.quick(h.verifier.baseline(), jobs=1)
        good = quick.check(h.candidate("grades.py", "LEAST = 5", "LEAST = 4"), cpu_seconds=1.0)
        assert (good.plausible, good.route) == (True, QuickRoute.FRESH)
        wrong = quick.check(h.candidate("grades.py", "LEAST = 5", "LEAST = 0"), cpu_seconds=1.0)
        assert (wrong.turned, wrong.broken) == (
            ("tests/test_grades.py::test_just",),
            ("tests/test_grades.py::test_not",),
        )
        assert not wrong.plausible


@pytest.mark.long
@pytest.mark.parametrize("scoped", [True, False])
def test_a_passing_test_that_needs_others_before_it_breaks_no_candidate(*, scoped: bool) -> None:
    """Forty quick tests stand before it, which alone are tried when the worker starts."""
    first = "".join(f"def test_{k}():\n    pass\n" for k in range(40))
    files = {
        "a.py": "def last(xs):\n    return xs[0]\n\n\ndef first(xs):\n    return last(xs[:1])\n",
        "test_a.py": f"import time\nimport a\nSEEN = []\n{first}def test_setup():\n    SEEN.append(1)\n"
        "def test_needs():\n    time.sleep(0.05)\n    assert SEEN and a.first([1, 2]) == 1\n"
        "def test_steady():\n    time.sleep(0.05)\n    assert a.first([3]) == 3\n"
        "def test_last():\n    assert a.last([1, 2]) == 2\n",
    }
    with house(files) as h:
        quick = h.verifier.quick(h.verifier.baseline(), jobs=1)
        good = quick.check(h.candidate("a.py", "xs[0]", "xs[-1]", scoped=scoped), cpu_seconds=1.0)
        assert (good.turned, good.broken, good.plausible) == (("test_a.py::test_last",), (), True)
        wrong = quick.check(h.candidate("a.py", "xs[0]", "2", scoped=scoped), cpu_seconds=1.0)
        assert wrong.broken == ("test_a.py::test_steady",)


@pytest.mark.long
def test_collecting_anew_may_cost_what_collecting_cost_before(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[OpenRequest] = []
    real = WorkerClient.open

    def spy(self: WorkerClient, request: OpenRequest) -> object:
        asked.append(request)
        return real(self, request)

    monkeypatch.setattr(WorkerClient, "open", spy)
    monkeypatch.setattr(
        "localagent.verify.worker.warm_worker.time", SimpleNamespace(monotonic=lambda: 7.0)
    )  # collecting took no time
    with house(SHAPES) as h:
        quick = h.verifier.quick(h.verifier.baseline(), jobs=1)
        hangs = h.candidate("shapes.py", "TABLE = [default()]", "while True: pass", scoped=False)
        assert not quick.check(hangs, cpu_seconds=1.0).plausible
    assert [r.cpu_seconds for r in asked if r.session == "fresh"] == [1.0]


@pytest.mark.long
def test_full_check_accepts_refuses_and_says_why() -> None:
    with house(SHAPES) as h:
        baseline = h.verifier.baseline()
        good = h.verifier.full(h.candidate("shapes.py", "self.__w - 1", "self.__w"), baseline, seed=1)
        assert good.accepted, good.reasons
        assert good.fail_to_pass == baseline.failing
        assert len(good.pass_to_pass) == 3
        worse = h.verifier.full(h.candidate("shapes.py", "def default(x=3)", "def default(x=4)"), baseline, seed=1)
        assert not worse.accepted
        assert worse.pass_to_fail == ("tests/test_shapes.py::test_table",)
        assert worse.still_failing == baseline.failing
        assert len(worse.reasons) == 2


@pytest.mark.long
def test_a_file_that_does_not_parse_and_its_new_tests() -> None:
    files = {
        "m.py": "def f(n)\n    return n + 1\n",
        "test_m.py": "from m import f\ndef test_f():\n    assert f(1) == 2\n",
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        assert baseline.failing == ("collect:test_m.py",)
        failure = baseline.collect_failures["collect:test_m.py"]
        assert failure.exception == "SyntaxError"
        assert (failure.frames[-1].path, failure.frames[-1].line) == ("m.py", 1)
        quick = h.verifier.quick(baseline, jobs=1)
        candidate = h.candidate("m.py", "f(n)\n", "f(n):\n", scoped=False)
        result = quick.check(candidate, cpu_seconds=1.0)
        assert (result.plausible, result.turned) == (True, ("collect:test_m.py",))
        full = h.verifier.full(candidate, baseline, seed=0)
        assert full.accepted, full.reasons


@pytest.mark.long
def test_memory_that_is_only_reserved_does_not_count() -> None:
    files = {
        "test_m.py": (
            "import mmap\n"
            "def test_reserves():\n"
            "    mmap.mmap(-1, 2 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)\n"
            "def test_takes():\n"
            "    bytearray(2 << 30)\n"
        )
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
    assert baseline.failing == ("test_m.py::test_takes",)
    (taken,) = [t for t in baseline.tests if not t.outcome.good]
    assert taken.failure is not None
    assert taken.failure.exception == "MemoryError"


@pytest.mark.long
def test_flaky_tests_are_named_and_not_chased() -> None:
    files = {
        "test_m.py": (
            "import sys\n"
            "def test_flaky():\n"
            "    assert sys._getframe().f_trace is not None  # the second run is traced\n"
            "def test_bad():\n"
            "    assert 1 == 2\n"
        )
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
    assert baseline.flaky == ("test_m.py::test_flaky",)
    assert baseline.failing == ("test_m.py::test_bad",)


@pytest.mark.long
def test_what_there_was_no_time_for_is_counted_and_blamed_on_no_test() -> None:
    tests = "import time\n\n\n" + "".join(f"def test_{n}():\n    time.sleep(0.4)\n\n\n" for n in range(60))
    with house({"test_m.py": tests}) as h:
        h.task = replace(h.task, budget=replace(h.task.budget, max_seconds=8.0))
        runner = BaselineRunner(h.verifier.worker_pool, h.task)
        baseline = runner.run()
    assert baseline.failing == baseline.flaky == ()
    assert 0 < baseline.not_run < 60
    assert len(baseline.tests) + baseline.not_run == 60
    assert all(t.outcome is Outcome.PASSED for t in baseline.tests)


UNITTEST = (
    "import unittest\nfrom m import f\n\n\nclass T(unittest.TestCase):\n"
    "    def test_f(self):\n        self.assertEqual(f(), 2)\n"
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, ""),
        ({"tox.ini": "[testenv]\ndeps = pytest\n"}, "tox.ini declares"),
        ({"conftest.py": "import pytest\n"}, "conftest.py imports"),
    ],
)
def test_a_pytest_is_lent_where_the_project_asks_for_none(tmp_path: Path, more: dict[str, str], said: str) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    files = {"m.py": "def f():\n    return 1\n", "test_m.py": UNITTEST, **more}
    with house(files, python=str(tmp_path / "venv/bin/python")) as h:
        if said:
            with pytest.raises(AnswerIsNo, match=f"has no pytest, which {said}"):
                h.verifier.baseline()
            return
        baseline = h.verifier.baseline()
    assert baseline.failing == ("test_m.py::T::test_f",)
    assert any("has no pytest: localagent's own" in note for note in baseline.notes)


@pytest.mark.long
def test_a_candidate_that_comes_too_late_is_not_plausible_and_breaks_nothing() -> None:
    with house(SHAPES) as h:
        baseline = h.verifier.baseline()
        h.verifier.worker_pool.until = 0.0
        quick = h.verifier.quick(baseline, jobs=1)
        late = quick.check(h.candidate("shapes.py", "* self.__w - 1", "* self.__w"), cpu_seconds=2.0)
        full = h.verifier.full(h.candidate("shapes.py", "* self.__w - 1", "* self.__w"), baseline, seed=0)
    assert (late.plausible, late.turned, late.broken) == (False, (), ())
    assert (full.accepted, full.late) == (False, True)
    assert not any("cold" in note for note in h.verifier.notes)


@pytest.mark.long
def test_hanging_tests_share_one_limit() -> None:
    files = {
        "m.py": "def f(n):\n    while n > 2:\n        n += 0\n    return n\n",
        "test_m.py": (
            "import pytest\nfrom m import f\n"
            "@pytest.mark.parametrize('n', range(8))\n"
            "def test_f(n):\n    assert f(n) in (n, 2)\n"
        ),
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        assert len(baseline.failing) == 5
        by_id = {t.id: t for t in baseline.tests}
        first = by_id["test_m.py::test_f[3]"]
        assert first.outcome is Outcome.TIMED_OUT
        assert first.failure is not None
        assert first.failure.frames[-1].function == "f"
        assert first.lines is not None
        assert {2, 3} <= first.lines[RepoPath("m.py")]
        quick = h.verifier.quick(baseline, jobs=1)
        result = quick.check(h.candidate("m.py", "+= 0", "-= 1"), cpu_seconds=0.5)
        assert (result.plausible, result.route) == (True, QuickRoute.SWAP)


@pytest.mark.long
def test_the_django_settings_that_tox_gives_the_tests_are_used() -> None:
    files = {
        "conftest.py": (  # what pytest-django has
            "import os\n"
            "def pytest_addoption(parser):\n    parser.addoption('--ds', default='')\n"
            "def pytest_configure(config):\n    os.environ['DS'] = config.getoption('--ds')\n"
        ),
        "tests/test_m.py": (
            "import os\n"
            "class ImproperlyConfigured(Exception): ...\n"
            "if not os.environ['DS']:\n"
            "    raise ImproperlyConfigured('Requested setting DEBUG, but settings are not configured.')\n"
            "def test_m():\n    assert os.environ['DS'] != 'tests.settings'\n"
        ),
        "tox.ini": "[testenv]\nsetenv =\n    DJANGO_SETTINGS_MODULE = tests.settings\n",
        "manage.py": "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'demo.settings')\n",
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
    assert baseline.failing == ("tests/test_m.py::test_m",)
    assert "DJANGO_SETTINGS_MODULE = tests.settings, as tox.ini sets it for the tests" in baseline.notes


@pytest.mark.long
def test_tests_that_write_into_the_tree_go_cold_with_a_note() -> None:
    files = {
        "m.py": "def f():\n    return 1\n",
        "test_m.py": "from m import f\ndef test_f():\n    open('out.txt', 'w').write('x')\n    assert f() == 2\n",
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        quick = h.verifier.quick(baseline, jobs=1)
        result = quick.check(h.candidate("m.py", "return 1", "return 2"), cpu_seconds=1.0)
        assert (result.plausible, result.route) == (True, QuickRoute.COLD)
        assert any("jail of its own" in note for note in h.verifier.notes)


@pytest.mark.long
def test_a_thread_that_a_fork_would_lose_goes_cold_with_a_note() -> None:
    files = {
        "m.py": (
            "import queue, threading\nasked, answers = queue.Queue(), queue.Queue()\n"
            "def serve():\n    while True:\n        answers.put(asked.get() + 1)\n"
            "threading.Thread(target=serve, name='adder', daemon=True).start()\n"
            "def f(n):\n    asked.put(n)\n    return answers.get(timeout=5)\n"
        ),
        "test_m.py": "from m import f\ndef test_f():\n    assert f(1) == 3\n",
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        lines = baseline.tests[0].lines
        assert lines is not None
        assert 5 in lines[RepoPath("m.py")]  # of the thread
        quick = h.verifier.quick(baseline, jobs=1)
        result = quick.check(h.candidate("m.py", "get() + 1", "get() + 2"), cpu_seconds=2.0)
        assert (result.plausible, result.route) == (True, QuickRoute.COLD)
        assert any("jail of its own: importing the tests started 1 thread(s) (adder)" in n for n in h.verifier.notes)


@pytest.mark.long
def test_threads_that_python_does_not_know_make_candidates_cold() -> None:
    start = (
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.pause, None)\n"
    )
    files = {
        "adder.py": start + "def add(a, b):\n    return a - b\n",
        "test_m.py": "from adder import add\n" + "def test_add():\n    assert add(1, 2) == 3\n",
    }
    with house(files) as h:
        quick = h.verifier.quick(h.verifier.baseline(), jobs=1)
        quick.close()
        assert any(
            "jail of its own: importing the tests started 1 thread(s) outside Python" in n for n in h.verifier.notes
        )


@pytest.mark.long
def test_check_commands_alone() -> None:
    files = {"prog.py": "import sys\ndef main():\n    raise KeyError('x')\n    return 0\nsys.exit(main())\n"}
    with house(files, checks=("python prog.py",)) as h:
        baseline = h.verifier.baseline()
        assert baseline.failing == ("check:python prog.py",)
        check = baseline.checks[0]
        assert check.failure is not None
        assert (check.failure.exception, check.failure.frames[-1].line) == ("KeyError", 3)
        assert check.lines is not None
        assert 3 in check.lines[RepoPath("prog.py")]
        quick = h.verifier.quick(baseline, jobs=1)
        candidate = h.candidate("prog.py", "raise KeyError('x')", "pass")
        result = quick.check(candidate, cpu_seconds=1.0)
        assert result.plausible
        full = h.verifier.full(candidate, baseline, seed=0)
        assert full.accepted, full.reasons


@pytest.mark.long
def test_layouts_and_names_pytest_does_not_find_by_itself() -> None:
    files = {
        "src/pkg/__init__.py": "",
        "src/pkg/core.py": "def f():\n    return 1\n",
        "src/pkg/core_tests.py": (
            "import unittest\nfrom pkg.core import f\n"
            "class T(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(f(), 2)\n"
        ),
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
    assert baseline.failing == ("src/pkg/core_tests.py::T::test_f",)
    failure = next(t.failure for t in baseline.tests)
    assert failure is not None
    assert (failure.left, failure.right) == ("1", "2")


@pytest.mark.long
def test_odd_ids_survive() -> None:
    files = {
        "test_m.py": (
            "import pytest\n"
            "@pytest.mark.parametrize('x', ['a b', 'q\"u\\'o', '\\udc80', '[', 'é::y', '', '\\n'], "
            "ids=lambda v: v if v != '\\udc80' else None)\n"
            "def test_x(x):\n    assert x == 'a b'\n"
        )
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        assert len(baseline.failing) == 6
        assert len(baseline.passing) == 1
        quick = h.verifier.quick(baseline, jobs=1)
        same = h.candidate("test_m.py", "'a b'\n", "'a b'\n", scoped=False)
        assert set(quick.check(same, cpu_seconds=1.0, stop_early=False).outcomes) >= set(baseline.failing)
        assert h.verifier.notes == ()


@pytest.mark.long
@pytest.mark.parametrize(
    ("files", "task", "said"),
    [
        ({"m.py": "x = 1\n"}, {}, "no tests found"),
        ({"pytest.ini": "[pytest]\naddopts = --cov=m\n", "test_m.py": "def test(): pass\n"}, {}, "--cov"),
        ({"test_m.py": "def test_a(): pass\n"}, {"tests": ("test_m.py::test_b",)}, "test_b"),
    ],
)
def test_no_for_an_answer(files: dict[str, str], task: TaskOptions, said: str) -> None:
    with house(files, **task) as h, pytest.raises(AnswerIsNo) as no:
        h.verifier.baseline()
    assert said in str(no.value)
    assert no.value.remedy


@pytest.mark.long
def test_a_missing_module_is_a_cause_and_no_failure_to_repair() -> None:
    with house({"test_m.py": "import nowhere_at_all\n"}) as h:
        baseline = h.verifier.baseline()
        assert baseline.failing == ()
        (cause,) = baseline.causes
        assert "nowhere_at_all" in cause.sentence
        assert cause.remedy


def test_a_check_that_cannot_be_split_is_a_usage_fault() -> None:
    with house({"m.py": ""}, checks=("python 'x",)) as h, pytest.raises(UsageFault):
        h.verifier.baseline()


@pytest.mark.long
def test_cancel_ends_what_is_running() -> None:
    files = {"test_m.py": "import time\ndef test_sleep():\n    time.sleep(600)\n"}
    with house(files) as h:
        caught: list[BaseException] = []

        def work() -> None:
            try:
                h.verifier.baseline()
            except Interrupted as stop:
                caught.append(stop)

        thread = threading.Thread(target=work)
        thread.start()
        while not h.verifier._jails._open:
            thread.join(0.01)
        thread.join(0.5)
        h.verifier.cancel()
        thread.join(30)
        assert not thread.is_alive()
        assert caught


@pytest.mark.long
def test_unpatched_shuffle_excuses_tests_that_depend_on_their_order() -> None:
    files = {
        "m.py": "STATE = []\ndef f():\n    return 1\n",
        "test_m.py": (
            "import m\n"
            "def test_1(): m.STATE.append(1)\n"
            "def test_2(): assert m.STATE == [1]\n"
            "def test_3(): assert m.f() == 2\n"
        ),
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        seeds = {
            seed: h.verifier.full(h.candidate("m.py", "return 1", "return 2"), baseline, seed=seed) for seed in (0, 3)
        }
    assert all(full.accepted for full in seeds.values()), [f.reasons for f in seeds.values()]


@pytest.mark.long
def test_a_turned_test_that_needs_another_before_it_is_not_blamed_on_hashes() -> None:
    files = {
        "m.py": "STATE = []\ndef f():\n    return 1\n",
        "test_m.py": "import m\ndef test_a(): m.STATE.append(1)\ndef test_b(): assert (m.STATE, m.f()) == ([1], 2)\n",
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        repair = h.candidate("m.py", "return 1", "return 2")
        full = [h.verifier.full(repair, baseline, seed=seed) for seed in range(4)]  # either order comes first
    assert all(one.accepted for one in full), [one.reasons for one in full]


@pytest.mark.long
def test_a_repair_that_rests_on_the_order_of_a_set_is_refused() -> None:
    files = {
        "m.py": "def f(items):\n    return list(set(items))\n",
        "test_m.py": "import m\ndef test_order(): assert m.f(['b', 'a', 'b', 'c', 'a']) == ['b', 'a', 'c']\n",
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        full = {
            text: h.verifier.full(h.candidate("m.py", "list(set(items))", text), baseline, seed=1)
            for text in ("list(set(items))[::-1]", "list(dict.fromkeys(items))")
        }
    order, right = full.values()
    assert right.accepted, right.reasons
    assert not order.accepted
    assert order.still_failing or "some orders of sets" in order.reasons[0], order.reasons


@pytest.mark.long
def test_mypy_delta_refuses_new_findings_only_when_asked() -> None:
    files = {
        "m.py": "def g() -> int:\n    return 'old'\n\n\ndef f(n: int) -> int:\n    return n\n",
        "test_m.py": "from m import f\ndef test_f():\n    assert str(f(1)) == '2'\n",
        "mypy.ini": "[mypy]\n",
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        full = h.verifier.full(h.candidate("m.py", "return n\n", "return str(n + 1)\n"), baseline, seed=0)
        assert [r for r in full.reasons if r.startswith("mypy has new findings")]
        good = h.verifier.full(h.candidate("m.py", "return n\n", "return n + 1\n"), baseline, seed=0)
        assert good.accepted, good.reasons
        assert good.checks["ruff"] == "not asked for"


@pytest.mark.parametrize("switch", [Switch.AUTO, Switch.ALWAYS])
def test_a_tool_that_cannot_judge_the_unpatched_tree_refuses_where_it_is_demanded(switch: Switch) -> None:
    files = {"m.py": "import broken\ndef f():\n    return 1\n", "broken.py": "def (:\n", "mypy.ini": "[mypy]\n"}
    policy = replace(load_policy(Settings.from_environ().policies_dir / "default.toml"), mypy=switch)
    with house(files) as h:
        answers = Delta(h.verifier._jails, policy).review(h.candidate("m.py", "return 1", "return 2").patch)
    mypy = next(answer for answer in answers if answer.tool == "mypy")
    assert "could not judge the unpatched tree" in mypy.said
    assert bool(mypy.refusal) is (switch is Switch.ALWAYS)
    assert bool(mypy.remark) is (switch is Switch.AUTO)


@pytest.mark.long
def test_this_interpreter_is_the_one_that_is_meant() -> None:
    with house({"test_m.py": f"import sys\ndef test(): assert sys.prefix == {sys.prefix!r}\n"}) as h:
        assert h.verifier.baseline().failing == ()


@pytest.mark.long
def test_lines_of_tests_that_depend_on_the_ones_before_them() -> None:
    files = {
        "m.py": "def f(n):\n    if n > 3:\n        return n\n    return 0\n",
        "test_m.py": (
            "from m import f\nSEEN = []\n"
            "def test_first():\n    import time\n    time.sleep(0.05)\n    assert f(1) == 0 and not SEEN\n"
            "def test_then():\n    SEEN.append(1)\n    assert f(5) == 5\n"
            "def test_wrong():\n    assert f(4) == 5\n"
        ),
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
    assert baseline.failing == ("test_m.py::test_wrong",)
    assert baseline.flaky == ()
    lines = {t.id: t.lines for t in baseline.tests}
    assert lines["test_m.py::test_first"] is not None
    assert lines["test_m.py::test_first"][RepoPath("m.py")] == {2, 4}
