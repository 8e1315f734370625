"""How a repository's Python is written: counts of what its files do, and one line on each that most of them agree on.

Pure, from facts and bytes. Not promised: the reasons; a convention is what most do.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from localagent.code.graph.facts import DefinitionKind, ModuleFacts
from localagent.code.related_tests import is_test
from localagent.domain.paths import RepoPath

AGREED = 0.8
LEAST_COUNT = 5
_SNAKE = re.compile(r"_*[a-z0-9]+(?:_[a-z0-9]+)*_*")
_CAMEL = re.compile(r"_*[a-z]+(?:[A-Z][a-z0-9]*)+")
_STRING = re.compile(rb"(?<![\w'\"])(?:[rbfuRBFU]{0,2})('(?!'')|\"(?!\"\"))")
_RAISED = re.compile(rb"^[ \t]*raise[ \t]+(?:\w+\.)*([A-Z]\w*)\(", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Convention:
    """What `share` of `count` cases do."""

    topic: str
    practice: str
    share: float
    count: int


def conventions(modules: Iterable[tuple[str, ModuleFacts, bytes]]) -> list[Convention]:
    """What the modules agree on, the most general first."""
    topics = (
        "function names", "quotes", "annotations of results", "docstrings of public functions", "imports in packages",
        "test files", "tests", "exceptions raised", "line length",
    )  # fmt: skip
    counts: dict[str, Counter[str]] = {topic: Counter() for topic in topics}
    for path, facts, data in modules:
        _count_definitions(path, facts, counts)
        for quote in _STRING.findall(data):
            counts["quotes"]["double" if quote == b'"' else "single"] += 1
        for name in _RAISED.findall(data):
            counts["exceptions raised"][name.decode("ascii", "replace")] += 1
        counts["imports in packages"].update("relative" if i.module.startswith(".") else "" for i in facts.imports)
        longest = max((len(line) for line in data.splitlines()), default=0)
        bound = next((b for b in (79, 88, 100, 120) if longest <= b), 0)
        counts["line length"][f"at most {bound}" if bound else "longer than 120"] += 1
    counts["imports in packages"] = _relative(counts["imports in packages"])
    return [found for topic in topics for found in _agreed(topic, counts[topic])]


def _count_definitions(path: str, facts: ModuleFacts, counts: dict[str, Counter[str]]) -> None:
    testing = is_test(RepoPath(path))
    if testing:
        counts["test files"][path.rpartition("/")[0].partition("/")[0] + "/" if "/" in path else "beside the code"] += 1
    for definition in facts.definitions:
        if definition.kind not in (DefinitionKind.FUNCTION, DefinitionKind.ASYNC_FUNCTION):
            continue
        name = definition.name
        if testing and name.startswith("test"):
            scope = facts.scopes[definition.scope]
            counts["tests"]["methods of classes" if scope.definition >= 0 else "functions"] += 1
            continue
        style = "snake_case" if _SNAKE.fullmatch(name) else "camelCase" if _CAMEL.fullmatch(name) else "otherwise"
        counts["function names"][style] += 1
        if not testing:
            counts["annotations of results"]["written" if definition.annotation >= 0 else "left out"] += 1
            if not name.startswith("_"):
                counts["docstrings of public functions"]["written" if definition.doc else "left out"] += 1


def _relative(found: Counter[str]) -> Counter[str]:
    """Imports of others count neither way: whether any relative ones are used."""
    share = found["relative"] / max(1, sum(found.values()))
    return Counter({"relative": found["relative"]} if share > 0.05 else {"absolute": found[""]})


def _agreed(topic: str, counts: Counter[str]) -> list[Convention]:
    total = sum(counts.values())
    if total < LEAST_COUNT:
        return []
    if topic == "exceptions raised":
        best = [name for name, _ in counts.most_common(5)]
        return [Convention(topic=topic, practice=", ".join(best), share=1.0, count=total)]
    practice, count = counts.most_common(1)[0]
    if topic == "line length":
        bounds = [b for b in ("at most 79", "at most 88", "at most 100", "at most 120") if counts[b]]
        sums = [(b, sum(counts[c] for c in bounds[: at + 1])) for at, b in enumerate(bounds)]
        practice, count = next(((b, s) for b, s in sums if s >= AGREED * total), ("longer than 120", total))
    if count < AGREED * total:
        practice = f"mixed, mostly {practice}"
    return [Convention(topic=topic, practice=practice, share=count / total, count=total)]
