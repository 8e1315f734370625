"""Documents, files and tests that an instruction asks for, and that a change leaves as they were."""

import re
from collections.abc import Iterator

from localagent.app.agent.demands.changed_tree import ChangedTree
from localagent.app.agent.demands.sentences import sentences, unquoted
from localagent.domain.paths import RepoPath

_DOCUMENT = re.compile(
    r"(?<![\w/])((?:[\w.-]+/)*(?:README|CHANGELOG|CHANGES|HISTORY|NEWS)(?:\.\w+)?|change-?log|[\w/-]+\.(?:md|rst))\b"
)
_AS_READ = re.compile(r"\b(?:as|like|per|than|see|from|according to)\b[^,;]*$")
_SHOULD = re.compile(r"\b(?:should|must)\b|\bwhat (?:the )?(?:README|docs)")
_READS = re.compile(r"^`?(?:'s \w+)? (?:says|promises|documents|describes|claims|shows|lists|mentions|is right)\b")
_CHANGELOGS = ("changelog", "changes", "history", "news")
_MENTIONS = re.compile(
    r"\b(?:mentions?|documents?|describe|list|row for|entry for) `([^`]+)`(?:,? (?:and|or) `([^`]+)`)?[^.;]*?"
    r"\b(README|CHANGELOG|CHANGES|HISTORY|docs/)",
    re.IGNORECASE,
)
_FILE = re.compile(r"(?<![\w.])((?:[\w-]+/)*[\w-]+\.(?:toml|cfg|ini|json|ya?ml|txt|py|pyi))\b")
_CHANGED = re.compile(
    r"\b(?:add|set|raise|lower|pin|put|remove|require|allow|drop|bump|change|update|double|halve|should|must|use|move"
    r"|make|annotate|write|rename|can go|prepare|stays|extract|replace|collect)\b",
    re.IGNORECASE,
)
_LIKE = re.compile(r"\b(?:as|like|see|than|leave|how) (?:in )?`?[\w./-]*$")
_TOLD = re.compile(r"\bno tests\b|\bhardly\b|\bexpects?\b")
_MADE = re.compile(
    r"\b(?:write|create|add|into|new (?:file|module)|in a new module) (?:a |an )?"
    r"`?((?:[\w-]+/)*[\w-]+\.(?:pyi?|md|rst|txt|toml|cfg|ini|json|ya?ml|csv|html|sql|sh))\b",
    re.IGNORECASE,
)
_TARGET = re.compile(r"\bmake target\b|\btarget `[\w-]+`")
_TESTS = re.compile(
    r"\b(?:add|write|extend|include|needs?|with) (?:an? |some |new |more )?(?:unit |new |regression )?tests?\b"
    r"(?! suite)"
    r"|\btests?,? (?:too|please|as well)\b",
    re.IGNORECASE,
)
_EXPORTED = re.compile(r"\bexport(?:ed|s)?(?: \w+){0,6} (?:by|from|in) the package\b", re.IGNORECASE)


def documents(instruction: str, change: ChangedTree) -> Iterator[str]:
    """Documents to write in that no new line is in, and what they are to mention and do not."""
    stems = {_stem(path) for path in change.paths}
    for sentence in sentences(instruction):
        for found in _DOCUMENT.finditer(sentence):
            before, stem = sentence[: found.start()], _stem(RepoPath(found[1]))
            read = _READS.match(sentence[found.end() :]) and not _SHOULD.search(sentence)
            if before.count("`") % 2 and " " in before.rpartition("`")[2]:
                continue  # of an example
            alike = _CHANGELOGS if stem in _CHANGELOGS else (stem,)
            if not read and not _AS_READ.search(before) and not stems.intersection(alike):
                yield f"a change of {found[1]}"
    for first, second, name in _MENTIONS.findall(instruction):
        part = name.rstrip("/").lower()
        text = b"\n".join(t for path, t in change.after.items() if part in path.lower()).decode("utf-8", "replace")
        for word in (re.sub(r"\W*\(.*| .*", "", quote) for quote in (first, second) if quote):
            if text and word not in text:
                yield f"`{word}` in {name}"


def files(instruction: str, change: ChangedTree) -> Iterator[str]:
    """Files to be made, and settings and data to be changed, that are as they were."""
    for sentence in sentences(instruction):
        asked = [name for name in _MADE.findall(sentence) if re.search(r"[a-z]", name.partition(".")[0])]
        for found in _FILE.finditer(sentence) if _CHANGED.search(unquoted(sentence)) else ():
            before = sentence[: found.start()]
            quoted_in = before.count("`") % 2 and re.search(r"\W[^`]*$", before.rpartition("`")[2])
            if change.has(found[1]) and not (quoted_in or _LIKE.search(before) or _TOLD.search(sentence)):
                asked.append(found[1])
        for name in dict.fromkeys(asked):
            if not any(f"/{path}".endswith(f"/{name}") for path in change.paths):
                yield f"a change of {name}" if change.has(name) else f"the file {name}"
    if _TARGET.search(instruction) and not any(path.name.lower().endswith("makefile") for path in change.paths):
        yield "a target of make"


def tests(instruction: str, change: ChangedTree) -> Iterator[str]:
    """Tests, and what the package is to offer."""
    if _TESTS.search(unquoted(instruction)) and not re.search(r"\bdef test|\bassert|>>>", change.all_lines):
        yield "a test"
    if _EXPORTED.search(instruction) and not any(path.name == "__init__.py" for path in change.paths):
        yield "a name that the package exports"


def _stem(path: RepoPath) -> str:
    return path.name.partition(".")[0].lower().replace("-", "")
