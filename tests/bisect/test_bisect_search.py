"""Laws of the search, against brute force over random commit graphs."""

import math

from hypothesis import given
from hypothesis import strategies as st

from localagent.bisect.commit_graph import CommitGraph
from localagent.bisect.search import Bisection, steps_left
from localagent.domain.bisection import CommitVerdict


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


@given(graphs(), st.data(), st.integers(1, 3))
def test_finds_the_first_bad_commit_of_any_graph(graph: CommitGraph, data: st.DataObject, jobs: int) -> None:
    guilty = data.draw(st.sampled_from(sorted(graph.parents)))
    truth = first_bad(graph, guilty)
    search, rounds = Bisection(graph, "last"), 0
    while search.state().open:
        rounds += 1
        for commit in search.next_commits(jobs):
            search.record(commit, truth[commit])
    assert (search.state().found, search.state().head) == (True, guilty)
    assert rounds <= len(graph)


@given(st.integers(1, 600), st.data())
def test_a_line_of_commits_takes_the_logarithm(count: int, data: st.DataObject) -> None:
    graph = CommitGraph(parents={str(n): (str(n - 1),) if n else () for n in range(count)})
    guilty = data.draw(st.integers(0, count - 1))
    search, asked = Bisection(graph, str(count - 1)), 0
    told = steps_left(search.state())
    while search.state().open:
        (commit,) = search.next_commits(1)
        search.record(commit, CommitVerdict.BAD if int(commit) >= guilty else CommitVerdict.GOOD)
        asked += 1
    assert search.state().head == str(guilty)
    assert asked <= math.ceil(math.log2(count)) == told


@given(graphs())
def test_weights_are_the_ancestors(graph: CommitGraph) -> None:
    every = set(graph.parents)
    assert graph.weights(every) == {c: len(brute_ancestors(graph, c)) for c in every}
    some = graph.ancestors(["last"]) - graph.ancestors(["0"])
    assert graph.weights(some) == {c: len(brute_ancestors(graph, c) & some) for c in some}


@given(graphs(), st.data())
def test_with_skipped_commits_the_guilty_one_is_among_the_suspects(graph: CommitGraph, data: st.DataObject) -> None:
    guilty = data.draw(st.sampled_from(sorted(graph.parents)))
    skipped = data.draw(st.sets(st.sampled_from(sorted(graph.parents)), max_size=20)) - {"last"}
    truth = {**first_bad(graph, guilty), **dict.fromkeys(skipped, CommitVerdict.SKIP)}
    search = Bisection(graph, "last")
    while search.state().open:
        for commit in search.next_commits(1):
            search.record(commit, truth[commit])
    state = search.state()
    assert guilty in state.suspects
    assert set(state.suspects) - {state.head} <= skipped


def test_leaves_a_range_of_broken_commits_at_once() -> None:
    """A thousand commits with 200 broken ones in the middle: neighbours of a broken commit are not asked one by one."""
    graph = CommitGraph(parents={str(n): (str(n - 1),) if n else () for n in range(1000)})
    for guilty in (100, 399, 950):
        search, asked = Bisection(graph, "999"), 0
        while search.state().open:
            (commit,) = search.next_commits(1)
            n = int(commit)
            search.record(
                commit,
                CommitVerdict.SKIP if 400 <= n < 600 else CommitVerdict.BAD if n >= guilty else CommitVerdict.GOOD,
            )
            asked += 1
        assert search.state().head == str(guilty)
        assert asked <= 45, (guilty, asked)


def test_what_contradicts_itself_ends_at_the_newest_change() -> None:
    """Bad, fixed, bad again: commit 3 is bad, 5 good, 8 bad."""
    graph = CommitGraph(parents={str(n): (str(n - 1),) if n else () for n in range(10)})
    search = Bisection(graph, "9")
    for commit, verdict in (("3", CommitVerdict.BAD), ("5", CommitVerdict.GOOD), ("8", CommitVerdict.BAD)):
        search.record(commit, verdict)
    while search.state().open:
        (commit,) = search.next_commits(1)
        search.record(commit, CommitVerdict.BAD if int(commit) >= 7 else CommitVerdict.GOOD)
    assert search.state().head == "7"


def test_a_long_history_is_weighed_in_a_moment() -> None:
    """100,000 commits, every tenth a merge of a branch of three."""
    parents: dict[str, tuple[str, ...]] = {"0": ()}
    for n in range(1, 100_000):
        parents[str(n)] = (str(n - 1), str(n - 4)) if n % 10 == 0 else (str(n - 1),)
    graph = CommitGraph(parents=parents)
    assert graph.weights(set(parents))["99999"] == 100_000
    (middle,) = Bisection(graph, "99999").next_commits(1)
    assert abs(int(middle) - 50_000) < 3
