"""How likely a commit is the one that broke the tests before any of the search has run, by what it changed.

Most regressions still stand in the code that fails: in a line that the failing test executes, so that the commit which
changed such a line last is the first to be suspected (as in the SZZ algorithm: Sliwerski, Zimmermann and Zeller, When
do changes induce fixes?, 2005). What is assumed here decides how many runs a search takes; its answer is a commit that
was seen to fail, with parents that were seen to pass.
"""

import contextlib
import time
from collections.abc import Collection, Mapping, Sequence

from localagent.bisect.commit_graph import CommitGraph
from localagent.bisect.symptom import TreeRun
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo
from localagent.repo.commit_history import commits_changing, renames
from localagent.repo.git import Git, GitSaysNoError
from localagent.repo.line_history import commits_of_lines

LINE_RUN, FILE_RUN, FILE_IMPORTED, ELSEWHERE = 0.7, 0.15, 0.08, 0.07  # where the first bad commit is, in our estimate
_MOST_PATHS = 300
_BLAME_SECONDS = 10.0


def guilty_prior(
    git: Git,
    bad: str,
    goods: Sequence[str],
    graph: CommitGraph,
    traced: TreeRun,
    *,
    carried: Collection[RepoPath] = (),
    first_parent: bool,
) -> Mapping[str, float]:
    """Weights of commits. Empty (all alike) where the files are not known or git takes too long.

    Those that last changed a line which the failing tests ran share 0.7, those that changed a file of such lines 0.15,
    one that was only imported 0.08, all others 0.07. `carried` files are the same at every commit and do not count.
    """
    ran = {path: lines for path, lines in traced.ran.items() if path not in carried}
    if not ran or len(ran) > _MOST_PATHS:
        return {}
    try:
        last = _last_changing(git, bad, goods, ran, first_parent=first_parent)
        older = renames(git, goods[0], bad) if goods else {}
        imported = [path for path in traced.imported if path not in carried][:_MOST_PATHS]
        named = [(*files, *(older[f] for f in files if f in older)) for files in (ran, imported)]
        in_run, in_imported = (commits_changing(git, bad, goods, files, first_parent=first_parent) for files in named)
    except AnswerIsNo:
        return {}
    known: set[str] = set()
    weights: dict[str, float] = {}
    for share, commits in (
        (LINE_RUN, last),
        (FILE_RUN, in_run),
        (FILE_IMPORTED, in_imported),
        (ELSEWHERE, graph.parents),
    ):
        group = [commit for commit in graph.parents if commit in commits and commit not in known]
        weights |= {commit: share / len(group) for commit in group}
        known.update(group)
    return weights


def _last_changing(
    git: Git, bad: str, goods: Sequence[str], ran: Mapping[RepoPath, frozenset[int]], *, first_parent: bool
) -> frozenset[str]:
    """The commits that last changed a line that ran; of the files with most such lines while there is time."""
    until = time.monotonic() + _BLAME_SECONDS
    found: set[str] = set()
    for path in sorted(ran, key=lambda path: -len(ran[path])):
        if time.monotonic() > until:
            break
        with contextlib.suppress(GitSaysNoError):  # a file that the tests wrote, or that is not committed
            blamed = commits_of_lines(git, path, bad, goods, first_parent=first_parent)
            found.update(blamed[line] for line in ran[path] if line in blamed)
    return frozenset(found)
