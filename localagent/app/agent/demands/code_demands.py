"""What an instruction asks of functions, classes and values, and a change leaves out.

By words and syntax alone: what a name stands for is not known. Each rule names what it surely misses, and keeps quiet
where the words may mean something else.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from localagent.app.agent.demands.changed_tree import ChangedSource, ChangedTree
from localagent.app.agent.demands.sentences import LIST, quoted, sentences
from localagent.code.names import callee_name, last_name
from localagent.code.spans import Definition, FunctionSpan, functions

_ABSTRACT = (ast.Pass, ast.Raise)
_DEFAULT = re.compile(
    r"`(?:--)?(?:\w+\.)*([\w-]+)(?: [A-Z]+)?`[^`.;]{0,60}?\bdefault (?:is |value )?"
    r"(`[^`]+`|-?\d+(?:\.\d+)?|None|True|False)(?=[\s,;:.)])"
)
_ANY_DEFAULT = re.compile(r"\bdefaults? (?:is |value )?(`[^`]+`|\d[\w.]*|[A-Z]{3,})(?!\w)")
_GONE = re.compile(
    rf"\b(?:[Rr]emove|[Dd]rop|[Dd]elete|get rid of) (?:the )?(?:\w+ ){{0,2}}?({LIST})"
    r"(?! (?:from|argument|param|option|to))"
)
_EACH_CALL = re.compile(r"\b[Rr]eplace (?:(?:all|every) (?:the )?`?(\w+?)s?|the `?(\w+?)s)`?(?: calls?)? ")
_MOVES = re.compile(
    r"\b(?:mov(?:e|ed|es)|extract|collect|split|hoist|gather|pull)\b[^.]*\b(?:into|out|to|as)\b[^.]*"
    r"\b(?:module|file|functions?|helper|class|constants?|settings?|\w+\.py)\b",
    re.IGNORECASE,
)
_KIND_OF = re.compile(
    r"`(?:\w+\.)*(\w+)`(?:,| is| as|:| \()*? ?an? (?:new )?(?:(?:sub)?class of )?"
    r"`?(\w*[a-z](?:Error|Exception|Warning))`?"
)
_BELOW = re.compile(rf"`(\w+)`[^`;.]*?,? (?:with|and) ({LIST}) (?:below|under|beneath) (?:it|that)\b")
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


def defaults(instruction: str, change: ChangedTree) -> Iterator[str]:
    """Defaults of parameters, fields and options that are other ones."""
    for name, value in _DEFAULT.findall(instruction):
        wanted = value.strip("`")
        given = [d for source in change.sources for d in _defaults(source.after, name)]
        known = {_plain(d.value) for d in given if isinstance(d, ast.Constant)}
        open_ = len(given) > sum(isinstance(d, ast.Constant) for d in given) or None in (
            c.value for c in given if isinstance(c, ast.Constant)
        )
        if known and not open_ and _plain(wanted) not in known and "(" not in wanted:
            yield f"the default {wanted} of `{name}`, which is {sorted(known)[0]}"

    kept = re.search(r"\bas (?:now|before|today|it is)\b|\bunchanged\b", instruction)
    for value in _ANY_DEFAULT.findall(instruction) if not kept else ():
        plain = value.strip("`")
        said = re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", change.code + change.texts, re.IGNORECASE)
        if plain not in ("0", "None", "True", "False") and not said:
            yield f"the default {value.strip('`')}"


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


def moved_values(instruction: str, change: ChangedTree) -> Iterator[str]:
    """Numbers and texts that are nowhere any more, where something was only to move."""
    if _MOVES.search(instruction):
        stood, stand = Counter[str](), Counter[str]()
        for source in change.sources:
            stood.update(_literals(source.before))
            stand.update(_literals(source.after))
        for value in stood.keys() - stand.keys():
            if len(value.strip("'\"")) > 1 and value.strip("'\"") not in instruction:
                yield f"values to move as they are, and {value} is nowhere any more"


def subclasses(instruction: str, change: ChangedTree) -> Iterator[str]:
    """Classes that are new and are to be a kind of another one, and are not."""
    asked = [(name, base) for name, base in _KIND_OF.findall(instruction)]
    asked += [(name, base) for base, names in _BELOW.findall(instruction) for name in quoted(names)]
    for name, base in asked:
        made = [n for s in change.sources for n in ast.walk(s.after) if isinstance(n, ast.ClassDef) and n.name == name]
        if made and not any(last_name(b) == base or last_name(b) in _below(base, change) for b in made[0].bases):
            yield f"`{name}` as a kind of {base}"


def _below(base: str, change: ChangedTree) -> set[str]:
    nodes = [n for s in change.sources for n in ast.walk(s.after) if isinstance(n, ast.ClassDef)]
    found = {base}
    for _ in nodes:
        found |= {n.name for n in nodes if any(last_name(b) in found for b in n.bases)}
    return found


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


def _plain(value: object) -> str:
    try:
        return repr(ast.literal_eval(value)) if isinstance(value, str) else repr(value)
    except (ValueError, SyntaxError):
        return repr(value)


def _defaults(tree: ast.Module, name: str) -> Iterator[ast.expr]:
    """What a parameter, a field or an option of a name is given by default."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            plain = [*node.posonlyargs, *node.args]
            pairs = [*zip(plain[len(plain) - len(node.defaults) :], node.defaults, strict=True)]
            pairs += [(a, d) for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True) if d is not None]
            yield from (d for a, d in pairs if a.arg == name.replace("-", "_"))
        elif isinstance(node, ast.AnnAssign) and last_name(node.target) == name and node.value is not None:
            yield node.value
        elif isinstance(node, ast.Call) and any(
            isinstance(a, ast.Constant) and a.value == f"--{name}" for a in node.args
        ):
            yield from (k.value for k in node.keywords if k.arg == "default")


def _defined(tree: ast.Module) -> set[str]:
    return {n.name for n in ast.walk(tree) if isinstance(n, Definition)}


def _calls(tree: ast.Module, name: str) -> int:
    return sum(isinstance(n, ast.Call) and callee_name(n) == name for n in ast.walk(tree))


def _literals(tree: ast.Module) -> Iterator[str]:
    plain = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in plain and type(node.value) in (str, bytes, int, float):
            yield repr(node.value)


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
