"""What a quick check may cost: multiples of what the baseline took, more for what was only slow."""

from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.outcome import Baseline, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.repair.search.candidate_timeouts import UNKNOWN_CPU_SECONDS, cpu_seconds, patient_seconds


def baseline(*taken: tuple[Outcome, float]) -> Baseline:
    tests = tuple(
        TestResult(id=str(k), outcome=outcome, seconds=seconds, path=RepoPath("test_m.py"))
        for k, (outcome, seconds) in enumerate(taken)
    )
    failing = tuple(t.id for t in tests if not t.outcome.good)
    return Baseline(tests=tests, failing=failing, passing=tuple(t.id for t in tests if t.outcome.good))


def test_a_test_that_was_cut_off_leaves_the_small_limit_small_and_the_large_one_large() -> None:
    found = baseline((Outcome.FAILED, 0.01), (Outcome.TIMED_OUT, 1.5), (Outcome.PASSED, 30.0))
    assert cpu_seconds(found) == 0.2
    assert patient_seconds(found) == 9.0  # it needs 3.3 s where it passes: levenshtein by plain recursion


def test_where_every_failing_test_hung_the_small_limit_is_a_guess() -> None:
    found = baseline((Outcome.TIMED_OUT, 1.2))
    assert cpu_seconds(found) == UNKNOWN_CPU_SECONDS
    assert patient_seconds(found) > 1.2


@given(
    st.lists(
        st.tuples(st.sampled_from([Outcome.FAILED, Outcome.TIMED_OUT, Outcome.PASSED]), st.floats(0.0, 100.0)),
        min_size=1,
        max_size=8,
    )
)
def test_law_patience_is_more_than_the_small_limit_and_bounded(taken: list[tuple[Outcome, float]]) -> None:
    found = baseline(*taken)
    assert cpu_seconds(found) < patient_seconds(found) <= 200.0
    assert 0.2 <= cpu_seconds(found) <= 20.0
