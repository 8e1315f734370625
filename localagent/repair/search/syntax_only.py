"""Which files do not parse, where that is all that is the matter."""

from collections.abc import Sequence

from localagent.code.newer_syntax import newer_file
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.ports import Sources
from localagent.repair.search.enclosing_function import parsed
from localagent.repair.search.partial_progress import stage_of


def unparsed(failures: Sequence[Failure], sources: Sources) -> frozenset[RepoPath]:
    """The files that do not parse, when nothing else is the matter: no edit of another file can help.

    A `SyntaxError` may as well be of a text that the program or a test compiles: then none.
    """
    places = set()
    for failure in failures:
        if stage_of(failure) != 0 or not failure.frames or failure.frames[-1].path is None:
            return frozenset()
        places.add(failure.frames[-1].path)
    if any(p not in sources or parsed(sources[p]) is not None or newer_file(sources[p]) for p in places):
        return frozenset()
    return frozenset(places)
