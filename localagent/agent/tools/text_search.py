"""A plain search of the working copy: words in lines, definitions and uses by Python's parser. Bounded; no index.

Not promised: references that are found by type; a name is a name wherever it stands.
"""

import ast
import re
from collections.abc import Iterator

from localagent.agent.tools.working_copy import WorkingCopy
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Definition, first_line
from localagent.domain.paths import RepoPath
from localagent.text.visible_text import one_line

_MOST = 400
_LINE = 160
_MOST_FILES = 5_000


class TextSearch:
    """`CodeSearch` without an index."""

    def __init__(self, copy: WorkingCopy) -> None:
        self._copy = copy

    def search(self, query: str) -> list[str]:
        """Lines that hold the query; where none does, those with the most of its words, and files of that name."""
        found = list(self._lines(re.compile(re.escape(query), re.IGNORECASE)))
        if not found:
            words = sorted(set(re.findall(r"\w{3,}", query)), key=len, reverse=True)[:8]
            for word in words:
                found += self._lines(re.compile(rf"\b{re.escape(word)}", re.IGNORECASE))
        names = [f"{path}: (file name)" for path in self._copy.paths() if query.lower() in path.lower()]
        return list(dict.fromkeys((*names[:10], *found)))[:_MOST]

    def symbol(self, name: str) -> list[str]:
        """Definitions: functions, classes, module and class variables."""
        last = name.strip().rpartition(".")[2]
        wanted = name.strip().rpartition(".")[0].rpartition(".")[2]
        found = [
            (owner, f"{path}:{line}: {text}")
            for path, text_ in self._texts()
            if path.is_python and last in text_
            for owner, line, text in _definitions(text_, last)
        ]
        exact = [shown for owner, shown in found if wanted and owner == wanted]
        return (exact or [shown for _, shown in found])[:_MOST]

    def references(self, name: str) -> list[str]:
        """Lines in which the name stands as a word."""
        return list(self._lines(re.compile(rf"\b{re.escape(name.strip().rpartition('.')[2])}\b")))

    def _texts(self) -> Iterator[tuple[RepoPath, str]]:
        for path in self._copy.paths()[:_MOST_FILES]:
            text = self._copy.get(path)
            if text is not None:
                yield path, text

    def _lines(self, pattern: re.Pattern[str]) -> Iterator[str]:
        count = 0
        for path, text in sorted(self._texts(), key=lambda one: (not one[0].is_python, one[0])):
            if pattern.search(text) is None:
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if pattern.search(line):
                    yield f"{path}:{number}: {one_line(line.strip(), _LINE)}"
                    count += 1
                    if count >= _MOST:
                        return


def _definitions(text: str, name: str) -> Iterator[tuple[str, int, str]]:
    """(class or module around, line, its text) of what defines a name."""
    tree = parse_or_none(text)
    lines = text.splitlines()
    todo: list[tuple[str, ast.stmt]] = [("", node) for node in tree.body] if tree is not None else []
    while todo:
        owner, node = todo.pop(0)
        if isinstance(node, Definition):
            if node.name == name:
                yield owner, first_line(node), one_line(lines[node.lineno - 1].strip(), _LINE)
            if isinstance(node, ast.ClassDef):
                todo += [(node.name, inner) for inner in node.body]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                yield owner, node.lineno, one_line(lines[node.lineno - 1].strip(), _LINE)
