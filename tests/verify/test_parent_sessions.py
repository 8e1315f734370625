"""Hot sessions on kept candidates, in real jails."""

import pytest
from support.house_builder import house

from localagent.domain.outcome import QuickRoute
from localagent.verify.worker import warm_worker

FILES = {
    "m.py": "def f(n)\n    return n - 1\n\n\ndef g(n):\n    return f(n) * 2\n\n\nTABLE = [g(1)]\n",
    "test_m.py": "import m\ndef test_f():\n    assert m.f(1) == 2\ndef test_g():\n    assert m.g(1) == 4\n",
}


@pytest.mark.long
def test_candidates_upon_one_that_parses_are_swapped_and_leave_nothing_behind() -> None:
    files = {**FILES, "m.py": FILES["m.py"].replace("\n\nTABLE = [g(1)]\n", "")}
    with house(files) as h:
        baseline = h.verifier.baseline()
        quick = h.verifier.quick(baseline, jobs=1)
        parent = h.candidate("m.py", "f(n)\n", "f(n):\n", scoped=False)
        assert quick.check(parent, cpu_seconds=1.0).route is QuickRoute.FRESH
        routes = []
        for number, new in enumerate(("n + 2", "n * 1", "n + 1", "n - 2"), 2):
            result = quick.check(h.upon(parent, number, "m.py", "n - 1", new), cpu_seconds=1.0)
            routes.append(result.route)
            assert result.plausible is (new == "n + 1")
        assert routes == [QuickRoute.FRESH, *[QuickRoute.SWAP] * 3]


@pytest.mark.long
def test_what_importing_runs_is_collected_anew_upon_a_candidate_too() -> None:
    with house(FILES) as h:
        baseline = h.verifier.baseline()
        quick = h.verifier.quick(baseline, jobs=1)
        parent = h.candidate("m.py", "f(n)\n", "f(n):\n", scoped=False)
        for number, new in enumerate(("n + 2", "n * 1", "n + 1"), 2):
            result = quick.check(h.upon(parent, number, "m.py", "n - 1", new), cpu_seconds=1.0)
            assert (result.route, result.plausible) == (QuickRoute.FRESH, new == "n + 1")


@pytest.mark.long
def test_a_parent_that_does_not_import_either_is_no_ground() -> None:
    files = {**FILES, "m.py": "import nowhere\n" + FILES["m.py"]}
    with house(files) as h:
        baseline = h.verifier.baseline()
        quick = h.verifier.quick(baseline, jobs=1)
        parent = h.candidate("m.py", "f(n)\n", "f(n):\n", scoped=False)
        for number in range(2, 5):
            result = quick.check(h.upon(parent, number, "m.py", "n - 1", f"n + {number}"), cpu_seconds=1.0)
            assert (result.route, result.turned) == (QuickRoute.FRESH, ())


@pytest.mark.long
def test_a_test_that_fails_in_a_warm_worker_in_any_case_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where there is no failing test to turn: mutants of a patch are asked so."""
    monkeypatch.setattr(warm_worker, "SELF_CHECK_PASSING", 0)
    writes = "def test_writes():\n    open('out.txt', 'w').close()\n    assert m.g(1) == 4\n"
    files = {
        "m.py": FILES["m.py"].replace("f(n)\n", "f(n):\n").replace("n - 1", "n + 1"),
        "test_m.py": FILES["test_m.py"] + writes,
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        assert baseline.failing == ()
        quick = h.verifier.quick(baseline, jobs=1)
        assert quick.check(h.candidate("m.py", "n + 1", "1 + n"), cpu_seconds=1.0).broken == ()
        assert "test_m.py::test_f" in quick.check(h.candidate("m.py", "n + 1", "n + 2"), cpu_seconds=1.0).broken
