"""Places that a change alters though nothing in the instruction speaks of them: tests see few of those.

A place is a function, what sets a name of a module or class, or a file of data. It was asked for where the instruction
says its name, two words of it, or its file; where a word or a version of what differs in it is the instruction's; where
a line that differs says the name of such a place, or a name that such a place brought or lost; or where it differs by
words that differ in such a place too. By words, not by resolution. Imports are left to the gates. Not seen: what else
differs in a place that was asked for. Where no place was, the words tell nothing, and none is named.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from localagent.code.source_text import parse_or_none
from localagent.domain.paths import RepoPath

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_QUOTED = re.compile(r"`([^`]*)`")
_FILE = re.compile(r"[\w./-]+\.[a-z]{1,5}\b")
_NAME = re.compile(r"\w*_\w*|\w*[a-z][A-Z]\w*|\w+(?=\()")
_VERSION = re.compile(r"\d+\.\d+")
_ENDING = re.compile(r"(?<=\w\w\w)(?:ations?|ings?|ies|ied|ers?|ed|es|s|e|y)$")
_SHORTEST = 3
_DATA = re.compile(r".*\.(?!(?:py|pyi|md|rst|txt)$)\w+")
_ALSO = {"yield": ("generator", "iterator", "iterable", "lazy")}
_EVERYWHERE = re.compile(  # words that say nothing of a place
    "the|and|not|for|with|this|that|which|from|are|all|any|one|two|new|than|then|the[mrs]e?|they|their|those|ha[sd]|have|was"
    "|were|will|would|should|could|can|may|must|its|also|only|each|every|where|when|who|what|how|do(?:es|ne)|did|into|out"
    "|more|less|other|same|such|both|but|after|before|between|still|stays?|gives?n?|takes?n?|like|default|none|true|false"
    "|self|str|int|bool|list|dict|return"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """What differs at one place: its words, and all names of those lines. `said`: by name, or by its file."""

    where: str
    name: str
    said: bool
    new: bool
    words: frozenset[str]
    names: frozenset[str]


def unasked_changes(
    before: Mapping[RepoPath, bytes | None], after: Mapping[RepoPath, bytes], instruction: str
) -> tuple[str, ...]:
    """`PATH:LINE: NAME` of each that stood before. The files are no tests; None: there was no such file."""
    asked = {word for word in _words(instruction) if len(word) >= _SHORTEST}
    asked |= {word for quoted in _QUOTED.findall(instruction) for word in _words(quoted)}
    left = [p for path, text in after.items() for p in _differing(path, before.get(path), text, instruction)]
    count, known, alike = len(left), set[str](), list[frozenset[str]]()
    come_or_gone = _all_names(before.values()) ^ _all_names(after.values())
    while found := [p for p in left if p.said or p.words & asked or p.names & known or _differs_like(p, alike)]:
        left = [p for p in left if p not in found]
        alike += [p.words for p in found if not p.new]
        known |= {p.name for p in found} | ({name for p in found for name in p.names} & come_or_gone)
    return tuple(p.where for p in left if not p.new) if len(left) < count else ()


def _differs_like(place: _Place, others: Iterable[frozenset[str]]) -> bool:
    return len(place.words) > 1 and any(place.words <= words for words in others)


def _differing(path: RepoPath, before: bytes | None, after: bytes, instruction: str) -> Iterator[_Place]:
    said = any(f"/{path}".endswith(f"/{name}") for name in _FILE.findall(instruction))
    names = {*_NAME.findall(instruction), *_WORD.findall(" ".join(_QUOTED.findall(instruction)))}
    asked = {word for word in _words(instruction) if len(word) >= _SHORTEST}
    versions = _VERSION.findall(instruction)
    was, now = _places(path, before or b""), _places(path, after)
    for name, (line, texts) in now.items():
        old, new = Counter(was[name][1] if name in was else ()), Counter(texts)
        if old == new:
            continue
        gone_lines, new_lines = ("\n".join(c.elements()) for c in (old - new, new - old))
        lost, come = (Counter(_WORD.findall(lines)) for lines in (gone_lines, new_lines))
        last = name.rpartition(".")[2]
        calm = name in was and texts[0].startswith(("def ", "async def ", "@"))  # its own name says little
        differing = {*(lost - come), *(come - lost), *(() if calm else [last])}
        also = [word for token in differing for word in _ALSO.get(token, ())]
        yield _Place(
            where=f"{path}:{line}: {name}" if name else str(path),
            name=last,
            said=said
            or bool(names & {last, path.name.partition(".")[0]})
            or len(_words(last) & asked) > 1
            or any(version in gone_lines or version in new_lines for version in versions),
            new=name not in was,
            words=frozenset(word for token in (*differing, *also) for word in _words(token)),
            names=frozenset({*lost, *come}),
        )


def _words(text: str) -> set[str]:
    """The words of a text or a name, each without its ending."""
    parts = {part.lower() for part in _PART.findall(text)}
    return {_ENDING.sub("", part) for part in parts if not _EVERYWHERE.fullmatch(part)}


def _all_names(sources: Iterable[bytes | None]) -> set[str]:
    return {name for source in sources for name in _WORD.findall((source or b"").decode("utf-8", "replace"))}


def _places(path: RepoPath, source: bytes) -> dict[str, tuple[int, list[str]]]:
    """The lines of each place by its name, and where it begins; a file of data is one place without a name.

    So is a source that is nested too deep to be written out again.
    """
    whole = {"": (0, source.decode("utf-8", "replace").splitlines())} if source else {}
    if not path.is_python:
        return whole if _DATA.fullmatch(path.name) else {}
    try:
        return _written_out(source)
    except RecursionError:
        return whole


def _written_out(source: bytes) -> dict[str, tuple[int, list[str]]]:
    tree, found = parse_or_none(source), dict[str, tuple[int, list[str]]]()
    for name, node in _statements(_Bare().visit(tree).body, "") if tree is not None else ():
        found.setdefault(name, (node.lineno, []))[1].extend(map(str.strip, ast.unparse(node).splitlines()))
    return found


def _statements(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        match node:
            case ast.ClassDef(name=name, body=inside):
                yield from _statements(inside, f"{prefix}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name, node
            case ast.Assign(targets=[target, *_]):
                yield prefix + ast.unparse(target), node
            case ast.Pass():
                pass
            case ast.If(body=[], orelse=[]) | ast.Try(body=[]):
                pass
            case _:
                yield f"{prefix}{type(node).__name__.lower()}", node


class _Bare(ast.NodeTransformer):
    """Takes out docstrings, annotations and imports."""

    def visit_Import(self, _node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, _node: ast.ImportFrom) -> None:
        return None

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.copy_location(ast.arg(arg=node.arg), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        value = node.value or ast.copy_location(ast.Constant(value=None), node)
        return self.generic_visit(ast.copy_location(ast.Assign(targets=[node.target], value=value), node))

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)
