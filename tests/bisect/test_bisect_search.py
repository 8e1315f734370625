"""Laws of the search, against brute force over random commit graphs."""

import functools
import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.bisect.commit_graph import CommitGraph
from localagent.bisect.search import Bisection, steps_left
from localagent.domain.bisection import CommitVerdict, RunCounts


@st.composite
def graphs(draw: st.DrawFn) -> CommitGraph:
    """Commits "0" to "n", each with one to three earlier parents but the first; all lead to the last one."""
    count = draw(st.integers(1, 40))
    parents: dict[str, tuple[str, ...]] = {"0": ()}
    for n in range(1, count):
        chosen = draw(st.sets(st.integers(max(0, n - 6), n - 1), min_size=1, max_size=3))
        parents[str(n)] = tuple(str(k) for k in sorted(chosen, reverse=True))
    loose = set(parents) - {p for own in parents.values() for p in own}
    parents["last"] = tuple(sorted(loose))
    return CommitGraph(parents=parents)


def brute_ancestors(graph: CommitGraph, commit: str) -> set[str]:
    found = {commit}
    while more := {p for c in found for p in graph.parents[c]} - found:
        found |= more
    return found


def first_bad(graph: CommitGraph, guilty: str) -> dict[str, CommitVerdict]:
    return {c: CommitVerdict.BAD if guilty in brute_ancestors(graph, c) else CommitVerdict.GOOD for c in graph.parents}


def searched(search: Bisection, truth: Callable[[str], CommitVerdict], jobs: int = 1) -> int:
    """Run the search to its end; how many runs that took."""
    counts: dict[str, RunCounts] = {}
    asked = 0
    while search.state().open:
        for commit in search.next_commits(jobs):
            verdict = truth(commit)
            one = RunCounts(failed=int(verdict is CommitVerdict.BAD), passed=int(verdict is CommitVerdict.GOOD))
            counts[commit] = counts.get(commit, RunCounts()) + one
            search.record(commit, verdict, counts[commit])
            asked += 1
    return asked


def line(count: int) -> CommitGraph:
    return CommitGraph(parents={str(n): (str(n - 1),) if n else () for n in range(count)})


def bad_from(guilty: int) -> Callable[[str], CommitVerdict]:
    return lambda commit: CommitVerdict.BAD if int(commit) >= guilty else CommitVerdict.GOOD


@given(graphs(), st.data(), st.integers(1, 3))
def test_finds_the_first_bad_commit_of_any_graph(graph: CommitGraph, data: st.DataObject, jobs: int) -> None:
    guilty = data.draw(st.sampled_from(sorted(graph.parents)))
    prior = data.draw(st.dictionaries(st.sampled_from(sorted(graph.parents)), st.sampled_from([0.01, 1.0])))
    search = Bisection(graph, "last", prior)
    searched(search, first_bad(graph, guilty).__getitem__, jobs)
    assert (search.state().found, search.state().head) == (True, guilty)
    assert search.probability(guilty) >= 0.95


def test_a_merge_of_many_branches_is_looked_at_until_the_answer_is_as_sure_as_any() -> None:
    sides = [str(n) for n in range(1, 7)]
    graph = CommitGraph(parents={"0": (), **dict.fromkeys(sides, ("0",)), "last": tuple(sides)})
    search = Bisection(graph, "last")
    searched(search, first_bad(graph, "last").__getitem__)
    assert search.state().head == "last"
    assert search.probability("last") >= 0.95


@given(st.integers(1, 600), st.data())
def test_a_line_of_commits_takes_the_logarithm_and_a_last_look(count: int, data: st.DataObject) -> None:
    guilty = data.draw(st.integers(0, count - 1))
    search = Bisection(line(count), str(count - 1), bad_runs=RunCounts(failed=2))
    told = steps_left(search.likely())
    asked = searched(search, bad_from(guilty))
    assert search.state().head == str(guilty)
    assert search.likely() == 1
    most = math.ceil(math.log2(count))
    assert most - 1 <= told <= most
    assert asked <= most + 7


def test_likely_commits_are_asked_first_and_unlikely_ones_are_found() -> None:
    """Of 1,000 commits 50 change what the test runs: half of the runs are saved. The guilty one may be another."""
    prior = {str(n): 0.9 / 50 if n % 20 == 0 else 0.1 / 950 for n in range(1000)}
    for guilty, most in ((500, 9), (740, 9), (503, 20)):
        search = Bisection(line(1000), "999", prior, RunCounts(failed=2))
        assert searched(search, bad_from(guilty)) <= most, guilty
        assert search.state().head == str(guilty)


@pytest.mark.long
def test_a_run_that_misleads_is_found_out() -> None:
    """Before the guilty commit the test fails in three of ten runs, or at the bad ones it passes in three of ten."""
    drawn = random.Random(0)
    right = {"early": 0, "late": 0}
    runs = 0
    for _ in range(40):
        guilty = drawn.randrange(50, 190)

        def early(commit: str, guilty: int = guilty) -> CommitVerdict:
            shaky = guilty - 30 <= int(commit) < guilty and drawn.random() < 0.3
            return CommitVerdict.BAD if int(commit) >= guilty or shaky else CommitVerdict.GOOD

        def late(commit: str, guilty: int = guilty) -> CommitVerdict:
            return CommitVerdict.BAD if int(commit) >= guilty and drawn.random() < 0.7 else CommitVerdict.GOOD

        for name, truth, at_bad in (
            ("early", early, RunCounts(failed=2)),
            ("late", late, RunCounts(failed=7, passed=3)),
        ):
            search = Bisection(line(200), "199", bad_runs=at_bad)
            runs += searched(search, truth)
            right[name] += search.state().head == str(guilty)
    assert min(right.values()) >= 36, right
    assert runs <= 80 * 25, runs


@given(graphs())
def test_sets_are_the_ancestors(graph: CommitGraph) -> None:
    order = list(graph.parents)
    sets = graph.ancestor_sets(order)
    assert {c: {order[n] for n in range(len(order)) if older >> n & 1} for c, older in sets.items()} == {
        c: brute_ancestors(graph, c) for c in order
    }
    assert graph.ancestor_sets(["0"]) == {"0": sets["0"]}


@given(graphs(), st.data())
def test_with_skipped_commits_the_guilty_one_is_among_the_suspects(graph: CommitGraph, data: st.DataObject) -> None:
    guilty = data.draw(st.sampled_from(sorted(graph.parents)))
    skipped = data.draw(st.sets(st.sampled_from(sorted(graph.parents)), max_size=20)) - {"last"}
    truth = {**first_bad(graph, guilty), **dict.fromkeys(skipped, CommitVerdict.SKIP)}
    search = Bisection(graph, "last")
    searched(search, truth.__getitem__)
    state = search.state()
    assert guilty in state.suspects
    assert set(state.suspects) - {state.head} <= skipped


def test_leaves_a_range_of_broken_commits_at_once() -> None:
    """A thousand commits with 200 broken ones in the middle: neighbours of a broken commit are not asked one by one."""

    def truth(commit: str, guilty: int) -> CommitVerdict:
        return CommitVerdict.SKIP if 400 <= int(commit) < 600 else bad_from(guilty)(commit)

    for guilty in (100, 399, 950):
        search = Bisection(line(1000), "999")
        asked = searched(search, functools.partial(truth, guilty=guilty))
        assert search.state().head == str(guilty)
        assert asked <= 45, (guilty, asked)


def test_what_contradicts_itself_ends_at_a_change() -> None:
    """Bad, fixed, bad again: commit 3 is bad, 5 good, 8 bad."""
    search = Bisection(line(10), "9")
    for commit, verdict in (("3", CommitVerdict.BAD), ("5", CommitVerdict.GOOD), ("8", CommitVerdict.BAD)):
        search.record(commit, verdict)
    searched(search, lambda commit: CommitVerdict.BAD if int(commit) >= 7 or int(commit) == 3 else CommitVerdict.GOOD)
    assert search.state().head == "7"


def test_a_long_history_is_weighed_in_a_moment() -> None:
    """100,000 commits, every tenth a merge of a branch of three."""
    parents: dict[str, tuple[str, ...]] = {"0": ()}
    for n in range(1, 100_000):
        parents[str(n)] = (str(n - 1), str(n - 4)) if n % 10 == 0 else (str(n - 1),)
    graph = CommitGraph(parents=parents)
    assert graph.ancestor_sets(["99999"])["99999"].bit_count() == 100_000
    (middle,) = Bisection(graph, "99999").next_commits(1)
    assert abs(int(middle) - 50_000) < 2_000
