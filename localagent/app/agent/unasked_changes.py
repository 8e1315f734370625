"""Places that a change alters though nothing in the instruction speaks of them: tests see few of those.

A place is a function, what sets a name of a module or class, a key of a file of settings, or a file of other data.
One that went to another file is held against what it was. A place was asked for where the instruction says its name,
two words of it, or its file (but not for a key, nor for what went there: that tells where to, not what else); where a
word or a version of what differs in it is the instruction's; where a line that differs says the name of such a place,
or a name that such a place brought or lost; or where it differs by words that differ in such a place too. By words,
not by resolution. Imports are left to the gates. What follows from a deleted file that was named is none, as `x` where
`f(x)` stood. Not seen: what else differs in a place that was asked for. Where no place was, the words tell nothing, and
none is named.
"""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from localagent.app.agent.setting_keys import setting_keys
from localagent.code.names import dotted_name, last_name
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
_TEXT = r"(?:documentation|docs|docstrings?|comments?|annotations?|type hints?)"
_TEXT_ALONE = re.compile(
    rf"\b(?:only|just|nothing but) (?:the )?{_TEXT}\b|\b{_TEXT} (?:only|alone)\b"
    r"|\bno code(?: changes?)?(?=[.,;:)]|$)|\bno (?:change|difference)s? at run-? ?time\b",
    re.IGNORECASE,
)
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NAMED = re.compile(r"(?:async )?def |@|[\w.]+ = ")
_Places = dict[str, tuple[int, list[str]]]  # the lines of each by its name, and where it begins
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
    gone: bool
    words: frozenset[str]
    names: frozenset[str]


def unasked_changes(
    before: Mapping[RepoPath, bytes | None], after: Mapping[RepoPath, bytes], instruction: str
) -> tuple[str, ...]:
    """`PATH:LINE: NAME` of each that stood before. The files are no tests; None: there was no such file.

    Files of `before` that are not in `after` were deleted.
    """
    asked = {word for word in _words(instruction) if len(word) >= _SHORTEST}
    asked |= {word for quoted in _QUOTED.findall(instruction) for word in _words(quoted)}
    left = [*_all_differing(before, after, instruction)]
    dropped = [path for path in before.keys() - after.keys() if _is_named(path, instruction)]
    count, known, alike = len(left) + len(dropped), set[str](), list[frozenset[str]]()
    come_or_gone = _all_names(before.get(path) for path in after) ^ _all_names(after.values())
    while found := [p for p in left if p.said or p.words & asked or p.names & known or _differs_like(p, alike)]:
        left = [p for p in left if p not in found]
        alike += [p.words for p in found if not p.new]
        known |= {p.name for p in found} | ({name for p in found for name in p.names} & come_or_gone)
    return tuple(p.where for p in left if not p.new) if len(left) < count else ()


def code_beside_text(
    before: Mapping[RepoPath, bytes | None], after: Mapping[RepoPath, bytes], instruction: str
) -> tuple[str, ...]:
    """`PATH:LINE: NAME` of each place that stood before, where an instruction asks for text or annotations alone.

    Not what is gone and was named, as dead code.
    """
    if _TEXT_ALONE.search(instruction) is None:
        return ()
    found = _all_differing(before, {p: t for p, t in after.items() if p.is_python}, instruction)
    return tuple(p.where for p in found if not (p.new or (p.gone and p.said)))


def _all_differing(
    before: Mapping[RepoPath, bytes | None], after: Mapping[RepoPath, bytes], instruction: str
) -> Iterator[_Place]:
    trees = {path: (_places(path, before.get(path) or b""), _places(path, text)) for path, text in after.items()}
    moved = _moved(pair for path, pair in trees.items() if path.is_python)
    come = {
        n.rpartition(".")[2] for path, (was, now) in trees.items() if path.is_python for n in now.keys() - was.keys()
    }
    lost = _lost_names({p: t or b"" for p, t in before.items() if p not in after}, instruction)
    for path, (was, now) in trees.items():
        follows = _following(path, before.get(path) or b"", after[path], lost)
        yield from (
            p
            for p in _differing(path, was, now, instruction, moved, come)
            if not (p.name in follows and p.names & lost)
        )


def _lost_names(deleted: Mapping[RepoPath, bytes], instruction: str) -> frozenset[str]:
    """The functions and classes of deleted sources that the instruction names, also as `module.name`."""
    named = {path: text for path, text in deleted.items() if path.is_python and path.name in instruction}
    found = set[str]()
    for path, text in named.items():
        tree = parse_or_none(text)
        names = {n.name for n in ast.walk(tree) if isinstance(n, _DEFINES)} if tree is not None else set()
        found |= names | {f"{path.name.partition('.')[0]}.{name}" for name in names}
    return frozenset(found)


def _following(path: RepoPath, before: bytes, after: bytes, lost: Collection[str]) -> set[str]:
    """The last names of the places that are alike where calls of what is lost are their one argument."""
    names = _all_names([after])
    lost = {name for name in lost if name.rpartition(".")[2] not in names}
    if not lost or not path.is_python or not before:
        return set()
    was, now = (_places(path, source, lost) for source in (before, after))
    alike = Counter(name.rpartition(".")[2] for name, (_, lines) in now.items() if was.get(name, (0, []))[1] == lines)
    every = Counter(name.rpartition(".")[2] for name in now)
    return {name for name, count in alike.items() if every[name] == count}


def _differs_like(place: _Place, others: Iterable[frozenset[str]]) -> bool:
    return len(place.words) > 1 and any(place.words <= words for words in others)


def _moved(trees: Iterable[tuple[_Places, _Places]]) -> _Places:
    """The places that left a file and came to another one, as they were."""
    gone, come = _Places(), set[str]()
    for was, now in trees:
        gone |= {name: was[name] for name in was.keys() - now.keys() if _NAMED.match(was[name][1][0])}
        come |= now.keys() - was.keys()
    return {name: place for name, place in gone.items() if name in come}


def _differing(
    path: RepoPath, was: _Places, now: _Places, instruction: str, moved: _Places, come: Collection[str]
) -> Iterator[_Place]:
    said = _is_named(path, instruction)
    names = {*_NAME.findall(instruction), *_WORD.findall(" ".join(_QUOTED.findall(instruction)))}
    asked = {word for word in _words(instruction) if len(word) >= _SHORTEST}
    versions = _VERSION.findall(instruction)
    gone = {n: place for n, place in was.items() if now and n not in {*now, *moved}}
    if path.is_python:  # what came under its name elsewhere is there now, in a class perhaps
        gone = {n: p for n, p in gone.items() if _NAMED.match(p[1][0]) and n.rpartition(".")[2] not in come}
    gone = {n: (at, list[str]()) for n, (at, _) in gone.items()}
    for name, (line, texts) in {**now, **gone}.items():
        stood = was.get(name) or moved.get(name)
        old, new = Counter(stood[1] if stood else ()), Counter(texts)
        if old == new:
            continue
        gone_lines, new_lines = ("\n".join(c.elements()) for c in (old - new, new - old))
        lost, added = (Counter(_WORD.findall(lines)) for lines in (gone_lines, new_lines))
        last = name.rpartition(".")[2]
        calm = stood is not None and bool(texts) and texts[0].startswith(("def ", "async def ", "@"))
        by_file = (path.is_python or not name) and (name in was or not stood)
        own = [last] if path.is_python else name.split(".")[-2:] if said else []  # which of the keys of a named file
        differing = (
            {*(lost - added), *(added - lost), *(() if calm else own)} if texts or not path.is_python else {last}
        )
        also = [word for token in differing for word in _ALSO.get(token, ())]
        yield _Place(
            where=": ".join(filter(None, (f"{path}:{line}" if line else str(path), name))),
            name=last,
            said=(by_file and (said or path.name.partition(".")[0] in names))
            or (last in names and (name in was or not stood))
            or len(_words(last) & asked) > 1
            or any(version in gone_lines or version in new_lines for version in versions),
            new=stood is None and (path.is_python or not was),
            gone=not texts,
            words=frozenset(word for token in (*differing, *also) for word in _words(token)),
            names=frozenset({*lost, *added} if texts else {last}),
        )


def _is_named(path: RepoPath, instruction: str) -> bool:
    return any(f"/{path}".endswith(f"/{name}") for name in _FILE.findall(instruction))


def _words(text: str) -> set[str]:
    """The words of a text or a name, each without its ending."""
    parts = {part.lower() for part in _PART.findall(text)}
    return {_ENDING.sub("", part) for part in parts if not _EVERYWHERE.fullmatch(part)}


def _all_names(sources: Iterable[bytes | None]) -> set[str]:
    return {name for source in sources for name in _WORD.findall((source or b"").decode("utf-8", "replace"))}


def _places(path: RepoPath, source: bytes, lost: Collection[str] = ()) -> _Places:
    """The places of a file; one of data that are no settings is one place without a name.

    So is a source that is nested too deep to be written out again. `lost`: functions that are not called any more.
    """
    if source and (keys := setting_keys(path, source)) is not None:
        return {name: (0, [line]) for name, line in keys.items()}
    whole = {"": (0, source.decode("utf-8", "replace").splitlines())} if source else {}
    if not path.is_python:
        return whole if _DATA.fullmatch(path.name) else {}
    try:
        return _written_out(source, lost)
    except RecursionError:
        return whole


def _written_out(source: bytes, lost: Collection[str]) -> _Places:
    tree, found = parse_or_none(source), _Places()
    tree = _Without(lost).visit(tree) if tree is not None and lost else tree
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
    """Takes out docstrings, annotations, `@overload` and imports."""

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

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        if any(last_name(decorator) == "overload" for decorator in node.decorator_list):
            return None
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


class _Without(ast.NodeTransformer):
    """`x` for `f(x)`, `f` being lost, and `xs` for `[x for x in xs]`, which that may leave."""

    def __init__(self, lost: Collection[str]) -> None:
        self._lost = lost

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        alone = len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)
        return node.args[0] if alone and dotted_name(node.func) in self._lost else node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        self.generic_visit(node)
        first = node.generators[0]
        plain = len(node.generators) == 1 and not (first.ifs or first.is_async)
        return first.iter if plain and ast.unparse(node.elt) == ast.unparse(first.target) else node
