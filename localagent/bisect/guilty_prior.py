"""How likely a commit is the one that broke the tests before any of the search has run, by the files that it changes.

Most regressions come from commits that change a file of which the failing test executes lines. What is assumed here
decides how many runs a search takes; its answer is a commit that was seen to fail, with parents that were seen to pass.
"""

from collections.abc import Mapping, Sequence

from localagent.bisect.commit_graph import CommitGraph
from localagent.bisect.symptom import TreeRun
from localagent.errors import AnswerIsNo
from localagent.repo.commit_history import commits_changing, renames
from localagent.repo.git import Git

IN_RUN, IN_IMPORTED, ELSEWHERE = 0.8, 0.12, 0.08  # where the first bad commit is, in our estimate
_MOST_PATHS = 300


def guilty_prior(
    git: Git,
    bad: str,
    goods: Sequence[str],
    graph: CommitGraph,
    traced: TreeRun,
    *,
    first_parent: bool,
) -> Mapping[str, float]:
    """Weights of commits: those that change a file of `traced.ran` share 0.8, of `imported` 0.12, others 0.08.

    Merges count among the others. Empty (all alike) where the files are not known or git takes too long.
    """
    if not traced.ran or len(traced.ran) > _MOST_PATHS:
        return {}
    try:
        older = renames(git, goods[0], bad) if goods else {}
        named = [
            (*files, *(older[f] for f in files if f in older)) for files in (traced.ran, traced.imported[:_MOST_PATHS])
        ]
        ran, imported = (commits_changing(git, bad, goods, files, first_parent=first_parent) for files in named)
    except AnswerIsNo:
        return {}
    known = ran | imported
    groups = (
        (IN_RUN, [c for c in graph.parents if c in ran]),
        (IN_IMPORTED, [c for c in graph.parents if c in imported and c not in ran]),
        (ELSEWHERE, [c for c in graph.parents if c not in known]),
    )
    return {commit: share / len(group) for share, group in groups for commit in group}
