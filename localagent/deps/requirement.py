"""One PEP 508 requirement, read strictly: a `Wanted`, or an `Unreadable` with the reason. Never raises for any text."""

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from localagent.deps.squat import KnownNames
from localagent.domain.dependency import UnreadableRequirement, Wanted
from localagent.text.visible_text import shortened

MOST_CHARACTERS = 1000
MOST_NAME_CHARACTERS = 100
_NAME_END = re.compile(r"[\s<>=!~;@\[\](),]")
_VCS = re.compile(r"(git|hg|svn|bzr)\+", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ARCHIVES = (".whl", ".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar.xz", ".egg")


def parse_requirement(
    text: str, source: str, known: KnownNames, hashes: frozenset[str] = frozenset()
) -> Wanted | UnreadableRequirement:
    """Read one requirement. `source` says where it stands; `known` tells whom a disguised name imitates."""
    shown = text.strip()
    if len(shown) > MOST_CHARACTERS:
        return UnreadableRequirement(
            shown=shortened(shown, 80), source=source, why=f"longer than {MOST_CHARACTERS} characters"
        )
    if why := _not_by_name(shown):
        return UnreadableRequirement(shown=shown, source=source, why=why)
    try:
        read = Requirement(shown)
    except (InvalidRequirement, RecursionError) as error:
        likeness = known.look_alike(written) if (written := _NAME_END.split(shown, maxsplit=1)[0]) else None
        if not written.isascii():
            why = "a name outside ASCII is no name of a distribution (PEP 508)"
        else:
            why = f"not a requirement (PEP 508): {_first_line(error)}"
        return UnreadableRequirement(shown=shown, source=source, why=why, likeness=likeness)
    if read.url is not None:
        return UnreadableRequirement(
            shown=shown, source=source, why="a direct address: only names come in, from the index given"
        )
    if len(read.name) > MOST_NAME_CHARACTERS:
        return UnreadableRequirement(
            shown=shown[:80], source=source, why=f"a name longer than {MOST_NAME_CHARACTERS} characters"
        )
    return Wanted(
        name=canonicalize_name(read.name),
        shown=shown,
        source=source,
        specifier=str(read.specifier),
        marker="" if read.marker is None else str(read.marker),
        extras=tuple(sorted(canonicalize_name(extra) for extra in read.extras)),
        hashes=hashes,
    )


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _not_by_name(text: str) -> str:
    """Why a text does not even try to name a distribution, "" if it does."""
    if not text:
        return "empty"
    if text.startswith("-"):
        return "an option, not a requirement"
    if _VCS.match(text):
        return "a version control address: only names come in, from the index given"
    first = re.split(r"[\s;@]", text, maxsplit=1)[0]
    if "://" in first or _SCHEME.match(first):
        return "a direct address: only names come in, from the index given"
    if first.startswith((".", "~")) or "/" in first or "\\" in first or first.lower().endswith(_ARCHIVES):
        return "a local path: only names come in, from the index given"
    return ""
