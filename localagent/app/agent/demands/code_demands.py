"""What an instruction asks of functions, classes and values, and a change leaves out.

By words and syntax alone: what a name stands for is not known. Each rule names what it surely misses, and keeps quiet
where the words may mean something else.
"""

import ast
import re
from collections.abc import Iterator

from localagent.app.agent.demands.changed_tree import ChangedSource, ChangedTree
from localagent.app.agent.demands.sentences import LIST, quoted, sentences
from localagent.code.names import callee_name, last_name
from localagent.code.spans import Definition, FunctionSpan, functions

_ABSTRACT = (ast.Pass, ast.Raise)
_GONE = re.compile(
    rf"\b(?:[Rr]emove|[Dd]rop|[Dd]elete|get rid of) (?:the )?(?:\w+ ){{0,2}}?({LIST})"
    r"(?! (?:from|argument|param|option|to))"
)
_EACH_CALL = re.compile(r"\b[Rr]eplace (?:(?:all|every) (?:the )?`?(\w+?)s?|the `?(\w+?)s)`?(?: calls?)? ")
_EVERY = re.compile(r"\b(?:every|all|each)(?: public)? (?:functions?|methods?)\b")
_PYTHON_FILE = re.compile(r"[\w/]+\.py\b")
_SETTINGS = re.compile(r"\.(?:json|toml|ya?ml|cfg|ini|sql)$")
_SUBJECT = re.compile(rf"(?:\w+ )?({LIST}) (?:should|must|takes?|gets?)\b")


def parameters(instruction: str, change: ChangedTree) -> Iterator[str]:
    """New parameters that the instruction names, and that their function does not read."""
    words = {*re.findall(r"\w+", instruction)}
    read = {(s.node.name, n) for source in change.sources for s in functions(source.after) for n in _names(s.node)}
    for source in change.sources:
        had = {s.qualname: _arguments(s) for s in functions(source.before)}
        for span in functions(source.after):
            new = (_arguments(span) - had.get(span.qualname, set())) & words
            unread = sorted(n for n in new - _names(span.node) if (span.node.name, n) not in read)
            if unread and not _is_abstract(span):
                yield f"`{unread[0]}`, which {span.qualname} takes and never uses"


def gone(instruction: str, change: ChangedTree) -> Iterator[str]:
    """Functions and classes that are to go, and calls that are all to be replaced, and that are still there."""
    for found in _GONE.findall(instruction):
        names = {re.sub(r"\(.*", "", name).rpartition(".")[2] for name in quoted(found)}
        for source in change.sources:
            yield from (f"`{n}` to go, and it is still there" for n in sorted(names & _defined(source.after)))
    for one, other in _EACH_CALL.findall(instruction):
        name = one or other
        for source in change.sources:
            if _calls(source.before, name) and _calls(source.after, name):
                yield f"all calls of {name} in {source.path} to be replaced, and some are left"


def each_function(instruction: str, change: ChangedTree) -> Iterator[str]:
    """Docstrings or annotations of every function of a file, where one has none."""
    for sentence in filter(_EVERY.search, sentences(instruction)):
        files = [f"/{name}" for name in _PYTHON_FILE.findall(sentence)]
        for source in change.sources:
            for span in functions(source.after) if f"/{source.path}".endswith(tuple(files)) and files else ():
                hidden = "public" in sentence and span.node.name.startswith("_")
                if "docstring" in sentence and span.outermost and not hidden and not ast.get_docstring(span.node):
                    yield f"a docstring of every function, and {span.qualname} has none"
                if re.search(r"annotat|type hint", sentence, re.IGNORECASE) and not _is_annotated(span):
                    yield f"annotations of every function, and {span.qualname} lacks some"


def subjects(instruction: str, change: ChangedTree) -> Iterator[str]:
    """Functions and classes that "should" do something, and that neither differ nor use what differs."""
    if not change.code or any(_SETTINGS.search(path) for path in change.paths):
        return  # a setting may be what they read
    differs = {n for s in change.sources for n in _differing(s)}
    for sentence in sentences(instruction):
        found = _SUBJECT.match(sentence)
        for text in quoted(found[1]) if found is not None else ():
            name = re.sub(r"\(.*", "", text).rpartition(".")[2]
            uses = _uses(name, change)
            reached = {name, *uses, *(n for one in uses - differs for n in _uses(one, change))}
            if uses and not reached & differs:
                yield f"a change of `{name}`, and nothing that it does differs"


def _uses(name: str, change: ChangedTree) -> set[str]:
    """The names in the functions and classes of a name, as they were."""
    stood = (n for s in change.sources for n in ast.walk(s.before) if isinstance(n, Definition) and n.name == name)
    return {used for node in (*stood, *change.definitions(name)) for used in _names(node)}


def _arguments(span: FunctionSpan) -> set[str]:
    a = span.node.args
    return {one.arg for one in (*a.posonlyargs, *a.args, *a.kwonlyargs)} - {"self", "cls"}


def _names(node: ast.AST) -> set[str]:
    return {last_name(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)}


def _is_abstract(span: FunctionSpan) -> bool:
    """Whether a function only says what others do, or is one of several heads of one."""
    last = span.node.body[-1]
    if any(last_name(d) in ("overload", "abstractmethod") for d in span.node.decorator_list):
        return True
    return len(span.node.body) <= 2 and (
        isinstance(last, _ABSTRACT) or (isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant))
    )


def _defined(tree: ast.Module) -> set[str]:
    return {n.name for n in ast.walk(tree) if isinstance(n, Definition)}


def _calls(tree: ast.Module, name: str) -> int:
    return sum(isinstance(n, ast.Call) and callee_name(n) == name for n in ast.walk(tree))


def _is_annotated(span: FunctionSpan) -> bool:
    a = span.node.args
    given = [*a.posonlyargs, *a.args, *a.kwonlyargs]
    return span.node.returns is not None and all(one.annotation for one in given if one.arg not in ("self", "cls"))


def _differing(source: ChangedSource) -> set[str]:
    """The functions and classes that differ, and other names that the statements of the module set anew."""
    found = []
    for tree in (source.before, source.after):
        parts: dict[str, list[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, Definition):
                parts.setdefault(node.name, []).append(ast.dump(node))
        for node in tree.body:
            for target in node.targets if isinstance(node, ast.Assign) else ():
                parts.setdefault(last_name(target), []).append(ast.dump(node))
        found.append(parts)
    before, after = found
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}
