"""Where a renamed name stands in text: examples of docstrings, documents, names put together at run time."""

import ast
import doctest
import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.module_view import MODULE_SCOPE
from localagent.code.graph.references import module_name, scope_name
from localagent.code.graph.values import Symbol
from localagent.code.names import callee_name, last_name
from localagent.code.source_text import SourceText, parse_or_none
from localagent.domain.paths import RepoPath
from localagent.recipes.instruction import Possible
from localagent.recipes.recipe import Place, RecipeQuestionError, RecipeSources, SourceSplice, listed
from localagent.text.visible_text import counted

ATTRIBUTES = {"getattr": 1, "setattr": 1, "hasattr": 1, "delattr": 1, "methodcaller": 0, "attrgetter": 0}
"""What asks for attributes by their names, and the argument that is the name."""
IMPORTS = {"import_module": 0, "__import__": 0, "resolve_name": 0}
_SPACES = frozenset({"globals", "locals", "vars", "__dict__"})
_ASKS = re.compile(
    rb"\b(?:[gs]etattr|(?:has|del)attr|methodcaller|attrgetter|globals|locals|vars|__dict__"
    rb"|import_module|__import__|resolve_name)\b"
)
_FIELD = re.compile(r"%(?:\(\w+\))?[-#0 +]*[\d.*]*[a-zA-Z]|\{[^{}]*\}")
_OPENS = re.compile(rb"[a-zA-Z]*(?:\"\"\"|'''|\"|')")
_ANY = ".*"
_LEAST_LETTERS = 2  # of a computed name that are known, before it counts as this one


def example_names(sources: RecipeSources, wanted: Iterable[Symbol], old: str) -> Iterator[tuple[SourceSplice, bool]]:
    """Places of a name in the examples of docstrings, and whether each surely means one of some symbols.

    An attribute of that name may mean one; a plain name that means something else does not.
    """
    graph, symbols = sources.graph, frozenset(wanted)
    for path in sorted(graph.facts):
        if old.encode() in sources.python[path] and b">>>" in sources.python[path]:
            text = sources.text(path)
            for line, chain in _in_examples(text, old):
                start = text.offset(*line)
                if text.utf8[start : start + len(old.encode())] == old.encode():
                    found = SourceSplice(path=path, start=start, end=start + len(old.encode()), text=old)
                    certain = bool(_meant(graph, path, chain) & symbols)
                    if certain or len(chain) > 1:
                        yield found, certain


def _in_examples(text: SourceText, old: str) -> Iterator[tuple[tuple[int, int], tuple[str, ...]]]:
    """((line, column in bytes), dotted name that ends there) of each place of a name in a file's examples."""
    tree = parse_or_none(text.utf8)
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not node.body:
            continue
        first = node.body[0]
        if ast.get_docstring(node, clean=False) is None or not isinstance(first, ast.Expr):
            continue
        assert isinstance(first.value, ast.Constant)
        for example in _examples(str(first.value.value)):
            for row, column, chain in _names_of(example.source):
                if chain[-1] == old:
                    line = example.lineno + row
                    before = 0 if line else _opening_of(text, first.value)  # what stands before the text in its line
                    yield (first.lineno + line, before + example.indent + len(">>> ") + column), chain


def _opening_of(text: SourceText, literal: ast.Constant) -> int:
    """The column where a literal's text begins."""
    found = _OPENS.match(text.utf8, text.offset(literal.lineno, literal.col_offset))
    return literal.col_offset + (len(found.group()) if found is not None else 0)


def _examples(docstring: str) -> list[doctest.Example]:
    try:
        return doctest.DocTestParser().get_examples(docstring)
    except ValueError:
        return []  # as doctest would: they cannot be run


def _names_of(source: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """(row from 0, column, the dotted name up to here) of each name; `from m import x` is read as `m.x`."""
    chain: tuple[str, ...] = ()
    dotted = False
    imported: tuple[str, ...] = ()
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NEWLINE:
                imported = ()
            if token.type == tokenize.NAME:
                if token.string == "import" and chain and not dotted:
                    imported = chain
                chain = (*chain, token.string) if dotted else (token.string,)
                before = token.line.encode()[: len(token.line[: token.start[1]].encode())]
                yield token.start[0] - 1, len(before), (*imported, *chain) if imported else chain
            dotted = token.string == "."
    except (tokenize.TokenError, SyntaxError):
        return


def _meant(graph: CodeGraph, path: RepoPath, chain: Sequence[str]) -> frozenset[Symbol]:
    if len(chain) == 1:
        bound = graph.view(path).bindings(MODULE_SCOPE, chain[0])
        return graph.origins(Symbol(path, MODULE_SCOPE, chain[0])) if bound else frozenset()
    return named_by(graph, chain, path)


def named_by(graph: CodeGraph, parts: Sequence[str], path: RepoPath) -> frozenset[Symbol]:
    """What a dotted name means that begins with a module."""
    for length in range(len(parts) - 1, 0, -1):
        module = graph.modules.resolve(".".join(parts[:length]), path)
        if module:
            symbols = graph.module_member(module, parts[length]).symbols
            for part in parts[length + 1 :]:
                symbols = graph.members(graph.values_of(symbols), part).symbols
            return symbols
    return frozenset()


def check_computed(places: Sequence[Place], name: str, possible: Possible) -> None:
    """RecipeQuestionError where a name may be put together at run time, and nobody said that it is to be left."""
    if places and possible is not Possible.LEAVE:
        raise RecipeQuestionError(
            f"{counted(len(places), 'place')} may put {name!r} together at run time: {listed(places)}",
            "change it there by hand too, and add `, leave the possible places`; or use a model (--model)",
        )


def named_in_documents(sources: RecipeSources, wanted: Iterable[Symbol], old: str) -> list[Place]:
    """Lines of documents that name it, by its module or class, in backquotes, or as a call."""
    holders = set()
    for symbol in wanted:
        view = sources.graph.view(symbol.path)
        scope = scope_name(view, symbol.scope)
        holders.add(scope.rpartition(".")[2] or module_name(symbol.path).rpartition(".")[2])
    name, held = re.escape(old), "|".join(map(re.escape, sorted(holders)))
    word = re.compile(rf"(?<!\w)(?:{held})\.{name}(?!\w)|`{name}(?=[(`])".encode())
    return [
        Place(path=path, line=number)
        for path, data in sorted(sources.documents.items())
        for number, line in enumerate(data.splitlines(), 1)
        if word.search(line)
    ]


def computed_names(
    sources: RecipeSources, names: Collection[str], by_name: Mapping[str, int]
) -> tuple[list[Place], frozenset[RepoPath]]:
    """(places that put together a text that may be one of some names, files that ask by texts that are not known).

    `by_name`: `ATTRIBUTES` or `IMPORTS`.
    """
    places, unknown = [], set()
    for path in sorted(sources.graph.facts):
        tree = parse_or_none(sources.python[path]) if _ASKS.search(sources.python[path]) else None
        for node in ast.walk(tree) if tree is not None else ():
            name = _looked_up_name(node, by_name)
            pattern = _pattern(name) if name is not None and not isinstance(name, ast.Constant) else ""
            known = sum(map(str.isalnum, pattern.replace(_ANY, "")))
            if name is not None and known >= _LEAST_LETTERS and any(re.fullmatch(pattern, one) for one in names):
                places.append(Place(path=path, line=name.lineno))
            elif pattern and not known:
                unknown.add(path)
    return places, frozenset(unknown)


def _looked_up_name(node: ast.AST, by_name: Mapping[str, int]) -> ast.expr | None:
    """The name by which something is asked for an attribute, or a namespace for an item."""
    if isinstance(node, ast.Call):
        at = by_name.get(last_name(node.func), -1)
        if 0 <= at < len(node.args):
            return node.args[at]
        space = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "get" else None
        return node.args[0] if node.args and _is_space(space) else None
    return node.slice if isinstance(node, ast.Subscript) and _is_space(node.value) else None


def _is_space(node: ast.expr | None) -> bool:
    return node is not None and callee_name(node) in _SPACES


def _pattern(node: ast.expr) -> str:
    """A regular expression of the texts that an expression may come to."""
    match node:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.JoinedStr(values=parts):
            return "".join(_pattern(part) for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _pattern(left) + _pattern(right)
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            return _ANY.join(map(re.escape, _FIELD.split(text)))
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return _ANY.join(map(re.escape, _FIELD.split(text)))
    return _ANY
