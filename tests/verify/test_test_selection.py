"""Which passing tests a quick check runs beside the failing ones."""

from collections.abc import Mapping
from types import MappingProxyType

from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.outcome import Baseline, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.verify.checks.test_selection import PASSING_LIMIT, STAND_INS, Selector

A = RepoPath("a.py")
NEAR, FAR = RepoPath("test_a.py"), RepoPath("test_far.py")
SOURCE = b"LIMIT = 3\nOTHER = 4\n\n\ndef f():\n    return LIMIT\n\n\ndef g():\n    return 5\n"
NOTHING: Mapping[RepoPath, frozenset[int]] = MappingProxyType({})


def result(name: str, lines: set[int] | None, *, path: RepoPath = NEAR, seconds: float = 0.01) -> TestResult:
    outcome = Outcome.FAILED if name == "fails" else Outcome.PASSED
    ran = None if lines is None else {A: frozenset(lines)}
    return TestResult(id=name, outcome=outcome, seconds=seconds, lines=ran, path=path)


def selector(*tests: TestResult, import_lines: Mapping[RepoPath, frozenset[int]] = NOTHING) -> Selector:
    ids = [t.id for t in tests if t.id != "fails"]
    whole = (result("fails", {6, 10}), *tests)
    return Selector(
        Baseline(
            tests=whole, failing=("fails",), passing=tuple(ids), import_lines=import_lines or {A: frozenset({1, 2})}
        )
    )


def changing(old: bytes, new: bytes) -> Candidate:
    assert SOURCE.count(old) == 1
    change = FileChange(path=A, before=SOURCE, after=SOURCE.replace(old, new))
    return Candidate(number=1, patch=Patch(changes=(change,)), edits=(), cost=0.0)


def test_tests_that_run_the_changed_lines_quickest_first() -> None:
    chosen = selector(result("slow", {10}, seconds=0.5), result("quick", {10}), result("other", {6}))
    assert chosen.passing_for(changing(b"return 5", b"return 6")) == ("quick", "slow")


def test_what_is_too_slow_is_left_to_the_full_check() -> None:
    chosen = selector(result("a", {10}, seconds=0.7), result("b", {10}, seconds=0.7), result("unknown", None))
    assert chosen.passing_for(changing(b"return 5", b"return 6")) == ("a",)
    many = selector(*(result(f"t{k}", {10}, seconds=0.0) for k in range(PASSING_LIMIT + 5)))
    assert len(many.passing_for(changing(b"return 5", b"return 6"))) == PASSING_LIMIT


def test_for_a_constant_stand_those_that_run_its_readers() -> None:
    chosen = selector(result("reads", {6}), result("does not", {10}), result("in another file", {6}, path=FAR))
    assert chosen.passing_for(changing(b"LIMIT = 3", b"LIMIT = 4")) == ("reads",)


def test_for_what_nobody_reads_stand_those_most_like_the_failing_ones() -> None:
    chosen = selector(
        *(result(f"half {k}", {10}) for k in range(STAND_INS)), result("both", {6, 10}), result("none", set())
    )
    found = chosen.passing_for(changing(b"OTHER = 4\n\n", b"OTHER = 5\n\n"))
    assert len(found) == STAND_INS
    assert "both" in found
    assert "none" not in found


def test_a_line_inside_a_statement_counts_although_only_its_first_was_seen_to_run() -> None:
    chosen = selector(result("reads", {6}), result("does not", {10}), import_lines={A: frozenset({2})})
    assert chosen.passing_for(changing(b"LIMIT = 3", b"LIMIT = 4")) == ("reads",)


def test_lines_that_never_ran_have_no_stand_ins() -> None:
    chosen = selector(result("reads", {6}), import_lines={A: frozenset({2})})
    assert chosen.passing_for(changing(b"return 5", b"return 6")) == ()
    assert chosen.passing_for(changing(b"    return 5", b"    return 66")) == ()


def test_where_none_fails_a_change_that_runs_on_import_is_put_to_every_test_of_the_file() -> None:
    tests = (result("reads", {6}), result("other", {10}), result("elsewhere", set(), path=FAR))
    baseline = Baseline(tests=tests, passing=tuple(t.id for t in tests), import_lines={A: frozenset({1, 2})})
    chosen = Selector(baseline)
    assert chosen.passing_for(changing(b"LIMIT = 3", b"LIMIT = 4")) == ("reads", "other")
    alone = Selector(Baseline(tests=tests[2:], passing=("elsewhere",), import_lines={A: frozenset({1, 2})}))
    assert alone.passing_for(changing(b"OTHER = 4", b"OTHER = 5")) == ("elsewhere",)
